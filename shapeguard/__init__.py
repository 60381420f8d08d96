"""Keeps PyTorch and Hugging Face jobs on AWS Trainium on static shapes."""

from __future__ import annotations

__version__ = "0.1.0"

# Resolved on first use, so that `import shapeguard` costs nothing and never imports torch.
_PUBLIC = {"expect": "shapeguard.checks.expect", "step": "shapeguard.trace.api"}

__all__ = ["__version__", "expect", "step"]


def __getattr__(name: str) -> object:
    """Give a public name from the module that owns it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shapeguard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
