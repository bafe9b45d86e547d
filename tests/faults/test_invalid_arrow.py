"""Arrow data that breaks Arrow's own rules is refused before a byte of it is committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.file import LanceFileWriter

VERSIONS = ("0.1", "2.0", "2.1")


def _buffer(values: list[int], width: str = "<i4") -> pa.Buffer:
    return pa.py_buffer(np.array(values, width).tobytes())


def _text(offsets: list[int], data: bytes, kind: pa.DataType) -> pa.Array[Any]:
    width = "<i8" if kind in (pa.large_string(), pa.large_binary()) else "<i4"
    buffers = [None, _buffer(offsets, width), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _list(offsets: list[int], items: pa.Array[Any]) -> pa.Array[Any]:
    kind = pa.list_(items.type)
    buffers = [None, _buffer(offsets)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers, children=[items])


def _index(indices: list[int]) -> pa.Array[Any]:
    kind = pa.dictionary(pa.int32(), pa.string())
    unchecked: pa.Array[Any] = pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False
    )
    assert unchecked.type == kind
    return unchecked


def _view(position: int) -> pa.Array[Any]:
    """Return two long values, the second one at a position of a buffer of 40 bytes."""
    long = b"x" * 40
    views = b"".join(np.array([20, 0x78787878, 0, at], "<u4").tobytes() for at in (0, position))
    buffers = [None, pa.py_buffer(views), pa.py_buffer(long)]
    return pa.Array.from_buffers(pa.string_view(), 2, buffers)


def _struct(array: pa.Array[Any], name: str) -> pa.Array[Any]:
    kind = pa.struct([(name, array.type)])
    return pa.Array.from_buffers(kind, len(array), [None], children=[array])


def _batch(array: pa.Array[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(_struct(array, "bad"))


BROKEN: dict[str, Callable[[], pa.Array[Any]]] = {
    "falling offsets": lambda: _text([0, 5, 2, 6], b"abcdef", pa.string()),
    "negative offset": lambda: _text([0, -4, 2, 6], b"abcdef", pa.string()),
    "falling offsets of binary": lambda: _text([0, 5, 2, 6], b"abcdef", pa.binary()),
    "falling wide offsets": lambda: _text([0, 5, 2, 6], b"abcdef", pa.large_string()),
    "falling wide offsets of binary": lambda: _text([0, 5, 2, 6], b"abcdef", pa.large_binary()),
    "no UTF-8": lambda: _text([0, 2, 4], b"ab\xff\xfe", pa.string()),
    "no UTF-8, wide": lambda: _text([0, 2, 4], b"ab\xff\xfe", pa.large_string()),
    "a letter cut in two": lambda: _text([0, 1, 2], "é".encode(), pa.string()),
    "no UTF-8 far behind": lambda: _text([0, 9000, 9001], b"a" * 9000 + b"\xff", pa.string()),
    "falling list offsets": lambda: _list([0, 3, 1, 4], pa.array([1, 2, 3, 4])),
    "negative list offset": lambda: _list([0, -3, 4], pa.array([1, 2, 3, 4])),
    "no UTF-8 in a list": lambda: _list([0, 2], _text([0, 2, 4], b"ab\xff\xfe", pa.string())),
    "index past its dictionary": lambda: _index([0, 1, 2]),
    "negative index": lambda: _index([0, -1]),
    "no UTF-8 in a dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0], pa.int32()), _text([0, 2], b"\xff\xfe", pa.string())
    ),
    "view past its buffer": lambda: _view(1 << 30),
}


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_arrow_data_is_refused_without_commit(name: str, tmp_path: Path) -> None:
    array = BROKEN[name]()
    batch = _batch(array)
    nested = _batch(_struct(array, "inner"))
    for version in VERSIONS:
        for each in (batch, nested):
            uri = tmp_path / version
            with pytest.raises(ArgumentError, match=r"column 'bad'"):
                pennon.write_dataset(each, uri, data_storage_version=version)
            assert not (uri / "_versions").exists()


@pytest.mark.parametrize("offsets", [(-4, 2, 6), (0, 2, 600), (600, 601, 602)])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.list_(pa.int8())])
def test_offsets_beyond_the_values_are_refused(
    offsets: tuple[int, ...], kind: pa.DataType, tmp_path: Path
) -> None:
    written = np.zeros(3, np.int32)
    buffers = [None, pa.py_buffer(written)]
    if pa.types.is_list(kind):
        array = pa.Array.from_buffers(kind, 2, buffers, children=[pa.array([1], pa.int8())])
    else:
        array = pa.Array.from_buffers(kind, 2, [*buffers, pa.py_buffer(b"abcdef")])
    batch = pa.record_batch([array], ["bad"])
    written[:] = offsets  # only now: pyarrow refuses to make such an array, others do
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        pennon.write_dataset(batch, tmp_path / "t")


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_arrow_data_is_refused_by_every_writer(name: str, tmp_path: Path) -> None:
    batch = _batch(BROKEN[name]())
    other = pa.schema([pa.field("bad", batch.schema.field(0).type, metadata={"a": "b"})])
    ways: list[Callable[[], object]] = [
        lambda: pennon.write_dataset(pa.Table.from_batches([batch]), tmp_path / "t"),
        lambda: pennon.write_dataset(iter([batch]), tmp_path / "t", schema=other),
        lambda: LanceFileWriter(str(tmp_path / "f.lance")).write_batch(batch),
    ]
    for way in ways:
        with pytest.raises(ArgumentError, match=r"column 'bad'"):
            way()


def test_invalid_data_is_refused_by_operations_on_a_table(tmp_path: Path) -> None:
    table = pennon.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t")
    keyed = pa.table({"a": [1, 2], "bad": _text([0, 1, 2], b"\xff\xfe", pa.string())})
    bad = keyed.select(["bad"])
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        table.add_columns(bad.to_reader())
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        table.add_columns(lambda _: bad.to_batches()[0], read_columns=["a"])
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        table.merge(keyed, "a")
    text = pennon.write_dataset(pa.table({"a": [1], "bad": ["x"]}), tmp_path / "m")
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        text.merge_insert("a").when_not_matched_insert_all().execute(keyed)
    assert (table.version, text.version) == (1, 1)


def test_invalid_arrow_values_outside_a_slice_are_ignored(tmp_path: Path) -> None:
    text = _text([0, 2, 4, 6], b"ab\xff\xfecd", pa.string())
    lists = _list([0, 1, 2, 3], text)
    index = _index([0, 7, 1])
    whole = pa.record_batch([text, lists, index], ["text", "lists", "index"])
    for number in (0, 2):
        part = whole.slice(number, 1)
        got = pennon.write_dataset(part, tmp_path / "t", mode="overwrite").to_table()
        assert got.to_pylist() == part.to_pylist()
    for name in whole.schema.names:
        with pytest.raises(ArgumentError, match=f"column '{name}'"):
            pennon.write_dataset(whole.select([name]).slice(1, 1), tmp_path / "u")


def test_invalid_arrow_values_under_nulls_are_accepted(tmp_path: Path) -> None:
    offsets = _buffer([0, 2, 4])
    valid = pa.py_buffer(bytes([1]))
    text = pa.Array.from_buffers(pa.string(), 2, [valid, offsets, pa.py_buffer(b"ab\xff\xfe")])
    index = pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 2, [valid, _buffer([0, 77])], pa.array(["a"])
    )
    batch = pa.record_batch([text, index], ["text", "index"])
    got = pennon.write_dataset(batch, tmp_path / "t").to_table()
    assert got.to_pylist() == [{"text": "ab", "index": "a"}, {"text": None, "index": None}]


def test_invalid_arrow_dictionary_in_later_batch_is_refused(tmp_path: Path) -> None:
    def batch(values: pa.Array[Any]) -> pa.RecordBatch:
        column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), values)
        return pa.RecordBatch.from_arrays([column], ["bad"])

    good, broken = pa.array(["a"]), _text([0, 2], b"\xff\xfe", pa.string())
    batches = [batch(good), batch(good), batch(broken)]
    with pytest.raises(ArgumentError, match=r"column 'bad'"):
        pennon.write_dataset(iter(batches), tmp_path / "t", schema=batches[0].schema)


def test_invalid_arrow_data_without_validation_is_written(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_arrays([_text([0, 2], b"\xff\xfe", pa.string())], ["bad"])
    table = pennon.write_dataset(batch, tmp_path / "t", validate_input=False)
    assert table.count_rows() == 1
