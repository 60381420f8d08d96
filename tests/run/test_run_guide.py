"""The two examples of the guide run as they are printed, and are short enough to copy."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.run.runner import REPOSITORY, language_model, prompts
from tests.trace.tracing import trace

GUIDE = (REPOSITORY / "docs" / "runners.md").read_text(encoding="utf-8")
GENERATE, TRAIN = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_both_cores_have_fewer_than_80_lines() -> None:
    assert max(len(block.splitlines()) for block in (GENERATE, TRAIN)) < 80


def test_the_core_of_inference_makes_one_decode_graph(tmp_path: Path) -> None:
    folder = tmp_path / language_model(tmp_path)
    texts = prompts(10, longest=30)
    program = f"folder, prompts = {str(folder)!r}, {texts!r}\n{GENERATE}\nimport json\nprint(json.dumps(texts))\n"
    done = trace(tmp_path, program)
    assert done.code == 0, done.report
    assert len(json.loads(done.out)) == len(texts)
    assert done.summary["totals"]["regions"] == 1


def test_the_core_of_training_makes_two_graphs_a_bucket(tmp_path: Path) -> None:
    folder = tmp_path / language_model(tmp_path)
    head = f"folder, output, texts = {str(folder)!r}, 'out', {prompts(18, longest=30)!r}\n"
    done = trace(tmp_path, head + TRAIN + "\nassert loss < 6.1\n")
    assert done.code == 0, done.report
    assert done.summary["totals"]["aot_graphs"] == {"forward": 2, "backward": 2, "inference": 0}
    assert done.summary["totals"]["after_warmup"]["regions"] == 0
