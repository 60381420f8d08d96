"""The pytest plugin: compile budgets for tests.

`pytest --shapeguard` puts the simulated device before everything installed, so that tests of code for Neuron run on any
machine. `@pytest.mark.compile_budget(graphs=1)` and the fixture `compile_budget` limit what a test may compile. Without
the option nothing is changed, and the module imports neither torch nor anything heavy.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from shapeguard.checks.expect import Expectation

MARKER = "compile_budget"
_FOLDERS = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("shapeguard", "compile budgets on AWS Trainium")
    group.addoption(
        "--shapeguard",
        action="store_true",
        default=None,
        help="Run the tests on a simulated `neuron` device.",
    )
    group.addoption(
        "--shapeguard-inner",
        choices=("cpu", "meta"),
        default=None,
        help="What the simulated device computes on; meta computes nothing. [default: cpu]",
    )
    parser.addini("shapeguard", "Run the tests on a simulated `neuron` device.", type="bool", default=False)
    parser.addini("shapeguard_inner", "What the simulated device computes on: cpu or meta.", default="cpu")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put the device in place before a conftest can import torch."""
    wanted = early_config.known_args_namespace.shapeguard
    if not (early_config.getini("shapeguard") if wanted is None else wanted):
        return
    if "torch" in sys.modules and "torch_neuronx" not in sys.modules:
        raise pytest.UsageError("--shapeguard: torch is imported already, so the device cannot be put in place")
    _simulate(early_config)


def _simulate(config: pytest.Config) -> None:
    from shapeguard.trace.settings import Settings, environment, site

    inner = config.known_args_namespace.shapeguard_inner or str(config.getini("shapeguard_inner"))
    if inner not in ("cpu", "meta"):
        raise pytest.UsageError(f"shapeguard_inner = {inner!r} is neither 'cpu' nor 'meta'")
    if "SHAPEGUARD_RUN_DIR" not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="shapeguard-pytest-"))
        config.stash[_FOLDERS] = folder
        os.environ.update(
            environment(Settings(inner=inner), folder=folder, root=config.rootpath.resolve(), base=os.environ)
        )
    if str(site()) not in sys.path:
        sys.path.insert(0, str(site()))


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(graphs=None, after_warmup=None, eager=None, warmup_steps=2): "
        "how much the test may compile; fails with the cause of what is over it.",
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the processes wrote down."""
    folder = config.stash.get(_FOLDERS, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test begin without the variants that earlier ones compiled of the same code.

    Dynamo keeps eight of a function and then runs it eagerly without a word, so the ninth test of a model would compile
    no graph and pass whatever its budget. What the device has compiled stays compiled.
    """
    if "torch_neuronx" in sys.modules and "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hold a marked test to its limits."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return (yield)
    from shapeguard.checks.expect import BudgetError
    from shapeguard.core.errors import ShapeguardError

    limits = _limits(marker)
    if isinstance(limits, str):
        pytest.fail(limits, pytrace=False)
    try:
        with limits:
            return (yield)
    except BudgetError as error:
        said = f"compile budget of {item.name}: {error}"
    except ShapeguardError as error:
        said = f"@pytest.mark.{MARKER}: {error}"
    # Not inside the handlers: pytest would print their exception as well.
    pytest.fail(said, pytrace=False)


def _limits(marker: pytest.Mark) -> Expectation | str:
    """Give a marker's limits, or what is wrong with them."""
    from shapeguard.checks.expect import expect
    from shapeguard.core.errors import ShapeguardError

    if marker.args:
        return f"@pytest.mark.{MARKER} takes its limits by name: {MARKER}(graphs=1)"
    try:
        return expect(**marker.kwargs)
    except (TypeError, ShapeguardError) as error:
        return f"@pytest.mark.{MARKER}: {error}"


@pytest.fixture
def compile_budget() -> Callable[..., Expectation]:
    """Give `shapeguard.expect`, to limit a piece of a test: `with compile_budget(graphs=1) as seen:`."""
    from shapeguard.checks.expect import expect

    return expect
