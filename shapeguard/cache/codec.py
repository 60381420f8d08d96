"""Records as versioned bytes: a header with the schema, then JSON that is checked against the type of a record.

Bytes come from other processes, machines and releases, so that nothing of them is trusted: types are checked while
they are decoded, sizes before, and digits and counts after.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import msgspec

from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import REAL, SIMULATED, GraphRecord

SCHEMA = 1
MAX_BYTES = 1 << 20
"""Far above any real record: the largest seen, of an optimizer over thousands of tensors, has 300 KB."""

_PREFIX = b"sgr"
_BODY = len(_PREFIX) + 1
_DIGEST = re.compile(r"[0-9a-f]{16,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{40}")
_MAX_INT = 1 << 62
"""SQLite and other readers hold 64 bits."""
_MAX_TEXT = 8192
_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(GraphRecord)

MIGRATIONS: dict[int, Callable[[bytes], bytes]] = {}
"""From each older schema to the next: the body as JSON, in and out."""


class NewerSchemaError(CacheError):
    """Written by a newer shapeguard: not to be read, and not to be deleted either."""


def encode(record: GraphRecord) -> bytes:
    """Give a record as bytes; equal records give equal bytes. `CacheError` where no one could read them."""
    _check(record)
    try:
        data = _PREFIX + bytes((SCHEMA,)) + _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise CacheError(f"the record holds a text that is none: {error.object[:80]!r}") from error
    if len(data) > MAX_BYTES:
        raise CacheError(f"the record of {record.name or record.kind} has {len(data)} bytes, more than {MAX_BYTES}")
    return data


def decode(data: bytes) -> GraphRecord:
    """Give the record of bytes that `encode` made, here or elsewhere; `CacheError` says what is wrong with others."""
    schema = schema_of(data)
    body = data[_BODY:]
    while schema < SCHEMA:
        if schema not in MIGRATIONS:
            raise CacheError(f"the record has schema {schema}, which nothing can read")
        body, schema = MIGRATIONS[schema](body), schema + 1
    try:
        record = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CacheError(f"the record cannot be read: {error}") from error
    _check(record)
    return record


def schema_of(data: bytes) -> int:
    """Give the schema that the header names; `CacheError` where there is no header of ours."""
    if len(data) > MAX_BYTES:
        raise CacheError(f"the record has {len(data)} bytes, more than {MAX_BYTES}")
    if data[:3] != _PREFIX or len(data) < _BODY:
        raise CacheError("the record has no header of shapeguard's")
    schema = data[3]
    if schema > SCHEMA:
        raise NewerSchemaError(
            f"the record has schema {schema}, this shapeguard reads up to {SCHEMA}", hint="update shapeguard to use it"
        )
    return schema


def is_id(text: str) -> bool:
    """Whether a text has the form of a record's id."""
    return _ID.fullmatch(text) is not None


def is_sha256(text: str) -> bool:
    """Whether a text is a whole SHA-256 in lower-case digits."""
    return _SHA256.fullmatch(text) is not None


def shared(record: GraphRecord) -> GraphRecord:
    """Give what others may know of a record: nothing of this machine's use, so that equal graphs are equal bytes."""
    return replace(record, hits=0, first_seen=0, last_seen=0, source="import")


def _check(record: GraphRecord) -> None:
    """Refuse what has the right types and cannot be."""
    key = record.key
    if not _DIGEST.fullmatch(key.graph):
        raise CacheError(f"{key.graph[:80]!r} is no graph key")
    if key.device not in (SIMULATED, REAL):
        raise CacheError(f"the record's device is {key.device[:80]!r}, neither simulated nor real")
    if record.neff and not (is_sha256(record.neff.digest) and 0 <= record.neff.size_bytes < _MAX_INT):
        raise CacheError("the record's NEFF has no proper digest or size")
    seen = (record.first_seen, record.last_seen, record.hits)
    counts = (record.world_size, record.tp, record.nodes, *seen, *record.operators.values())
    if min(counts) < 0 or max(counts) >= _MAX_INT:
        raise CacheError("the record holds a count that cannot be")
    if max(map(len, (record.name, record.model.name, record.model.config, record.kind))) > _MAX_TEXT:
        raise CacheError("the record holds a name that is too long")
