"""The guide's examples run, and print what the guide says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record
from neff_folders import module

GUIDE = Path(__file__).parent.parent.parent / "docs" / "cache.md"
BLOCKS = re.findall(r"^```console\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_examples_of_the_guide_run(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(tmp_path / "cache"))
    filled(tmp_path / "cache", record(1))
    (tmp_path / "shared" / "graphs").mkdir(parents=True)
    (tmp_path / "neffs").mkdir()
    module(tmp_path / "neffs", how="failed")
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, said = part.partition("\n")
        words = shlex.split(command.replace("file:///shared", f"file://{tmp_path}/shared"))
        assert words[0] == "shapeguard"
        ran = shapeguard(*words[1:])
        assert ran.code == 0, (command, ran.err)
        if said.strip():
            assert ran.out == said
