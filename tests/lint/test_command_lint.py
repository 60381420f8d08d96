"""`shapeguard lint` as a user meets it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

BAD = 'from transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("x", device_map="auto")\n'
GOOD = BAD.replace('"auto"', '"neuron"')
LINT = ("lint", "--isolated", "--no-cache")


def write(path: str, text: str | bytes) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def codes(out: str) -> list[str]:
    return [finding["code"] for finding in json.loads(out)["findings"]]


def test_a_clean_file_exits_0(shapeguard):
    write("a.py", GOOD)
    ran = shapeguard(*LINT, "a.py")
    assert (ran.code, ran.out) == (0, "No findings in 1 file.\n")


def test_a_finding_exits_1_and_shows_its_line(shapeguard):
    write("a.py", BAD)
    ran = shapeguard(*LINT, "a.py")
    assert ran.code == 1
    assert "--> a.py:3:51" in ran.out
    assert '3 | model = AutoModel.from_pretrained("x", device_map="auto")' in ran.out


def test_without_paths_the_working_directory_is_checked(shapeguard):
    write("pkg/a.py", BAD)
    assert "pkg/a.py:3:51: SG101" in shapeguard(*LINT, "--output-format", "concise").out


def test_exit_zero_hides_findings_but_no_failure(shapeguard):
    write("a.py", BAD)
    assert shapeguard(*LINT, "--exit-zero", "a.py").code == 0
    write("broken.py", "def (:\n")
    assert shapeguard(*LINT, "--exit-zero", "broken.py").code == 2


def test_a_broken_file_is_a_problem_and_the_others_are_still_checked(shapeguard):
    write("broken.py", "def (:\n")
    write("a.py", BAD)
    ran = shapeguard(*LINT, "--json", ".")
    assert ran.code == 1
    document = json.loads(ran.out)
    assert [finding["path"] for finding in document["findings"]] == ["a.py"]
    assert [problem["path"] for problem in document["problems"]] == ["broken.py"]


def test_a_path_that_does_not_exist_is_a_problem(shapeguard):
    write("a.py", GOOD)
    ran = shapeguard(*LINT, "a.py", "gone.py")
    assert ran.code == 1
    assert "problem gone.py: could not be read: No such file or directory (SG902)" in ran.out
    assert shapeguard(*LINT, "gone.py").code == 2


def test_a_file_named_twice_is_checked_once(shapeguard):
    write("a.py", BAD)
    assert codes(shapeguard(*LINT, "--json", "a.py", "./a.py", ".").out) == ["SG101"]


def test_no_files_at_all_is_a_warning(shapeguard):
    ran = shapeguard(*LINT)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "warning: no Python files or notebooks found under the given paths\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--select", "SG10,XY"], "error: no rule is called 'XY'\nhint: `shapeguard rule --all` lists the rules\n"),
        (["--ignore", "SG11O"], "error: no rule is called 'SG11O'\nhint: did you mean SG101?\n"),
        (["--baseline", "none.json"], "error: cannot read the baseline 'none.json': No such file or directory\nhint: "
         "write it with `--write-baseline none.json`\n"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_option_is_one_line_and_exit_2(shapeguard, args, message):
    write("a.py", GOOD)
    ran = shapeguard(*LINT, *args, "a.py")
    assert (ran.code, ran.err) == (2, message)


def test_selection_is_by_the_more_exact_code(shapeguard):
    write("a.py", BAD)
    assert codes(shapeguard(*LINT, "--json", "--select", "SG2", "a.py").out) == []
    assert codes(shapeguard(*LINT, "--json", "--ignore", "SG1", "a.py").out) == []
    assert codes(shapeguard(*LINT, "--json", "--select", "SG101", "--ignore", "SG1", "a.py").out) == ["SG101"]
    assert codes(shapeguard(*LINT, "--json", "--select", "ALL", "--ignore", "SG101", "a.py").out) == []


def test_per_file_ignores_are_for_their_files_only(shapeguard):
    write("tests/a.py", BAD)
    write("src/a.py", BAD)
    ran = shapeguard(*LINT, "--json", "--per-file-ignores", "tests/**:SG101")
    assert [finding["path"] for finding in json.loads(ran.out)["findings"]] == ["src/a.py"]


def test_excluded_files_are_left_out_unless_they_are_named(shapeguard):
    write("gen/a.py", BAD)
    assert codes(shapeguard(*LINT, "--json", "--exclude", "gen").out) == []
    assert codes(shapeguard(*LINT, "--json", "--exclude", "gen", "gen/a.py").out) == ["SG101"]
    assert codes(shapeguard(*LINT, "--json", "--exclude", "gen", "--force-exclude", "gen/a.py").out) == []


def test_show_files_lists_what_would_be_checked(shapeguard):
    for name in ("b.py", "a.ipynb", "c.pyi", "d.txt", ".venv/x.py", "sub/e.py"):
        write(name, "{}")
    assert shapeguard(*LINT, "--show-files").out.split() == ["a.ipynb", "b.py", "c.pyi", "sub/e.py"]


def test_standard_input_is_checked_under_the_name_it_is_given(shapeguard):
    ran = shapeguard(*LINT, "--output-format", "concise", "--stdin-filename", "x/y.py", "-", stdin=BAD.encode())
    assert ran.code == 1
    assert ran.out.startswith("x/y.py:3:51: SG101 ")


def test_standard_input_is_mended_to_standard_output(shapeguard):
    ran = shapeguard(*LINT, "--fix", "--unsafe-fixes", "-", stdin=BAD.replace("\n", "\r\n").encode())
    assert (ran.code, ran.out) == (0, GOOD.replace("\n", "\r\n"))
    assert "Fixed 1 finding in 1 file." in ran.err


def test_fix_alone_changes_nothing_unsafe_and_says_how_many_are_left(shapeguard):
    file = write("a.py", BAD)
    ran = shapeguard(*LINT, "--fix", "a.py")
    assert ran.code == 1
    assert file.read_text() == BAD
    assert "1 can be fixed with `--fix --unsafe-fixes`, which may change what the program does." in ran.out


def test_unsafe_fixes_mend_the_file(shapeguard):
    file = write("a.py", BAD)
    ran = shapeguard(*LINT, "--fix", "--unsafe-fixes", "a.py")
    assert (ran.code, ran.out) == (0, "Fixed 1 finding in 1 file.\nNo findings in 1 file.\n")
    assert file.read_text() == GOOD
    assert shapeguard(*LINT, "--fix", "--unsafe-fixes", "--exit-non-zero-on-fix", "a.py").code == 0
    write("a.py", BAD)
    assert shapeguard(*LINT, "--fix", "--unsafe-fixes", "--exit-non-zero-on-fix", "a.py").code == 1


def test_diff_shows_and_writes_nothing(shapeguard):
    file = write("a.py", BAD)
    ran = shapeguard(*LINT, "--diff", "--unsafe-fixes", "a.py")
    assert ran.code == 1
    assert file.read_text() == BAD
    assert ran.err == "Would fix 1 finding in 1 file.\n"
    subprocess.run(["patch", "-p0", "-s"], input=ran.out, text=True, check=True)
    assert file.read_text() == GOOD
    assert shapeguard(*LINT, "--diff", "--unsafe-fixes", "a.py").code == 0


@pytest.mark.parametrize(
    "data",
    [
        BAD.encode("utf-8-sig"),
        b"# coding: latin-1\n# caf\xe9\n" + BAD.encode(),
        BAD.replace("\n", "\r\n").encode(),
        BAD.replace("model", "modèle").encode(),
        BAD.rstrip("\n").encode(),
        BAD.replace("\nmodel", "\nif True:\n\tmodel").encode(),
    ],
    ids=["bom", "latin-1", "crlf", "utf-8", "no-last-newline", "tab"],
)
def test_a_fix_keeps_encoding_line_ends_and_all_else(shapeguard, data):
    file = write("a.py", data)
    assert shapeguard(*LINT, "--fix", "--unsafe-fixes", "a.py").code == 0
    assert file.read_bytes() == data.replace(b'"auto"', b'"neuron"')


def test_offsets_in_json_are_those_of_the_file(shapeguard):
    data = b"\xef\xbb\xbf# caf\xc3\xa9\n" + BAD.encode()
    write("a.py", data)
    (finding,) = json.loads(shapeguard(*LINT, "--json", "a.py").out)["findings"]
    (edit,) = finding["fix"]["edits"]
    assert data[edit["start"] : edit["end"]] == b'"auto"'
    assert (edit["line"], edit["column"], edit["end_column"]) == (4, 51, 57)


def test_a_fix_keeps_the_file_mode_and_links(shapeguard):
    file = write("real.py", BAD)
    file.chmod(0o754)
    Path("link.py").symlink_to("real.py")
    assert shapeguard(*LINT, "--fix", "--unsafe-fixes", "link.py").code == 0
    assert Path("link.py").is_symlink()
    assert file.read_text() == GOOD
    assert stat.S_IMODE(file.stat().st_mode) == 0o754


@pytest.mark.parametrize("form", ["full", "concise", "json", "json-lines", "github", "sarif", "markdown"])
def test_every_format_prints_and_writes_a_file(shapeguard, form):
    write("a.py", BAD)
    ran = shapeguard(*LINT, "--output-format", form, "--output", f"{form}=out.txt", "a.py")
    assert ran.code == 1
    assert "SG101" in ran.out
    assert Path("out.txt").read_text() == ran.out


def test_output_to_a_dash_takes_standard_output(shapeguard):
    write("a.py", BAD)
    assert codes(shapeguard(*LINT, "--output", "json=-", "a.py").out) == ["SG101"]
    ran = shapeguard(*LINT, "--output", "json=-", "--output-format", "full", "a.py")
    assert ran.code == 2
    assert "Only one report can go to standard output." in ran.err


def test_statistics_count_instead_of_listing(shapeguard):
    write("a.py", BAD)
    write("b.py", BAD)
    ran = shapeguard(*LINT, "--statistics")
    assert ran.code == 1
    assert "2  SG101        2" in ran.out
    assert "a.py" not in ran.out
    document = json.loads(shapeguard(*LINT, "--statistics", "--json").out)
    assert document["statistics"] == [{"code": "SG101", "count": 2, "fixable": 2, "name": "DeviceMapAuto"}]


def test_timing_names_the_stages(shapeguard):
    write("a.py", BAD)
    assert "tree" in shapeguard(*LINT, "--timing", "a.py").out


def test_quiet_leaves_the_findings(shapeguard):
    write("a.py", BAD)
    ran = shapeguard(*LINT, "-q", "--output-format", "concise", "a.py")
    assert ran.out.count("\n") == 1


def test_color_is_for_terminals_or_on_demand(shapeguard, monkeypatch):
    write("a.py", BAD)
    assert "\x1b[" not in shapeguard(*LINT, "a.py").out
    assert "\x1b[" in shapeguard(*LINT, "--color", "always", "a.py").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in shapeguard(*LINT, "a.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shapeguard(*LINT, "a.py").out


def test_the_environment_names_a_format_and_an_option_wins(shapeguard, monkeypatch):
    write("a.py", BAD)
    monkeypatch.setenv("SHAPEGUARD_OUTPUT_FORMAT", "json")
    assert codes(shapeguard(*LINT, "a.py").out) == ["SG101"]
    assert shapeguard(*LINT, "--output-format", "concise", "a.py").out.startswith("a.py:3:51")
    monkeypatch.setenv("SHAPEGUARD_OUTPUT_FORMAT", "nonsense")
    assert shapeguard(*LINT, "a.py").code == 2


def test_nothing_of_a_file_can_steer_the_terminal(shapeguard):
    write("a.py", BAD.replace('"x"', '"\x1b[2J\u202e"'))
    out = shapeguard(*LINT, "a.py").out
    assert "\x1b" not in out
    assert "\\x1b[2J\\u202e" in out


def test_the_linter_imports_neither_torch_nor_libcst_for_a_clean_file(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    code = (
        "import sys; from shapeguard.cli.main import main; main(['lint', '--isolated', '--no-cache', sys.argv[1]]); "
        "sys.exit(str(sorted({'torch', 'libcst', 'rich', 'multiprocessing'} & set(sys.modules))))"
    )
    ran = subprocess.run([sys.executable, "-c", code, os.fspath(file)], capture_output=True, text=True)
    assert ran.stderr.strip() == "[]"


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path):
    for number in range(200):
        (tmp_path / f"m{number}.py").write_text(BAD)
    command = f"{sys.executable} -m shapeguard lint --isolated --no-cache {tmp_path} | head -1"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.stderr == ""


@pytest.mark.parametrize(
    "syntax",
    [
        "if (n := 1): pass",
        'match x:\n    case {"a": 1}: pass',
        "try:\n    pass\nexcept* A:\n    pass",
        "type X = int",
        'x = f"{d["a"]}"',
        "def f[T](x: T) -> T: return x",
        "class A[T = int]: pass",
        "try:\n    pass\nexcept A, B:\n    pass",
        'x = t"{a}"',
    ],
    ids=["3.8", "3.10", "3.11", "3.12", "3.12-f", "3.12-def", "3.13", "3.14", "3.14-t"],
)
def test_syntax_newer_than_the_running_python_is_read(shapeguard, syntax):
    write("a.py", f"{BAD}{syntax}  # shapeguard: ignore[SG777]\n")
    assert codes(shapeguard(*LINT, "--json", "a.py").out) == ["SG101", "SG901"]
