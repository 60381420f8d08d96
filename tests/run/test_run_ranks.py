"""The runners on four ranks: started by torchrun by themselves, or found inside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.runner import environment, language_model, prompts, run, write_lines

SIZES = ("--tp", "2", "--fsdp", "2")


def words(rows: int, steps: int) -> tuple[str, ...]:
    return (
        "train", "--model", "lm", "--train-file", "train.jsonl", "--eval-file", "train.jsonl", "--buckets", "32",
        "--per-device-train-batch-size", str(rows), "--learning-rate", "3e-3", "--max-steps", str(steps),
        "--logging-steps", "1",
    )  # fmt: skip


def model_and_rows(folder: Path) -> None:
    language_model(folder)
    write_lines(folder / "train.jsonl", [{"text": text} for text in prompts(16, longest=30)])


@pytest.mark.soak
def test_four_ranks_that_share_layers_and_weights_train_as_one_process_does(tmp_path: Path) -> None:
    model_and_rows(tmp_path)
    ranks = run(tmp_path, *words(2, 12), *SIZES, name="ranks")
    assert ranks.code == 0, ranks.err
    # Two groups of two rows are the four rows of one process, dealt out in another order within a step.
    alone = run(tmp_path, *words(4, 12), "--device", "cpu", name="alone")
    assert list(ranks.steps()) == list(range(1, 13))
    assert ranks.steps() == pytest.approx(alone.steps(), abs=1e-4)
    assert ranks.steps("eval_loss") == pytest.approx(alone.steps("eval_loss"), abs=1e-4)
    assert ranks.steps("eval_labels") == alone.steps("eval_labels")
    assert ranks.summary["device"]["world_size"] == 4
    assert ranks.summary["divergence"] is None
    assert ranks.summary["totals"]["after_warmup"]["regions"] == 0
    assert (tmp_path / "out" / "model.safetensors").is_file()


@pytest.mark.soak
def test_two_ranks_that_share_layers_generate_what_one_process_generates(tmp_path: Path) -> None:
    language_model(tmp_path)
    texts = prompts(6, longest=12)
    asked = ("infer", "--model", "lm", "--buckets", "16", "--max-new-tokens", "4", "--batch-size", "4", *texts)
    ranks = run(tmp_path, *asked, "--tp", "2", name="ranks")
    assert ranks.code == 0, ranks.err
    alone = run(tmp_path, *asked, "--device", "cpu", name="alone")
    assert ranks.rows == alone.rows


@pytest.mark.soak
def test_torchrun_inside_a_trace_is_used_as_it_is(tmp_path: Path) -> None:
    model_and_rows(tmp_path)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [
        sys.executable,
        "-m",
        "shapeguard",
        "trace",
        "--run-dir",
        "run",
        "--",
        *launch,
        "-m",
        "shapeguard",
        "run",
    ]
    done = subprocess.run(
        [*command, *words(2, 2), "--fsdp", "2"], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()][:2] == [1, 2]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["device"]["world_size"] == 2


@pytest.mark.soak
def test_a_mistake_on_all_ranks_is_told_once_and_without_torchruns_account(tmp_path: Path) -> None:
    model_and_rows(tmp_path)
    done = run(tmp_path, *words(2, 2)[:5], "--buckets", "4", *SIZES)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("tokens fit no bucket, the largest is 4") == 1
    assert "Traceback" not in done.err
    assert "ChildFailedError" not in done.err
