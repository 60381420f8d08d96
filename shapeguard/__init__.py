"""Keeps PyTorch and Hugging Face jobs on AWS Trainium on static shapes."""

from __future__ import annotations

import os

__version__ = "0.1.0"

# Resolved on first use, so that `import shapeguard` costs nothing and never imports torch.
_PUBLIC = {
    "CompileForbiddenError": "shapeguard.core.forbid",
    "expect": "shapeguard.checks.expect",
    "forbid_compiles": "shapeguard.warmup.forbid",
    "step": "shapeguard.trace.api",
}

__all__ = ["CompileForbiddenError", "__version__", "expect", "forbid_compiles", "step"]


def __getattr__(name: str) -> object:
    """Give a public name from the module that owns it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shapeguard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)


if os.environ.get("SHAPEGUARD_FORBID_COMPILES"):
    # A serving process that is to be watched says so before it starts; nothing else happens on import.
    from importlib import import_module

    import_module("shapeguard.warmup.forbid").follow_variable(os.environ)
