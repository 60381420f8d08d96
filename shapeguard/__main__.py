"""`python -m shapeguard`, and the console script."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line; `--version` alone is answered before click is imported."""
    if sys.argv[1:] == ["--version"]:
        from shapeguard import __version__

        sys.stdout.write(f"shapeguard {__version__}\n")
        return
    from shapeguard.cli.main import main

    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
