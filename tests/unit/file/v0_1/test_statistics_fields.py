"""Statistics with more, fewer or other fields; reads of the requested columns only."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.encoding.read_protocol import run
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.opened_file import OpenedFile
from pennon.file.container.tail import TAIL_BYTES
from pennon.file.container.write_limits import RowGroups
from pennon.file.inspect import inspect_file
from pennon.file.open import create_data_file, open_data_file
from pennon.proto import file_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1
from pennon.testing import MemoryStore

TABLE = pa.table({"a": [1, 2, 3], "t": ["x", "y", "z"]})
Statistics = file_pb2.Metadata.StatisticsMetadata


def written(table: pa.Table, group: int) -> bytes:
    store = MemoryStore()
    sink, schema = store.open_writer("x"), schema_from_arrow(table.schema)
    with create_data_file(sink, schema, V0_1, groups=RowGroups(max_rows=group)) as writer:
        writer.write(table.to_batches()[0])
    return store.read_whole("x").to_pybytes()


def opened(data: bytes) -> OpenedFile:
    store = MemoryStore()
    store.put("x", data)
    return open_data_file(store.open("x"))


def changed(change: Callable[[Statistics], None]) -> OpenedFile:
    """Return a file whose metadata says something else of its statistics."""
    data = written(TABLE, 2)
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    metadata = file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size])
    change(metadata.statistics)
    message = metadata.SerializeToString()
    return opened(data[:position] + struct.pack("<I", len(message)) + message + data[-16:])


def bounds_of(file: OpenedFile) -> list[FieldBounds | None]:
    steps = file.read_bounds(file.schema.fields, file.column_of)
    return run(steps, file.source.read)


def lows(file: OpenedFile) -> list[list[object] | None]:
    found = [None if each is None else each.low for each in bounds_of(file)]
    return [None if low is None else low.to_pylist() for low in found]


def _nothing(_statistics: Statistics) -> None:
    pass


def _more(statistics: Statistics) -> None:
    """Say that there is a count of distinct values of each page, far behind all that there is."""
    extra = file_pb2.Field(id=1000, name="distinct_count", logical_type="int64", parent_id=0)
    statistics.schema.append(extra)
    of_nobody = file_pb2.Field(id=1001, name="77", logical_type="struct", parent_id=-1)
    statistics.schema.append(of_nobody)


def _without(name: str) -> Callable[[Statistics], None]:
    """Take one of the statistics of column a away, or all of them."""

    def change(statistics: Statistics) -> None:
        kept = [each for each in statistics.schema if each.id > 3 or name not in (each.name, "a")]
        del statistics.schema[:]
        statistics.schema.extend(kept)

    return change


def _other_type(statistics: Statistics) -> None:
    for each in statistics.schema:
        if each.name == "max_value" and each.id < 4:
            each.logical_type = "string"


def _none(statistics: Statistics) -> None:
    del statistics.schema[:]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (_nothing, [[1, 3], ["x", "z"]]),
        (_more, [[1, 3], ["x", "z"]]),
        (_without("null_count"), [None, ["x", "z"]]),
        (_without("min_value"), [None, ["x", "z"]]),
        (_without("a"), [None, ["x", "z"]]),
        (_other_type, [None, ["x", "z"]]),
        (_none, [None, None]),
    ],
)
def test_extra_statistics_are_ignored_and_missing_ones_tolerated(
    change: Callable[[Statistics], None], wanted: list[list[object] | None]
) -> None:
    assert lows(changed(change)) == wanted


def test_statistics_of_one_column_read_its_pages_only() -> None:
    """Of 30 columns of statistics, longer than what opening reads, three pages of one."""
    table = pa.table({f"c{number}": range(2000) for number in range(30)})
    data = written(table, 1)
    file = opened(data)
    ranges = [each for each in inspect_file(file.source) if each.kind == "statistics"]
    before_tail = [each for each in ranges if each.end <= len(data) - TAIL_BYTES]
    assert len(before_tail) > 80
    asked: list[ByteRequest] = []

    def read(requests: list[ByteRequest]) -> list[pa.Buffer]:
        asked.extend(requests)
        return file.source.read(requests)

    (bounds,) = run(file.read_bounds([file.schema.fields[3]], file.column_of), read)
    assert bounds is not None
    assert bounds.low is not None
    assert bounds.low.to_pylist() == list(range(2000))
    extents = [each for each in asked if isinstance(each, ByteRange)]
    assert len(extents) == len(asked)
    touched = {
        each.detail.split(".")[0]
        for each in before_tail
        if any(e.position < each.end and each.start < e.end for e in extents)
    }
    assert touched == {"field 3"}
