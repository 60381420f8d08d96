"""A world that is not there compiles what the real one compiles, by the full text of every graph."""

from __future__ import annotations

from pathlib import Path

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
