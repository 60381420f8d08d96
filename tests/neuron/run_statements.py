"""Runs the statements of all files `statements*.py` in one process and prints one JSON line with what differs."""

from importlib import import_module
from pathlib import Path

import statement_kit

if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("statements*.py")):
        import_module(path.stem)
    statement_kit.main()
