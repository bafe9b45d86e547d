"""Arrays cut to their own rows, through the C data interface: the same values, offset 0, and no byte too many."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.exact_batches import ExactBatches, exact_array, exact_batches, exact_table
from pennon.encoding.kernels.exact_arrays import ExactColumns
from pennon.errors import FormatError

ROWS = 100
CUTS = [(0, 0), (0, 100), (0, 8), (3, 1), (5, 0), (7, 60), (8, 16), (9, 91), (99, 1), (100, 0)]
WHOLE, PART = 0, 1 << 40
"""Bytes that a batch was cut from, so that it is not copied, and is."""


def _columns() -> dict[str, pa.Array[Any]]:
    numbers = list(range(ROWS))
    holes = [None if n % 5 == 2 else n for n in numbers]
    texts = [None if n is None else "é" * (n % 4) + str(n) for n in holes]
    vectors = pa.array(
        [None if n is None else [n, -n, None] for n in holes], pa.list_(pa.int16(), 3)
    )
    return {
        "numbers": pa.array(numbers),
        "holes": pa.array(holes, pa.int32()),
        "bits": pa.array([None if n is None else n % 3 == 0 for n in holes]),
        "no nulls": pa.array([n % 3 == 0 for n in numbers]),
        "texts": pa.array(texts),
        "large texts": pa.array(texts, pa.large_string()),
        "fixed": pa.array([None if n is None else b"%03d" % n for n in holes], pa.binary(3)),
        "nulls": pa.nulls(ROWS),
        "lists": pa.array([None if n is None else [n] * (n % 4) for n in holes]),
        "large lists": pa.array([[str(n)] * (n % 4) for n in numbers], pa.large_list(pa.string())),
        "vectors": vectors,
        "vectors of vectors": pa.array(
            [[[n, 1], [n, 2]] for n in numbers], pa.list_(pa.list_(pa.int8(), 2), 2)
        ),
        "vectors of bits": pa.array([[n % 2 == 0] * 3 for n in numbers], pa.list_(pa.bool_(), 3)),
        "structs": pa.array([None if n is None else {"a": n, "b": str(n)} for n in holes]),
        "maps": pa.array(
            [[(str(n), [n])] for n in numbers], pa.map_(pa.string(), pa.list_(pa.int8()))
        ),
        "dictionary": pa.array(texts).dictionary_encode(),
        "dictionaries": pa.ListArray.from_arrays(
            pa.array(range(ROWS + 1), pa.int32()), pa.array(texts).dictionary_encode()
        ),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[1]"] * ROWS)),
        "views": pa.array(texts, pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays(
            pa.array([60, ROWS], pa.int32()), pa.array([1, 2])
        ),
    }


@pytest.mark.parametrize("held", [WHOLE, PART], ids=["moved", "copied"])
@pytest.mark.parametrize("name", _columns())
def test_cut_arrays_equal_slices(name: str, held: int) -> None:
    values = _columns()[name]
    batch = pa.record_batch({"x": values, "n": pa.array(range(ROWS))})
    for start, rows in CUTS:
        part = batch.slice(start, rows)
        found = _cut(part, held)
        found.validate(full=True)
        assert found.equals(part)
        assert found.schema.equals(part.schema, check_metadata=True)
        again = found.slice(rows // 3)  # a cut array is cut like any other
        assert _cut(again, held).equals(again)


def _cut(batch: pa.RecordBatch, held: int) -> pa.RecordBatch:
    columns = ExactColumns(batch.num_columns)
    batch._export_to_c(columns.address)
    exact = ExactBatches(batch.schema)
    columns.cut(exact.layout, held, 2)
    arrays = [
        batch.column(number)
        if number in exact.others
        else pa.Array._import_from_c(address, batch.schema.types[number])
        for number, address in enumerate(columns.addresses())
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def test_exact_copy_releases_its_source() -> None:
    before = pa.total_allocated_bytes()
    texts = pa.array(["abcdefghij" * 10] * 100_000)
    kept = exact_array(texts.slice(5000, 10))
    del texts
    gc.collect()
    assert pa.total_allocated_bytes() - before < 10_000
    assert kept.to_pylist() == ["abcdefghij" * 10] * 10


def test_most_of_a_batch_is_not_copied() -> None:
    numbers = pa.array(np.arange(100_000))
    part = exact_array(numbers.slice(10, 80_000))
    assert part.buffers()[1].address == numbers.buffers()[1].address + 80
    assert part.buffers()[1].size == 640_000


@pytest.mark.parametrize("cuts", [False, True], ids=["exported", "cut"])
def test_exact_columns_without_import_are_released(cuts: bool) -> None:
    numbers = np.arange(1000)
    held = weakref.ref(numbers)
    values = pa.Array.from_buffers(pa.int64(), 1000, [None, pa.py_buffer(numbers)])
    batch = pa.record_batch({"t": pa.array(["abc" * 100] * 1000), "v": values})
    columns = ExactColumns(2)
    batch._export_to_c(columns.address)
    if cuts:
        columns.cut(ExactBatches(batch.schema).layout, PART, 2)
    del numbers, values, batch
    gc.collect()
    assert held() is not None
    del columns
    gc.collect()
    assert held() is None


def test_exact_columns_refuse_layouts_that_do_not_fit() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array(["x", "y"])})
    layout = ExactBatches(batch.schema).layout
    nothing = ExactColumns(2)
    with pytest.raises(ValueError, match="no batch"):
        nothing.cut(layout, 0, 2)
    for wrong in (
        layout[:3],
        np.array([8, 0, 1] * 2),
        np.array([3, 0, 0] * 2),
        np.array([77, 0, 0] * 2),
    ):
        columns = ExactColumns(2)
        batch._export_to_c(columns.address)
        with pytest.raises(ValueError, match="layout"):
            columns.cut(wrong, 0, 2)
    columns = ExactColumns(2)
    batch._export_to_c(columns.address)
    columns.cut(layout, 0, 2)
    with pytest.raises(ValueError, match="once"):
        columns.cut(layout, 0, 2)


def test_exact_columns_with_descending_offsets_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 3, 1, 3], np.int32))
    lists = pa.Array.from_buffers(
        pa.list_(pa.int64()), 3, [None, offsets], children=[pa.array([1, 2, 3])]
    )
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abc")])
    for array in (lists, texts):
        batch = pa.record_batch({"x": array})
        exact = ExactBatches(batch.schema)
        assert len(exact.cut(batch.slice(0, 1))["x"][0].as_py()) == 3
        with pytest.raises(FormatError, match="offsets run from 3 to 1"):
            exact.cut(batch.slice(1, 1))


def test_streams_and_tables_of_several_schemas() -> None:
    one, other = pa.record_batch({"a": [1, 2, 3]}), pa.record_batch({"b": ["x", "y"]})
    found = list(exact_batches([one.slice(1), other.slice(1), one]))
    assert found == [one.slice(1), other.slice(1), one]
    table = pa.table({"a": pa.chunked_array([[1, 2], [3]])}).slice(1)
    assert exact_table(table).equals(table)
    assert exact_table(table.slice(5)).schema == table.schema
    none: Any = pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), 3, [None])
    )
    assert [batch.num_rows for batch in exact_batches([none])] == [3]
