"""TorchNeuron's own tests that need no hardware, in our words (numbers are those of the facts, section 6)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.facts.run_statements import outcomes

METRICS = "from torch_neuronx import metrics; metrics.set_enabled(True); n = 'neuron'\n"
STATS = "\ns = _C._get_compilation_cache_stats(); print(s['persistent_misses'], s['persistent_hits'])"
CLEAR = "; _C._clear_compilation_memory_cache(); "
MODEL = "nn.Sequential(nn.Linear(10, 5), nn.ReLU()).to(n)"
RECORDS = "\nprint([r.graph_name for r in torch.neuron.get_dynamo_metrics()])"
BROKEN = """
a, b = nn.Linear(4, 4).to(n), nn.Linear(4, 3).to(n)
def broken(x):
    x = a(x)
    torch._dynamo.graph_break()
    return b(x)
with torch.no_grad():
    torch.compile(broken, backend=n)(torch.ones(1, 4).to(n))
r = torch.neuron.get_dynamo_metrics()
print(len(r), len({x.graph_name for x in r}))
"""
NO_KERNEL = "\nprint([k for k in sorted(_C._get_all_cache_keys()) if 'aten::contiguous' in k])"

# Name → program, and what it prints.
CHECKS: dict[str, tuple[str, str]] = {
    "1 a second execution is found on disk": (
        "torch.randn(4, 8, device=n) @ torch.randn(8, 4, device=n)"
        + STATS
        + CLEAR
        + "torch.randn(4, 8, device=n) @ torch.randn(8, 4, device=n)"
        + STATS,
        "1 0\n1 1\n",
    ),
    "2 other shapes are other entries": (
        "f = lambda a, b, c: torch.randn(a, b, device=n) @ torch.randn(b, c, device=n)\nf(4, 8, 4); f(8, 16, 8)"
        + STATS
        + CLEAR
        + "f(4, 8, 4); f(8, 16, 8)"
        + STATS,
        "2 0\n2 2\n",
    ),
    "3 the same product five times": (
        "for _ in range(5):\n    torch.randn(10, 20, device=n) @ torch.randn(20, 15, device=n)" + STATS,
        "1 0\n",
    ),
    "8 a compiled layer has one record": (
        f"m = torch.compile({MODEL}, backend=n)\nwith torch.no_grad():\n    m(torch.ones(2, 10).to(n))\n"
        "r = torch.neuron.get_dynamo_metrics(); print(len(r), r[0].graph_node_count > 0)",
        "1 True\n",
    ),
    "9 two models have two": (
        f"with torch.no_grad():\n    torch.compile({MODEL}, backend=n)(torch.ones(2, 10).to(n))\n"
        "    torch.compile(nn.Sequential(nn.Linear(10, 5), nn.Tanh()).to(n), backend=n)(torch.ones(2, 10).to(n))\n"
        "print(torch._dynamo.utils.counters[n]['compiled_graphs'], len(torch.neuron.get_dynamo_metrics()))",
        "2 2\n",
    ),
    "10 another batch size compiles again": (
        f"m = torch.compile({MODEL}, backend=n, dynamic=False)\nwith torch.no_grad():\n    m(torch.ones(2, 10).to(n))\n"
        "    m(torch.ones(4, 10).to(n))\nprint(len(torch.neuron.get_dynamo_metrics()))",
        "2\n",
    ),
    "11 the pieces around a break have names of their own": (BROKEN, "2 2\n"),
    "12 a name has the model, a number, the kind, a number": (
        "import re\nwith torch.no_grad():\n    torch.compile(nn.Linear(8, 3).to(n), backend=n)(x)\n"
        "    torch.compile(nn.Linear(8, 2).to(n), backend=n, options={'model_name': 'mine'})(x)\n"
        "print([re.sub(r'\\d+', 'N', r.graph_name) for r in torch.neuron.get_dynamo_metrics()])",
        "['model_default_N_inference_N', 'mine_N_inference_N']\n",
    ),
    "17 a dimension that stays static passes": (
        "f = torch.compile(lambda x: x + 1, backend=n, fullgraph=True); print(f(x).shape)",
        "torch.Size([4, 8])\n",
    ),
    "18 a slice is one kernel, a leading part none": (
        "torch.ones(4, 8, 64).to(n)[..., :32].contiguous()\nprint(len(_C._get_all_cache_keys()))\n"
        "torch.ones(8, 64, 32).to(n)[:4].contiguous()\nprint(len(_C._get_all_cache_keys()))",
        "1\n1\n",
    ),
    "19 two permutations are two kernels": (
        "t = torch.ones(1, 2048, 32, 128, dtype=torch.bfloat16).to(n)\nt.permute(0, 2, 3, 1).contiguous()\n"
        "print(len(_C._get_all_cache_keys()))\nt.permute(0, 2, 1, 3).contiguous()\nprint(len(_C._get_all_cache_keys()))",
        "1\n2\n",
    ),
    "20 two broadcasts are two kernels": (
        "t = torch.ones((), dtype=torch.bfloat16).to(n)\nt.expand(4096, 2048).contiguous()\n"
        "print(len(_C._get_all_cache_keys()))\nt.expand(2048, 4096).contiguous()\nprint(len(_C._get_all_cache_keys()))",
        "1\n2\n",
    ),
    "21 a transposed product needs no kernel": (
        "torch.ones(256, 128).to(n).T @ torch.ones(256, 512).to(n)" + NO_KERNEL,
        "[]\n",
    ),
    "22 a product with a slice": ("x @ torch.ones(8, 16).to(n)[:, :4]" + NO_KERNEL, "[]\n"),
    "22 a chain": ("torch.relu(x.t() * 2.0)[:4] @ y[:, :3]" + NO_KERNEL, "[]\n"),
    "22 one tensor twice, once transposed": (
        "t = torch.ones(8, 8).to(n)\ntorch.cat([t, t.t()])" + NO_KERNEL,
        "[]\n",
    ),
    "22 ones like a view": ("torch.ones_like(x.t())" + NO_KERNEL, "[]\n"),
    "22 a slice of the whole": ("torch.neg(x[:, 0:8])" + NO_KERNEL, "[]\n"),
}


# Programs of which not only the output counts: what they add to the run's own count.
REFUSED = "17 a dynamic dimension is refused by name"
CASTS = {
    "28 float32 to float16 stays on the device": "x.half()",
    "28 float32 to float64 is one read and one write": "x.double()",
    "28 a narrower int64 is one read and one write": "torch.ones(4, dtype=torch.int64).to('neuron').int()",
}
PROGRAMS = {
    **{name: METRICS + program for name, (program, _) in CHECKS.items()},
    REFUSED: "torch._dynamo.mark_dynamic(x, 0)\ntorch.compile(lambda x: x + 1, backend='neuron')(x)",
    **CASTS,
}


@cache
def ran(folder: Path) -> dict[str, Any]:
    return outcomes(folder, PROGRAMS)


@pytest.fixture
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.getbasetemp() / "facts-outside"
    folder.mkdir(exist_ok=True)
    return ran(folder)


@pytest.mark.xdist_group("facts-outside")
@pytest.mark.parametrize("name", CHECKS)
def test_check(name: str, found: dict[str, Any]) -> None:
    assert found[name]["error"] == ""
    assert found[name]["prints"] == CHECKS[name][1]


@pytest.mark.xdist_group("facts-outside")
def test_check_17_a_dynamic_dimension_is_refused_by_name(found: dict[str, Any]) -> None:
    assert "RuntimeError: Dynamic shapes detected: 1 dynamic input(s) (dim 0 of x)." in found[REFUSED]["error"]


@pytest.mark.xdist_group("facts-outside")
def test_check_28_casts_to_the_host_and_not(found: dict[str, Any]) -> None:
    # A bounce is one read and one write.
    assert [found[name]["moved"] for name in CASTS] == [{}, {"_to_copy": [1, 384]}, {"_to_copy": [1, 48]}]


def test_check_4_a_file_lies_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "neffs"
    program = METRICS + "torch.randn(13, 17, device=n) @ torch.randn(17, 11, device=n)" + STATS
    found = outcomes(tmp_path, {"product": program}, TORCH_NEURONX_NEFF_CACHE_DIR=str(folder))
    assert found["product"]["prints"] == "1 0\n"
    [file] = folder.rglob("*.neff")
    assert file == folder / file.stem[:2] / file.stem[2:4] / f"{file.stem}.neff"
    assert len(file.stem) == 32
    assert not list(folder.rglob("*.tmp"))


def test_check_16_each_rank_has_its_own_records(tmp_path: Path) -> None:
    program = "m = torch.compile(nn.Linear(8, WIDTH).to('neuron'), backend='neuron')\nwith torch.no_grad():\n    m(x)\nprint(len(torch.neuron.get_dynamo_metrics()))"
    for rank in ("0", "1"):
        found = outcomes(tmp_path, {"one": program.replace("WIDTH", f"1{rank}")}, RANK=rank)
        assert found["one"]["prints"] == "1\n"
