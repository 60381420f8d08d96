"""Known findings that are not reported again: matched on path, code and the text of the line, not on its number."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapeguard.core.errors import ConfigError, UsageError
from shapeguard.core.files import replace_file
from shapeguard.core.finding import Finding

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Known:
    """A finding as a baseline remembers it."""

    path: str
    """Relative to the baseline's folder, with forward slashes."""
    code: str
    text: str
    """The line, without blanks around it."""


def write_baseline(file: Path, findings: Iterable[Finding]) -> int:
    """Write the findings as known; gives how many entries there are."""
    counts = Counter(_known(finding, file.parent) for finding in findings)
    rows = [{"code": k.code, "count": n, "path": k.path, "text": k.text} for k, n in sorted(counts.items())]
    text = json.dumps({"schema": SCHEMA, "findings": rows}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        replace_file(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(
            f"cannot write the baseline {os.fspath(file)!r}: {error.strerror}",
            hint="give a path in a folder that exists",
        ) from error
    return len(rows)


class Baseline:
    """The entries of a baseline, used up as findings match them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._left = _read(file)

    def takes(self, finding: Finding) -> bool:
        """Whether the finding is known; each entry covers as many as were counted."""
        known = _known(finding, self.file.parent)
        if self._left[known] <= 0:
            return False
        self._left[known] -= 1
        return True

    def stale(self, checked: Iterable[str]) -> list[Known]:
        """Entries that nothing matches, of files that were checked or that are gone."""
        paths = {_relative(path, self.file.parent) for path in checked}
        return sorted(
            known
            for known, count in self._left.items()
            if count > 0 and (known.path in paths or not (self.file.parent / known.path).exists())
        )


def _known(finding: Finding, folder: Path) -> Known:
    text = finding.excerpt[0].strip() if finding.excerpt else ""
    return Known(path=_relative(finding.path, folder), code=finding.code, text=text)


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _read(file: Path) -> Counter[Known]:
    name = os.fspath(file)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the baseline {name!r}: {error.strerror}", hint=f"write it with `--write-baseline {name}`"
        ) from error
    except ValueError as error:
        raise ConfigError(f"the baseline {name!r} is no JSON: {error}", hint="write it again") from error
    try:
        if document["schema"] != SCHEMA:
            raise ConfigError(
                f"the baseline {name!r} has schema {document['schema']!r}, not {SCHEMA}", hint="write it again"
            )
        rows: Sequence[dict[str, str | int]] = document["findings"]
        return Counter(
            {Known(path=str(r["path"]), code=str(r["code"]), text=str(r["text"])): int(r["count"]) for r in rows}
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"the baseline {name!r} is none of ours: {error!r}", hint="write it again") from error
