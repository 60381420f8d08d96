"""The linter's own cache lies in the folder that is checked, which every test has for itself."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _result_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHAPEGUARD_NO_CACHE", raising=False)
