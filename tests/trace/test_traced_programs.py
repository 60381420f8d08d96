"""Every program in `fixtures/scripts` traces to the counts beside it, the same with values and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.tracing import SCRIPTS, Traced, trace

EXPECTED: dict[str, dict[str, Any]] = json.loads((SCRIPTS / "expected.json").read_text())


def test_every_program_has_its_counts() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} - {"tiny", "embed_minilm"} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_program_traces_to_its_counts(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    traced = {}
    for inner in ("cpu", "meta"):
        folder = tmp_path / inner
        folder.mkdir()
        traced[inner] = trace(folder, SCRIPTS / f"{name}.py", "--inner", inner)
        assert traced[inner].code == 0, traced[inner].report
    check_counts(traced["cpu"], expected)
    if not expected.get("branches"):
        assert keys(traced["meta"]) == keys(traced["cpu"])


def check_counts(run: Traced, expected: dict[str, Any]) -> None:
    totals = run.summary["totals"]
    assert totals["regions"] == expected["regions"]
    assert totals["aot_graphs"] == {kind: expected.get(kind, 0) for kind in ("forward", "backward", "inference")}
    places = {f"{Path(c['site']['file']).name}:{c['site']['line']}" for c in run.summary["causes"] if c.get("site")}
    if "cause" in expected:
        assert expected["cause"] in places
    # By one each step: a cache that a budget makes longer for each call is another thing.
    growing = {row["op"] for row in run.summary["eager_ops"] if row["growing"] and row["growing"]["by"] == 1}
    assert (expected["grows"] in growing) if "grows" in expected else not growing & {"cat", "copy_"}
    if "placement" in expected:
        assert "on the CPU" in run.report
        assert expected["placement"] in run.report


def keys(run: Traced) -> tuple[list[str], list[tuple[str, int]]]:
    """Give keys of compiled graphs, and how many signatures each eager operator has."""
    summary = run.summary
    eager = [(row["op"], row["signatures"]) for row in summary["eager_ops"]]
    return sorted(graph["key"] for graph in summary["graphs"]), sorted(eager)


def test_the_output_sequence_on_the_device_grows_by_one_signature_a_step(tmp_path: Path) -> None:
    run = trace(tmp_path, SCRIPTS / "generate_on_device.py")
    (cat,) = (row for row in run.summary["eager_ops"] if row["op"] == "cat")
    (cause,) = (
        c for c in run.summary["causes"] if c.get("input", "").startswith("tensors[0]") and "SG201" in c["rules"]
    )
    # 20 tokens after a prompt of 16: the sequence is joined at lengths 16 to 35.
    assert cause["values"] == list(range(16, 36))
    assert cat["growing"]
    assert "generate_on_device.py:10" in run.report


def test_the_same_program_gives_the_same_summary_anywhere(tmp_path: Path) -> None:
    texts = []
    for name, seed in (("here", "1"), ("elsewhere", "2")):
        folder = tmp_path / name
        folder.mkdir()
        program = (SCRIPTS / "loop_ragged.py").read_text()
        summary = trace(folder, program, PYTHONHASHSEED=seed).summary
        summary.pop("times", None)
        texts.append(json.dumps({k: v for k, v in summary.items() if k not in ("command", "wall_s")}, sort_keys=True))
    assert texts[0] == texts[1]


@pytest.mark.real
def test_real_weights_give_the_embeddings_of_plain_torch(tmp_path: Path) -> None:
    run = trace(tmp_path, SCRIPTS / "embed_minilm.py")
    assert run.code == 0, run.report
    assert float(run.out.split()[-1]) > 0.9999
    assert run.summary["totals"]["regions"] == 1
    assert run.summary["totals"]["after_warmup"]["regions"] == 0


LOSSES = """
import sys, torch
from torch import nn
device, kind = sys.argv[1:]
torch.manual_seed(0)
model = nn.Sequential(
    nn.Embedding(40, 16), nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 40)
).to(device)
forward = torch.compile(model, backend="neuron") if device == "neuron" else model
settings = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adafactor": {"lr": 0.01}, "RMSprop": {"lr": 0.001}}
optimizer = getattr(torch.optim, kind)(model.parameters(), **settings.get(kind, {"lr": 0.01}))
ids = torch.randint(0, 40, (4, 12)).to(device)
for _ in range(6):
    loss = nn.functional.cross_entropy(forward(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "Adafactor", "RMSprop", "Adagrad"])
def test_losses_are_those_of_plain_torch(kind: str, tmp_path: Path) -> None:
    losses = {}
    for device in ("neuron", "cpu"):
        folder = tmp_path / device
        folder.mkdir()
        out = trace(folder, LOSSES, words=(device, kind)).out
        losses[device] = [float(line) for line in out.split()]
    assert losses["neuron"] == pytest.approx(losses["cpu"], abs=1e-4)


STUB = """
import sys, torch
from pathlib import Path
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], device_map="neuron")
print(model.dtype, model.device, model.training)
forward = torch.compile(model, backend="neuron")
with torch.no_grad():
    print(tuple(forward(torch.tensor([[1, 2, 3]], device="neuron")).logits.shape))
"""


def test_stub_weights_read_none_and_give_the_same_graphs(tmp_path: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    folder = tmp_path / "model"
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    runs = []
    for name, options in (("real", ()), ("stub", ("--stub-weights",)), ("meta", ("--stub-weights", "--inner", "meta"))):
        if name == "stub":
            (folder / "model.safetensors").unlink()
        (tmp_path / name).mkdir()
        runs.append(trace(tmp_path / name, STUB, *options, words=(str(folder),)))
    assert [run.code for run in runs] == [0, 0, 0], runs[-1].report
    assert runs[0].out == runs[1].out == runs[2].out
    assert keys(runs[0]) == keys(runs[1]) == keys(runs[2])


def test_max_steps_ends_the_program_cleanly(tmp_path: Path) -> None:
    run = trace(tmp_path, SCRIPTS / "loop_ragged.py", "--max-steps", "2")
    assert run.code == 0, run.report
    assert run.summary["totals"]["regions"] == 2


def test_steps_can_be_marked_by_hand(tmp_path: Path) -> None:
    program = (
        "import torch, shapeguard\n"
        "double = torch.compile(lambda x: x * 2, backend='neuron')\n"
        "for size in (2, 3, 4, 5):\n"
        "    shapeguard.step()\n"
        "    for _ in range(3):\n"
        "        double(torch.ones(size).to('neuron'))\n"
    )
    run = trace(tmp_path, program)
    assert run.summary["steps"]["total"] == 4
    assert [graph["first_step"] for graph in run.summary["graphs"]] == [1, 2, 3, 4]


def test_a_dynamic_shape_is_refused_with_the_way_out(tmp_path: Path) -> None:
    program = (
        "import torch\n"
        "double = torch.compile(lambda x: x * 2, backend='neuron', dynamic=True)\n"
        "double(torch.ones(4).to('neuron'))\n"
    )
    run = trace(tmp_path, program)
    assert run.code == 1
    assert "Neuron compiles static shapes only: pass dynamic=False" in run.report


def test_the_users_own_dynamo_settings_survive(tmp_path: Path) -> None:
    program = (
        "import torch, torch._dynamo\n"
        "torch._dynamo.config.recompile_limit = 3\n"
        "before = torch._dynamo.config.automatic_dynamic_shapes\n"
        "double = torch.compile(lambda x: x * 2, backend='neuron')\n"
        "for size in range(2, 8):\n"
        "    double(torch.ones(size).to('neuron'))\n"
        "print(torch._dynamo.config.recompile_limit, torch._dynamo.config.automatic_dynamic_shapes == before)\n"
    )
    run = trace(tmp_path, program)
    assert run.out == "3 True\n"
    assert run.summary["totals"]["regions"] == 3
    assert "limit" in {cause["class"] for cause in run.summary["causes"]}
