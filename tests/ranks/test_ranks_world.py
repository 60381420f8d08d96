"""A world that is not there compiles what the real one compiles, by the full text of every graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launching import plain, torchrun, world


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    plain("small.py", str(folder))
    return str(folder)


def test_a_rank_by_itself_compiles_what_it_compiles_among_two(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alone").mkdir()
    real = torchrun(tmp_path / "real", "split.py", ranks=2)
    alone = world(tmp_path / "alone", "split.py", sizes="tp=2")
    assert (real.code, alone.code) == (0, 0), alone.report[-3000:]
    for rank in range(2):
        assert len(real.graphs(rank)) >= 2
        assert real.graphs(rank) == alone.graphs(rank)
    assert alone.summary["device"]["world"] == {"sizes": "tp=2", "ranks": [0, 1]}
    assert "simulated world tp=2 of 2 ranks: ranks 0, 1 ran" in " ".join(alone.report.split())
    assert alone.summary["rank_differences"][0]["kind"] == "constants"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sizes", "words"),
    [("tp=4", ("--tp", "4")), ("fsdp=4", ("--fsdp", "4")), ("tp=2,fsdp=2", ("--tp", "2", "--fsdp", "2"))],
)
def test_four_ranks_alone_compile_what_they_compile_together(
    tmp_path: Path, model: str, sizes: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alone").mkdir()
    real = torchrun(tmp_path / "real", "hand_loop.py", model, *words, "--compile", ranks=4)
    alone = world(tmp_path / "alone", "hand_loop.py", model, *words, "--compile", sizes=sizes)
    assert (real.code, alone.code) == (0, 0), alone.report[-3000:]
    for rank in range(4):
        assert real.graphs(rank)
        assert real.graphs(rank) == alone.graphs(rank)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ("ep=2", ("experts", "--tp", "2", "--ep", "2", "--exchange", "all_reduce")),
        ("ep=2", ("experts", "--tp", "2", "--ep", "2", "--exchange", "all_to_all")),
        ("tp=8", ("llama-8b", "--tp", "8", "--length", "2048")),
    ],
)
def test_a_rank_of_a_large_model_is_traced_without_values(tmp_path: Path, sizes: str, words: tuple[str, ...]) -> None:
    options = ("--inner", "meta", "--stub-weights")
    ran = world(
        tmp_path, "forward_backward.py", str(tmp_path / "config"), *words, sizes=sizes, rank="1", options=options
    )
    assert ran.code == 0, ran.report[-3000:]
    assert ran.summary["totals"]["aot_graphs"]["backward"] >= 1


def test_experts_that_exchange_tokens_are_traced_without_values_and_each_gets_as_many_ci_share(tmp_path: Path) -> None:
    ran = world(tmp_path, "experts.py", sizes="ep=2", options=("--inner", "meta", "--fail-on", "new"))
    assert ran.code == 0, ran.report[-3000:]
    exchanged = [row["shape"] for row in exchanges(ran.folder, rank=1)]
    # 64 tokens of 2 choices each, shared out evenly between two ranks.
    assert exchanged
    assert [row for row in exchanged if len(row) == 2] == [[128, 32]] * len([r for r in exchanged if len(r) == 2])


@pytest.mark.soak
def test_experts_in_two_processes_make_without_values_what_one_by_itself_makes(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alone").mkdir()
    real = torchrun(tmp_path / "real", "experts.py", ranks=2, options=("--inner", "meta"))
    alone = world(tmp_path / "alone", "experts.py", sizes="ep=2", options=("--inner", "meta"))
    assert (real.code, alone.code) == (0, 0), real.report[-3000:]
    assert real.summary["divergence"] is None
    assert real.summary["totals"] == alone.summary["totals"]


@pytest.mark.soak
@pytest.mark.parametrize("inner", ["cpu", "meta"])
def test_experts_of_transformers_exchange_tokens_in_two_processes(tmp_path: Path, inner: str) -> None:
    words = ("experts", "--tp", "2", "--ep", "2", "--exchange", "all_to_all")
    options = ("--inner", inner, "--stub-weights")
    ran = torchrun(tmp_path, "forward_backward.py", str(tmp_path / "config"), *words, ranks=2, options=options)
    assert ran.code == 0, ran.report[-3000:]
    assert ran.summary["totals"]["aot_graphs"]["backward"] >= 1


def exchanges(folder: Path, *, rank: int) -> list[dict[str, Any]]:
    """Give the tensors of a rank's all-to-alls."""
    lines = [line for path in folder.glob(f"rank-{rank}.*.jsonl") for line in path.read_text().splitlines()]
    events = [json.loads(line) for line in lines]
    return [row for event in events if event.get("op") == "alltoall_base" for row in event["inputs"]]
