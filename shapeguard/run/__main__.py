"""The process that does the work: `python -m shapeguard.run infer|train SETTINGS`."""

from __future__ import annotations

import sys

from shapeguard.run.border import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
