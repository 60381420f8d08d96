"""What users get wrong: one clear line, the place it is about, exit code 2; 3 where the machine cannot do it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.run.runner import environment, language_model, run

INFER = ("infer", "--model", "lm", "--device", "cpu", "--buckets", "8", "--max-new-tokens", "4")
TRAIN = ("train", "--model", "lm", "--device", "cpu", "--buckets", "8", "--max-steps", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    language_model(place)
    (place / "empty.jsonl").write_text("")
    (place / "blank.txt").write_text("\n  \n")
    (place / "broken.jsonl").write_text('{"prompt": "fish"}\n\n{"prompt": "fish"\n')
    (place / "columns.jsonl").write_text('{"words": "fish", "more": 1}\n')
    (place / "number.jsonl").write_text('{"prompt": 12}\n')
    (place / "void.jsonl").write_text('{"prompt": "fish"}\n{"prompt": " "}\n')
    (place / "long.jsonl").write_text('{"text": "fish"}\n{"text": "' + "fish " * 9 + '"}\n')
    (place / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    (place / "one.csv").write_text("text,label\nfish,a\ncrate,a\n")
    (place / "chat.jsonl").write_text('{"messages": [{"role": "user", "content": "fish"}]}\n')
    (place / "nomodel").mkdir()
    (place / "image.jsonl").write_text('{"prompt": "fish", "image": "cat.png"}\n')
    (place / "cut").mkdir()
    (place / "cut" / "config.json").write_text('{"model_type": "nothing-known"}')
    return place


MISTAKES = {
    "no prompts": ((*INFER,), "Error: No prompts: give some, or --file."),
    "both": ((*INFER, "--file", "empty.jsonl", "fish"), "Error: Give prompts as arguments, or --file, not both."),
    "missing file": ((*INFER, "--file", "gone.jsonl"), "error: there is no file gone.jsonl"),
    "empty file": ((*INFER, "--file", "empty.jsonl"), "error: empty.jsonl holds no prompts"),
    "blank lines only": ((*INFER, "--file", "blank.txt"), "error: blank.txt holds no prompts"),
    "broken line": ((*INFER, "--file", "broken.jsonl"), "error: broken.jsonl:3: this line is no JSON:"),
    "no column": ((*INFER, "--file", "columns.jsonl"), "error: columns.jsonl:1: there is no column of prompts"),
    "other column": ((*INFER, "--file", "broken.jsonl", "--column", "q"), "error: broken.jsonl:1: there is no 'q'"),
    "no text": ((*INFER, "--file", "number.jsonl"), "error: number.jsonl:1: the prompt is no text and no chat"),
    "empty prompt": ((*INFER, "--file", "void.jsonl"), "error: void.jsonl:2: the prompt is empty"),
    "other encoding": ((*INFER, "--file", "latin.txt"), "error: latin.txt is not UTF-8 text:"),
    "missing image": ((*INFER, "--file", "image.jsonl"), "error: image.jsonl:1: there is no image cat.png"),
    "too long": (
        (*INFER, "--file", "long.jsonl"),
        "error: long.jsonl:2: 9 tokens fit no bucket, the largest is 8\nhint: give a larger one with --buckets",
    ),
    "no template": ((*INFER, "--file", "chat.jsonl"), "error: chat.jsonl:1: a chat needs a template"),
    "missing model": (("infer", "--model", "./gone", "fish"), "error: there is no model ./gone"),
    "no model in it": (("infer", "--model", "nomodel", "fish"), "error: the folder nomodel holds no model"),
    "unknown model": ((*INFER[:1], "--model", "cut", *INFER[3:], "fish"), "error: cannot load cut: "),
    "not on the hub": (
        (*INFER[:1], "--model", "nobody/nothing", *INFER[3:], "fish"),
        "error: cannot load nobody/nothing: ",
    ),
    "bucket too large": (
        ("infer", "--model", "lm", "--device", "cpu", "--buckets", "250", "--max-new-tokens", "8", "fish"),
        "error: lm takes 256 tokens: a bucket of 250 and 8 new tokens does not fit",
    ),
    "bad buckets": ((*INFER[:5], "--buckets", "8,x", "fish"), "error: '8,x' is no list of buckets and no file:"),
    "no rows": ((*TRAIN, "--train-file", "empty.jsonl"), "error: empty.jsonl holds no rows"),
    "broken row": ((*TRAIN, "--train-file", "broken.jsonl"), "error: broken.jsonl:3: this line is no JSON:"),
    "long row": (
        (*TRAIN, "--train-file", "long.jsonl"),
        "error: long.jsonl:2: 9 tokens fit no bucket, the largest is 8",
    ),
    "one class": ((*TRAIN, "--train-file", "one.csv", "--task", "classify"), "error: one.csv has one class only: a"),
    "no class": (
        (*TRAIN, "--train-file", "long.jsonl", "--task", "classify"),
        "error: long.jsonl:1: 'label' is None, no class",
    ),
    "no checkpoint": (
        (*TRAIN, "--train-file", "long.jsonl", "--resume-from-checkpoint", "last"),
        "error: out has no whole checkpoint",
    ),
    "output is a file": (
        (*TRAIN, "--train-file", "long.jsonl", "--output-dir", "long.jsonl/out"),
        "error: cannot write to long.jsonl/out: Not a directory",
    ),
    "no full batch": (
        (*TRAIN, "--train-file", "long.jsonl", "--truncate", "--dataloader-drop-last"),
        "rows, so all are left out",
    ),
    "sharded on the CPU": (
        (*TRAIN, "--train-file", "long.jsonl", "--tp", "2"),
        "error: the Trainer shards no model on the plain CPU",
    ),
}
FROM_THE_CHILD = (
    "too long",
    "no template",
    "unknown model",
    "not on the hub",
    "bucket too large",
    "long row",
    "broken row",
    "no full batch",
    "output is a file",
)
SHARE = ("too long",)


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in FROM_THE_CHILD])
def test_a_mistake_is_one_line_and_exit_code_2(name: str, folder: Path) -> None:
    check(name, folder)


def child_mistakes() -> list[Any]:
    """Each loads torch: a share of them runs by default."""
    return [name if name in SHARE else pytest.param(name, marks=pytest.mark.soak) for name in FROM_THE_CHILD]


@pytest.mark.parametrize("name", child_mistakes())
def test_a_mistake_that_the_child_finds_is_one_line_and_exit_code_2(name: str, folder: Path) -> None:
    check(name, folder)


def check(name: str, folder: Path) -> None:
    words, message = MISTAKES[name]
    done = run(folder, *words)
    assert done.code == 2, done.err
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err
    said = [line for line in done.err.splitlines() if not line.startswith(("Usage:", "Try "))]
    assert len([line for line in said if line]) <= 2, done.err


def test_a_broken_line_of_standard_input_is_named(folder: Path) -> None:
    done = run(folder, *INFER, "--file", "-", stdin=(folder / "broken.jsonl").read_bytes())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: standard input:3: this line is no JSON:")


def test_a_wrong_number_of_ranks_is_told_once(folder: Path) -> None:
    words = (*INFER, "--tp", "2", "--fsdp", "2", "fish")
    told = run(folder, *words, RANK="0", WORLD_SIZE="2")
    assert (told.code, told.out) == (2, "")
    assert "error: torchrun started 2 processes, but --tp 2 × --fsdp 2 needs 4" in told.err


def test_neuron_where_there_is_none_is_exit_code_3(folder: Path) -> None:
    done = run(folder, *INFER[:3], "--device", "neuron", "fish")
    assert done.code == 3
    assert done.err.startswith("error: there is no Neuron device here\nhint: use --device sim")


SERVE = ("run", "infer", "--model", "lm", "--buckets", "8", "--max-new-tokens", "3", "--batch-size", "2")


def test_locked_needs_a_lock(folder: Path) -> None:
    none = run(folder, *SERVE[1:], "fish", "--locked", name="none")
    assert (none.code, none.out) == (2, "")
    assert none.err.startswith("error: there is no shapeguard.lock\n")


@pytest.mark.soak
def test_locked_ends_with_1_where_a_graph_compiles_that_the_lock_does_not_name(folder: Path) -> None:
    (folder / "shapeguard.lock").write_text("schema = 1\n")
    other = run(folder, *SERVE[1:], "fish", name="other", SHAPEGUARD_LOCKED="1")
    (folder / "shapeguard.lock").unlink()
    assert other.code == 1
    message = "error: 1 graph compiled that shapeguard.lock does not name:\ninference LlamaForCausalLM input_ids 2×1"
    assert message in other.err


@pytest.mark.soak
def test_a_runner_is_a_job_that_the_lock_keeps(folder: Path) -> None:
    command = ["-m", "shapeguard", *SERVE, "fish"]
    (folder / "shapeguard.toml").write_text(f"[jobs.serve]\ncommand = {json.dumps(command)}\n")
    subprocess.run([sys.executable, "-m", "shapeguard", "lock"], cwd=folder, env=environment(), check=True)
    same = run(folder, *SERVE[1:], "the harbour", "crates", "fish", "--locked", name="same")
    assert same.code == 0, same.err
    larger = run(folder, *SERVE[1:-1], "3", "fish", "--locked", name="larger")
    assert larger.code == 1, larger.err


def test_the_command_itself_never_imports_torch(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    done = run(folder, *INFER[:3], "--file", "broken.jsonl", PYTHONPATH=str(tmp_path))
    assert done.err.startswith("error: broken.jsonl:3:")
