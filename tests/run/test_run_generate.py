"""`run infer` with language models: one decode graph, the outputs of one prompt after another, in their order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.run.runner import Done, events, language_model, prompts, run, write_lines

BUCKETS = (16, 32, 64)
BUDGET = 5
FIXED = ("--buckets", ",".join(map(str, BUCKETS)), "--max-new-tokens", str(BUDGET))


def one_by_one(folder: Path, texts: list[str]) -> list[str]:
    """What plain transformers generate on the CPU, with no padding and no static cache."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = []
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt")
        sequence = model.generate(**inputs, do_sample=False, max_new_tokens=BUDGET, pad_token_id=0)
        new = sequence[0, inputs["input_ids"].shape[1] :]
        found.append(tokenizer.decode(new, skip_special_tokens=True))
    return found


def check(folder: Path, texts: list[str], *, batch_size: int) -> Done:
    language_model(folder)
    file = write_lines(folder / "prompts.jsonl", [{"prompt": text} for text in texts])
    done = run(folder, "infer", "--model", "lm", "--file", file, "--batch-size", str(batch_size), *FIXED)
    assert done.code == 0, done.err
    assert [row["index"] for row in done.rows] == list(range(len(texts)))
    assert [row["prompt"] for row in done.rows] == texts
    assert [row["text"] for row in done.rows] == one_by_one(folder / "lm", texts)
    assert {row["bucket"] for row in done.rows} == set(BUCKETS)
    totals = done.summary["totals"]
    assert totals["regions"] == totals["neffs"] == 1
    assert totals["after_warmup"] == {"regions": 0, "eager": 0}
    assert totals["eager"] <= eager_of_the_first_batch(done) * len(BUCKETS)
    assert_nothing_compiles_after_a_buckets_first_batch(done)
    return done


def eager_of_the_first_batch(done: Done) -> int:
    """How many signatures a prompt of one bucket needs."""
    found = {
        e["key"] for e in events(done.run) if e["type"] == "compile" and e["kind"] == "eager" and e["step"] <= BUDGET
    }
    return len(found)


def assert_nothing_compiles_after_a_buckets_first_batch(done: Done) -> None:
    """The first batches show every bucket, the largest first: all compiles lie in them, whatever comes later."""
    compiles = [event for event in events(done.run) if event["type"] == "compile"]
    counted = Counter((event["step"] - 1) // BUDGET for event in compiles)
    assert set(counted) <= set(range(len(BUCKETS)))
    assert "0 compiled after their shape's first batch" in done.err


def test_prompts_of_random_length_make_one_decode_graph_and_the_outputs_of_one_at_a_time_ci_share(
    tmp_path: Path,
) -> None:
    done = check(tmp_path, prompts(30, longest=55), batch_size=8)
    assert f"{30 * BUDGET} new tokens" in done.err


@pytest.mark.soak
def test_a_thousand_prompts_make_one_decode_graph_and_the_outputs_of_one_at_a_time(tmp_path: Path) -> None:
    check(tmp_path, prompts(1000, longest=55, seed=1), batch_size=8)


def test_rows_end_at_the_end_token_chats_go_through_the_template_and_pieces_are_streamed(tmp_path: Path) -> None:
    language_model(tmp_path)
    folder = tmp_path / "lm"
    (text,) = one_by_one(folder, ["the harbour"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    second = tokenizer(text)["input_ids"][1]
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "eos_token_id": second}))
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    chat = {"messages": [{"role": "user", "content": "the harbour"}]}
    file = write_lines(tmp_path / "chats.jsonl", [{"prompt": "the harbour"}, chat])
    words = ("infer", "--model", "lm", "--batch-size", "2", *FIXED, "--stream", "--device", "cpu")
    done = run(tmp_path, *words, "--file", "-", stdin=(tmp_path / file).read_bytes())
    assert done.code == 0, done.err
    results = [row for row in done.rows if "finish" in row]
    assert [(row["tokens"], row["finish"]) for row in results] == [(2, "stop"), (2, "stop")]
    for row in results:
        pieces = [each["piece"] for each in done.rows if "piece" in each and each["index"] == row["index"]]
        assert "".join(pieces).startswith(row["text"])
        assert text.startswith(row["text"])


@pytest.mark.soak
def test_sampling_repeats_with_its_seed_and_takes_the_spelling_of_transformers(tmp_path: Path) -> None:
    language_model(tmp_path)
    words = ("infer", "--model", "lm", "--device", "cpu", "--do_sample", "--temperature", "2.0", "--top_k=0", "--text")
    fixed = ("--buckets", "16", "--max_new_tokens", "12", "the harbour", "fish")
    first, again, other = (run(tmp_path, *words, "--seed", seed, *fixed).out for seed in ("1", "1", "2"))
    assert first == again != other
    assert len(first.splitlines()) == 2


@pytest.mark.soak
def test_a_prompt_that_is_too_long_is_cut_at_its_beginning_where_that_is_asked_for(tmp_path: Path) -> None:
    language_model(tmp_path)
    words = "the harbour town woke before the sun did and the crates".split()
    whole = " ".join(words * 3)
    short = ("infer", "--model", "lm", "--device", "cpu", "--buckets", "8", "--max-new-tokens", "4", "--truncate")
    done = run(tmp_path, *short, whole, " ".join((words * 3)[-8:]))
    assert done.code == 0, done.err
    assert done.rows[0]["text"] == done.rows[1]["text"]


def test_the_prompts_of_these_tests_need_every_bucket() -> None:
    lengths = [len(text.split()) for text in prompts(30, longest=55)]
    assert min(lengths) <= BUCKETS[0] < BUCKETS[1] < max(lengths) <= BUCKETS[2]
    assert len(set(lengths)) > 20


def test_a_result_is_one_line_for_readers_that_split_at_unicodes_ends_of_lines_too() -> None:
    program = "from shapeguard.run.output import write; write({'text': 'a\\u2028b\\u0085c\\u2029é'})"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert len(out.splitlines()) == 1
    assert json.loads(out) == {"text": "a\u2028b\u0085c\u2029é"}
