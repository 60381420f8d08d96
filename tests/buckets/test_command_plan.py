"""`shapeguard plan` from the outside."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from shapeguard.buckets.emit import KINDS
from shapeguard.cli.commands import plan as command
from shapeguard.cli.main import main

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
LENGTHS = [10] * 50 + [60] * 30 + [100] * 15 + [500] * 5


@pytest.fixture
def lengths(tmp_path: Path) -> str:
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, LENGTHS)) + "\n", encoding="utf-8")
    return path.name


def as_json(shapeguard: Any, *words: str) -> Any:
    ran = shapeguard("plan", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_report_names_the_buckets_and_what_others_would_do(shapeguard: Any, lengths: str) -> None:
    ran = shapeguard("plan", "--lengths", lengths, "--max-graphs", "3", "--align", "64")
    assert ran.code == 0
    assert ran.err == ""
    assert (
        ran.out
        == """\
3 buckets for 100 rows: 64, 128, 512 (3 graphs)

bucket  rows  share  tokens with padding
    64    80  80.0%                5,120
   128    15  15.0%                1,920
   512     5   5.0%                2,560

Padding
                   lengths  padding tokens  share
everything to 512        1          44,900  87.7%
this plan                3           3,300  34.4%

With other numbers of buckets
   buckets  graphs  padding
         1       1    87.7%  ██████████████████████████
         2       2    57.2%  █████████████████
>        3       3    34.4%  ██████████

--write toml=buckets.toml keeps the plan; --emit collator, prompts, vllm or jobs prints its use.
"""
    )


def test_the_json_has_the_plan_and_the_curve(shapeguard: Any, lengths: str) -> None:
    found = as_json(shapeguard, "--lengths", lengths, "--max-graphs", "4", "--for", "train", "--align", "4")
    assert found["schema"] == 1
    assert found["buckets"] == [100, 500]
    assert found["padded"] == 95 * 100 + 5 * 500 - sum(LENGTHS)
    assert found["graphs"] == 4
    assert [len(each["buckets"]) for each in found["curve"]] == [1, 2, 3, 4]
    assert [each["graphs"] for each in found["curve"]] == [2, 4, 6, 8]
    assert found["curve"][3]["padded"] == 50 * 2


def test_a_cap_on_waste_takes_the_fewest_buckets_that_keep_it(shapeguard: Any, lengths: str) -> None:
    found = as_json(shapeguard, "--lengths", lengths, "--align", "4", "--max-waste", "10%")
    assert found["buckets"] == [12, 60, 100, 500]
    assert as_json(shapeguard, "--lengths", lengths, "--align", "4", "--max-waste", "0.99")["buckets"] == [500]


def test_a_cap_that_too_few_graphs_cannot_keep_is_a_finding(shapeguard: Any, lengths: str) -> None:
    ran = shapeguard("plan", "--lengths", lengths, "--align", "4", "--max-waste", "10%", "--max-graphs", "2")
    assert ran.code == 1
    assert "lengths.txt: 2 buckets still waste 47.5%, more than 10.0%; 4 buckets would keep it (4 graphs)" in ran.out
    ran = shapeguard("plan", "--lengths", lengths, "--align", "64", "--max-waste", "10%")
    assert ran.code == 1
    assert "more buckets do not help, the alignment of 64 pads so much by itself" in ran.out


def test_a_cap_on_a_rows_padding_is_kept(shapeguard: Any, lengths: str) -> None:
    found = as_json(shapeguard, "--lengths", lengths, "--align", "1", "--max-pad", "50", "--max-graphs", "3")
    assert found["buckets"] == [10, 100, 500]
    ran = shapeguard("plan", "--lengths", lengths, "--align", "1", "--max-pad", "50", "--max-graphs", "2")
    assert ran.code == 2
    assert ran.err == (
        "error: 2 buckets cannot keep every row's padding within 50 tokens\n"
        "hint: 3 buckets can: raise --max-graphs or raise --max-pad\n"
    )


def test_dear_compiles_take_few_buckets_and_much_traffic_many(shapeguard: Any, lengths: str) -> None:
    words = ["--lengths", lengths, "--align", "4", "--compile-minutes", "30", "--tokens-per-second", "1000"]
    few = as_json(shapeguard, *words, "--traffic", "1000", "--price", "2")
    many = as_json(shapeguard, *words, "--traffic", "10000000", "--price", "2")
    assert few["buckets"] == [500]
    assert many["buckets"] == [12, 60, 100, 500]
    # One graph of half an hour, and 1,000 rows of 500 tokens at 1,000 tokens a second.
    assert few["hours"] == pytest.approx(0.5 + 500 / 3600, abs=1e-4)
    assert few["cost"] == pytest.approx(2 * few["hours"], abs=0.01)
    assert min(each["cost"] for each in many["curve"]) == many["cost"]


def test_attention_makes_long_buckets_dearer(shapeguard: Any, tmp_path: Path) -> None:
    Path("lengths.txt").write_text("100 " * 30 + "500 " * 60 + "900 " * 40 + "1000 " * 30, encoding="utf-8")
    config = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ["--lengths", "lengths.txt", "--align", "1", "--max-graphs", "2"]
    plain = as_json(shapeguard, *words)
    weighed = as_json(shapeguard, *words, "--model", ".")
    assert plain["buckets"] == [500, 1000]
    assert weighed["waste"] != plain["waste"] == plain["padding_share"]
    # 4·8·8 for the projections, 2·8·8 for the feed-forward part; 2·8 for each pair of tokens.
    work = {length: length * (384 + 16 * length) for length in (100, 500, 900, 1000)}
    real = 30 * work[100] + 60 * work[500] + 40 * work[900] + 30 * work[1000]
    whole = 90 * work[500] + 70 * work[1000]
    assert weighed["waste"] == pytest.approx(1 - real / whole, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("12\n12\n700\n", "plain.txt"),
        ("12, 12, 700", "row.txt"),
        ("length,count\n12,2\n700,1\n", "histogram.csv"),
        ("count\tlength\n2\t12\n1\t700\n", "histogram.tsv"),
        ("\ufefflength\r\n12\r\n12\r\n700\r\n", "windows.csv"),
        ("[12, 12, 700]", "list.json"),
        ('{"12": 2, "700": 1}', "histogram.json"),
    ],
)
def test_lengths_are_read_from_numbers_and_histograms(shapeguard: Any, text: str, name: str) -> None:
    Path(name).write_text(text, encoding="utf-8", newline="")
    found = as_json(shapeguard, "--lengths", name, "--max-graphs", "2")
    assert (found["buckets"], found["rows"], found["real_tokens"]) == ([128, 768], [2, 1], 724)


def test_lengths_are_read_from_standard_input(shapeguard: Any) -> None:
    ran = shapeguard("plan", "--lengths", "-", "--max-graphs", "1", "--json", stdin=b"5 6 7")
    assert json.loads(ran.out)["rows"] == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no lengths to plan for"),
        ("12\n-3\n", "bad.txt: the length -3 is negative"),
        ("12\n1.5\n", "bad.txt: '1.5' is no length"),
        ("12 Ⅷ", "bad.txt: 'Ⅷ' is no length"),
        ("99999999999999999999", "bad.txt: '99999999999999999999' is no length"),
        ("hello there\nyou\n", "bad.txt: the headings hello, there are not those of lengths"),
        ("length\nx\n", "bad.txt: 'x' is no length"),
        ("length,count\n1\n", "bad.txt:2: 1 values under 2 headings"),
        ("length,count\n1,x\n", "bad.txt:2: 'x' is no count"),
        ("[1, 2.5]", "bad.txt: 2.5 is no whole number"),
        ("[null]", "bad.txt: null is no whole number"),
        ("[" * 100_000, "bad.txt: this is no JSON: maximum recursion depth exceeded"),
        ('{"1": true}', "bad.txt: true is no whole number"),
        ("[1, 2", "bad.txt: this is no JSON: Expecting ',' delimiter: line 1 column 6 (char 5)"),
    ],
)
def test_a_file_that_holds_no_lengths_is_named_with_what_is_wrong(shapeguard: Any, text: str, message: str) -> None:
    Path("bad.txt").write_text(text, encoding="utf-8")
    ran = shapeguard("plan", "--lengths", "bad.txt", "--max-graphs", "2")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
    assert len(ran.err.splitlines()) == 2
    assert ran.out == ""


def tokenizer(folder: Path) -> None:
    """A tokenizer whose tokens are words, and which pads and cuts when it is used as it was saved."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.enable_truncation(2)
    words.enable_padding(length=99)
    folder.mkdir()
    words.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rows.jsonl", '{"text": "a b c"}\n\n{"text": "d"}\n', []),
        ("rows.json", '[{"text": "a b c"}, {"text": "d"}]', []),
        ("rows.csv", 'id,text\n1,"a b c"\n2,d\n', []),
        ("rows.tsv", "note\tid\na b c\t1\nd\t2\n", ["--column", "note"]),
        ("rows.txt", "a b c\n\nd\n", []),
        ("ids.jsonl", '{"input_ids": [7, 7, 7]}\n{"input_ids": [7]}\n', []),
        ("numbers.jsonl", '{"n": 3}\n{"n": 1}\n', []),
        ("numbers.csv", "length,id\n3,1\n1,2\n", []),
    ],
)
def test_rows_of_data_are_measured(shapeguard: Any, tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    tokenizer(tmp_path / "tok")
    Path(name).write_text(text, encoding="utf-8")
    found = as_json(shapeguard, "--data", name, "--tokenizer", "tok", "--align", "1", "--max-graphs", "2", *words)
    assert (found["buckets"], found["rows"]) == ([1, 3], [1, 1])


@pytest.mark.parametrize(
    ("words", "buckets"),
    [
        (["plain"], [1, 3, 9]),
        (["splits"], [1, 3, 9]),
        (["splits", "--split", "test"], [2]),
        (["plain/data-00000-of-00001.arrow"], [1, 3, 9]),
    ],
)
def test_a_folder_of_datasets_is_measured(shapeguard: Any, words: list[str], buckets: list[int]) -> None:
    pytest.importorskip("pyarrow")
    path = str(FIXTURES / "buckets" / words[0])
    found = as_json(shapeguard, "--data", path, *words[1:], "--align", "1", "--max-graphs", "3")
    assert found["buckets"] == buckets


def test_a_parquet_file_is_measured(shapeguard: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"input_ids": [[1, 2], [3]]}), "rows.parquet")
    assert as_json(shapeguard, "--data", "rows.parquet", "--align", "1", "--max-graphs", "2")["buckets"] == [1, 2]


@pytest.mark.parametrize(
    ("name", "text", "words", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text"\n', [], "a.jsonl:2: this line is no JSON: Expecting ':' delimiter"),
        ("a.jsonl", '{"text": "a"}\n', [], "a.jsonl:1: texts need a tokenizer"),
        ("a.jsonl", '{"text": "a"}\n', ["--tokenizer", "./none"], "there is no tokenizer './none'"),
        ("a.jsonl", '{"text": "a"}\n', ["--tokenizer", "a.jsonl"], "'a.jsonl' is no tokenizer"),
        ("a.jsonl", '{"text": "a"}\n', ["--column", "txt"], "a.jsonl:1: there is no 'txt'"),
        ("a.jsonl", '{"a": "a", "b": "b"}\n', [], "a.jsonl:1: which column holds the rows?"),
        ("a.jsonl", '{"text": [{"role": "user"}]}\n', [], 'a.jsonl:1: [{"role": "user"}] is no text'),
        ("a.txt", "a\n", ["--split", "train"], "'a.txt' is a file and has no splits"),
        ("a.txt", "\n\n", [], "'a.txt' holds no rows"),
    ],
)
def test_data_that_cannot_be_measured_is_named(
    shapeguard: Any, name: str, text: str, words: list[str], message: str
) -> None:
    Path(name).write_text(text, encoding="utf-8")
    ran = shapeguard("plan", "--data", name, "--max-graphs", "2", *words)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")


def test_a_folder_that_is_no_data_set_and_an_unknown_split_are_named(shapeguard: Any, tmp_path: Path) -> None:
    ran = shapeguard("plan", "--data", ".", "--max-graphs", "2")
    assert ran.err.startswith("error: '.' is no folder of `datasets`: it has no state.json that names data files")
    splits = str(FIXTURES / "buckets" / "splits")
    ran = shapeguard("plan", "--data", splits, "--split", "dev", "--max-graphs", "2")
    assert ran.err.endswith("has no split 'dev'\nhint: give --split: 'train', 'test'\n")


def write_run(folder: Path) -> None:
    start = {"type": "start", "schema": 1, "rank": 0, "world_size": 1, "pid": 1, "step": 0, "phase": "train"}
    batch = {"type": "batch", "step": 0, "phase": "train", "collator": None, "loader": None}
    lines = [start]
    for length, real in ((40, 100), (300, 700), (40, 120)):
        shapes = {"input_ids": [4, length], "labels": [4]}
        lines.append({**batch, "shapes": shapes, "real_tokens": real, "padded_tokens": 4 * length - real})
    folder.mkdir()
    (folder / "rank-0.pid-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_a_run_says_what_was_seen_and_how_much_of_it_was_padding(shapeguard: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    ran = shapeguard("plan", "--run", "run", "--max-graphs", "2", "--align", "64")
    assert ran.code == 0
    assert "2 buckets for 12 rows: 64, 320 (2 graphs)" in ran.out
    assert "the run, as it padded        2             600  39.5%" in ran.out
    assert "this plan                    2             872  48.7%" in ran.out
    assert ran.err == (
        "a run records the shape of a batch: each row counts with the length it was padded to, "
        "so that a plan pads at most as much as shown\n"
    )
    judged = as_json(shapeguard, "--run", "run", "--buckets", "40,300")
    assert judged["padded"] == judged["before"]["padded"] == 600


def test_a_run_that_knows_its_rows_is_planned_for_them(shapeguard: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    file = tmp_path / "run" / "rank-0.pid-1.jsonl"
    rows = {100: [10, 20, 30, 40], 700: [100, 100, 200, 300], 120: [20, 30, 30, 40]}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [{**line, "rows": rows[line["real_tokens"]]} if "real_tokens" in line else line for line in lines]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = as_json(shapeguard, "--run", "run", "--max-graphs", "3", "--align", "10")
    assert (found["buckets"], found["rows"], found["real_tokens"]) == ([40, 100, 300], [8, 2, 2], 920)
    assert found["before"] == {"real_tokens": 920, "padded": 600}
    assert shapeguard("plan", "--run", "run", "--max-graphs", "3").err == ""


def test_given_buckets_are_judged(shapeguard: Any, lengths: str) -> None:
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", "64,128,256", "--align", "1")
    assert ran.code == 1
    assert "5 rows fit no bucket: the longest has 500 tokens, the largest bucket 256" in ran.out
    assert "never used: 256" in ran.out
    assert shapeguard("plan", "--lengths", lengths, "--buckets", "64,128,512").code == 0
    assert shapeguard("plan", "--lengths", lengths, "--buckets", "512", "--max-waste", "20%").code == 1
    found = as_json(shapeguard, "--lengths", lengths, "--buckets", "64,128,512,1024")
    assert found["unused"] == [1024]


def test_given_buckets_are_compared_with_the_best_for_the_same_rows_and_alignment(
    shapeguard: Any, lengths: str
) -> None:
    found = as_json(shapeguard, "--lengths", lengths, "--buckets", "60,100,500")
    assert found["align"] == 20
    assert found["best"]["buckets"] == [20, 100, 500]
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", "12,102", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["best"]["buckets"] == [12, 102]
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", "8")
    assert ran.err == "error: no row fits these buckets: the shortest has 10 tokens\nhint: give longer --buckets\n"


def test_many_buckets_are_shortened_where_people_read(shapeguard: Any) -> None:
    Path("many.txt").write_text(" ".join(map(str, range(1, 201))), encoding="utf-8")
    ran = shapeguard("plan", "--lengths", "many.txt", "--align", "1", "--max-graphs", "150")
    assert max(map(len, ran.out.splitlines())) <= 120
    curve = ran.out[ran.out.index("With other numbers") :].splitlines()
    assert [line.split()[-4 if "█" in line else -3] for line in curve if "%" in line][16:] == [
        "32", "64", "128", "148", "149", "150", "151", "152",
    ]  # fmt: skip
    assert len(as_json(shapeguard, "--lengths", "many.txt", "--align", "1", "--max-graphs", "150")["buckets"]) == 150


def test_a_written_plan_is_read_again(shapeguard: Any, lengths: str) -> None:
    plan = ("plan", "--lengths", lengths, "--max-graphs", "2", "--align", "4", "--batch-tokens", "1000")
    assert shapeguard(*plan, "--write", "toml=buckets.toml", "-q").code == 0
    table = tomllib.loads(Path("buckets.toml").read_text(encoding="utf-8"))
    assert table["bucket"] == [
        {"length": 100, "rows": 95, "batch-size": 10},
        {"length": 500, "rows": 5, "batch-size": 2},
    ]
    assert as_json(shapeguard, "--lengths", lengths, "--buckets", "buckets.toml")["buckets"] == [100, 500]
    again = shapeguard(*plan, "--write", "toml=buckets.toml")
    assert (again.code, again.err) == (2, "error: 'buckets.toml' exists\nhint: give --overwrite, or another file\n")
    assert shapeguard(*plan, "--write", "toml=buckets.toml", "--overwrite", "-q").code == 0


def test_the_code_that_is_printed_runs(shapeguard: Any, lengths: str) -> None:
    words = ("plan", "--lengths", lengths, "--max-graphs", "4", "--for", "train", "--align", "4", "--batch-size", "8")
    scope: dict[str, Any] = {}
    exec(shapeguard(*words, "--emit", "collator").out, scope)

    class Tokenizer:
        pad_token_id = 0

    loader = scope["bucket_loader"]([{"input_ids": [1] * length} for length in LENGTHS], Tokenizer())
    assert {tuple(batch["labels"].shape) for batch in loader} == {(8, 100), (8, 500)}
    exec(shapeguard(*words, "--emit", "prompts").out, scope)
    assert scope["BUCKETS"] == [100, 500]


def test_the_other_kinds_name_every_bucket(shapeguard: Any, lengths: str) -> None:
    words = ("plan", "--lengths", lengths, "--max-graphs", "2", "--align", "4", "--batch-size", "8")
    assert shapeguard(*words, "--emit", "vllm").out == (
        "--max-num-batched-tokens 500 --max-num-seqs 8 --additional-config "
        '\'{"neuron_config": {"num_batched_tokens_buckets": [100, 500], "num_seqs_buckets": [8]}}\'\n'
    )
    # A step of decoding knows no length, so that batch sizes that go with it say nothing.
    words = (*words[:-2], "--batch-tokens", "1000")
    assert shapeguard(*words, "--emit", "vllm").out == (
        "--max-num-batched-tokens 500 --additional-config "
        '\'{"neuron_config": {"num_batched_tokens_buckets": [100, 500]}}\'\n'
    )
    words = (*words[:-2], "--batch-size", "8")
    jobs = tomllib.loads(shapeguard(*words, "--emit", "jobs", "--job", "train.py --length {bucket} -b {batch}").out)
    assert jobs["tool"]["shapeguard"]["jobs"]["infer-100"] == {
        "command": ["train.py", "--length", "100", "-b", "8"],
        "budget": {"graphs": 1, "after-warmup": 0},
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Nothing was given: name one of --lengths, --data and --run."),
        (["--lengths", "a", "--data", "b"], "--lengths and --data was given: name one of --lengths, --data and --run."),
        (["--lengths", "a"], "How many buckets? Give --max-graphs K, --max-waste SHARE or --compile-minutes M."),
        (["--lengths", "a", "--split", "x"], "--split means nothing without --data."),
        (["--lengths", "a", "--price", "2"], "--price means nothing without --compile-minutes."),
        (["--lengths", "a", "--truncate"], "--truncate means nothing without --max-length."),
        (
            ["--lengths", "a", "--compile-minutes", "2"],
            "--compile-minutes needs --tokens-per-second, to weigh compiling against padding.",
        ),
        (["--lengths", "a", "--max-waste", "120%"], "'120%' is not from 0% up to 100%: write 20% or 0.2"),
        (["--lengths", "a", "--max-waste", "nan"], "'nan' is not from 0% up to 100%: write 20% or 0.2"),
        (["--lengths", "a", "--compile-minutes", "inf"], "'inf' is no amount."),
        (["--lengths", "a", "--write", "yaml=b"], "'yaml=b' is not KIND=FILE"),
    ],
)
def test_options_that_contradict_are_named(shapeguard: Any, words: list[str], message: str) -> None:
    ran = shapeguard("plan", *words)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        ("no.toml", "'no.toml' is no list of buckets and no file: No such file or directory"),
        ("0,5", "0,5: 0 is no bucket"),
        ("5,5", "5,5: 5 stands there twice"),
        ("-4", "-4: -4 is no bucket"),
        ("bad.toml", "bad.toml: the schema None is not 1"),
    ],
)
def test_buckets_that_are_none_are_named(shapeguard: Any, lengths: str, buckets: str, message: str) -> None:
    Path("bad.toml").write_text("[[bucket]]\nlength = 3\n", encoding="utf-8")
    ran = shapeguard("plan", "--lengths", lengths, "--buckets", buckets)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")


def test_rows_over_the_maximum_are_left_out_or_cut(shapeguard: Any, lengths: str) -> None:
    words = ("--lengths", lengths, "--max-graphs", "2", "--align", "64", "--max-length", "130")
    left = as_json(shapeguard, *words)
    assert (left["buckets"], sum(left["rows"]), left["misfits"]) == ([64, 128], 95, {"500": 5})
    cut = as_json(shapeguard, *words, "--truncate")
    assert (cut["buckets"], sum(cut["rows"]), cut["misfits"]) == ([64, 128], 100, {})


def test_the_command_knows_all_kinds_without_importing_them() -> None:
    assert command.KINDS == KINDS
    assert main(["plan", "--help"]) == 0
