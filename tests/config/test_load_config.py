"""Configuration files: found, merged, checked, and every value knows where it came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_every_value_names_its_origin(shapeguard, monkeypatch):
    write("pyproject.toml", '[tool.shapeguard]\noutput-format = "json"\n[tool.shapeguard.lint]\nneuron = "auto"\n')
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", "/x")
    settings = json.loads(shapeguard("config").out)["settings"]
    assert settings["output-format"] == {"from": "pyproject.toml", "value": "json"}
    assert settings["lint.neuron"] == {"from": "pyproject.toml", "value": "auto"}
    assert settings["cache-dir"] == {"from": "SHAPEGUARD_CACHE_DIR", "value": "/x"}
    assert settings["lint.fix"] == {"from": "default", "value": False}


def test_the_file_of_our_own_wins_over_the_project_file(shapeguard):
    write("pyproject.toml", "[tool.shapeguard.lint]\njobs = 3\n")
    write("shapeguard.toml", "[lint]\njobs = 4\n")
    settings = json.loads(shapeguard("config", "--json").out)["settings"]
    assert settings["lint.jobs"] == {"from": "shapeguard.toml", "value": 4}


def test_the_nearest_file_upward_counts(shapeguard, monkeypatch):
    write("pyproject.toml", "[tool.shapeguard.lint]\njobs = 3\n")
    write("a/pyproject.toml", "[project]\n")
    write("a/b/x.py", "")
    monkeypatch.chdir("a/b")
    assert json.loads(shapeguard("config", "--json").out)["settings"]["lint.jobs"]["value"] == 3
    assert json.loads(shapeguard("config", "--json", "--isolated").out)["settings"]["lint.jobs"]["value"] == 0


def test_a_file_that_is_named_is_read_instead(shapeguard):
    write("shapeguard.toml", "[lint]\njobs = 4\n")
    write("other.toml", "[lint]\njobs = 5\n")
    settings = json.loads(shapeguard("config", "--json", "--config", "other.toml").out)["settings"]
    assert settings["lint.jobs"] == {"from": "other.toml", "value": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lint]\nselct = []\n", "shapeguard.toml:2: unknown key 'lint.selct'\nhint: did you mean 'select'?\n"),
        ("[lnt]\n", "shapeguard.toml:1: unknown key 'lnt'\nhint: did you mean 'lint'?\n"),
        (
            "[lint]\nper_file_ignores = {}\n",
            "unknown key 'lint.per_file_ignores'\nhint: did you mean 'per-file-ignores'?\n",
        ),
        ('[lint]\nfix = "yes"\n', "shapeguard.toml:2: lint.fix must be true or false, not 'yes'\n"),
        ("[lint]\njobs = true\n", "shapeguard.toml:2: lint.jobs must be a whole number, not true\n"),
        (
            '[lint]\nselect = "SG1"\n',
            "shapeguard.toml:2: lint.select must be a list of texts, not 'SG1'\nhint: write [\"SG1\"]\n",
        ),
        ("[lint]\nselect = [1]\n", "shapeguard.toml:2: lint.select[1] must be a text, not 1\n"),
        ("[lint]\nneuron = 3\n", "shapeguard.toml:2: lint.neuron must be a text or a list of texts, not 3\n"),
        ("lint = 3\n", "shapeguard.toml:1: lint must be a table, not 3\n"),
        ("[lint.lengths]\ntrain = 3\n", "shapeguard.toml:1: lint.lengths must be a list of tables, not a table\n"),
        ("[[lint.lengths]]\ntrian = 3\n", "unknown key 'lint.lengths[1].trian'\nhint: did you mean 'train'?\n"),
        (
            "[[lint.lengths]]\ntrain = '3'\n",
            "shapeguard.toml:2: lint.lengths[1].train must be a whole number, not '3'\n",
        ),
        ("[lint.per-file-ignores]\na = 'SG1'\n", "lint.per-file-ignores.\"a\" must be a list of texts, not 'SG1'\n"),
        ("[lint\n", "shapeguard.toml is no TOML: "),
        ("\ud800", "shapeguard.toml:1: not UTF-8\n"),
        ("[lint]\nignore = ['SG77']\n", "error: no rule is called 'SG77'\n"),
        ("[lint]\ntransformers = 'new'\n", "error: transformers = 'new' is no version\n"),
        ("output-format = 'xml'\n", "error: unknown output format 'xml'\n"),
        ("[lint]\nneuron = 'som'\n", 'lint.neuron = \'som\' is neither "all" nor "auto"'),
        ("[[lint.lengths]]\ntrain = 0\n", "lint.lengths[1].train must be at least 1, not 0"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_value(shapeguard, text, message):
    Path("shapeguard.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    Path("a.py").write_text("import torch\nmodel.generate(device_map='auto')\n")
    ran = shapeguard("lint", "--no-cache", "a.py")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") <= 2


def test_a_named_file_without_our_table_is_a_mistake(shapeguard):
    write("pyproject.toml", "[project]\n")
    ran = shapeguard("config", "--config", "pyproject.toml")
    assert (ran.code, ran.err) == (
        2,
        "error: pyproject.toml: there is no [tool.shapeguard] in it\nhint: add the table, or use a shapeguard.toml\n",
    )


def test_a_switch_of_the_environment_must_be_true_or_false(shapeguard, monkeypatch):
    monkeypatch.setenv("SHAPEGUARD_FROZEN", "maybe")
    ran = shapeguard("config")
    assert (ran.code, ran.err) == (
        2, "error: SHAPEGUARD_FROZEN='maybe' is neither true nor false\nhint: set it to 1 or 0\n"
    )  # fmt: skip


def test_a_broken_project_file_that_is_none_of_ours_is_passed_over(shapeguard):
    write("data/pyproject.toml", "[[[")
    write("data/a.py", "x = 1\n")
    assert shapeguard("lint", "--no-cache", "data").code == 0
    write("data/pyproject.toml", "[tool.shapeguard\n")
    assert shapeguard("lint", "--no-cache", "data").code == 2
