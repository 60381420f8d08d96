"""Signs that code is meant for Neuron, for `neuron = "auto"`."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_HINT = re.compile(r"neuron", re.IGNORECASE)
_MODULES = ("torch_neuronx", "neuronx_distributed", "neuronx_distributed_training", "neuronxcc", "libneuronxla")
_DEVICE = re.compile(r"neuron(:\d+)?\Z")
_PLACES = re.compile(r"device|backend|accelerator|platform", re.IGNORECASE)
_CALLS = ("to", "device", "set_default_device", "is_available", "init_process_group", "set_device", "compile", "empty")
_PACKAGES = re.compile(r"(torch[-_.]neuronx|optimum[-_.]neuron|optimum\[neuronx?\]|neuronx[-_.]distributed)(?![\w-])")


def shows_neuron(source: str) -> bool:
    """Whether a file itself is for Neuron: it imports a Neuron package or names the device or backend `neuron`."""
    if not _HINT.search(source):
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.search(r"\b(torch_neuronx|optimum\.neuron)\b", source) is not None
    return any(_is_sign(node) for node in ast.walk(tree))


def _is_sign(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_is_neuron_module(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return node.level == 0 and any(map(_is_neuron_module, [node.module or "", *names]))
    if isinstance(node, ast.Attribute):
        return node.attr == "neuron" and isinstance(node.value, ast.Name) and node.value.id == "torch"
    return any(_is_device(value) for value in _device_places(node))


def _is_neuron_module(name: str) -> bool:
    return name.split(".")[0] in _MODULES or name == "optimum.neuron" or name.startswith("optimum.neuron.")


def _device_arguments(call: ast.Call) -> Iterator[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _CALLS:
        yield from call.args
    yield from (word.value for word in call.keywords if word.arg and _PLACES.search(word.arg))
    if name == "add_argument" and any(_is_device_option(arg) for arg in call.args):
        yield from (word.value for word in call.keywords if word.arg == "default")


def _device_places(node: ast.AST) -> Iterator[ast.expr | None]:
    """Values that stand where a device or a backend is named."""
    if isinstance(node, ast.Call):
        yield from _device_arguments(node)
    elif isinstance(node, ast.Assign):
        yield from (node.value for target in node.targets if _PLACES.search(ast.unparse(target)))
    elif isinstance(node, ast.AnnAssign):
        yield node.value if _PLACES.search(ast.unparse(node.target)) else None
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(_PLACES.search(ast.unparse(side)) for side in sides if not isinstance(side, ast.Constant)):
            yield from sides
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _PLACES.search(key.value):
                yield value


def _is_device_option(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_PLACES.search(node.value))


def _is_device(node: ast.expr | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_device(node.body) or _is_device(node.orelse)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_is_device(item) for item in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_DEVICE.match(node.value))


def project_shows_neuron(root: Path) -> bool:
    """Whether a project cannot do without Neuron: one of its packages is a plain, not an optional requirement."""
    return any(_PACKAGES.search(name) for name in _requirements(root))


def _requirements(root: Path) -> Iterator[str]:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        project = {}
    table = project.get("project")
    dependencies = table.get("dependencies") if isinstance(table, dict) else None
    if isinstance(dependencies, list):
        yield from (str(item).strip().lower() for item in dependencies)
    try:
        lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    yield from (line.split("#")[0].strip().lower() for line in lines)
