"""`python -m shapeguard`, and the console script."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line; `--version` alone and clean files are answered before click is imported."""
    if sys.argv[1:] == ["--version"]:
        from shapeguard import __version__

        sys.stdout.write(f"shapeguard {__version__}\n")
        return
    if sys.argv[1:2] == ["lint"]:
        from shapeguard.cli.quick import is_answered

        if is_answered(sys.argv[2:]):
            return
    from shapeguard.cli.main import main

    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
