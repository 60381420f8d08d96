"""The command group: help, exit codes, mistakes, start-up."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from shapeguard.cli import commands
from shapeguard.cli.main import group
from shapeguard.core.plugins import names

COMMANDS = [name.rstrip("_").replace("_", "-") for name in names(commands)]


def options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(shapeguard, name):
    assert shapeguard(name, "--help").code == 0
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert [option.name for option in options(command) if not option.help] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_needs_torch_to_explain_itself(name):
    code = (
        "import sys; from shapeguard.cli.main import main; main([sys.argv[1], '--help']); "
        "sys.exit(str('torch' in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
    assert ran.stderr.strip() == "False"


def test_the_version_is_printed(shapeguard):
    assert shapeguard("--version").out.startswith("shapeguard ")


def test_a_command_that_does_not_exist_is_answered_with_the_nearest(shapeguard):
    ran = shapeguard("lnit")
    assert ran.code == 2
    assert "No such command 'lnit'. Did you mean 'lint'?" in ran.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--output", "json"], "'json' is not FORMAT=PATH, for example json=report.json"),
        (["--output", "xml=a"], "'xml' is not one of concise, full, github, "),
        (["--json", "--output-format", "full"], "--json cannot stand beside --output-format full."),
        (["--output-format", "xml"], "'xml' is not one of "),
    ],
)
def test_a_mistake_in_the_output_options_is_exit_2(shapeguard, args, message):
    ran = shapeguard("lint", "--isolated", "--no-cache", *args)
    assert ran.code == 2
    assert message in ran.err


def test_a_report_that_cannot_be_written_is_exit_2(shapeguard):
    ran = shapeguard("lint", "--isolated", "--no-cache", "--output", "json=no/such/folder/a.json")
    assert ran.code == 2
    assert ran.err == (
        "error: cannot write 'no/such/folder/a.json': No such file or directory\n"
        "hint: give --output a file in a folder that exists\n"
    )


def test_a_device_is_written_to_and_not_replaced(shapeguard):
    assert shapeguard("lint", "--isolated", "--no-cache", "--output", "json=/dev/null").code == 0


def test_a_rule_is_explained_by_code_or_name(shapeguard):
    assert shapeguard("rule", "sg901").out.startswith("# SG901 UnusedSuppression\n")
    assert shapeguard("rule", "UnusedSuppression").out == shapeguard("rule", "SG901").out
    ran = shapeguard("rule", "SG91")
    assert (ran.code, ran.err) == (2, "error: no rule is called 'SG91'\nhint: did you mean SG901?\n")
    assert shapeguard("rule").code == 2


def test_an_uncaught_mistake_of_ours_is_exit_2(shapeguard, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("x")

    monkeypatch.setattr("shapeguard.lint.outcome.lint_report", broken)
    ran = shapeguard("lint", "--isolated", "--no-cache")
    assert ran.code == 2
    assert "ZeroDivisionError: x" in ran.err
    assert ran.err.endswith("error: this is a bug in shapeguard\nhint: please report it with the lines above\n")


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("> /dev/full", 2, "error: cannot write the report: No space left on device\n"),
        (">&-", 1, ""),
        (">&- 2>&-", 1, ""),
        ("<&-", 1, ""),
    ],
)
def test_streams_that_are_closed_or_full_are_no_bug_of_ours(tmp_path, ending, code, said):
    (tmp_path / "a.py").write_text("def (:\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    command = f"{sys.executable} -m shapeguard lint --isolated --no-cache -q {tmp_path} {ending}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (code, said)


def test_a_working_directory_that_is_gone_is_said(tmp_path):
    command = f"cd {tmp_path} && rmdir {tmp_path} && {sys.executable} -m shapeguard config"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == ("error: the working directory does not exist any more\nhint: change to one that does\n")
