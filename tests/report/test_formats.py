"""What each format writes, for reports of every kind: snapshots in `fixtures/reports`, laws, and the SARIF schema."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Edit, Finding, Fix, Problem, Severity, Span
from shapeguard.core.report import Report, Table, Text
from shapeguard.core.rules import RuleEntry
from shapeguard.report.reporter import Style, format_names, reporter

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
SPAN = Span(start=20, end=31, line=2, column=5, end_line=2, end_column=16)
PAGE = "A `device_map` that does not see Neuron.\n\n## Why it costs\nIt loads on the CPU."
RULE = RuleEntry(
    code="SG101", name="DeviceMapAuto", message="loads on the CPU", severity=Severity.WARNING, documentation=PAGE
)
EDIT = Edit(start=26, end=31, text='"neuron"', line=2, column=11, end_line=2, end_column=16)


def finding(**changes: object) -> Finding:
    values = {
        "code": "SG101",
        "path": "src/a.py",
        "span": SPAN,
        "message": "loads on the CPU",
        "excerpt": ("    device_map=auto,",),
        "url": "urn:shapeguard:rule:SG101",
        "fingerprint": "00ff",
    }
    return Finding(**{**values, **changes})


UNSAFE = Fix(message='use "neuron"', edits=(EDIT,))
REPORTS = {
    "empty": Report(tool="lint", rules=(RULE,), totals={"findings": 0}, summary=("No findings in 3 files.",)),
    "findings": Report(
        tool="lint",
        rules=(RULE,),
        findings=(
            finding(fix=UNSAFE),
            finding(severity=Severity.ERROR, fix=Fix(message="pad", needs="a length"), path="ä, b:%.py"),
            finding(severity=Severity.NOTE, excerpt=("\tx = f(", "\t\t1,", "\t)"),
                    fix=Fix(message="do", edits=(EDIT,), safe=True),
                    span=Span(start=0, end=9, line=9, column=2, end_line=11, end_column=3)),
            finding(path="n.ipynb", cell=3, fix=UNSAFE, message="a | b\nc % <d>"),
            finding(suppressed="one core"),
        ),
        totals={"findings": 4},
        summary=("Found 4 findings in 3 files.",),
        exit_code=Exit.FINDINGS,
    ),
    "failing": Report(
        tool="lint",
        problems=(
            Problem(path="x.py", message="does not parse: invalid syntax", line=7, code="SG902"),
            Problem(path="/y.py", message="gone"),
        ),
        exit_code=Exit.FAILED,
    ),
    "sections": Report(
        tool="trace",
        sections=(
            Text(text="3 graphs after warm-up", strong=True),
            Table(title="Causes", columns=("count", "cause"), rows=(("12", "grows by 1"), ("3", "見 | x")),
                  right=frozenset({0}), note="± a guess"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPORTS)
@pytest.mark.parametrize("form", format_names())
def test_a_report_is_written_as_it_was_agreed(form, kind):
    text = reporter(form).render(REPORTS[kind], Style(width=80))
    snapshot = FIXTURES / "reports" / f"{kind}.{form}.txt"
    if os.environ.get("SHAPEGUARD_RENEW_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")


@pytest.mark.parametrize("form", format_names())
def test_a_format_is_called_what_its_file_is_called(form):
    assert reporter(form).name == form


@pytest.mark.parametrize("kind", REPORTS)
def test_sarif_is_valid(kind):
    from jsonschema import Draft4Validator

    schema = json.loads((FIXTURES / "sarif" / "sarif-schema-2.1.0.json").read_text())
    log = json.loads(reporter("sarif").render(REPORTS[kind], Style(root="/repo")))
    assert [error.message for error in Draft4Validator(schema).iter_errors(log)] == []
    assert log["runs"][0]["automationDetails"]["id"] == f"shapeguard/{REPORTS[kind].tool}/"


def test_paths_below_the_root_are_relative_in_sarif_and_annotations():
    report = Report(tool="lint", findings=(finding(path="/repo/a b.py"), finding(path="/other/c.py")))
    log = json.loads(reporter("sarif").render(report, Style(root="/repo")))
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"] for r in log["runs"][0]["results"]]
    assert places == [{"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}, {"uri": "file:///other/c.py"}]
    assert "file=a b.py," in reporter("github").render(report, Style(root="/repo"))


@pytest.mark.parametrize(
    ("number", "printed", "last"), [(10, 10, "loads on the CPU"), (11, 10, "2 more"), (500, 10, "491 more")]
)
def test_github_gets_ten_annotations_the_gravest_first(number, printed, last):
    notes = [finding(severity=Severity.NOTE)] * (number - 1)
    text = reporter("github").render(Report(tool="lint", findings=(*notes, finding(severity=Severity.ERROR))), Style())
    lines = text.splitlines()
    assert len(lines) == printed
    assert lines[0].startswith("::error title=shapeguard (SG101),file=src/a.py,line=2,endLine=2,col=5,endColumn=16::")
    assert f"::{last}" in lines[-1]


def test_markdown_fits_into_a_step_summary():
    text = reporter("markdown").render(Report(tool="lint", findings=(finding(message="x" * 200),) * 9000), Style())
    assert len(text.encode()) < 1024 * 1024
    assert "more lines did not fit" in text


def test_the_step_summary_gets_the_whole_list(shapeguard, monkeypatch, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for number in range(12):
        Path(f"m{number}.py").write_text("def (:\n")
    out = shapeguard("lint", "--isolated", "--no-cache", "--output-format", "github").out
    assert out.count("::error") == 10
    assert summary.read_text().startswith("before\n## shapeguard lint\n")
    assert summary.read_text().count("does not parse") == 12


def test_marks_stand_under_wide_and_tabbed_text():
    wide = finding(
        excerpt=("\tx = '見本' + auto",), span=Span(start=0, end=9, line=1, column=13, end_line=1, end_column=17)
    )
    lines = reporter("full").render(Report(tool="lint", findings=(wide,)), Style()).splitlines()
    assert lines[3:5] == ["1 |     x = '見本' + auto", f"  | {' ' * 17}^^^^"]


def test_a_very_long_line_is_cut_around_its_mark():
    line = "x" * 3000 + "HERE" + "y" * 3000
    long = finding(excerpt=(line,), span=Span(start=0, end=9, line=1, column=3001, end_line=1, end_column=3005))
    lines = reporter("full").render(Report(tool="lint", findings=(long,)), Style(width=80)).splitlines()
    assert len(lines[3]) < 90
    assert lines[3][lines[4].index("^") : lines[4].rindex("^") + 1] == "HERE"
