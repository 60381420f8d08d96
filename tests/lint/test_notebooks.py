"""Notebooks: cells, magics, and fixes that leave the rest of the JSON alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapeguard.lint.magics import plain_python
from shapeguard.lint.notebooks import read_notebook

LINT = ("lint", "--isolated", "--no-cache")
IMPORT = "from transformers import AutoModel"
CALL = 'm = AutoModel.from_pretrained("x", device_map="auto")'


def notebook(*cells: str | list[str], **more: object) -> dict[str, object]:
    listed: list[dict[str, object]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "m"]}]
    listed += [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [{"data": "é\u2028"}], "source": cell}
        for cell in cells
    ]
    return {"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def write(document: object, **style: object) -> str:
    text = json.dumps(document, **{"indent": 1, "ensure_ascii": False, **style}) + "\n"
    Path("n.ipynb").write_text(text, encoding="utf-8")
    return text


def findings(shapeguard, *args: str) -> list[tuple[int, int]]:
    document = json.loads(shapeguard(*LINT, "--json", *args, "n.ipynb").out)
    return [(finding["cell"], finding["line"]) for finding in document["findings"]]


def test_findings_name_the_code_cell_and_the_line_in_it(shapeguard):
    write(notebook("%pip install x\n!ls", [f"{IMPORT}\n", "\n"], ["# load\n", CALL]))
    assert findings(shapeguard) == [(3, 2)]
    assert "n.ipynb:cell 3:2:" in shapeguard(*LINT, "--output-format", "concise", "n.ipynb").out


def test_a_variable_is_followed_from_cell_to_cell(shapeguard):
    write(notebook(IMPORT, 'where = "auto"', 'm = AutoModel.from_pretrained("x", device_map=where)'))
    assert findings(shapeguard) in ([(2, 1)], [(3, 1)])


@pytest.mark.parametrize("style", [{}, {"indent": None}, {"indent": 4}, {"indent": "\t"}, {"ensure_ascii": True}])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_fix_changes_only_the_source_of_its_cell(shapeguard, style, as_list):
    text = f"%time x = 1\n{IMPORT}\n# é\n{CALL}\nprint(m)"
    before = write(notebook(text.splitlines(keepends=True) if as_list else text, "1/0  "), **style)
    assert shapeguard(*LINT, "--fix", "--unsafe-fixes", "n.ipynb").code == 0
    assert Path("n.ipynb").read_text(encoding="utf-8") == before.replace('\\"auto\\"', '\\"neuron\\"')


def test_fixing_a_notebook_twice_is_fixing_it_once(shapeguard):
    write(notebook(IMPORT, CALL, f"{CALL}\n{CALL}"))
    shapeguard(*LINT, "--fix", "--unsafe-fixes", "n.ipynb")
    once = Path("n.ipynb").read_bytes()
    ran = shapeguard(*LINT, "--fix", "--unsafe-fixes", "n.ipynb")
    assert "Fixed" not in ran.out
    assert Path("n.ipynb").read_bytes() == once


def test_a_cell_that_does_not_parse_is_a_problem_and_the_others_are_checked(shapeguard):
    write(notebook("def (:", IMPORT, CALL))
    document = json.loads(shapeguard(*LINT, "--json", "n.ipynb").out)
    assert [(finding["cell"], finding["line"]) for finding in document["findings"]] == [(3, 1)]
    assert [problem["message"][:7] for problem in document["problems"]] == ["cell 1:"]


def test_another_language_is_passed_over(shapeguard):
    write(notebook("x <- 1; device_map", metadata={"kernelspec": {"language": "R", "name": "ir"}}))
    assert shapeguard(*LINT, "n.ipynb").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[]", "is no notebook: it has no list of cells"),
        ('{"cells": 3}', "is no notebook: it has no list of cells"),
        ('{"worksheets": []}', "is a notebook of format 3"),
        ("[" * 100_000, "is nested too deeply for JSON"),
    ],
    ids=["empty", "torn", "list", "no-cells", "old", "deep"],
)
def test_a_broken_notebook_is_a_problem(shapeguard, text, message):
    Path("n.ipynb").write_text(text)
    ran = shapeguard(*LINT, "n.ipynb")
    assert ran.code == 2
    assert f"problem n.ipynb{':1' if 'JSON' in message and len(text) < 2 else ''}: {message}" in ran.out


@pytest.mark.parametrize("cell", [{}, 3, None, {"cell_type": "code"}, {"cell_type": "code", "source": 3}, []])
def test_a_strange_cell_is_passed_over(shapeguard, cell):
    document = notebook(IMPORT, CALL)
    document["cells"].insert(0, cell)
    write(document)
    number = 3 if isinstance(cell, dict) and cell else 2
    assert findings(shapeguard) == [(number, 1)]


@pytest.mark.parametrize(
    "magic",
    [
        "%matplotlib inline",
        "!ls -l",
        "?m",
        "m?",
        "m.x??",
        "x = !ls",
        "a, b = %sx ls",
        "%time",
        "!",
        "!pip \\\n  install x",
    ],
)
def test_a_magic_becomes_python_of_the_same_length(magic):
    for source in (magic, f"{magic}\nx = 1", f"if True:\n    {magic.replace(chr(10), chr(10) + '    ')}\nx = 1"):
        code = plain_python(source)
        assert code is not None
        compile(code, "cell", "exec")
        assert [len(line) for line in code.split("\n")] == [len(line) for line in source.split("\n")]


@pytest.mark.parametrize(
    "source", ["x = (a\n% b)", 's = """\n%magic\n!ls\n"""', "x = a \\\n% b", "x = [\n  1,\n]  # why?"]
)
def test_what_only_looks_like_a_magic_stays(source):
    assert plain_python(f"%pip\n{source}") == f"0#--\n{source}"


def test_a_timed_call_is_still_seen(shapeguard):
    write(notebook(IMPORT, f"%time {CALL}", f"%%time\n{CALL}", f"%%bash\n{CALL}"))
    assert findings(shapeguard) == [(2, 1), (3, 2)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(),
        lambda s: (
            st.lists(s)
            | st.dictionaries(
                st.sampled_from(["cells", "source", "cell_type", "metadata", "language_info", "name"]),
                s | st.just("code"),
            )
        ),
    )
)
def test_any_json_is_a_notebook_or_a_problem(value):  # fmt: skip
    from shapeguard.lint.check import check_file
    from shapeguard.lint.task import Task

    verdict = check_file(json.dumps(value).encode(), Task(path="n.ipynb", is_notebook=True))
    assert all("made the linter fail" not in problem.message for problem in verdict.problems)


@given(st.lists(st.text(alphabet="x=%!?()'\"\n \\é1#", max_size=30), max_size=4))
def test_offsets_hold_for_any_cells(cells):
    book = read_notebook(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    assert book is not None
    for cell in book.cells:
        assert len(cell.code.encode()) == len(cell.source.encode())


def test_a_cell_in_newer_python_is_read(shapeguard):
    write(notebook(IMPORT, f'x = t"{{a}}"\n{CALL}'))
    assert findings(shapeguard) == [(2, 2)]
