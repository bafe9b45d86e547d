"""Values that version 0.1 does not hold are named and counted by kind of loss."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.errors import DataLossWarning
from pennon.file.container.losses import Losses
from pennon.file.container.write_limits import RowGroups
from pennon.file.open import create_data_file, open_data_file
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1
from pennon.testing import MemoryStore

NULLS, EMPTY = "NULLs", "empty values"
TEXT_UNDER_NULL = pa.Array.from_buffers(
    pa.string(),
    3,
    [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 3, 4], "i4")), pa.py_buffer(b"abbc")],
)
ITEMS_UNDER_NULL = pa.ListArray.from_arrays(
    pa.array([0, 1, 3, 4], pa.int32()),
    pa.array([1, None, 3, 4]),
    mask=pa.array([False, True, False]),
)
POINT = pa.struct([("x", pa.int8()), ("t", pa.string())])
UNDER_NULL = pa.StructArray.from_arrays(
    [pa.array([1, None, None], pa.int8()), pa.array(["", "", ""])],
    fields=list(POINT),
    mask=pa.array([False, True, False]),
)


def dictionary(indices: list[int | None], values: list[Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values))


CASES: dict[str, tuple[pa.Array, dict[tuple[str, str], int]]] = {
    "numbers": (pa.array([1, None, 3]), {("c", NULLS): 1}),
    "booleans": (pa.array([True, None, None]), {("c", NULLS): 2}),
    "floats": (pa.array([0.5, None, None], pa.float16()), {("c", NULLS): 2}),
    "decimals": (pa.array([1, None, 2]).cast(pa.decimal128(20, 1)), {("c", NULLS): 1}),
    "times": (pa.array([1, None, 2], pa.timestamp("us", "UTC")), {("c", NULLS): 1}),
    "fixed-size binary": (pa.array([b"ab", None, b"cd"], pa.binary(2)), {("c", NULLS): 1}),
    "text": (pa.array(["a", None, ""]), {("c", EMPTY): 1}),
    "bytes": (pa.array([b"", None, b""], pa.large_binary()), {("c", EMPTY): 2}),
    "views": (pa.array(["", None, "a"], pa.string_view()), {("c", EMPTY): 1}),
    "text under NULL": (TEXT_UNDER_NULL, {("c", NULLS): 1}),
    "lists": (pa.array([[1, None], None, []]), {("c", NULLS): 1, ("c.item", NULLS): 1}),
    "lists of text": (
        pa.array([["a", None, ""], [""], None], pa.large_list(pa.string())),
        {("c", NULLS): 1, ("c.item", EMPTY): 2},
    ),
    "lists of lists": (
        pa.array([[[1], None], [[None]], None]),
        {("c", NULLS): 1, ("c.item", NULLS): 1, ("c.item.item", NULLS): 1},
    ),
    "items under NULL": (ITEMS_UNDER_NULL, {("c", NULLS): 1}),
    "structs": (
        pa.array([{"x": 1, "t": ""}, {"x": None, "t": None}, {"x": 2, "t": "a"}], POINT),
        {("c.x", NULLS): 1, ("c.t", EMPTY): 1},
    ),
    "values under NULL": (
        UNDER_NULL,
        {("c", NULLS): 1, ("c.x", NULLS): 1, ("c.t", EMPTY): 2},
    ),
    "lists of structs": (
        pa.array([[{"x": None, "t": ""}, None], None, []], pa.list_(POINT)),
        {("c", NULLS): 1, ("c.item", NULLS): 1, ("c.item.x", NULLS): 1, ("c.item.t", EMPTY): 1},
    ),
    "fixed-size lists": (
        pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2)),
        {("c", NULLS): 2},
    ),
    "fixed-size lists of the same": (
        pa.array([[[1], None], None, [[None], [2]]], pa.list_(pa.list_(pa.int8(), 1), 2)),
        {("c", NULLS): 3},
    ),
    "dictionaries": (dictionary([0, None, 1], ["a", "b"]), {("c", NULLS): 1}),
    "empty values of dictionaries": (dictionary([0, 1, 1], ["a", ""]), {("c", EMPTY): 2}),
    "NULL texts of dictionaries": (dictionary([0, 1, None], ["a", None]), {("c", NULLS): 1}),
    "NULL numbers of dictionaries": (dictionary([0, 1, None], [5, None]), {("c", NULLS): 2}),
    "nothing": (pa.nulls(3), {}),
    "NULL text": (pa.array(["a", None, "b"]), {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("start", [0, 1])
def test_losses_are_counted_by_column_and_kind(case: str, start: int) -> None:
    """The counts are those of the rows that are written, in whatever slices."""
    array, wanted = CASES[case]
    front = pa.concat_arrays([array.slice(0, start), array])
    if case in {"text under NULL", "items under NULL", "values under NULL"}:
        front = array  # to join arrays may take away what lies under NULLs
    else:
        front = front.slice(start)
    batch = pa.record_batch([front], pa.schema([pa.field("c", array.type)]))
    counted, back = written(batch)
    assert counted == wanted
    given = batch.column(0).to_pylist()
    assert (back != given) == bool(wanted)
    if all(path == "c" for path, _ in wanted) and "list" not in case:
        changed = sum(a != b for a, b in zip(given, back, strict=True))
        assert changed == sum(wanted.values())


def written(batch: pa.RecordBatch) -> tuple[dict[tuple[str, str], int], list[Any]]:
    """Write a batch; return what the warning says, and the rows that are read back."""
    store, losses = MemoryStore(), Losses()
    schema = schema_from_arrow(batch.schema)
    groups = RowGroups(max_rows=2)
    with (
        losses.gathered(),
        create_data_file(store.open_writer("x"), schema, V0_1, groups=groups) as file,
    ):
        file.write(batch)
    opened = open_data_file(store.open("x"))
    chunks = opened.read_rows(
        opened.schema.fields, opened.column_of, Rows.between(0, batch.num_rows)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses.warn()
    said = [str(each.message) for each in caught if each.category is DataLossWarning]
    found = re.findall(r"'([\w.]+)': (\d+) (NULLs|empty values)", said[0]) if said else []
    counts = {(path, what): int(count) for path, count, what in found}
    assert counts == losses.counts
    return counts, [value for chunk in chunks[0] for value in chunk.to_pylist()]


def test_losses_message_names_columns_and_counts() -> None:
    losses = Losses({("a", NULLS): 2, ("b.c", EMPTY): 1})
    assert losses.message() == (
        "file version 0.1 does not hold all of these columns: 'a': 2 NULLs; 'b.c': 1 empty values "
        "(NULLs read back as zeros, empty lists, first values of dictionaries, or what lies under "
        "them, empty values as NULL)"
    )


def test_required_text_column_has_no_losses() -> None:
    schema = pa.schema([pa.field("c", pa.string(), nullable=False)])
    assert written(pa.record_batch([pa.array(["", "a"])], schema)) == ({}, ["", "a"])
