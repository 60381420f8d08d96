"""Laws: nothing crashes a run, fixing twice is fixing once, a fix keeps all but what it names."""

from __future__ import annotations

import ast
import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shapeguard.core.finding import Edit, Finding, Fix, Span
from shapeguard.lint.check import check_file
from shapeguard.lint.fix import apply_edits, fix_text
from shapeguard.lint.notices import catalogue
from shapeguard.lint.task import Task
from shapeguard.lint.workers import check_files

ALL = frozenset(catalogue())
LINT = ("lint", "--isolated", "--no-cache")
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LONG = settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TOKENS = (
    "from transformers import AutoModel, pipeline\n", "import torch\n", "model.generate(", "device_map=", '"auto"',
    "tokenizer(", "padding=True", "DataLoader(", "drop_last=", ".to(", '"cuda"', "(", ")", "[", "]", "{", "}", ":", ",",
    "\n", "\n    ", "\t", "if ", "for ", "in ", "lambda ", "def f", "class C", "**", "*", "=", "'''", '"""', "'", "#",
    "# shapeguard: ignore[SG101]", "# noqa: SG101", "\\\n", "\0", "\ufeff", "é", "async ", "await ", "match x", "case ",
    "torch.compile(", "dynamic=True", "not ", "-", "x", "1", "f'{", "}'", "\r", "\r\n", "\x0c", "@", "->", ";", "else",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)


def judged(data: bytes, *, is_notebook: bool = False) -> None:
    """Check a file as a worker does; a failure of ours would be a problem that says so."""
    verdict = check_file(data, Task(path="x", codes=ALL, must_parse=True, is_notebook=is_notebook))
    for problem in verdict.problems:
        assert "made the linter fail" not in problem.message, problem.message


@QUICK
@given(st.binary(max_size=200))
def test_random_bytes_are_judged_or_a_problem(data):
    judged(data)
    judged(data, is_notebook=True)


@QUICK
@given(TEXTS)
@example("from transformers import AutoModel\nAutoModel.from_pretrained(**")
def test_random_tokens_are_judged_or_a_problem(text):
    judged(text.encode("utf-8", "surrogatepass"))


@pytest.mark.soak
@LONG
@given(TEXTS)
def test_many_random_tokens_are_judged_or_a_problem(text):
    judged(text.encode("utf-8", "surrogatepass"))


DEEP = {
    "brackets": lambda n: "(" * n + ")" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "signs": lambda n: "-" * n + "1",
    "nots": lambda n: "not " * n + "1",
    "attributes": lambda n: "x" + ".a" * n,
    "calls": lambda n: "x" + "()" * n,
    "sums": lambda n: "+".join(["1"] * n),
    "blocks": lambda n: "".join(" " * i + "if x:\n" for i in range(min(n, 3000))) + " " * min(n, 3000) + "pass\n",
    "elifs": lambda n: "if x:\n    pass\n" + "elif y:\n    pass\n" * n,
    "lambdas": lambda n: "lambda: " * n + "1",
    "strings": lambda n: "f'{" * n + "}'" * n,
    "comparisons": lambda n: " < ".join(["1"] * n),
    "conditions": lambda n: "1 if x else " * n + "1",
    "dots": lambda n: "from " + "." * n + " import x",
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("depth", [150, 1000, 10_000])
def test_deep_nesting_costs_no_more_than_its_file(shapeguard, shape, depth):
    text = 'from transformers import AutoModel\nAutoModel.from_pretrained("x", device_map="auto")\n'
    Path("a.py").write_text(text)
    Path("deep.py").write_text(f"{text}x = 1\n{DEEP[shape](depth)}\n")
    ran = shapeguard(*LINT, "--json", ".")
    assert ran.code == 1
    document = json.loads(ran.out)
    assert "a.py" in [finding["path"] for finding in document["findings"]]
    for problem in document["problems"]:
        assert problem["path"] == "deep.py"
        assert "made the linter fail" not in problem["message"]


def test_a_nul_byte_a_wrong_encoding_and_a_huge_file_are_problems(shapeguard):
    Path("nul.py").write_bytes(b"x = 1\ny = '\0'\n")
    Path("latin.py").write_bytes(b"x = 1\n\n# \xe9\n")
    Path("codec.py").write_bytes(b"# coding: klingon\n")
    Path("rot.py").write_bytes(b"# coding: rot13\n")
    Path("utf16.py").write_bytes("x = 1\n".encode("utf-16"))
    Path("huge.py").write_bytes(b"x = 'device_map auto'\n" * 2_500_000)
    ran = shapeguard(*LINT, "--output-format", "concise", ".")
    assert ran.code == 2
    assert ran.out.splitlines() == [
        "problem codec.py:1: names an encoding that Python does not know: 'klingon' (SG902)",
        "problem huge.py: is larger than 8 MB of code, so it was not checked (SG902)",
        "problem latin.py:3: is not UTF-8: byte 0xe9 at offset 9 (SG902)",
        "problem nul.py:2: holds a NUL byte, so it is no Python text (SG902)",
        "problem rot.py:1: names 'rot13', which is no text encoding (SG902)",
        "problem utf16.py: is UTF-16, which Python does not read as source (SG902)",
    ]


def test_a_child_that_dies_costs_one_file(monkeypatch, tmp_path):
    files = []
    for number in range(20):
        file = tmp_path / f"{number}.py"
        file.write_text("die" if number in (3, 17) else "x = 1")
        files.append((file, Task(path=file.name, codes=ALL)))

    def judge_or_die(file, task):
        if file.read_text() == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return check_file(file.read_bytes(), task)

    monkeypatch.setattr("shapeguard.lint.workers.judge", judge_or_die)
    verdicts = dict(check_files(files, jobs=2))
    assert sorted(verdicts) == list(range(20))
    assert [index for index in range(20) if verdicts[index].problems] == [3, 17]
    assert verdicts[3].problems[0].message == "made the parser crash (SIGKILL), so it was not checked"


def edit(text: str, old: str, new: str) -> Finding:
    start = len(text[: text.index(old)].encode())
    span = Span(start=0, end=0, line=1, column=1, end_line=1, end_column=1)
    change = Edit(start=start, end=start + len(old.encode()), text=new)
    return Finding(code="SG000", path="", span=span, message="", fix=Fix(message="", edits=(change,), safe=True))


def test_a_fix_that_breaks_the_file_is_left_out_and_the_others_are_applied():
    def check(text: str) -> list[Finding]:
        return [edit(text, old, new) for old, new in (("a = 1", "a = ("), ("b = 1", "b = 2")) if old in text]

    assert fix_text("a = 1\nb = 1\n", check, unsafe=False).text == "a = 1\nb = 2\n"


def test_a_fix_that_repeats_a_keyword_is_left_out():
    def check(text: str) -> list[Finding]:
        return [edit(text, "x=1", "x=1, x=2")] if "x=2" not in text else []

    assert fix_text("f(x=1)\n", check, unsafe=False).text == "f(x=1)\n"


def test_two_rules_that_undo_each_other_end():
    def check(text: str) -> list[Finding]:
        return [edit(text, "1", "2") if "1" in text else edit(text, "2", "1")]

    assert fix_text("x = 1\n", check, unsafe=False).text in ("x = 1\n", "x = 2\n")


@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.text(max_size=3)), max_size=5)
)
def test_edits_that_were_chosen_never_overlap(text, raw):
    from shapeguard.lint.fix import without_overlap

    size = len(text)
    offsets = [len(text[:i].encode("utf-8", "surrogatepass")) for i in range(size + 1)]
    findings = []
    for start, length, new in raw:
        first, last = min(start, size), min(start + length, size)
        change = Edit(start=offsets[first], end=offsets[last], text=new)
        span = Span(start=0, end=0, line=1, column=1, end_line=1, end_column=1)
        findings.append(Finding(code="SG000", path="", span=span, message="", fix=Fix(message="", edits=(change,))))
    chosen = [e for finding in without_overlap(findings) for e in finding.fix.edits]
    result = apply_edits(text, chosen)
    kept = text.encode()
    for change in sorted(set(chosen), key=lambda e: -e.start):
        kept = kept[: change.start] + change.text.encode() + kept[change.end :]
    assert result.encode() == kept


SNIPPETS = (
    'm = AutoModel.from_pretrained("x", device_map="auto")  # kept',
    "args = TrainingArguments(output_dir='o', torch_compile=True)",
    "loader = DataLoader(rows, batch_size=8, shuffle=True)  # é",
    'batch = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")',
    "out = model.generate(**batch, max_new_tokens=8)",
    "step = torch.compile(model, dynamic=True)",
    "x = 1  # shapeguard: ignore[SG304] old",
    "# shapeguard: ignore[SG101]",
    "def f(a,\n      b):\n    return a  # in f",
)
HEAD = (
    "import torch\nfrom torch.utils.data import DataLoader\n"
    "from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, TrainingArguments\n"
    'model = AutoModelForCausalLM.from_pretrained("x")\ntokenizer = AutoTokenizer.from_pretrained("x")\n'
)


def fixed(data: bytes) -> tuple[bytes, int]:
    verdict = check_file(data, Task(path="x.py", codes=ALL, fix="unsafe"))
    assert not verdict.problems
    return (data if verdict.new_data is None else verdict.new_data), len(verdict.fixed)


def comments(data: bytes) -> list[str]:
    from shapeguard.lint.lexer import read_layout

    return [c.text for c in read_layout(data.decode()).comments if "shapeguard" not in c.text]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_fixing_twice_is_fixing_once_and_the_rest_stays(snippets, end):
    data = (HEAD + "\n".join(snippets) + "\n").replace("\n", end).encode()
    once, _ = fixed(data)
    twice, number = fixed(once)
    assert (twice, number) == (once, 0)
    ast.parse(once)
    assert comments(once) == comments(data)
    assert (b"\r\n" in once) is (end == "\r\n")
