"""Plug-ins are the modules of a folder: importing them is what registers them."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType


def load(package: ModuleType) -> list[ModuleType]:
    """Import every module of the package's folder, in the order of their names."""
    return [import_module(f"{package.__name__}.{name}") for name in names(package)]


def names(package: ModuleType) -> list[str]:
    """The modules of the package's folder, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))
