"""The HTML page: one file without anything from outside, which a real browser shows without a complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from shapeguard.report.reporter import Style, reporter
from shapeguard.runs.stream import read_run
from shapeguard.runs.summary import summarise
from shapeguard.runs.view import report
from tests.runs.event_writer import Writer, site, tensor

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def page(folder: Path) -> str:
    return reporter("html").render(report(summarise(read_run(folder)), folder="runs/train-1"), Style())


def ragged(folder: Path, lengths: int = 12) -> Path:
    run = Writer(folder)
    for step in range(lengths):
        run.put("batch", shapes={"input_ids": [4, 20 + step]}, site=site(9), loader=site(8), last=False)
        run.step()
        run.region(tensor("input_ids", 4, 20 + step), tensor("labels", 4, 20 + step), kinds=("forward", "backward"))
        run.eager("cat", tensor("tensors[0]", 4, 20 + step))
    run.end()
    return folder


class Outline(HTMLParser):
    """Collects what a page refers to, and whether its elements are closed in order."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts = 0
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"


def test_the_page_refers_to_nothing_and_runs_nothing(tmp_path: Path) -> None:
    text = page(ragged(tmp_path))
    outline = Outline()
    outline.feed(text)
    assert (outline.links, outline.scripts, outline.open) == ([], 0, [])
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_page_has_causes_charts_and_a_row_for_each_graph(tmp_path: Path) -> None:
    text = page(ragged(tmp_path))
    assert text.index("still compiling") < text.index("Causes") < text.index("When it compiled")
    assert "train.py:9" in text
    assert text.count("<svg") == 2 + 1 + 2
    assert text.count("<details>") == 24
    assert "input_ids dim 1: 20 → 21" in text


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    folder = ragged(tmp_path)
    assert page(folder) == page(folder)


def test_a_name_in_a_run_cannot_put_markup_into_the_page(tmp_path: Path) -> None:
    run = Writer(tmp_path)
    for size in (3, 4, 5):
        run.step()
        run.region(tensor("<img src=x onerror=alert(1)>", size), model="</style><script>alert(1)</script>")
    text = page(tmp_path)
    assert "<script" not in text
    assert "<img" not in text


def test_a_run_of_very_many_graphs_stays_below_two_megabytes(tmp_path: Path) -> None:
    text = page(ragged(tmp_path, lengths=1500))
    assert len(text.encode()) < 2_000_000
    assert "more graphs: shapeguard report RUN --by graph" in text


@pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="there is no chromium here; CI installs one")
def test_a_browser_opens_the_page_in_the_dark_and_on_a_phone(tmp_path: Path) -> None:
    assert BROWSER, "CI has no chromium: .ci/run installs it"
    file = tmp_path / "report.html"
    file.write_text(page(ragged(tmp_path, lengths=400)))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    log = ["--enable-logging=stderr", "--log-level=0"]
    for size in ("420,900", "1400,900"):
        done = subprocess.run(
            [*command, *log, f"--window-size={size}", "--dump-dom", file.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("<details>") == 400
        assert "CONSOLE" not in done.stderr
    shot = tmp_path / "page.png"
    begin = time.monotonic()
    subprocess.run([*command, f"--screenshot={shot}", file.as_uri()], capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 5_000
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("form", ["html", "markdown", "json", "sarif", "github", "full"])
def test_nothing_that_is_written_can_give_a_person_away(form: str, tmp_path: Path) -> None:
    """Traced in a home folder, with text in the source and in the data: none of it is in what can be handed on."""
    home = tmp_path / "home" / "zebulon"
    home.mkdir(parents=True)
    run = Writer(home)
    for rows in (3, 4, 5):
        run.step()
        run.region(tensor("x", rows), line=12)
    program = home / "train.py"
    program.write_text("# a secret remark\n" * 20)
    done = subprocess.run(
        [sys.executable, "-m", "shapeguard", "report", ".", "--output-format", form],
        cwd=home,
        env={**os.environ, "SHAPEGUARD_NO_CACHE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "train.py" in done.stdout
    for word in ("zebulon", str(tmp_path), "secret remark"):
        assert word not in done.stdout


def test_causes_stand_at_their_lines_in_sarif_and_annotations(tmp_path: Path) -> None:
    found = report(summarise(read_run(ragged(tmp_path))), folder="run")
    sarif = reporter("sarif").render(found, Style())
    assert '"ruleId": "SG302"' in sarif
    assert '"startLine": 9' in sarif
    assert "file=train.py,line=9" in reporter("github").render(found, Style())
    markdown = reporter("markdown").render(found, Style())
    assert "````text\nCauses\n  1. train.py:9" in markdown
