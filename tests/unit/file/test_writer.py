"""Data files written: bytes, pages, refusals, and no file after a failure."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, UnsupportedError
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_container_file, open_container_file
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0, FileVersion

PACKED = pa.field("p", pa.struct([("x", pa.int8()), ("y", pa.int8())]), metadata={"packed": "true"})
BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Any:
    return MemoryStore(request.node.name)


def write(
    store: MemoryStore, batches: Any, schema: Any = None, name: str = "f.lance", **options: Any
) -> Any:
    fields = schema_from_arrow(schema or batches[0].schema)
    limits = PageLimits(**options)
    with create_container_file(store.open_writer(name), fields, V2_0, limits=limits) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.finish()


def bytes_of(store: MemoryStore, name: str = "f.lance") -> Any:
    reader = store.open(name)
    return reader.read([ByteRange(0, reader.size_bytes)])[0].to_pybytes()


def read(store: MemoryStore, name: str = "f.lance") -> Any:
    file = open_container_file(store.open(name))
    chunks = file.read_rows(file.schema.fields, file.column_of, Rows.between(0, file.num_rows))
    return {
        field.name: [value for chunk in parts for value in chunk.to_pylist()]
        for field, parts in zip(file.schema.fields, chunks, strict=True)
    }


def names_in(store: MemoryStore) -> Any:
    return [info.path for info in store.list("")]


def table() -> Any:
    rows = 60
    return pa.table(
        {
            "i": pa.array([None if i % 7 == 0 else i for i in range(rows)]),
            "s": pa.array([None if i % 5 == 0 else f"s{i}" for i in range(rows)]),
            "l": pa.array([None if i % 6 == 0 else ["x"] * (i % 3) for i in range(rows)]),
            "st": pa.array([{"a": i, "b": [{"c": i}]} for i in range(rows)]),
            "ll": pa.array([[[i], None, []][: i % 4] for i in range(rows)]),
            "d": pa.array(
                [None if i % 4 == 0 else f"v{i % 3}" for i in range(rows)]
            ).dictionary_encode(),
            "n": pa.nulls(rows),
            "v": pa.array([[i, None] for i in range(rows)], pa.list_(pa.float32(), 2)),
        }
    ).append_column(PACKED, pa.array([{"x": 1, "y": i} for i in range(rows)], PACKED.type))


ONE_VALUE = [
    ("the page's only buffer: 7", "07 00 00 00 00 00 00 00"),
    ("padding to 64", "00 " * 56),
    (
        "FileDescriptor: schema with one field a, id 0, parent -1, int64, nullable; 1 row",
        "0a 1b 0a 19 12 01 61 20 ff ff ff ff ff ff ff ff ff 01 2a 05 69 6e 74 36 34 30 01 38 01 10 01",
    ),
    ("ColumnMetadata: encoding, direct, an Any of ColumnEncoding", "0a 29 12 27 0a 25 0a 1f"),
    ("/lance.encodings.ColumnEncoding", b"/lance.encodings.ColumnEncoding".hex()),
    ("values {}", "12 02 0a 00"),
    ("page: buffer at 0 of 8 bytes, length 1", "12 3c 0a 01 00 12 01 08 18 01"),
    ("its encoding, direct, an Any of ArrayEncoding", "22 32 12 30 0a 2e 0a 1e"),
    ("/lance.encodings.ArrayEncoding", b"/lance.encodings.ArrayEncoding".hex()),
    ("nullable, no_nulls, values", "12 0c 12 0a 0a 08 0a 06"),
    ("flat: 64 bits, buffer 0 of the page", "0a 04 08 40 12 00"),
    ("column table: 0x69 bytes at 0x5f", "5f 00 00 00 00 00 00 00 69 00 00 00 00 00 00 00"),
    ("global buffer table: 0x1f bytes at 0x40", "40 00 00 00 00 00 00 00 1f 00 00 00 00 00 00 00"),
    ("footer: column metadata, its table, the buffer table", "5f 00 00 00 00 00 00 00"),
    ("", "c8 00 00 00 00 00 00 00 d8 00 00 00 00 00 00 00"),
    (
        "1 global buffer, 1 column, version 0.3 (as 2.0 is written), magic",
        "01 00 00 00 01 00 00 00 00 00 03 00 4c 41 4e 43",
    ),
]


def test_one_value_makes_these_bytes(store: MemoryStore) -> None:
    """The whole of a file, byte by byte: one int64."""
    write(store, [pa.record_batch({"a": pa.array([7])})])
    assert bytes_of(store) == b"".join(bytes.fromhex(part) for _, part in ONE_VALUE)


def test_file_writer_lists_field_ids_and_column_indices(store: MemoryStore) -> None:
    """Fields of packed structs have no column and are not listed, as the oracle does it."""
    fields = [
        PACKED,
        pa.field("l", pa.list_(pa.int8())),
        pa.field("s", pa.struct([("a", pa.int8())])),
    ]
    batch = pa.record_batch(
        [
            pa.array([{"x": 1, "y": 2}], PACKED.type),
            pa.array([[1]], fields[1].type),
            pa.array([{"a": 1}], fields[2].type),
        ],
        schema=pa.schema(fields),
    )
    written = write(store, [batch])
    assert written.field_ids == (0, 3, 4, 5, 6)
    assert written.column_indices == (0, 1, 2, 3, 4)
    assert (written.num_rows, written.version) == (1, FileVersion(2, 0))
    assert written.size_bytes == store.open("f.lance").size_bytes


def test_same_batches_make_the_same_bytes(store: MemoryStore) -> None:
    for name in ("1.lance", "2.lance"):
        write(store, table().to_batches(max_chunksize=17), name=name)
    assert bytes_of(store, "1.lance") == bytes_of(store, "2.lance")


@pytest.mark.parametrize("cut", [1, 7, 64])
@pytest.mark.parametrize("cache_bytes", [0, 200, 1 << 20])
@pytest.mark.parametrize("page_bytes", [40, 1 << 20])
def test_batches_and_pages_of_any_size_hold_the_same_rows(
    store: MemoryStore, cut: int, cache_bytes: int, page_bytes: int
) -> None:
    batches = table().to_batches(max_chunksize=cut)
    write(store, batches, cache_bytes=cache_bytes, max_page_bytes=page_bytes)
    assert read(store) == table().to_pydict()


def test_write_of_slices_of_every_type(store: MemoryStore) -> None:
    chance = random.Random(3)
    whole = table()
    parts: list[pa.Table] = []
    while sum(len(part) for part in parts) < 200:
        parts.append(whole.slice(chance.randrange(60), chance.randrange(1, 9)).combine_chunks())
    batches = [batch for part in parts for batch in part.to_batches()]
    write(store, batches, cache_bytes=500)
    assert read(store) == pa.Table.from_batches(batches).to_pydict()


def test_page_is_cut_when_the_cache_is_full_and_split_when_too_long(store: MemoryStore) -> None:
    batches = [pa.record_batch({"a": pa.array(range(100))})] * 4
    write(store, batches, cache_bytes=1000, max_page_bytes=1000)
    (column,) = open_container_file(store.open("f.lance")).columns()
    assert [page.rows for page in column.pages] == [100] * 4
    assert all(buffer.position % 64 == 0 for page in column.pages for buffer in page.buffers)


def test_item_pages_end_at_list_page_boundaries(store: MemoryStore) -> None:
    batches = [pa.record_batch({"l": pa.array([[1, 2, 3]] * 50, pa.list_(pa.int8()))})] * 6
    write(store, batches, cache_bytes=350)
    lists, items = open_container_file(store.open("f.lance")).columns()
    assert [page.rows for page in lists.pages] == [100] * 3
    borders = set(items.first_rows.tolist())
    assert {300, 600, 900} <= borders
    assert read(store)["l"] == [[1, 2, 3]] * 300


def test_write_of_zero_rows(store: MemoryStore) -> None:
    written = write(store, [], table().schema)
    assert written.num_rows == 0
    assert read(store) == table().slice(0, 0).to_pydict()


def test_blob_values_round_trip(store: MemoryStore) -> None:
    values = [b"x" * 100, None, b"", b"y"]
    batch = pa.record_batch([pa.array(values, pa.large_binary())], schema=pa.schema([BLOB]))
    write(store, [batch, batch])
    assert read(store)["b"] == values * 2


def test_global_buffers_and_metadata(store: MemoryStore) -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int8())], metadata={"k": "v"}))
    with create_container_file(store.open_writer("f.lance"), schema, V2_0) as writer:
        assert writer.add_global_buffer(b"one") == 1
        writer.write(pa.record_batch({"a": pa.array([1], pa.int8())}))
        assert writer.add_global_buffer(b"two") == 2
        writer.add_schema_metadata({"late": "yes"})
    file = open_container_file(store.open("f.lance"))
    assert file.global_buffer(2).to_pybytes() == b"two"
    assert dict(file.schema.metadata) == {"k": b"v", "late": b"yes"}


def test_write_of_different_dictionaries_per_batch(store: MemoryStore) -> None:
    batches = [
        pa.record_batch({"d": pa.array([f"{b}-{i}" for i in range(100)]).dictionary_encode()}).cast(
            pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])
        )
        for b in range(3)
    ]
    write(store, batches)
    assert read(store)["d"] == [f"{b}-{i}" for b in range(3) for i in range(100)]


def test_joined_dictionaries_have_used_items_only(store: MemoryStore) -> None:
    names = pa.array([f"v{i}" for i in range(1000)])
    batches = [
        pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array([i, None]), names)})
        for i in (5, 900)
    ]
    written = write(store, batches)
    assert written.size_bytes < 1500
    assert read(store)["d"] == ["v5", None, "v900", None]


REFUSED = [
    (pa.array([{"a": 1}, None]), "'c' has 1 NULL struct.*2.1"),
    (pa.array([[{"a": 1}, None]]), r"'c.item' has 1 NULL struct.*2.1"),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), "'c' of type map.*2.0.*2.2"),
    (pa.array([["a"]], pa.list_(pa.string(), 1)), r"'c' of type fixed_size_list<.*string.*2.0"),
]


@pytest.mark.parametrize(("array", "message"), REFUSED)
def test_write_of_unsupported_type_names_it_and_leaves_no_file(
    store: MemoryStore, array: pa.Array, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        write(store, [pa.record_batch({"c": array})])
    assert names_in(store) == []


def test_null_structs_within_null_lists_are_accepted(store: MemoryStore) -> None:
    items = pa.array([{"a": 1}, None, {"a": 2}])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), items, mask=pa.array([False, True, False])
    )
    write(store, [pa.record_batch({"c": lists})])
    assert read(store)["c"] == [[{"a": 1}], None, [{"a": 2}]]


BAD = [
    ({"b": [1]}, "no column 'a'; it has b"),
    ({"a": ["x"]}, "'a' is int64, but the batch has string"),
    ({"a": [None]}, "int64, but the batch has null"),
    ({"a": pa.array([1, None])}, "not nullable.*1 NULL"),
]


@pytest.mark.parametrize(("columns", "message"), BAD)
def test_write_of_unfitting_batch_abandons_the_file(
    store: MemoryStore, columns: Any, message: str
) -> None:
    schema = schema_from_arrow(pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    writer = create_container_file(store.open_writer("f.lance"), schema, V2_0)
    with pytest.raises(ArgumentError, match=message):
        writer.write(pa.record_batch(columns))
    with pytest.raises(ArgumentError, match="given up"):
        writer.finish()
    assert names_in(store) == []


def test_packed_structs_of_other_fields_are_refused(store: MemoryStore) -> None:
    array = pa.array([{"y": 1, "x": 2}], pa.struct([("y", pa.int8()), ("x", pa.int8())]))
    with pytest.raises(ArgumentError, match="'p' is packed as"):
        write(store, [pa.record_batch({"p": array})], pa.schema([PACKED]))
    assert names_in(store) == []


def test_exception_in_writer_block_abandons_the_file(store: MemoryStore) -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int8())]))
    sink = store.open_writer("f.lance")
    with pytest.raises(KeyError), create_container_file(sink, schema, V2_0):
        raise KeyError
    assert names_in(store) == []


def test_other_versions_are_refused_before_a_byte_is_written(store: MemoryStore) -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int8())]))
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        create_container_file(store.open_writer("f.lance"), schema, FileVersion(2, 3))
    assert names_in(store) == []


def test_buffered_rows_release_their_batches(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After enough bytes, what is held back is copied: no batch stays alive for one column."""
    monkeypatch.setattr("pennon.file.container.writer.OWN_AFTER_BYTES", 10_000)
    schema = pa.schema([("wide", pa.binary()), ("narrow", pa.int8())])
    before = pa.total_allocated_bytes()
    sink = store.open_writer("f.lance")
    limits = PageLimits(cache_bytes=4096)
    writer = create_container_file(sink, schema_from_arrow(schema), V2_0, limits=limits)
    for _ in range(50):
        big = pa.array([bytes(9000)])
        body = pa.py_buffer(bytes(9000) + b"\x01")
        narrow = pa.Array.from_buffers(pa.int8(), 1, [None, body.slice(9000)])
        writer.write(pa.record_batch([big, narrow], schema=schema))
        del big, narrow, body
    assert pa.total_allocated_bytes() - before < 100_000
    writer.finish()
    assert read(store)["narrow"] == [1] * 50


def test_string_views_and_extension_types_are_stored_as_storage_types(store: MemoryStore) -> None:
    views = pa.array(["a", None], pa.string_view())
    tensor = pa.FixedShapeTensorArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2], None], pa.list_(pa.int8(), 2))
    )
    write(store, [pa.record_batch({"v": views, "t": tensor})])
    file = open_container_file(store.open("f.lance"))
    assert file.schema.fields[0].logical_type == "string"
    assert read(store)["v"] == ["a", None]
