"""One process's event file, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from event_writer import Writer


@pytest.fixture
def run(tmp_path: Path) -> Writer:
    return Writer(tmp_path)
