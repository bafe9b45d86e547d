"""Bounds of pages and zones contain all values of their unit."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.errors import DataLossWarning
from pennon.expr.prune import Bounds, Pruner, Unit
from pennon.expr.tree import Call, Column, Literal
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.opened_file import OpenedFile
from pennon.file.container.write_limits import PageLimits, RowGroups
from pennon.file.open import create_data_file, open_data_file
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import FileVersion
from pennon.testing import MemoryStore

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTEGERS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def _integers(kind: pa.DataType) -> st.SearchStrategy[int]:
    bits = kind.bit_width
    signed = pa.types.is_signed_integer(kind)
    return st.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)


LONG_TEXT = st.builds(
    lambda start, end: start + end,
    st.sampled_from(["a" * 63, "a" * 64, "\U0010ffff" * 16, "ä" * 32, "\x7f" * 64, "\uffff" * 22]),
    st.text(max_size=4),
)
LONG_BYTES = st.builds(
    lambda start, end: start + end,
    st.sampled_from([b"\xff" * 64, b"a" * 63]),
    st.binary(max_size=3),
)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{kind: _integers(kind) for kind in INTEGERS},
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, -math.inf]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.decimal128(38, 4): st.decimals(-(10**33), 10**33, places=4),
    **dict.fromkeys([pa.string(), pa.large_string()], st.text(max_size=5) | LONG_TEXT),
    **dict.fromkeys([pa.binary(), pa.large_binary()], st.binary(max_size=5) | LONG_BYTES),
}
ONLY_IN_ZONES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.decimal256(60, 2): st.decimals(-(10**50), 10**50, places=2),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ns", "UTC"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.time64("ns"): st.integers(0, 86_399_999_999_999),
    pa.duration("s"): st.integers(-(2**40), 2**40),
    pa.date64(): st.integers(-(10**6), 10**6).map(lambda day: day * 86_400_000),
}
"""Columns of these types have no statistics in version 0.1."""
KINDS = VALUES | ONLY_IN_ZONES


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Return a table of one column, and the rows of a unit."""
    kind = draw(st.sampled_from(list(KINDS)))
    nullable = draw(st.booleans())
    each = KINDS[kind] | st.none() if nullable else KINDS[kind]
    values = draw(st.lists(each, min_size=1, max_size=40))
    schema = pa.schema([pa.field("x", kind, nullable=nullable)])
    return pa.table([pa.array(values, kind)], schema), draw(st.integers(1, 12))


def _written(table: pa.Table, version: str, rows: int) -> OpenedFile:
    store = MemoryStore()
    sink, schema = store.open_writer("x.lance"), schema_from_arrow(table.schema)
    groups, limits = RowGroups(max_rows=rows), PageLimits(rows_per_zone=rows)
    number = FileVersion.parse(version)
    writer = create_data_file(sink, schema, number, limits=limits, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataLossWarning)
        with writer:
            writer.write(table.combine_chunks().to_batches()[0])
    return open_data_file(store.open("x.lance"))


@pytest.mark.parametrize("version", ["0.1", "2.0"])
@settings(max_examples=300)
@given(columns())
def test_bounds_contain_all_values_of_their_unit(version: str, made: tuple[pa.Table, int]) -> None:
    """Neither a bound nor a count of NULLs says of a unit what is not so."""
    table, rows = made
    file = _written(table, version, rows)
    (field,) = file.schema.fields
    (bounds,) = run(file.read_bounds([field], file.column_of), file.source.read)
    if bounds is None:
        assert version == "0.1"
        assert table["x"].type in ONLY_IN_ZONES
        return
    for unit, (start, end) in enumerate(pairwise(bounds.borders.tolist())):
        ((chunk,),) = file.read_rows([field], file.column_of, Rows.between(start, end))
        for value in chunk:
            assert _may_hold(bounds, unit, end - start, value), value


def _may_hold(bounds: FieldBounds, unit: int, rows: int, value: pa.Scalar) -> bool:
    """Tell whether a unit with these bounds may hold a value, by the module that prunes."""
    low, high, counts = bounds.low, bounds.high, bounds.null_counts
    known: Unit = {
        ("x",): Bounds(
            None if low is None or not low[unit].is_valid else low[unit],
            None if high is None or not high[unit].is_valid else high[unit],
            None if counts is None else counts[unit].as_py(),
            rows,
        )
    }
    column = Column(("x",), value.type)
    test = Call("=", (column, Literal(value)), pa.bool_())
    if not value.is_valid:
        test = Call("IS NULL", (column,), pa.bool_())
    return Pruner(test).can_match(known)
