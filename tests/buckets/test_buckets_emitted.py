"""What `plan` prints and writes is what was asked for, and can be used as it stands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

LENGTHS = [10] * 50 + [60] * 30 + [100] * 15 + [500] * 5


@pytest.fixture
def lengths(tmp_path: Path) -> str:
    (tmp_path / "lengths.txt").write_text(" ".join(map(str, LENGTHS)), encoding="utf-8")
    return "lengths.txt"


class Tokenizer:
    pad_token_id = 0

    def __call__(self, prompts: list[str]) -> dict[str, list[list[int]]]:
        return {"input_ids": [[1] * len(each) for each in prompts]}


def _plan(shapeguard: Any, *words: str) -> Any:
    ran = shapeguard("plan", *words)
    assert ran.code == 0, ran.err
    return ran


@pytest.mark.parametrize(("cut", "rows"), [([], 95), (["--truncate"], 100)])
def test_the_emitted_loader_keeps_to_what_was_planned_for_long_rows(
    shapeguard: Any, lengths: str, cut: list[str], rows: int
) -> None:
    words = ("--lengths", lengths, "--max-graphs", "4", "--for", "train", "--align", "4", "--batch-size", "8")
    code = _plan(shapeguard, *words, "--max-length", "200", *cut, "--emit", "collator").out
    scope: dict[str, Any] = {}
    exec(code, scope)
    longest = max(scope["BUCKETS"])
    loader = scope["bucket_loader"]([{"input_ids": [1] * length} for length in LENGTHS], Tokenizer())
    seen = 0
    for batch in loader:
        assert batch["input_ids"].shape[1] in scope["BUCKETS"]
        seen += int((batch["labels"] != -100).any(1).sum())
    assert seen == rows
    assert f"Rows of more than {longest} tokens {'are cut' if cut else 'are left out'}." in code


class Model:
    def generate(self, **options: Any) -> Any:
        self.options = options
        return options["input_ids"]


def test_the_emitted_generation_takes_its_own_number_of_new_tokens(shapeguard: Any, lengths: str) -> None:
    words = ("--lengths", lengths, "--max-graphs", "2", "--align", "4", "--max-length", "200")
    scope: dict[str, Any] = {}
    exec(_plan(shapeguard, *words, "--emit", "prompts").out, scope)
    model, longest = Model(), scope["BUCKETS"][-1]
    scope["generate"](model, Tokenizer(), ["abc"], max_new_tokens=7, do_sample=True)
    assert model.options["max_new_tokens"] == 7
    assert model.options["max_cache_len"] == longest + 256
    with pytest.raises(ValueError, match="the cache has no room for 300 new tokens: raise MAX_NEW_TOKENS"):
        scope["generate"](model, Tokenizer(), ["abc"], max_new_tokens=300)
    with pytest.raises(ValueError, match="fits no bucket"):
        scope["generate"](model, Tokenizer(), ["x" * 300])
    exec(_plan(shapeguard, *words, "--truncate", "--emit", "prompts").out, scope)
    scope["generate"](model, Tokenizer(), ["x" * 300])
    assert model.options["input_ids"].shape[1] == scope["BUCKETS"][-1]


JOBS = [
    ["--for", "train", "--model", "./model", "--data", "rows.jsonl", "--batch-size", "8"],
    ["--model", "./model", "--data", "rows.jsonl"],
    ["--data", "rows.jsonl", "--job", "-- torchrun --nproc-per-node 2 train.py --length {bucket}"],
    ["--data", "rows.jsonl", "--job", "serve.py 'with spaces' --length={bucket}"],
]


@pytest.mark.parametrize("words", JOBS)
def test_emitted_jobs_are_a_configuration_that_every_command_takes(
    shapeguard: Any, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "model").mkdir()
    config = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    Path("model/config.json").write_text(json.dumps(config), encoding="utf-8")
    Path("rows.jsonl").write_text("".join(f'{{"length": {each}}}\n' for each in LENGTHS), encoding="utf-8")
    text = _plan(shapeguard, "--max-graphs", "4", "--align", "4", *words, "--emit", "jobs").out
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    ran = shapeguard("config")
    assert ran.code == 0, ran.err
    # The runner for inference takes all buckets at once: its cache is as long as the largest asks for.
    is_one = "--job" not in words and "train" not in words
    assert text.count("[tool.shapeguard.jobs.") == text.count("command = ") == (1 if is_one else text.count("budget"))
    assert is_one or text.count("command = ") >= 2
    Path("ok.py").write_text("x = 1\n", encoding="utf-8")
    ran = shapeguard("lint", "ok.py")
    assert ran.code == 0, ran.err


def test_jobs_whose_command_is_not_known_are_not_made_up(shapeguard: Any, lengths: str) -> None:
    ran = shapeguard("plan", "--lengths", lengths, "--max-graphs", "2", "--emit", "jobs")
    assert ran.code == 2
    assert ran.err == (
        "error: a job needs to know what it runs\n"
        'hint: give --job "train.py --length {bucket}", or --model FOLDER and --data FILE for `shapeguard run`\n'
    )


def test_the_runner_takes_every_word_of_an_emitted_job(shapeguard: Any, tmp_path: Path) -> None:
    import click

    from shapeguard.buckets.emit import Definition, render
    from shapeguard.cli.main import group

    for use in ("infer", "train"):
        plan = Definition(buckets=(16, 32, 48), rows=(1, 1, 1), use=use, batch_size=4, model="m", data="rows.jsonl")
        command = json.loads(render("jobs", plan).splitlines()[1].removeprefix("command = "))
        assert command[:3] == ["-m", "shapeguard", "run"]
        runner: Any = group.get_command(click.Context(group), "run")
        verb = runner.get_command(click.Context(runner), use)
        verb.make_context(use, command[4:], resilient_parsing=False)


def test_given_buckets_are_held_to_all_limits(shapeguard: Any, lengths: str) -> None:
    words = ("plan", "--lengths", lengths, "--buckets", "64,128,512")
    assert shapeguard(*words).code == 0
    ran = shapeguard(*words, "--max-pad", "20", "--max-length", "256", "--max-graphs", "2")
    assert ran.code == 1
    assert "these buckets make 3 graphs, more than 2" in ran.out
    assert "512 is longer than the maximum length 256" in ran.out
    assert "65 rows get more than 20 tokens of padding: one of 10 gets 54" in ran.out
    assert shapeguard(*words, "--max-pad", "54", "--max-length", "512", "--max-graphs", "3").code == 0
    assert shapeguard(*words, "--for", "train", "--max-graphs", "3").code == 1


def test_a_file_of_buckets_says_its_kind_alignment_and_batches(shapeguard: Any, lengths: str) -> None:
    words = ("--lengths", lengths, "--max-graphs", "4", "--align", "4", "--for", "train", "--batch-tokens", "1000")
    _plan(shapeguard, *words, "--write", "toml=buckets.toml", "-q")
    found = json.loads(_plan(shapeguard, "--lengths", lengths, "--buckets", "buckets.toml", "--json").out)
    assert (found["for"], found["align"], found["graphs"]) == ("train", 4, 4)
    assert found["batch_sizes"] == [10, 2]
    again = _plan(shapeguard, "--lengths", lengths, "--buckets", "buckets.toml", "--emit", "toml").out
    assert again == Path("buckets.toml").read_text(encoding="utf-8")
    other = ("--lengths", lengths, "--buckets", "buckets.toml", "--for", "infer", "--batch-size", "3", "--json")
    found = json.loads(_plan(shapeguard, *other).out)
    assert (found["for"], found["batch_sizes"]) == ("infer", [3, 3])
    Path("bad.toml").write_text('schema = 1\nfor = "tain"\n[[bucket]]\nlength = 500\n', encoding="utf-8")
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", "bad.toml")
    assert ran.err == "error: bad.toml: for = 'tain' is neither infer nor train\nhint: write for = \"train\"\n"


def test_what_is_emitted_stands_in_the_document(shapeguard: Any, lengths: str) -> None:
    words = ("--lengths", lengths, "--max-graphs", "2", "--emit", "vllm")
    text = _plan(shapeguard, *words).out
    assert json.loads(_plan(shapeguard, *words, "--json").out)["emitted"] == {"kind": "vllm", "text": text}
    assert _plan(shapeguard, *words, "-q").out == text


def test_quiet_prints_what_is_wrong_and_nothing_else(shapeguard: Any, lengths: str) -> None:
    assert _plan(shapeguard, "--lengths", lengths, "--max-graphs", "2", "-q").out == ""
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", "64", "-q")
    assert (ran.code, len(ran.out.splitlines())) == (1, 1)
    # What is written into a file is read later, by others.
    assert _plan(shapeguard, "--lengths", lengths, "--max-graphs", "2", "-q", "--output", "markdown=plan.md").out == ""
    assert "2 buckets for 100 rows" in Path("plan.md").read_text(encoding="utf-8")


def test_two_kinds_are_not_written_into_one_file(shapeguard: Any, lengths: str) -> None:
    words = ("plan", "--lengths", lengths, "--max-graphs", "2", "--batch-size", "2")
    ran = shapeguard(*words, "--write", "toml=a", "--write", "prompts=./a")
    assert ran.code == 2
    assert "twice: give each kind a file of its own." in ran.err
    ran = shapeguard(*words, "--write", "toml=-")
    assert ran.code == 2
    assert "--emit toml prints it; --write wants a file" in ran.err
    Path("b").write_text("mine", encoding="utf-8")
    assert shapeguard(*words, "--write", "toml=a", "--write", "prompts=b").code == 2
    assert not Path("a").exists()


def test_a_row_as_long_as_the_maximum_fits_whatever_the_alignment(shapeguard: Any) -> None:
    Path("lengths.txt").write_text("100 950 1000 1001", encoding="utf-8")
    words = ("--lengths", "lengths.txt", "--max-graphs", "2", "--max-length", "1000")
    ran = _plan(shapeguard, *words)
    assert "2 buckets for 3 rows: 128, 1000 (2 graphs)" in ran.out
    assert "1,000 is the maximum length and no multiple of 128" in ran.out
    found = json.loads(_plan(shapeguard, *words, "--json").out)
    assert found["misfits"] == {"1001": 1}
    cut = json.loads(_plan(shapeguard, *words, "--truncate", "--json").out)
    assert (cut["buckets"], cut["misfits"]) == ([128, 896], {})


def test_a_plan_at_its_largest_number_of_buckets_says_so(shapeguard: Any) -> None:
    Path("lengths.txt").write_text(" ".join(map(str, range(1, 400))), encoding="utf-8")
    ran = _plan(shapeguard, "--lengths", "lengths.txt", "--align", "1", "--max-graphs", "1000")
    assert "a plan has 256 buckets at most" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ["--compile-minutes", "1e308", "--tokens-per-second", "1e-308", "--price", "1e300"],
        ["--compile-minutes", "1", "--tokens-per-second", "1e-300", "--traffic", "9" * 400],
    ],
)
def test_numbers_beyond_all_measure_are_valid_json(shapeguard: Any, lengths: str, words: list[str]) -> None:
    def fail(word: str) -> float:
        raise AssertionError(word)

    text = _plan(shapeguard, "--lengths", lengths, *words, "--json").out
    found = json.loads(text, parse_constant=fail)
    assert found["hours"] is None or math.isfinite(found["hours"])
    assert _plan(shapeguard, "--lengths", lengths, *words).code == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "length,count\n12,2\n700,1\n", []),
        ("a.tsv", "count\tlength\n2\t12\n1\t700\n", []),
        ("a.csv", "n_tokens,frequency\n12,2\n700,1\n", ["--column", "n_tokens"]),
        ("a.jsonl", '{"length": 12, "count": 2}\n{"length": 700, "count": 1}\n', []),
    ],
)
def test_a_table_with_counts_is_a_histogram(shapeguard: Any, name: str, text: str, words: list[str]) -> None:
    Path(name).write_text(text, encoding="utf-8")
    ran = _plan(shapeguard, "--data", name, *words, "--max-graphs", "2", "--json")
    assert json.loads(ran.out)["rows"] == [2, 1]
    assert ran.err == "each length counts as often as its row says\n"


def test_a_count_that_is_none_is_named(shapeguard: Any) -> None:
    Path("a.csv").write_text("length,count\n12,-2\n", encoding="utf-8")
    ran = shapeguard("plan", "--data", "a.csv", "--max-graphs", "2")
    assert ran.err.startswith('error: a.csv:2: "-2" is no count of rows\n')


@pytest.mark.parametrize("form", ["concise", "github", "json-lines", "markdown"])
def test_every_format_has_the_plan(shapeguard: Any, lengths: str, form: str) -> None:
    out = _plan(shapeguard, "--lengths", lengths, "--max-graphs", "2", "--align", "4", "--output-format", form).out
    assert "500" in out
    emitted = _plan(shapeguard, "--lengths", lengths, "--max-graphs", "2", "--emit", "toml", "--output-format", form)
    assert "length = 512" in emitted.out
