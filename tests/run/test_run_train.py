"""`run train`: the losses of plain transformers, resume after a kill, evaluation that counts each row once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

from shapeguard.buckets import BucketSampler
from tests.run.runner import environment, language_model, prompts, run, tiny, write_lines

BUCKETS, ROWS, RATE = (16, 32), 4, 3e-3
BASE = (
    "train", "--model", "lm", "--train-file", "train.jsonl", "--buckets", ",".join(map(str, BUCKETS)),
    "--per-device-train-batch-size", str(ROWS), "--learning-rate", str(RATE), "--logging-steps", "1",
)  # fmt: skip


def data(folder: Path, number: int = 42) -> list[str]:
    texts = prompts(number, longest=30, seed=3)
    language_model(folder)
    write_lines(folder / "train.jsonl", [{"text": text} for text in texts])
    return texts


def plain_losses(folder: Path, texts: list[str], steps: int, accumulate: int = 1) -> list[float]:
    """The same training with plain PyTorch on the CPU: no padding, no Trainer, no runner."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "lm")
    model = AutoModelForCausalLM.from_pretrained(folder / "lm").train()
    rows = [tokenizer(text)["input_ids"] for text in texts]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    sampler = BucketSampler([len(row) for row in rows], BUCKETS, batch_size=ROWS, rank=0, world_size=1)
    losses: list[float] = []
    epoch = 0
    while len(losses) < steps:
        sampler.set_epoch(epoch)
        batches = list(sampler)
        for start in range(0, len(batches), accumulate):
            if len(losses) == steps:
                break
            optimizer.param_groups[0]["lr"] = RATE * (1 - len(losses) / steps)
            taken = [rows[number] for batch in batches[start : start + accumulate] for number in batch]
            total = sum(len(row) - 1 for row in taken)
            loss = torch.zeros(())
            for row in taken:
                ids = torch.tensor([row])
                loss = loss + cross_entropy(model(input_ids=ids).logits[0, :-1], ids[0, 1:], reduction="sum")
            (loss / total).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach() / total))
        epoch += 1
    return losses


def check_losses(folder: Path, steps: int) -> None:
    texts = data(folder)
    done = run(folder, *BASE, "--max-steps", str(steps))
    assert done.code == 0, done.err
    losses = done.steps()
    assert list(losses) == list(range(1, steps + 1))
    assert list(losses.values()) == pytest.approx(plain_losses(folder, texts, steps), abs=1e-4)
    totals = done.summary["totals"]
    assert totals["aot_graphs"] == {"forward": 2, "backward": 2, "inference": 0}
    assert totals["after_warmup"]["regions"] == 0
    assert done.steps("late_compiles")[steps] == 0
    assert done.steps("graphs")[steps] == 2 * len(BUCKETS)


def test_training_has_the_losses_of_plain_pytorch_and_two_graphs_a_bucket(tmp_path: Path) -> None:
    check_losses(tmp_path, 12)


@pytest.mark.soak
def test_two_hundred_steps_have_the_losses_of_plain_pytorch(tmp_path: Path) -> None:
    check_losses(tmp_path, 200)


def killed_after(folder: Path, step: int, *words: str) -> dict[int, float]:
    """Run a training and kill all of it, without a word, when a step has been logged; give its losses."""
    command = [sys.executable, "-m", "shapeguard", "run", *words, "--run-dir", "killed"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    losses = {}
    for line in process.stdout:
        row = json.loads(line)
        losses[row["step"]] = row["loss"]
        if row["step"] == step:
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() != 0
    return losses


def check_resume(folder: Path, *, device: str, steps: int, kill: int, save: int) -> None:
    data(folder)
    words = (*BASE, "--max-steps", str(steps), "--save-steps", str(save), "--device", device)
    whole = run(folder, *words, "--output-dir", "whole", name="whole")
    assert whole.code == 0, whole.err
    killed = killed_after(folder, kill, *words, "--output-dir", "killed-out")
    # What the kill may leave: a checkpoint that has no state yet.
    (folder / "killed-out" / f"checkpoint-{steps * 10}").mkdir()
    resumed = run(folder, *words, "--output-dir", "killed-out", "--resume-from-checkpoint", "last", name="resumed")
    assert resumed.code == 0, resumed.err
    began = min(resumed.steps())
    assert 1 < began <= kill + 1
    assert (began - 1) % save == 0
    assert {**killed, **resumed.steps()} == pytest.approx(whole.steps(), abs=1e-6)


@pytest.mark.soak
def test_resume_after_a_kill_goes_on_with_the_same_losses(tmp_path: Path) -> None:
    check_resume(tmp_path, device="cpu", steps=30, kill=17, save=5)


@pytest.mark.soak
def test_resume_after_a_kill_goes_on_with_the_same_losses_on_the_simulated_device(tmp_path: Path) -> None:
    check_resume(tmp_path, device="sim", steps=40, kill=23, save=5)


@pytest.mark.soak
def test_accumulated_steps_with_a_shorter_one_at_the_end_have_the_losses_of_plain_pytorch(tmp_path: Path) -> None:
    # 42 rows are 11 or 12 batches: three to a step leaves a step with fewer.
    texts = data(tmp_path)
    done = run(tmp_path, *BASE, "--gradient_accumulation_steps", "5", "--max-steps", "6", "--device", "cpu")
    assert done.code == 0, done.err
    assert list(done.steps().values()) == pytest.approx(plain_losses(tmp_path, texts, 6, accumulate=5), abs=1e-4)


@pytest.mark.parametrize("device", ["cpu", pytest.param("sim", marks=pytest.mark.soak)])
def test_evaluation_counts_each_label_once_and_keeps_the_shapes(device: str, tmp_path: Path) -> None:
    data(tmp_path)
    held_out = prompts(9, longest=30, seed=5)
    write_lines(tmp_path / "eval.jsonl", [{"text": text} for text in held_out])
    words = (
        *BASE,
        "--eval-file",
        "eval.jsonl",
        "--max-steps",
        "3",
        "--dataloader-drop-last",
        "--packing",
        "--device",
        device,
    )
    done = run(tmp_path, *words)
    assert done.code == 0, done.err
    (judged,) = [row for row in done.rows if "eval_loss" in row]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "lm")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    joined = [token for text in held_out for token in [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]]
    rows = [joined[start : start + BUCKETS[-1]] for start in range(0, len(joined), BUCKETS[-1])]
    total, number = 0.0, 0
    with torch.no_grad():
        for row in rows:
            ids = torch.tensor([row])
            logits = model(input_ids=ids).logits[0, :-1]
            total += float(cross_entropy(logits, ids[0, 1:], reduction="sum"))
            number += len(row) - 1
    assert judged["eval_labels"] == number
    assert judged["eval_loss"] == pytest.approx(total / number, abs=1e-4)
    assert done.steps("padding")[3] < 0.05
    if device == "sim":
        # One length: a forward, a backward, and one graph of evaluation.
        assert done.summary["totals"]["aot_graphs"] == {"forward": 1, "backward": 1, "inference": 1}


@pytest.mark.soak
def test_a_classifier_learns_its_classes(tmp_path: Path) -> None:
    language_model(tmp_path)
    chance = random.Random(0)
    texts = prompts(40, longest=10, seed=2)
    rows = [f'"{text} {name}",{name}' for text in texts for name in [chance.choice(["harbour", "fish"])]]
    (tmp_path / "train.csv").write_text("\n".join(["text,kind", *rows]) + "\n")
    words = ["train", "--task", "classify", "--model", "lm", "--train-file", "train.csv", "--eval-file", "train.csv"]
    words += [
        "--label-column",
        "kind",
        "--buckets",
        "16",
        "--per-device-train-batch-size",
        "8",
        "--learning-rate",
        "1e-2",
    ]
    done = run(tmp_path, *words, "--num-train-epochs", "6", "--device", "cpu")
    assert done.code == 0, done.err
    (judged,) = [row for row in done.rows if "eval_accuracy" in row]
    assert judged["eval_labels"] == 40
    assert judged["eval_accuracy"] > 0.9
    said = run(tmp_path, "infer", "--model", "out", "--device", "cpu", "--buckets", "16", f"{texts[0]} fish")
    assert said.code == 0, said.err
    assert said.rows[0]["label"] in ("fish", "harbour")


@pytest.mark.soak
@pytest.mark.parametrize("task", ["causal-lm", "classify"])
def test_bf16_on_the_simulated_device_learns_without_a_compile_after_warm_up(task: str, tmp_path: Path) -> None:
    texts = data(tmp_path)
    rows: list[dict[str, Any]] = [{"text": text, "label": number % 2} for number, text in enumerate(texts)]
    write_lines(tmp_path / "train.jsonl", rows)
    done = run(tmp_path, *BASE, "--task", task, "--bf16", "--max-steps", "20", "--eval-file", "train.jsonl")
    assert done.code == 0, done.err
    losses = list(done.steps().values())
    assert sum(losses[-5:]) < sum(losses[:5])
    assert done.summary["totals"]["after_warmup"]["regions"] == 0
    assert done.summary["totals"]["aot_graphs"] == {"forward": 2, "backward": 2, "inference": 2}


def test_the_plain_training_of_these_tests_meets_short_and_long_rows(tmp_path: Path) -> None:
    tokenizer = tiny.tokenizer()
    lengths = [len(tokenizer(text)["input_ids"]) for text in data(tmp_path)]
    assert min(lengths) <= BUCKETS[0] < max(lengths) <= BUCKETS[1]
