"""Types that 2.2 holds and 2.1 does not: written in small pages, from slices, and read again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.errors import UnsupportedError
from pennon.file.container.file import DataFile
from pennon.file.container.write_limits import PageLimits
from pennon.file.inspect import inspect_pages
from pennon.file.open import create_container_file, open_container_file
from pennon.file.v2_1.assemble_nested import show
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_2

PACKED = {"packed": "true"}
POINT = pa.struct([("x", pa.float32()), ("y", pa.list_(pa.int8()))])
MIXED = pa.struct(
    [
        *(("s", pa.string()), ("v", pa.list_(pa.int16(), 2)), ("n", pa.int64())),
        *(("j", pa.json_()), ("b", pa.large_binary())),
    ]
)
ROWS = 900


def maps(row: int) -> Any:
    """NULL, empty, and with values that are NULL."""
    if row % 7 == 3:
        return None
    return [(f"k{key}", None if key % 3 == 1 else key * row) for key in range(row % 5)]


def deep(row: int) -> Any:
    """Maps in structs in lists of maps."""
    if row % 11 == 5:
        return None
    inner = None if row % 5 == 2 else {"m": maps(row), "p": None if row % 4 else {"x": 1, "y": []}}
    return [[(row, inner), (row + 1, {"m": None, "p": None})], None, []][: row % 4]


def structs(row: int) -> Any:
    """Fixed-size lists of structs, of which all and all that is in them may be NULL."""
    item = None if row % 3 == 1 else {"x": row / 4, "y": None if row % 2 else [row % 50]}
    return None if row % 13 == 4 else [item, {"x": None, "y": []}]


def packed(row: int) -> Any:
    if row % 6 == 1:
        return None
    text = json.dumps({"row": row}, separators=(",", ":"))
    return {"s": "s" * (row % 9), "v": [row, -row], "n": row, "j": text, "b": b"b" * (row % 300)}


COLUMNS = {
    "map": (pa.field("c", pa.map_(pa.string(), pa.int32())), maps),
    "keys of structs": (
        pa.field("c", pa.map_(pa.struct([("a", pa.int8())]), pa.uuid())),
        lambda row: [({"a": row % 100}, None if row % 2 else row.to_bytes(16, "big"))] * (row % 3),
    ),
    "named": (
        pa.field(
            "c", pa.map_(pa.field("word", pa.string(), nullable=False), pa.field("n", pa.int8()))
        ),
        lambda row: [("a", row % 99)],
    ),
    "deep": (
        pa.field(
            "c",
            pa.list_(
                pa.map_(
                    pa.int64(),
                    pa.struct([("m", pa.map_(pa.string(), pa.int32())), ("p", POINT)]),
                )
            ),
        ),
        deep,
    ),
    "lists of structs": (pa.field("c", pa.list_(POINT, 2)), structs),
    "lists of structs in structs": (
        pa.field("c", pa.struct([("f", pa.list_(POINT, 2)), ("g", pa.int8())])),
        lambda row: None if row % 9 == 8 else {"f": structs(row), "g": row % 100},
    ),
    "lists of lists of structs": (
        pa.field("c", pa.list_(pa.struct([("f", pa.list_(POINT, 2)), ("g", pa.int8())]), 3)),
        lambda row: None if row % 9 == 8 else [{"f": structs(row), "g": row % 7}, None, {"g": 1}],
    ),
    "packed": (pa.field("c", MIXED, metadata=PACKED), packed),
    "packed in maps": (
        pa.field("c", pa.map_(pa.int8(), pa.field("value", MIXED, metadata=PACKED))),
        lambda row: [(key, packed(row + key)) for key in range(row % 3)],
    ),
    "json in structs": (
        pa.field("c", pa.list_(pa.struct([("s", pa.struct([("j", pa.json_())]))]), 2)),
        lambda row: None if row % 3 else [{"s": {"j": f"[{row}]"} if row % 2 else None}, None],
    ),
    "json in maps": (
        pa.field("c", pa.map_(pa.string(), pa.list_(pa.json_()))),
        lambda row: None if row % 3 else [("k", [f"[{row}]", None]), ("n", None)],
    ),
}


def array_of(rows: list[Any], t: pa.DataType) -> pa.Array:
    """Return an array, also where there are extension types in nested ones."""
    return show(pa.array(rows, plain(t)), t)


def plain(t: pa.DataType) -> pa.DataType:
    if isinstance(t, pa.BaseExtensionType):
        return t.storage_type
    if pa.types.is_map(t):
        key, item = (f.with_type(plain(f.type)) for f in (t.key_field, t.item_field))
        return pa.map_(key, item)
    if pa.types.is_fixed_size_list(t):
        return pa.list_(t.value_field.with_type(plain(t.value_type)), t.list_size)
    if pa.types.is_struct(t):
        return pa.struct([f.with_type(plain(f.type)) for f in t.fields])
    if pa.types.is_list(t):
        return pa.list_(t.value_field.with_type(plain(t.value_type)))
    return t


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(request.node.name)


def write(store: MemoryStore, field: pa.Field, arrays: list[pa.Array]) -> DataFile:
    """Write a column in pages of about a hundred rows."""
    schema = pa.schema([field])
    limits = PageLimits(max_page_bytes=4_000)
    sink = store.open_writer("f.lance")
    with create_container_file(sink, schema_from_arrow(schema), V2_2, limits=limits) as writer:
        for array in arrays:
            writer.write(pa.record_batch([array], schema=schema))
    return open_container_file(store.open("f.lance"))


def read(file: DataFile, rows: Rows) -> pa.ChunkedArray:
    ((*chunks,),) = file.read_rows(file.schema.fields, file.column_of, rows)
    return pa.chunked_array(chunks)


@pytest.mark.parametrize("name", COLUMNS)
def test_types_of_2_2_are_written_and_read(store: MemoryStore, name: str) -> None:
    field, make = COLUMNS[name]
    whole = array_of([make(row) for row in range(ROWS)], field.type)
    file = write(store, field, [whole.slice(3, 500), whole.slice(503, 1), whole.slice(504, 300)])
    wanted = whole.slice(3, 801)
    found = read(file, Rows.between(0, 801))
    found.validate(full=True)
    assert found.type == field.type
    assert found.to_pylist() == wanted.to_pylist()
    assert read(file, Rows.between(499, 520)).to_pylist() == wanted[499:520].to_pylist()
    some = np.array([0, 17, 499, 500, 501, 800])
    assert read(file, Rows.at(some)).to_pylist() == wanted.take(some).to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_types_of_2_2_with_only_nulls(store: MemoryStore, name: str) -> None:
    field, _ = COLUMNS[name]
    file = write(store, field, [array_of([None] * 9, field.type)])
    assert read(file, Rows.between(0, 9)).to_pylist() == [None] * 9


@pytest.mark.parametrize(("rows", "pages", "levels"), [(200, 1, False), (5_000, 2, True)])
def test_levels_of_fixed_size_lists_of_structs(
    store: MemoryStore, rows: int, pages: int, levels: bool
) -> None:
    """Without NULLs, a page alone has no levels (runs of zeros stop pylance 2.0), and one of many
    has: pylance 14 counts wrongly if only those with NULLs have."""
    items = pa.array([{"x": value} for value in range(2 * rows)])
    field = pa.field("c", pa.list_(items.type, 2))
    write(store, field, [pa.FixedSizeListArray.from_arrays(items, 2)])
    found = inspect_pages(store.open("f.lance")).pages
    assert len(found) >= pages
    assert all(("definition levels" in page.parts[-1].detail) == levels for page in found)


def test_map_values_under_a_null_are_not_stored(store: MemoryStore) -> None:
    field = pa.field("c", pa.map_(pa.string(), pa.int32()))
    whole = pa.array([[("a", 1)], [("b", 2), ("c", 3)], [("d", 4)]], field.type)
    validity = pa.py_buffer(b"\x05")
    buffers = [validity, whole.buffers()[1]]
    hidden = pa.Array.from_buffers(field.type, 3, buffers, children=[whole.values])
    file = write(store, field, [hidden.slice(1)])
    assert read(file, Rows.between(0, 2)).to_pylist() == [None, [("d", 4)]]


def test_map_key_and_value_names_equal_the_schema(store: MemoryStore) -> None:
    field, _ = COLUMNS["named"]
    file = write(store, field, [pa.array([[("a", 1)]], field.type)])
    (stored,) = file.schema.fields
    assert [child.name for child in stored.children[0].children] == ["word", "n"]


def test_packed_struct_with_null_field_is_refused(store: MemoryStore) -> None:
    field = pa.field("c", pa.struct([("s", pa.string()), ("n", pa.int8())]), metadata=PACKED)
    rows = pa.array([{"s": "a", "n": 1}, {"s": None, "n": 1}], field.type)
    with pytest.raises(UnsupportedError, match="field 's' of a packed struct is NULL"):
        write(store, field, [rows])
