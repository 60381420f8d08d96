"""Settings that decide about files: `neuron`, `lengths`, hierarchy, baseline, result cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

LINT = ("lint", "--no-cache", "--json")
CUDA = """import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("x").to("cuda")
tokenizer = AutoTokenizer.from_pretrained("x")
for text in texts:
    out = model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=8)
step = torch.compile(model, dynamic=True)
"""
NEURON = CUDA.replace('"cuda"', '"neuron"')
BAD = 'from transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("x", device_map="auto")\n'


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def found(shapeguard, *args: str) -> dict[str, set[str]]:
    """The codes of the rules that speak only in code for Neuron, by file."""
    rules = json.loads(shapeguard("rule", "--all", "--json").out)["rules"]
    only = {rule["code"] for rule in rules if rule["neuron_only"]}
    result: dict[str, set[str]] = {}
    for finding in json.loads(shapeguard(*LINT, *args).out)["findings"]:
        if finding["code"] in only:
            result.setdefault(finding["path"], set()).add(finding["code"])
    return result


@pytest.fixture
def mixed(shapeguard):
    """A repository that serves CUDA, with one folder and one file for Neuron."""
    write("src/train.py", CUDA)
    write("src/models/serve.py", CUDA)
    write("src/trainium/run.py", NEURON)
    write("scripts/on_neuron.py", "import torch_neuronx\n" + CUDA)
    write("biology/cells.py", 'cell_type = "neuron"  # not a device: "neuron"\n' + CUDA)
    write("pyproject.toml", '[project]\nname = "x"\n[project.optional-dependencies]\nn = ["torch-neuronx"]\n')
    return shapeguard


def test_all_code_is_for_neuron_by_default(mixed):
    assert len(found(mixed, ".")) == 5


def test_auto_speaks_in_files_that_show_neuron_and_nowhere_else(mixed):
    write("shapeguard.toml", '[lint]\nneuron = "auto"\n')
    assert set(found(mixed, ".")) == {"src/trainium/run.py", "scripts/on_neuron.py"}


def test_auto_speaks_in_a_project_that_requires_neuron(mixed):
    write("shapeguard.toml", '[lint]\nneuron = "auto"\n')
    write("requirements.txt", "torch==2.9\ntorch-neuronx>=2.9  # on trn2\n")
    assert len(found(mixed, ".")) == 5


def test_paths_say_where_neuron_is(mixed):
    write("shapeguard.toml", '[lint]\nneuron = ["src/trainium", "scripts/on_*.py"]\n')
    assert set(found(mixed, ".")) == {"src/trainium/run.py", "scripts/on_neuron.py"}
    write("shapeguard.toml", "[lint]\nneuron = []\n")
    assert found(mixed, ".") == {}


@pytest.mark.parametrize(
    ("line", "is_neuron"),
    [
        ('device = torch.device("neuron:0")', True),
        ('model.to(device="neuron")', True),
        ('config = {"device_map": "neuron"}', True),
        ('parser.add_argument("--device", default="neuron")', True),
        ('if x.device.type == "neuron": pass', True),
        ('torch.compile(model, backend="neuron")', True),
        ("from optimum.neuron import NeuronTrainer", True),
        ("from optimum import neuron", True),
        ("torch.neuron.synchronize()", True),
        ('print("neuron")', False),
        ("# torch_neuronx", False),
        ('"""import torch_neuronx"""', False),
        ('layer = {"neuron": 3}', False),
        ("from brian2 import neuron", False),
        ("from .optimum.neuron import x", False),
    ],
)
def test_the_signs_of_neuron(mixed, line, is_neuron):
    write("shapeguard.toml", '[lint]\nneuron = "auto"\n')
    write("x.py", f"{CUDA}{line}\n")
    assert ("x.py" in found(mixed, "x.py")) is is_neuron


def test_the_nearest_configuration_of_each_file_counts(shapeguard):
    write("a/x.py", BAD)
    write("b/x.py", BAD)
    write("pyproject.toml", "[tool.shapeguard.lint]\nignore = ['SG101']\n")
    write("b/pyproject.toml", "[project]\nname = 'b'\n")
    assert json.loads(shapeguard(*LINT).out)["findings"] == []
    write("b/shapeguard.toml", "")
    assert [f["path"] for f in json.loads(shapeguard(*LINT).out)["findings"]] == ["b/x.py"]
    assert len(json.loads(shapeguard(*LINT, "--isolated").out)["findings"]) == 2


def test_lengths_come_from_the_last_entry_that_matches():
    from shapeguard.lint.scope import Scope
    from shapeguard.lint.settings import LengthEntry, LintSettings
    from shapeguard.lint.visit import Lengths

    entries = (LengthEntry(train=512, prompt=256), LengthEntry(paths=("eval/",), train=1024))
    scope = Scope(root=Path("root"), settings=LintSettings(lengths=entries))
    task = scope.task(Path("root/eval/x.py"), path="x.py", is_notebook=False, fix="off")
    assert task.lengths == Lengths(train=1024, prompt=256)
    task = scope.task(Path("root/x.py"), path="x.py", is_notebook=False, fix="off")
    assert task.lengths == Lengths(train=512, prompt=256)


def test_a_baseline_hides_what_was_known_wherever_its_line_moves(shapeguard):
    write("a.py", BAD)
    ran = shapeguard("lint", "--no-cache", "--write-baseline", "known.json", ".")
    assert (ran.code, ran.out) == (0, "Wrote 1 finding to known.json; pass it as `--baseline known.json`.\n")
    write("a.py", "import os\n\n" + BAD)
    assert shapeguard(*LINT, "--baseline", "known.json").code == 0
    write("a.py", BAD + BAD)
    ran = shapeguard(*LINT, "--baseline", "known.json")
    assert len(json.loads(ran.out)["findings"]) == 1
    write("a.py", BAD.replace('"x"', '"other"'))
    ran = shapeguard(*LINT, "--baseline", "known.json")
    assert ran.code == 1
    assert ran.err.startswith("warning: baseline entry no longer found: a.py: SG101 model = ")


def test_a_baseline_entry_is_stale_only_if_its_file_was_checked_or_is_gone(shapeguard):
    write("a.py", BAD)
    write("b.py", BAD)
    shapeguard("lint", "--no-cache", "--write-baseline", "known.json", ".")
    assert shapeguard(*LINT, "--baseline", "known.json", "b.py").err == ""
    Path("a.py").unlink()
    assert "a.py: SG101" in shapeguard(*LINT, "--baseline", "known.json", "b.py").err


def test_a_baseline_in_the_configuration_is_used_from_anywhere(shapeguard, monkeypatch):
    write("sub/a.py", BAD)
    write("shapeguard.toml", '[lint]\nbaseline = "known.json"\n')
    shapeguard("lint", "--no-cache", "--isolated", "--write-baseline", "known.json", ".")
    monkeypatch.chdir("sub")
    assert shapeguard(*LINT, "a.py").code == 0


def test_the_result_cache_gives_the_same_answers(shapeguard):
    write("a.py", BAD)
    write("b/c.py", BAD)
    first = shapeguard("lint", "--isolated", "--json")
    folder = Path(".shapeguard_cache")
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (folder / ".gitignore").read_text().endswith("*\n")
    assert shapeguard("lint", "--isolated", "--json").out == first.out
    assert "2 files of 2 from the result cache" in shapeguard("lint", "--isolated", "--timing").out


def test_the_result_cache_sees_bytes_and_settings(shapeguard):
    file = write("a.py", BAD)
    before = file.stat()
    assert shapeguard("lint", "--isolated").code == 1
    file.write_text(BAD.replace("auto", "cpu "))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shapeguard("lint", "--isolated").code == 0
    write("a.py", BAD)
    assert shapeguard("lint", "--isolated", "--ignore", "SG101").code == 0
    assert shapeguard("lint", "--isolated").code == 1


@pytest.mark.parametrize("junk", [b"", b"{", b"\xff", b"[]", b'{"schema":1,"entries":{"x":[]}}'])
def test_a_broken_result_cache_is_as_good_as_none(shapeguard, junk):
    write("a.py", BAD)
    expected = shapeguard("lint", "--isolated", "--json").out
    for file in Path(".shapeguard_cache").glob("*.json"):
        file.write_bytes(junk)
    assert shapeguard("lint", "--isolated", "--json").out == expected


def test_an_entry_that_was_tampered_with_never_writes_into_a_file(shapeguard):
    file = write("a.py", BAD)
    shapeguard("lint", "--isolated")
    (cache,) = Path(".shapeguard_cache").glob("*.json")
    cache.write_text(cache.read_text().replace("neuron", "hacked"))
    shapeguard("lint", "--isolated", "--fix", "--unsafe-fixes")
    assert file.read_text() == BAD.replace("auto", "neuron")


def test_a_cache_that_cannot_be_written_is_a_warning(shapeguard):
    write("a.py", BAD)
    write("file", "")
    ran = shapeguard("lint", "--isolated", "--cache-dir", "file/cache")
    assert ran.code == 1
    assert ran.err == "warning: the result cache 'file/cache' cannot be written: Not a directory\n"
