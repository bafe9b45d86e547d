"""Zone maps: written bounds equal those of the values, and read bounds are checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0 import encodings as e
from pennon.encoding.v2_0.encodings import BufferRef
from pennon.errors import ArgumentError, FormatError
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.file import DataFile
from pennon.file.container.footer import parse_footer
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_container_file, open_container_file
from pennon.file.v2_0.zone_map import ZoneMap, parse_zone_map, serialize_zone_map
from pennon.file.v2_0.zones import MOST_ZONES, Zones, has_zones
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0, V2_1, FileVersion
from pennon.testing import MemoryStore
from tests.unit.file.handmade import HandColumn, HandFile, HandPage

NUMBERS = pa.schema([("x", pa.int64())])
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [3, None, -128, 127, 0, None, None, None],
    pa.uint64(): [2**64 - 1, 0, None, 7, 8, 9, None, 1],
    pa.float16(): [np.float16(1.5), None, np.float16(-2), np.float16("nan")] * 2,
    pa.float64(): [0.5, math.nan, -math.inf, 2.0, math.nan, math.nan, None, 1.0],
    pa.bool_(): [True, None, False, True, True, True, None, None],
    pa.string(): ["b", "", None, "a", "x" * 100, "y", "ä", None],
    pa.large_binary(): [b"\xff", b"", None, b"\x00", b"a", None, None, b"b"],
    pa.timestamp("us", "UTC"): [datetime(2020, 1, n) for n in range(1, 8)] + [None],
    pa.decimal128(10, 2): [Decimal("1.50"), None, Decimal(-3)] * 2 + [None, None],
}


def zones_of(array: pa.Array, rows: int, cuts: Sequence[int]) -> ZoneMap:
    zones = Zones(array.type, rows)
    borders = [0, *cuts, len(array)]
    for start, end in pairwise(borders):
        zones.add(array.slice(start, end - start))
    return zones.zone_map()


def key(value: Any) -> Any:
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 8, 100])
@pytest.mark.parametrize("cuts", [(), (1, 2, 7), (4, 4)])
def test_bounds_of_zones(kind: pa.DataType, rows: int, cuts: Sequence[int]) -> None:
    """They are those of the values, zone by zone, wherever batches end; NaN is the greatest."""
    array = pa.array(VALUES[kind], kind)
    found = zones_of(array, rows, cuts)
    data = serialize_zone_map(found)
    read = parse_zone_map(pa.py_buffer(data), kind, -(-len(array) // rows))
    for at, start in enumerate(range(0, len(array), rows)):
        part = array.slice(start, rows).to_pylist()
        values = sorted((value for value in part if value is not None), key=key)
        assert read.null_counts[at].as_py() == part.count(None)
        low, high = read.low[at].as_py(), read.high[at].as_py()
        wanted = (values[0], values[-1]) if values else (None, None)
        assert repr((low, high)) == repr(wanted)


def test_a_zone_map_is_a_small_file_without_global_buffers() -> None:
    counts = pa.array([0, 2], pa.uint32())
    data = serialize_zone_map(ZoneMap(pa.array([1, 2]), pa.array([3, 4]), counts))
    footer = parse_footer(data[-40:], len(data))
    assert (footer.num_columns, footer.num_global_buffers, footer.numbers) == (3, 0, (0, 3))


def written(table: pa.Table, version: FileVersion = V2_0, **options: Any) -> DataFile:
    store = MemoryStore("zones")
    schema = schema_from_arrow(table.schema)
    sink, limits = store.open_writer("x.lance"), PageLimits(**options)
    with create_container_file(sink, schema, version, limits=limits) as writer:
        for batch in table.to_batches(max_chunksize=7):
            writer.write(batch)
    return open_container_file(store.open("x.lance"))


def bounds_of(file: DataFile) -> list[FieldBounds | None]:
    fields = [each for each in file.schema.walk() if each.logical_type != "struct"]
    return run(file.read_bounds(fields, file.column_of), file.source.read)


def test_zone_maps_are_written_for_flat_columns_only() -> None:
    point = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([["a"], []])], ["x", "l"])
    table = pa.table(
        {
            "n": [1, None],
            "s": point,
            "l": [[1], [2]],
            "v": pa.array([[1.0], [2.0]], pa.list_(pa.float32(), 1)),
            "d": pa.array(["a", "b"]).dictionary_encode(),
            "none": pa.nulls(2),
            "t": ["a", "b"],
        }
    )
    file = written(table, rows_per_zone=1)
    assert file.read_rows(file.schema.fields, file.column_of, Rows.between(0, 2)) == [
        column.chunks for column in table.columns
    ]
    leaves = [each for each in file.schema.walk() if each.logical_type != "struct"]
    known = [f.name for f, b in zip(leaves, bounds_of(file), strict=True) if b]
    assert known == ["n", "x", "t"]
    assert [f.name for f in leaves if has_zones(f)] == ["n", "x", "item", "item", "t"]


def test_zone_maps_are_off_by_default() -> None:
    assert bounds_of(written(pa.table({"x": [1]}))) == [None]


@pytest.mark.parametrize("rows", [0, -1, 2**32])
def test_invalid_rows_per_zone_is_refused(rows: int) -> None:
    with pytest.raises(ArgumentError, match="zones have 1 to"):
        written(pa.table({"x": [1]}), rows_per_zone=rows)


def test_zone_maps_at_other_versions_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"zone maps belong to files of version 2\.0"):
        written(pa.table({"x": [1]}), V2_1, rows_per_zone=1)


def by_hand(
    zone_map: bytes, rows: int = 3, rows_per_zone: int = 2, place: e.Place = "column"
) -> DataFile:
    """Return a file as another writer might make it."""
    page = HandPage(rows, e.Flat(64, BufferRef(0)), [np.arange(rows).tobytes()])
    at = BufferRef(0 if place == "column" else 1, place)
    zones = e.ZoneIndex(rows_per_zone, at, e.Values())
    own = [zone_map] if place == "column" else []
    column = HandColumn([page], encoding=zones, buffers=own)
    return HandFile(NUMBERS, rows, [column], global_buffers=[zone_map]).open()


GOOD = serialize_zone_map(ZoneMap(pa.array([0, 2]), pa.array([1, 2]), pa.array([0, 0], "uint32")))


@pytest.mark.parametrize("place", ["column", "file"])
def test_zone_map_in_column_or_file_buffer_is_read(place: e.Place) -> None:
    (bounds,) = bounds_of(by_hand(GOOD, place=place))
    assert bounds is not None
    assert bounds.low is not None
    assert (bounds.borders.tolist(), bounds.low.to_pylist()) == ([0, 2, 3], [0, 2])


@pytest.mark.parametrize(
    ("zone_map", "options"),
    [
        (b"", {}),
        (GOOD[:-1], {}),
        (GOOD[40:], {}),
        (GOOD, {"rows_per_zone": 1}),
        (GOOD, {"rows_per_zone": 0}),
        (GOOD, {"rows": 30}),
        (GOOD, {"place": "page"}),
    ],
)
def test_damaged_zone_map_is_refused(zone_map: bytes, options: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="column 'x'"):
        bounds_of(by_hand(zone_map, **options))


def test_zone_maps_above_the_zone_limit_are_ignored() -> None:
    rows = MOST_ZONES + 1
    page = HandPage(rows, e.Constant(bytes(8)))
    column = HandColumn([page], e.ZoneIndex(1, BufferRef(0, "column"), e.Values()), [GOOD])
    assert bounds_of(HandFile(NUMBERS, rows, [column]).open()) == [None]


def test_zone_bounds_skip_nan() -> None:
    """Upper bounds of floating-point numbers are left out, and so is a least NaN."""
    nan = math.nan
    (bounds,) = bounds_of(written(pa.table({"f": [1.0, nan, nan, nan]}), rows_per_zone=2))
    assert bounds is not None
    assert bounds.low is not None
    assert (bounds.low.to_pylist(), bounds.high) == ([1.0, None], None)
