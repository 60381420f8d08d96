"""The statement: a lock, a toolchain and files with which nothing compiled. Written only where all of it is so.

A deploy step demands it. What it says of the simulated device says nothing of Trainium, and it is refused there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from shapeguard import __version__
from shapeguard.cache.neff_folder import digest_of
from shapeguard.core.errors import CacheError, UsageError
from shapeguard.core.files import replace_file
from shapeguard.core.graphs import REAL, SIMULATED, GraphRecord
from shapeguard.lock.values import Lock
from shapeguard.lock.write import text
from shapeguard.warmup.execute import Failure
from shapeguard.warmup.values import Miss, Need

SCHEMA = 1
NAME = "statement.json"
_MOST_BYTES = 256 << 20


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One compiled file."""

    graph: str
    """Key of the graph."""
    path: str
    """Below the folder of the Neuron stack."""
    digest: str
    size_bytes: int


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What was proven."""

    schema: int = SCHEMA
    device: str
    """`simulated` or `real`."""
    lock: str
    """SHA-256 of what the lock says."""
    toolchain: Mapping[str, str]
    jobs: Sequence[str]
    num_graphs: int
    num_eager: int
    misses: int
    files: Sequence[File]
    shapeguard: str = __version__


def digest_of_lock(lock: Lock) -> str:
    """Give the SHA-256 of what a lock says, however it is written down."""
    return hashlib.sha256(text(lock).encode()).hexdigest()


def statement(
    lock: Lock,
    needs: Mapping[str, Need],
    records: Mapping[str, GraphRecord],
    *,
    device: str,
    toolchain: Mapping[str, str],
) -> Statement:
    """Give the statement of a warm-up that was proven."""
    files = [
        File(graph=key, path=neff.path, digest=neff.digest, size_bytes=neff.size_bytes)
        for key, record in sorted(records.items())
        if (neff := record.neff) is not None
    ]
    num_graphs = sum(need.is_graph for need in needs.values())
    return Statement(
        device=device,
        lock=digest_of_lock(lock),
        toolchain=dict(sorted({**lock.toolchain, **toolchain}.items())),
        jobs=sorted(lock.jobs),
        num_graphs=num_graphs,
        num_eager=len(needs) - num_graphs,
        misses=0,
        files=files,
    )


def failed_file(path: Path) -> Path:
    """Give the name that a failure goes to: never that of the statement."""
    return path.with_name(f"{path.stem}.failed{path.suffix}")


def withdraw(path: Path) -> None:
    """Remove what an earlier warm-up said: from here on it is not known to be so."""
    for each in (path, failed_file(path)):
        try:
            each.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot remove {each}: {error.strerror}", hint="see --statement") from error


def write(path: Path, said: Statement) -> None:
    """Write a statement at once."""
    _write(path, msgspec.json.encode(said, order="sorted"))


def write_failure(path: Path, failures: Iterable[Failure], misses: Iterable[Miss]) -> Path:
    """Write down, beside where the statement would be, why there is none."""
    rows = {
        "schema": SCHEMA,
        "failures": [{"job": each.name, "why": each.why} for each in failures],
        "misses": [{"job": each.job, "graph": each.key, "what": each.text, "why": each.why} for each in misses],
    }
    _write(failed_file(path), msgspec.json.encode(rows, order="sorted"))
    return failed_file(path)


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(data, indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}", hint="see --statement") from error


def read(path: Path) -> Statement:
    """Read a statement; `UsageError` where there is none or it is none."""
    again = "`shapeguard warmup --verify` writes it"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a statement", hint=again)
        found = msgspec.json.decode(path.read_bytes(), type=Statement)
    except FileNotFoundError as error:
        failed = failed_file(path)
        hint = f"the warm-up failed: {failed} says why" if failed.exists() else again
        raise UsageError(f"there is no statement {path}", hint=hint) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}", hint=again) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no statement: {error}", hint=again) from error
    if found.schema != SCHEMA:
        raise UsageError(f"{path} has schema {found.schema}, this shapeguard reads {SCHEMA}", hint=again)
    return found


def refusals(
    said: Statement, lock: Lock, *, device: str, toolchain: Mapping[str, str], neff_dir: Path | None
) -> Iterator[str]:
    """Say why a statement does not hold here; nothing where it does."""
    if said.device != device:
        if said.device == SIMULATED:
            yield "it is of the simulated device: nothing of it was compiled for Trainium (--device sim takes it)"
        else:
            yield f"it is of a {said.device} device, and {device} is asked for"
    if said.lock != digest_of_lock(lock):
        yield f"it is of another lock ({said.lock[:12]}…, here {digest_of_lock(lock)[:12]}…)"
    for name in sorted({*said.toolchain, *toolchain}):
        # An older statement need not know of what is new; what it names must be so.
        if (theirs := said.toolchain.get(name)) != (ours := toolchain.get(name)):
            yield f"{name} was {theirs or 'not there'}, here is {ours or 'none'}"
    if said.misses:
        yield f"it says that {said.misses} graphs compiled"
    if neff_dir is not None:
        yield from _files(said, neff_dir)


def _files(said: Statement, neff_dir: Path) -> Iterator[str]:
    for each in said.files:
        path = neff_dir / each.path
        if not path.is_file() or path.is_symlink():
            yield f"{each.path} is not in {neff_dir}"
            continue
        try:
            is_same = path.stat().st_size == each.size_bytes and digest_of(path) == each.digest
        except (OSError, CacheError):
            is_same = False
        if not is_same:
            yield f"{each.path} in {neff_dir} is another file"


DEVICES = {"sim": SIMULATED, "neuron": REAL}
