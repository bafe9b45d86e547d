"""Random Arrow types that have a logical type, for hypothesis."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

UNITS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "+01:00", "America/New_York")

PLAIN = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    *(pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.duration(unit) for unit in UNITS),
]
PARAMETRIC = [
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in ZONES),
    *(pa.decimal128(38, 10), pa.decimal128(1, -2), pa.decimal256(76, 0)),
    *(pa.binary(1), pa.binary(16)),
]
PRIMITIVE = PLAIN + PARAMETRIC
DICTIONARIES = [
    pa.dictionary(index, value)
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64())
    for value in (pa.string(), pa.large_binary(), pa.int64(), pa.float32(), pa.bool_())
]
EXTENSIONS = [
    *(pa.uuid(), pa.bool8(), pa.json_(), pa.opaque(pa.int8(), "t", "v")),
    pa.fixed_shape_tensor(pa.float32(), (2, 2)),
]

names = st.text(st.characters(codec="utf-8", exclude_characters=".`"), min_size=1, max_size=8)
metadata = st.none() | st.dictionaries(names, st.binary(max_size=8), min_size=1, max_size=2)


def _fixed_size_lists() -> st.SearchStrategy[pa.DataType]:
    flat = st.builds(pa.list_, st.sampled_from(PRIMITIVE), st.integers(1, 2000))
    return st.recursive(flat, lambda inner: st.builds(pa.list_, inner, st.integers(1, 9)))


def _field(name: str, t: pa.DataType, nullable: bool, given: dict[str, bytes] | None) -> pa.Field:
    """Return a field; pyarrow has no null column that is not nullable."""
    return pa.field(name, t, nullable or t == pa.null(), given)


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    child = st.builds(_field, names, inner, st.booleans(), metadata)
    return st.one_of(
        st.builds(pa.list_, child),
        st.builds(pa.large_list, child),
        st.builds(pa.struct, st.lists(child, max_size=3, unique_by=lambda f: f.name)),
    )


leaves = st.one_of(st.sampled_from(PRIMITIVE + DICTIONARIES + EXTENSIONS), _fixed_size_lists())
types = st.recursive(leaves, _nested, max_leaves=6)
fields = st.builds(_field, names, types, st.booleans(), metadata)
schemas = st.builds(pa.schema, st.lists(fields, max_size=5, unique_by=lambda f: f.name), metadata)
