"""The verbs as a user types them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record

from shapeguard.core.graphs import GraphInput

RUN = [
    {
        "type": "start",
        "schema": 1,
        "rank": 0,
        "world_size": 2,
        "pid": 1,
        "device": {
            "kind": "simulated",
            "target": "trn2",
            "toolchain": {"torch": "2.13.0", "transformers": "5.24.0", "python": "3.11.7", "shapeguard": "0.1.0"},
        },
    },
    {
        "type": "compile",
        "n": 1,
        "kind": "region",
        "outcome": "compiled",
        "key": "region 1",
        "region": 1,
        "model": "Llama",
        "inputs": [{"path": "input_ids", "shape": [4, 9], "dtype": "int64", "layout": ""}],
        "constants": [{"path": "scale", "value": "0.5"}],
        "modes": {"grad": True, "autocast": "off"},
    },
    {
        "type": "compile",
        "n": 2,
        "kind": "forward",
        "outcome": "compiled",
        "key": "ab" * 32,
        "region": 1,
        "model": "Llama",
        "inputs": [{"path": "primals_1", "shape": [64, 64], "dtype": "float32", "layout": ""}],
        "nodes": 7,
    },
    {
        "type": "compile",
        "n": 3,
        "kind": "eager",
        "outcome": "compiled",
        "op": "add.Tensor",
        "key": "cd" * 16,
        "model": "Llama",
        "inputs": [{"path": "self", "shape": [4], "dtype": "float32", "layout": ""}],
    },
    {"type": "compile", "n": 4, "kind": "forward", "outcome": "failed", "key": "ef" * 32, "region": 1},
    {"type": "end", "exit": "ok"},
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _run_folder(tmp_path: Path, name: str = "run", length: int = 9, key: str = "ab") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    text = "".join(json.dumps(event) + "\n" for event in RUN)
    text = text.replace('"shape": [4, 9]', f'"shape": [4, {length}]').replace("ab" * 32, key * 32)
    (folder / "rank-0.pid-1.jsonl").write_text(text)
    return folder


def _fill(run: Path, cache: Path, job: str = "") -> None:
    from shapeguard.cache.fill import fill
    from shapeguard.runs.records import records
    from shapeguard.runs.stream import read_run

    assert fill(records(read_run(run), job=job), cache) == ""


def _ids(shapeguard: Shapeguard, *args: str) -> list[str]:
    ran = shapeguard("cache", "ls", "--json", *args)
    assert ran.code == 0, ran.err
    return [each["id"] for each in json.loads(ran.out)["records"]]


def test_dir_prints_the_folder_and_makes_none(shapeguard: Shapeguard, cache: Path) -> None:
    assert shapeguard("cache", "dir").out == f"{cache}\n"
    assert not cache.exists()


def test_the_default_folder_is_in_the_users_cache(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHAPEGUARD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert shapeguard("cache", "dir").out == f"{tmp_path}/xdg/shapeguard\n"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert shapeguard("cache", "dir").out == f"{tmp_path}/home/.cache/shapeguard\n"


def test_a_configured_folder_counts_from_the_configuration(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHAPEGUARD_CACHE_DIR")
    (tmp_path / "shapeguard.toml").write_text('cache-dir = "graphs"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert shapeguard("cache", "dir").out == f"{tmp_path}/graphs\n"
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(tmp_path / "other"))
    assert shapeguard("cache", "dir").out == f"{tmp_path}/other\n"
    assert shapeguard("cache", "dir", "--cache-dir", "/x").out == "/x\n"


def test_a_run_fills_the_cache_with_its_graphs_and_operators(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path
) -> None:
    run = _run_folder(tmp_path)
    _fill(run, cache, "train")
    _fill(run, cache)
    (found,) = json.loads(shapeguard("cache", "ls", "--json").out)["records"]
    assert found["key"] == {
        "graph": "ab" * 32, "device": "simulated", "target": "trn2", "compiler": "", "flags": [],
    }  # fmt: skip
    assert found["inputs"] == [{"path": "input_ids", "shape": [4, 9], "dtype": "int64", "layout": ""}]
    assert (found["model"]["name"], found["kind"], found["nodes"], found["world_size"]) == ("Llama", "forward", 7, 2)
    assert (found["constants"], found["jobs"], found["hits"]) == ([["scale", "0.5"]], ["train"], 1)
    (operator,) = json.loads(shapeguard("cache", "ls", "--eager", "--json").out)["records"]
    assert (operator["kind"], operator["name"]) == ("eager", "add.Tensor")


def test_why_tells_what_a_run_changed(shapeguard: Shapeguard, cache: Path, tmp_path: Path) -> None:
    _fill(_run_folder(tmp_path), cache)
    later = _run_folder(tmp_path, "later", length=13, key="12")
    ran = shapeguard("cache", "why", "--event", f"{later}:2")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "forward of Llama, input_ids 4×13 int64: not known"
    rows = [re.split(r"\s{2,}", line) for line in ran.out.splitlines()[3:]]
    assert rows == [["differs", "asked", "recorded"], ["shape of input_ids", "4×13", "4×9", "dim 1: 9 → 13"]]


def test_why_says_that_a_graph_is_known_and_names_the_nearest_other(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path
) -> None:
    run = _run_folder(tmp_path)
    _fill(run, cache)
    _fill(_run_folder(tmp_path, "later", length=13, key="12"), cache)
    (graph,) = json.loads(shapeguard("cache", "why", "--event", str(run), "--json").out)["graphs"]
    assert graph["known"]["key"]["graph"] == "ab" * 32
    assert [row["part"] for row in graph["differences"]] == ["shape of input_ids"]


def test_why_of_a_number_that_is_no_graph_says_so(shapeguard: Shapeguard, tmp_path: Path) -> None:
    ran = shapeguard("cache", "why", "--event", f"{_run_folder(tmp_path)}:99")
    assert ran.code == 2
    assert (
        ran.err == f"error: {tmp_path}/run has no compile of a graph with number 99\nhint: see `n` in its event files\n"
    )


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ([], [0, 1, 2, 3]),
        (["Llama*"], [0, 1, 2]),
        (["Qwen3"], [3]),
        (["Llama@0123"], []),
        (["LlamaForCausalLM@0123"], [0, 1, 2]),
        (["--batch", "4"], [1]),
        (["--length", "640"], [2]),
        (["--dtype", "bf16"], [0, 1, 2, 3]),
        (["--dtype", "int32"], []),
        (["--tp", "2"], [3]),
        (["--target", "trn3"], []),
        (["--device", "neuron"], []),
        (["--kind", "forward", "--batch", "8"], [0, 2, 3]),
    ],
)
def test_ls_picks_by_model_batch_length_dtype_tp_and_target(
    shapeguard: Shapeguard, cache: Path, options: list[str], numbers: list[int]
) -> None:
    records = [
        record(0), record(1, shape=(4, 512)), record(2, shape=(8, 640)), record(3, model="Qwen3", tp=2),
    ]  # fmt: skip
    filled(cache, *records)
    assert sorted(_ids(shapeguard, *options)) == sorted(records[number].key.id for number in numbers)


def test_ls_shows_a_row_a_graph_and_says_what_is_left_out(shapeguard: Shapeguard, cache: Path) -> None:
    filled(cache, *(record(n, compile_s=312.25) for n in range(3)), record(9, kind="eager", name="add.Tensor"))
    lines = shapeguard("cache", "ls", "--limit", "2").out.splitlines()
    assert len(lines) == 4
    assert re.fullmatch(
        r"\w{10}  LlamaForCausalLM@0123456789ab  forward  input_ids 8×512 int64, labels 8×512 int64  trn2    simulated"
        r"    312\.2   1200  \d{4}-\d\d-\d\d     1",
        lines[1],
    )
    assert lines[3] == "1 more; --limit 0 shows all; 1 eager operator is not shown; --eager lists it"
    # Only of those that the options ask for.
    assert "eager" not in shapeguard("cache", "ls", "--length", "640").out
    assert "eager" not in shapeguard("cache", "ls", "--kind", "forward").out
    assert "1 eager operator" in shapeguard("cache", "ls", "--length", "512").out


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 100])
def test_a_short_list_is_the_beginning_of_the_long_one(shapeguard: Shapeguard, cache: Path, limit: int) -> None:
    names = ("B", "A", "AB", "C", "A", "B")
    filled(cache, *(record(n, model=name, shape=(8, 64 * (6 - n))) for n, name in enumerate(names)))
    whole = shapeguard("cache", "ls", "--limit", "0").out.splitlines()
    lines = shapeguard("cache", "ls", "--limit", str(limit)).out.splitlines()
    ids = [line.split()[0] for line in whole[1:]]
    assert [line.split()[0] for line in lines[1 : 1 + limit]][:6] == ids[:limit]
    assert (lines[-1] == f"{6 - limit} more; --limit 0 shows all") == (limit < 6)


def test_a_model_that_is_not_recorded_is_compared_with_the_one_of_the_nearest_name(
    shapeguard: Shapeguard, cache: Path
) -> None:
    filled(cache, record(1, model="LlamaForCausalLM"), record(2, model="Qwen3ForCausalLM"))
    (graph,) = json.loads(shapeguard("cache", "why", "Qwen2ForCausalLM", "8x512", "--json").out)["graphs"]
    assert graph["nearest"]["model"]["name"] == "Qwen3ForCausalLM"
    assert [row["part"] for row in graph["differences"]] == ["model"]


def test_lookup_finds_a_shape_or_exits_with_one(shapeguard: Shapeguard, cache: Path) -> None:
    filled(cache, record(0))
    assert shapeguard("cache", "lookup", "LlamaForCausalLM", "8x512").code == 0
    assert shapeguard("cache", "lookup", "LlamaForCausalLM", "input_ids=8x512:int64,labels=8x512").code == 0
    ran = shapeguard("cache", "lookup", "LlamaForCausalLM", "8x513")
    assert ran.code == 1
    assert ran.out == "not recorded; `shapeguard cache why` names the nearest and what differs\n"


def test_show_takes_the_first_digits_of_an_id(shapeguard: Shapeguard, cache: Path) -> None:
    filled(cache, record(0, compile_s=312.0), record(1))
    id = record(0).key.id
    ran = shapeguard("cache", "show", id[:8])
    assert re.search(rf"^id\s+{id}$", ran.out, re.MULTILINE)
    assert re.search(r"^compile\s+312\.0 s$", ran.out, re.MULTILINE)
    assert shapeguard("cache", "show", "").code == 2
    assert shapeguard("cache", "show", "zz").err.startswith("error: no record's id begins with 'zz'\n")


def test_prune_forgets_the_old_and_keeps_what_a_lock_names(shapeguard: Shapeguard, cache: Path, tmp_path: Path) -> None:
    filled(cache, *(record(n) for n in range(4)))
    lock = tmp_path / "shapeguard.lock"
    lock.write_text(f'[[graphs]]\nkey = "{2:064x}"\n')
    assert shapeguard("cache", "prune", "--older-than", "1d").out == "forgot 0 of 4 records, 0 B\n"
    ran = shapeguard("cache", "prune", "--max-size", "1", "--keep-lock", str(lock), "--dry-run", "--json")
    assert (json.loads(ran.out)["records"], len(_ids(shapeguard))) == (3, 4)
    assert shapeguard("cache", "prune", "--keep-lock", str(lock)).out.startswith("forgot 3 of 4 records, ")
    assert _ids(shapeguard) == [record(2).key.id]
    time.sleep(1.1)
    assert shapeguard("cache", "prune", "--older-than", "1s").code == 0
    assert _ids(shapeguard) == []


@pytest.mark.parametrize("text", ["", "x = 1", 'key = "short"', "[", "\x00"])
def test_a_lock_that_names_no_graph_is_refused(shapeguard: Shapeguard, cache: Path, tmp_path: Path, text: str) -> None:
    filled(cache, record(1))
    (tmp_path / "l").write_text(text)
    ran = shapeguard("cache", "prune", "--keep-lock", "l")
    assert ran.code == 2
    assert ran.err.startswith("error: l ")
    assert _ids(shapeguard) == [record(1).key.id]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("prune",), "error: nothing was said to forget\nhint: give --keep-lock, --older-than or --max-size\n"),
        (("why",), "error: give either a model or --event RUN\nhint: shapeguard cache why LlamaForCausalLM 8x512\n"),
        (("lookup", "M", "8y5"), "error: '8y5' is no shape\nhint: write 8x512, or input_ids=8x512:int64\n"),
    ],
)
def test_a_users_mistake_is_one_line_and_the_next_step(
    shapeguard: Shapeguard, args: tuple[str, ...], said: str
) -> None:
    ran = shapeguard("cache", *args)
    assert (ran.code, ran.err) == (2, said)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("lss",), "No such verb 'lss'. Did you mean 'ls'?"),
        (("prune", "--older-than", "5"), "'5' is no age, for example 30d or 12h"),
        (("prune", "--max-size", "big"), "'big' is no size, for example 100M or 2GiB"),
        (("ls", "--device", "cuda"), "'cuda' is not one of"),
    ],
)
def test_a_wrong_option_is_named(shapeguard: Shapeguard, args: tuple[str, ...], said: str) -> None:
    ran = shapeguard("cache", *args)
    assert ran.code == 2
    assert said in ran.err


def test_names_from_elsewhere_cannot_command_the_terminal(shapeguard: Shapeguard, cache: Path) -> None:
    evil = "Ev\x1b[2Jil"
    shapes = (GraphInput(path=evil, shape=(1, 2), dtype=evil),)
    filled(cache, record(1, model=evil, inputs=shapes, name=evil, constants=((evil, evil),), jobs=(evil,)))
    for args in (("ls",), ("status",), ("show", record(1).key.id), ("why", "Evil", "1x3"), ("verify",)):
        assert "\x1b[2J" not in shapeguard("cache", *args, "--color", "never").out


def test_the_cache_starts_without_torch() -> None:
    program = (
        "import sys; from shapeguard.cli.main import main; code = main(['cache', 'status'])\n"
        "assert code == 0 and 'torch' not in sys.modules and 'obstore' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_object_storage_without_its_extra_names_what_to_install(cache: Path) -> None:
    program = (
        "import sys; sys.modules['obstore'] = None; from shapeguard.cli.main import main\n"
        "sys.exit(main(['cache', 'pull', 's3://bucket/x']))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert ran.stderr == (
        "error: object storage needs obstore, which is not installed here\n"
        "hint: python -m pip install 'shapeguard[remote]'\n"
    )


def test_every_verb_of_the_conventions_is_there_and_has_help(shapeguard: Shapeguard) -> None:
    verbs = "clean dir export import lookup ls prune pull push scan show status verify why".split()
    listed = re.findall(r"^  (\w+)  ", shapeguard("cache", "--help").out.partition("Commands:")[2], re.MULTILINE)
    assert listed == verbs
    for verb in verbs:
        assert shapeguard("cache", verb, "--help").code == 0
