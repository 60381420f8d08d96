"""Ten pairs of pull requests on the sample project: one fails with cause and line, one beside it passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import Change, checked

MEANT = "if it is meant, run `shapeguard lock`"
LOOP = "        optimizer.zero_grad()\n"
EVALUATION = (
    LOOP + '    net.eval()\n    with torch.no_grad():\n        for ids in loader:\n            step(ids.to("neuron"))\n'
)
AUTOCAST = '        with torch.autocast("neuron", torch.bfloat16):\n            logits = step(ids)\n'
SCALED = (
    ("model.py", "def forward(self, ids):", "def forward(self, ids, scale=1):"),
    ("model.py", "self.head(", "scale * self.head("),
    ("train.py", "for ids in loader:", "for scale, ids in enumerate(loader, 2):"),
    ("train.py", "logits = step(ids)", "logits = step(ids, scale)"),
)

PAIRS = {
    "a short last batch": (
        Change(
            what="drops drop_last",
            edits=(("train.py", ", drop_last=True", ""),),
            line="    loader = DataLoader(",
            cause="ids dim 0: 4, then 2 in the last batch of each epoch",
        ),
        Change(what="comments", edits=(("train.py", "ROWS = 4", "# The rows of a batch.\n\n\nROWS = 4  # four"),)),
    ),
    "moved inputs": (
        Change(
            what="moves inputs to the device",
            job="decode",
            edits=(("decode.py", "[None, :8]", '[None, :8].to("neuron")'),),
            line="            ids = torch.cat(",
            cause="grows by 1",
        ),
        Change(what="learning rate of AdamW", edits=(("train.py", "lr=1e-3", "lr=5e-4"),)),
    ),
    "a ragged collator": (
        Change(
            what="adds a ragged collator",
            edits=(("rows.py", "width = LENGTH", "width = max(len(row) for row in rows)"),),
            line="def collate(rows):",
            cause="ids dim 1: 16, then",
        ),
        Change(what="file order", renames=(("data/letters.txt", "data/a.txt"),)),
    ),
    "another dtype": (
        Change(
            what="changes a dtype",
            edits=(("train.py", 'Net().to("neuron")', 'Net().to("neuron", torch.bfloat16)'),),
            line="        logits = step(ids)",
            cause="dtype float32 → bfloat16",
        ),
        Change(what="other weights", edits=(("train.py", "Net()", "Net(seed=7)"),)),
    ),
    "an evaluation": (
        Change(
            what="adds an evaluation loop",
            edits=(("train.py", LOOP, EVALUATION),),
            line='            step(ids.to("neuron"))',
            cause="gradients on: True, then False",
        ),
        Change(what="a second epoch", edits=(("train.py", "in loader:", "in [*loader, *loader]:"),)),
    ),
    "a larger batch": (
        Change(
            what="raises a batch size",
            edits=(("train.py", "ROWS = 4", "ROWS = 6"),),
            line="    loader = DataLoader(",
            cause="ids dim 0: 4 → 6, against the lock",
        ),
        Change(what="shuffles", edits=(("train.py", "drop_last=True", "drop_last=True, shuffle=True"),)),
    ),
    "a longer row": (
        Change(
            what="raises the length",
            edits=(("rows.py", "LENGTH = 16", "LENGTH = 24"),),
            line="def collate(rows):",
            cause="ids dim 1: 16 → 24, against the lock",
        ),
        Change(what="other numbers for characters", edits=(("rows.py", "[1 + ord", "[2 + ord"),)),
    ),
    "autocast": (
        Change(
            what="adds autocast",
            edits=(("train.py", "        logits = step(ids)\n", AUTOCAST),),
            line="            logits = step(ids)",
            cause="autocast",
        ),
        Change(what="decay and betas of AdamW", edits=(("train.py", "lr=1e-3", "weight_decay=0.1, betas=(0.8, 0.9)"),)),
    ),
    "a number in the graph": (
        Change(
            what="passes a counter as a Python number",
            edits=SCALED,
            line="        logits = step(ids, scale)",
            cause="a Python value baked into the graph",
        ),
        Change(
            what="moves the step into a function",
            edits=(("train.py", "    main()\n", "    run = main\n    run()\n"), ("train.py", "logits", "scores")),
        ),
    ),
    "another optimizer": (
        Change(
            what="takes SGD in place of AdamW",
            edits=(("train.py", "torch.optim.AdamW(net.parameters(), lr=1e-3)",
                    "torch.optim.SGD(net.parameters(), lr=1e-3)"),),
            line="        optimizer.step()",
            cause="_foreach_add_",
        ),
        Change(
            what="more rows",
            edits=(("rows.py", "    return [line for", "    files = files * 2\n    return [line for"),),
        ),
    ),
}  # fmt: skip
SLOW = list(PAIRS)[3:]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in SLOW else name for name in PAIRS]
)
def test_one_of_the_pair_fails_with_cause_and_line_and_the_other_passes(name: str, locked: Path, tmp_path: Path):
    bad, good = PAIRS[name]
    code, found = checked(locked, bad, tmp_path / "bad")
    told = [row for row in found["findings"] if row["code"] == "new-graph"]
    lines = [(tmp_path / "bad" / row["path"]).read_text().splitlines()[row["line"] - 1] for row in told]
    assert code == 1
    assert any(
        line.startswith(bad.line) and bad.cause in row["message"] for line, row in zip(lines, told, strict=True)
    ), told
    code, found = checked(locked, good, tmp_path / "good")
    assert (code, found["findings"], found["problems"]) == (0, [], [])


def test_there_are_ten_pairs():
    assert len(PAIRS) == 10
