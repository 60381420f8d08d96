"""The examples of the guide run, in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "fixtures" / "scripts"))
import tiny

GUIDE = Path(__file__).parent.parent.parent / "docs" / "buckets.md"


def test_the_guides_examples_run() -> None:
    tokenizer = tiny.tokenizer()
    prompts = tiny.lines()[:9]
    scope: dict[str, Any] = {
        "tokenizer": tokenizer,
        "prompts": prompts,
        "dataset": [tokenizer(prompt) for prompt in prompts],
        "model": tiny.llama(),
    }
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, scope)
    assert scope["output"].shape == (9, scope["inputs"]["input_ids"].shape[1] + 4)
