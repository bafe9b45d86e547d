"""Files of version 0.1, written and read back: kept values, lost values with warnings, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, DataLossWarning, UnsupportedError
from pennon.file.container.opened_file import OpenedFile
from pennon.file.container.write_limits import RowGroups
from pennon.file.open import create_data_file, open_data_file
from pennon.io.memory import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1


def written(
    batches: list[pa.RecordBatch], group: int = 1024, dictionaries: Any = None
) -> OpenedFile:
    store = MemoryStore()
    schema = schema_from_arrow(batches[0].schema)
    groups = RowGroups(group, fixed=dictionaries or {})
    with create_data_file(store.open_writer("a"), schema, V0_1, groups=groups) as writer:
        for batch in batches:
            writer.write(batch)
        done = writer.finish()
    file = open_data_file(store.open("a"))
    assert done.num_rows == file.num_rows == sum(batch.num_rows for batch in batches)
    assert done.size_bytes == file.source.size_bytes
    assert done.column_indices == ()
    return file


def read(file: OpenedFile, rows: Rows | None = None) -> list[list[Any]]:
    rows = rows or Rows.between(0, file.num_rows)
    found = file.read_rows(file.schema.fields, file.column_of, rows)
    return [[value for chunk in chunks for value in chunk.to_pylist()] for chunks in found]


def borders(file: OpenedFile) -> list[int]:
    assert file.row_groups is not None
    return file.row_groups.tolist()


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), list(columns))


@pytest.mark.parametrize("group", [1, 3, 4, 100])
@pytest.mark.parametrize("cut", [1, 2, 5, 11])
def test_row_groups_continue_across_batches(group: int, cut: int) -> None:
    table = pa.table(
        {
            "n": pa.array(range(11), pa.int16()),
            "t": [str(n) * (n + 1) for n in range(11)],
            "b": [n % 3 == 0 for n in range(11)],
            "l": [[n] * (n % 3) for n in range(11)],
            "s": [{"x": n, "y": [str(n)]} for n in range(11)],
            "f": pa.array([[n, n + 1] for n in range(11)], pa.list_(pa.float32(), 2)),
        }
    )
    file = written(table.to_batches(max_chunksize=cut), group)
    assert borders(file) == sorted({*range(0, 11, group), 11})
    assert read(file) == [column.to_pylist() for column in table.columns]
    picked = np.array([0, 4, 5, 10], np.int64)
    assert read(file, Rows.at(picked)) == [c.take(picked).to_pylist() for c in table.columns]


def test_slices_of_arrays() -> None:
    table = pa.table(
        {
            "t": ["a", "bb", "ccc", "dddd"],
            "l": pa.array([["x"], ["y", "z"], ["v"], ["w"]], pa.large_list(pa.string())),
            "b": [True, False, True, True],
            "f": pa.array(
                [[[True]], [[False]], [[True]], [[True]]], pa.list_(pa.list_(pa.bool_(), 1), 1)
            ),
            "d": pa.array(["p", "q", "p", "q"]).dictionary_encode(),
        }
    )
    (batch,) = table.to_batches()
    assert read(written([batch.slice(1, 2)], 1)) == [
        c.slice(1, 2).to_pylist() for c in table.columns
    ]


def test_writer_0_1_of_zero_rows() -> None:
    file = written([batch_of(a=pa.array([], pa.int32()), b=pa.array([], pa.string()))])
    assert file.num_rows == 0


def test_writer_0_1_warns_with_counts_of_lost_values() -> None:
    batch = batch_of(
        n=pa.array([1, None, None]),
        t=pa.array(["", None, ""]),
        l=pa.array([[None, 1], None, []], pa.list_(pa.int8())),
        s=pa.array([{"x": None}, None, {"x": "a"}], pa.struct([("x", pa.string())])),
        f=pa.array([None, [1, None], [1, 2]], pa.list_(pa.int8(), 2)),
        o=pa.nulls(3),
    )
    with pytest.warns(DataLossWarning) as caught:
        file = written([batch, batch.slice(0, 1)], 2)
    (warning,) = caught
    message = str(warning.message)
    for part in (
        "'n': 2 NULLs",
        "'t': 3 empty values",
        "'l': 1 NULLs",
        "'l.item': 2 NULLs",
        "'s': 1 NULLs",
        "'f': 3 NULLs",
    ):
        assert part in message
    assert "'o'" not in message
    found = read(file)
    assert found[0] == [1, 0, 0, 1]
    assert found[1] == [None] * 4
    assert found[2] == [[0, 1], [], [], [0, 1]]


def test_writer_0_1_without_losses_does_not_warn() -> None:
    schema = pa.schema([pa.field("t", pa.string(), nullable=False), pa.field("u", pa.string())])
    batch = pa.record_batch([pa.array(["", "a"]), pa.array([None, "a"])], schema)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(written([batch])) == [["", "a"], [None, "a"]]


def test_dictionaries_of_several_batches_become_one() -> None:
    first = pa.array(["a", "b"]).dictionary_encode()
    second = pa.array(["c", "a", None]).dictionary_encode()
    with pytest.warns(DataLossWarning, match="'d': 1 NULLs"):
        file = written([batch_of(d=first), batch_of(d=second)], 2)
    assert read(file) == [["a", "b", "c", "a", "a"]]


def test_writer_0_1_uses_the_dictionary_of_the_table() -> None:
    known = {0: pa.array(["x", "y", "z"])}
    batch = batch_of(d=pa.array(["z", "x"]).dictionary_encode())
    file = written([batch], dictionaries=known)
    assert read(file) == [["z", "x"]]
    assert file.dictionary_values(file.schema.fields[0], pa.string()).to_pylist() == ["x", "y", "z"]
    batch = batch_of(d=pa.array(["w"]).dictionary_encode())
    with pytest.raises(ArgumentError, match="'w' is not in the dictionary of the table"):
        written([batch], dictionaries=known)


def test_dictionary_of_more_values_than_its_indices_count() -> None:
    kind = pa.dictionary(pa.int8(), pa.int32())
    batches = [
        batch_of(
            d=pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([n], pa.int32()))
        )
        for n in range(129)
    ]
    assert batches[0].schema.types == [kind]
    with pytest.raises(ArgumentError, match="129 values of a dictionary, int8 counts to 127"):
        written(batches, 1)
    with pytest.raises(ArgumentError, match="do not fit in one array"):
        written(batches)


@pytest.mark.parametrize(
    "data_type",
    [
        pa.struct([]),
        pa.map_(pa.string(), pa.int32()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.null(), 2),
        pa.list_(pa.struct([("a", pa.int32())]), 2),
        pa.dictionary(pa.int8(), pa.float64()),
        pa.dictionary(pa.int8(), pa.bool_()),
        pa.binary(0),
    ],
)
def test_writer_0_1_of_unsupported_type_is_refused(data_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="'a'"):
        written([pa.record_batch([pa.nulls(1, data_type)], ["a"])])


def test_blobs_in_lists_are_refused() -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("a", pa.list_(field))])
    with pytest.raises(UnsupportedError, match=r"2\.0 holds blobs in lists"):
        written([pa.record_batch([pa.nulls(1, schema.field(0).type)], schema=schema)])


def test_failed_writer_0_1_leaves_no_file() -> None:
    store = MemoryStore()
    schema = schema_from_arrow(pa.schema([pa.field("a", pa.int32(), nullable=False)]))
    writer = create_data_file(store.open_writer("failed"), schema, V0_1)
    with pytest.raises(ArgumentError, match="not nullable"):
        writer.write(pa.record_batch([pa.array([None] * 2000, pa.int32())], ["a"]))
    with pytest.raises(ArgumentError, match="given up"):
        writer.finish()
    assert "failed" not in [found.path for found in store.list("")]
    with pytest.raises(ArgumentError, match="max_rows_per_group"):
        create_data_file(store.open_writer("a"), schema, V0_1, groups=RowGroups(max_rows=0))
