from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from graph_records import neff, record
from hypothesis import given, settings
from hypothesis import strategies as st

from shapeguard.cache import codec
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphInput, GraphKey, GraphRecord, ModelKey

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "cache"
FULL = record(
    7,
    tp=2,
    compile_s=312.5,
    neff=replace(neff(9, 1234), path=f"ab/cd/abcd{'0' * 28}.neff"),
    neuron_key="ab" * 32,
    persistent_key="cd" * 16,
    first_seen=1_700_000_000,
    last_seen=1_790_000_000,
    hits=3,
)
_text = st.text(max_size=20)
_count = st.integers(0, 1 << 61)
_pairs = st.lists(st.tuples(_text, _text), max_size=3).map(tuple)
_hex = st.text(string.hexdigits.lower()[:16], min_size=16, max_size=64)
_records = st.builds(
    GraphRecord,
    key=st.builds(
        GraphKey,
        graph=_hex,
        device=st.sampled_from(["simulated", "real"]),
        target=_text,
        compiler=_text,
        flags=st.lists(_text, max_size=3).map(tuple),
    ),
    model=st.builds(ModelKey, name=_text, config=_text),
    kind=_text,
    name=_text,
    inputs=st.lists(
        st.builds(
            GraphInput,
            path=_text,
            shape=st.lists(_count, max_size=4).map(tuple),
            dtype=_text,
            layout=_text,
        ),
        max_size=3,
    ).map(tuple),
    constants=_pairs,
    modes=_pairs,
    world_size=_count,
    tp=_count,
    nodes=_count,
    operators=st.dictionaries(_text, _count, max_size=3),
    compile_s=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    neff=st.none() | st.builds(neff, st.integers(0, 99), _count),
    versions=st.dictionaries(_text, _text, max_size=3),
    jobs=st.lists(_text, max_size=2).map(tuple),
    first_seen=_count,
    last_seen=_count,
    hits=_count,
)


@given(_records)
def test_a_record_survives_the_way_to_bytes_and_back(one: GraphRecord) -> None:
    assert codec.decode(codec.encode(one)) == one
    assert codec.encode(codec.decode(codec.encode(one))) == codec.encode(one)


def test_equal_records_are_equal_bytes_whatever_the_order_of_their_mappings() -> None:
    one = record(1, operators={"a": 1, "b": 2}, versions={"x": "1", "y": "2"})
    other = record(1, operators={"b": 2, "a": 1}, versions={"y": "2", "x": "1"})
    assert codec.encode(one) == codec.encode(other)


def test_bytes_that_an_earlier_release_wrote_are_still_read() -> None:
    assert codec.decode((FIXTURES / "record-schema-1.sgr").read_bytes()) == FULL


def test_fields_of_a_later_release_are_passed_over_and_missing_ones_have_their_defaults() -> None:
    data = (
        b'sgr\x01{"later": [1], "key": {"graph": "abababababababab", "device": "real", "target": "trn2", "more": 1},'
        b' "model": {"name": "M"}, "kind": "forward"}'
    )
    found = codec.decode(data)
    assert (found.model.name, found.world_size, found.neff) == ("M", 1, None)


@settings(max_examples=300)
@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda tail: b"sgr\x01" + tail))
def test_any_bytes_give_a_record_or_a_clear_error(data: bytes) -> None:
    try:
        codec.decode(data)
    except CacheError as error:
        assert error.message.startswith("the record ")


@settings(max_examples=300)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_gives_a_record_or_a_clear_error(place: int, value: int) -> None:
    data = bytearray(codec.encode(FULL))
    data[place % len(data)] = value
    try:
        codec.decode(bytes(data))
    except CacheError as error:
        assert "record" in error.message or "graph key" in error.message


@pytest.mark.parametrize(
    "change",
    [
        {"hits": -1},
        {"hits": 1 << 62},
        {"nodes": -5},
        {"operators": {"mm": -1}},
        {"name": "x" * 9000},
        {"model": "x" * 9000},
        {"neff": replace(neff(1), digest="../../x")},
        {"neff": replace(neff(1), size_bytes=-1)},
        {"key": replace(record(1).key, graph="../../etc/passwd")},
        {"key": replace(record(1).key, device="other")},
    ],
)
def test_what_has_the_right_types_and_cannot_be_is_refused_both_ways(change: dict[str, Any]) -> None:
    bad = record(1, **change)
    with pytest.raises(CacheError) as refused:
        codec.encode(bad)
    with pytest.raises(CacheError) as read:
        codec.decode(codec.encode(record(1))[:4] + msgspec.json.encode(bad))
    assert str(read.value) == str(refused.value)
