"""The examples of the guides to lock, check and testing are what the program takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from test_check_expect import pytest_in

from shapeguard.lock.read import parse
from shapeguard.lock.write import text
from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["lock.md", "check.md"])
def test_the_settings_of_a_guide_are_accepted(shapeguard, page):
    found = [block for block in blocks(page, "toml") if "tool.shapeguard" in block]
    assert found
    for block in found:
        Path("pyproject.toml").write_text(block)
        assert shapeguard("config").code == 0
        ran = shapeguard("check", "--static")
        assert "there is no shapeguard.lock" in ran.err, ran.err


def test_the_lock_in_the_guide_is_written_as_the_program_writes_it():
    (block,) = [block for block in blocks("lock.md", "toml") if "[[graph]]" in block]
    assert text(parse(block.encode(), name="x")).partition("\n")[2] == block
    assert tomllib.loads(block)["schema"] == 1


def test_the_example_of_the_testing_guide_passes(tmp_path):
    said = pytest_in(tmp_path, blocks("testing.md", "python")[0], "--shapeguard", "--shapeguard-inner", "meta")
    assert "2 passed" in said, said


def test_every_option_of_the_commands_stands_in_its_guide():
    from shapeguard.cli.main import group

    for name, own in (
        ("lock", ("check", "frozen", "dry_run", "upgrade", "runs")),
        ("check", ("static", "why", "runs")),
    ):
        command = group.get_command(None, name)
        options = {option.name: max(option.opts, key=len) for option in command.params}
        page = (DOCS / f"{name}.md").read_text()
        assert [options[each] for each in own if options[each] not in page] == []
