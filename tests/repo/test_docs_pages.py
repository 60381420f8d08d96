"""The reference pages say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


def test_the_reference_pages_are_up_to_date():
    command = [sys.executable, str(REPOSITORY / "docs" / "generate.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
