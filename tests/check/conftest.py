"""The sample project, locked once."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import copied, run


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("locked") / "project")
    ran = run(folder, "lock")
    assert ran.returncode == 0, ran.stderr
    return folder
