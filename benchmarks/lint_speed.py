"""Times the linter against its limits, with ruff and TorchFix on the same files in the same run; medians.

    python benchmarks/lint_speed.py [--torchfix PATH] [--runs N]

TorchFix is a program of its own: install it into a virtual environment that is thrown away, and name its `torchfix`.
Without it that line is left out. transformers and accelerate must be installed beside shapeguard.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

TEN_FILES = """import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("x")
model = AutoModelForCausalLM.from_pretrained("x", device_map="auto")


def answer(texts):
    batch = tokenizer(texts, padding=True, return_tensors="pt").to(model.device)
    return model.generate(**batch, max_new_tokens=8)


loader = DataLoader(rows, batch_size=8, shuffle=True)
"""


def main() -> int:
    """Print one line a limit; exit 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torchfix", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = [*_starts(Path(scratch), args.runs), *_transformers(Path(scratch), args.runs)]
        if args.torchfix:
            rows.append(_torchfix(args.torchfix, 1))
    print(f"{'what':46} {'now':>9} {'limit':>9}")
    for what, now, limit, is_met in rows:
        print(f"{what:46} {now:>9} {limit:>9} {'' if is_met else 'MISSED'}")
    return 0 if all(row[3] for row in rows) else 1


Row = tuple[str, str, str, bool]


def _starts(scratch: Path, runs: int) -> list[Row]:
    clean = scratch / "clean.py"
    clean.write_text("x = 1\n" * 500)
    ten = [scratch / f"changed{number}.py" for number in range(10)]
    for file in ten:
        file.write_text(TEN_FILES * 5)
    return [
        _seconds("shapeguard --version", _time(_ours("--version"), runs), 0.12),
        _seconds("a file without a trigger", _time(_lint(clean), runs), 0.15),
        _seconds("ten changed files with findings", _time(_lint(*ten), runs), 1.0),
    ]


def _transformers(scratch: Path, runs: int) -> list[Row]:
    package = _package("transformers")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "-q", str(package)]
    cold = [*_lint(package), "-j", "2"]
    cache = scratch / "cache"
    warm = [*_ours("lint", "--isolated", "--cache-dir", str(cache), "-q", "-j", "2"), str(package)]
    _time(warm, 1)
    # In turn, so that a slow minute of the machine is shared.
    times = [(_time(ruff, 1), _time(cold, 1), _time(warm, 1)) for _ in range(runs)]
    of_ruff, of_cold, of_warm = (statistics.median(column) for column in zip(*times, strict=True))
    return [
        _seconds("ruff check on transformers", of_ruff, None),
        _seconds("transformers, cold, 2 processes", of_cold, 4 * of_ruff),
        _seconds("transformers, warm", of_warm, of_ruff / 2),
    ]


def _torchfix(program: Path, runs: int) -> Row:
    package = _package("accelerate")
    num_lines = sum(file.read_bytes().count(b"\n") for file in package.rglob("*.py"))
    theirs = num_lines / _time([str(program), "--show-stderr", str(package)], runs)
    ours = num_lines / _time(_lint(package), runs)
    return "accelerate, lines/s over TorchFix's", f"{ours / theirs:.1f}x", "20x", ours >= 20 * theirs


def _package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None, f"{name} is not installed"
    return Path(spec.origin).parent


def _ours(*args: str) -> list[str]:
    return [sys.executable, "-m", "shapeguard", *args]


def _lint(*paths: Path) -> list[str]:
    return [*_ours("lint", "--isolated", "--no-cache", "-q"), *map(str, paths)]


def _time(command: list[str], runs: int) -> float:
    return statistics.median(_once(lambda: subprocess.run(command, capture_output=True)) for _ in range(runs))


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _seconds(what: str, now: float, limit: float | None) -> Row:
    return what, f"{now:.3f} s", "" if limit is None else f"{limit:.3f} s", limit is None or now < limit


if __name__ == "__main__":
    raise SystemExit(main())
