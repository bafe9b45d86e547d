"""Batches that leave a scan have the memory of their own rows, for each type and each way out."""

from __future__ import annotations

import decimal
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.file.facade import LanceFileReader
from tests.limits.peak import held_bytes

ROWS = 3000
SIZE = 128
VERSIONS = ["legacy", "2.0", "2.1", "2.2"]
Arrays: TypeAlias = "list[pa.Array[Any]]"


def _vectors(kind: pa.DataType, dimension: int) -> pa.Array[Any]:
    numbers = np.random.default_rng(0).integers(0, 99, ROWS * dimension)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers).cast(kind), dimension)


def _with_nulls(values: pa.Array[Any]) -> pa.Array[Any]:
    return pa.array(
        [None if n % 7 == 3 else v for n, v in enumerate(values.to_pylist())], values.type
    )


def _columns() -> dict[str, pa.Array[Any]]:
    numbers = np.random.default_rng(1).integers(0, 1 << 40, ROWS)
    words = [f"word {n * 7919 % 1009} of row {n}" for n in range(ROWS)]
    plain = {
        "int64": pa.array(numbers),
        "int8": pa.array(numbers % 100, pa.int8()),
        "half": pa.array((numbers % 100).astype(np.float16)),
        "double": pa.array(numbers / 7),
        "bool": pa.array(numbers % 3 == 0),
        "text": pa.array(words),
        "binary": pa.array([word.encode() for word in words]),
        "large_text": pa.array(words, pa.large_string()),
        "large_binary": pa.array([word.encode() for word in words], pa.large_binary()),
        "fixed_binary": pa.array([word[:8].encode() for word in words], pa.binary(8)),
        "date": pa.array(numbers % 9999, pa.int32()).cast(pa.date32()),
        "timestamp": pa.array(numbers).cast(pa.timestamp("us", "UTC")),
        "decimal": pa.array([decimal.Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(12, 2)),
        "vector": _vectors(pa.float32(), 16),
        "bytes_vector": _vectors(pa.uint8(), 5),
        "list": pa.array([list(range(n % 5)) for n in range(ROWS)], pa.list_(pa.int32())),
        "large_list": pa.array(
            [list(range(n % 5)) for n in range(ROWS)], pa.large_list(pa.int64())
        ),
        "texts": pa.array([words[n : n + n % 3] for n in range(ROWS)], pa.list_(pa.string())),
        "structs": pa.array(
            [[{"x": n, "y": words[n]}] * (n % 3) for n in range(ROWS)],
            pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ),
        "struct": pa.array(
            [{"x": n, "y": words[n], "z": n % 2 == 0} for n in range(ROWS)],
            pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.bool_())]),
        ),
        "dictionary": pa.array([f"key {n % 5}" for n in range(ROWS)]).dictionary_encode(),
        "null": pa.nulls(ROWS),
    }
    holed = ("int64", "bool", "text", "vector", "list")
    return plain | {f"{name} and NULL": _with_nulls(plain[name]) for name in holed}


def _newer() -> dict[str, pa.Array[Any]]:
    """Return types that only version 2.2 holds."""
    pairs = [[(f"k{n % 5}", n)] * (n % 3) for n in range(ROWS)]
    return {"map": pa.array(pairs, pa.map_(pa.string(), pa.int64()))}


def _inexact(array: pa.Array[Any]) -> str | None:
    """Return what is wrong with the memory of an array."""
    if array.offset:
        return f"offset {array.offset}"
    if pa.types.is_fixed_size_list(array.type):
        expected = len(array) * array.type.list_size
        if len(array.values) != expected:
            return f"{len(array.values)} values, not {expected}"
    if array.get_total_buffer_size() > 1.1 * array.nbytes + 16:
        return f"{array.get_total_buffer_size()} bytes held for {array.nbytes}"
    return None


def _of_batches(batches: Iterator[pa.RecordBatch]) -> Arrays:
    return [column for batch in batches for column in batch.columns]


def _of_table(table: pa.Table) -> Arrays:
    return [chunk for column in table.columns for chunk in column.chunks]


DOORS: Mapping[str, Callable[[pennon.LanceDataset], Arrays]] = {
    "to_batches": lambda ds: _of_batches(ds.to_batches(batch_size=SIZE)),
    "to_batches, no size": lambda ds: _of_batches(ds.to_batches()),
    "filter": lambda ds: _of_batches(ds.to_batches(filter="key % 3 = 0", batch_size=SIZE)),
    "limit": lambda ds: _of_batches(ds.to_batches(limit=500, offset=77, batch_size=SIZE)),
    "filter and limit": lambda ds: _of_batches(
        ds.to_batches(filter="key > 2", limit=500, offset=77, batch_size=SIZE)
    ),
    "strict": lambda ds: _of_batches(
        ds.scanner(batch_size=300, strict_batch_size=True).to_batches()
    ),
    "order": lambda ds: _of_batches(ds.scanner(order_by=["key"], batch_size=SIZE).to_batches()),
    "expression": lambda ds: _of_batches(
        ds.scanner(
            columns={"a": "key + 1", "b": "cast(key as string)"}, batch_size=SIZE
        ).to_batches()
    ),
    "reader": lambda ds: _of_batches(iter(ds.scanner(batch_size=SIZE).to_reader())),
    "fragments": lambda ds: _of_batches(
        batch for each in ds.get_fragments() for batch in each.to_batches(batch_size=SIZE)
    ),
    "head": lambda ds: _of_table(ds.head(33)),
    "take": lambda ds: _of_table(ds.take([5, 7, 2500, 3, 7])),
    "take of a range": lambda ds: _of_table(ds.take(list(range(500, 600)))),
    "take of a fragment": lambda ds: _of_table(ds.get_fragments()[0].take([5, 6, 7])),
    "sample": lambda ds: _of_table(ds.sample(50)),
    "table": lambda ds: _of_table(ds.to_table()),
    "table, limit": lambda ds: _of_table(ds.to_table(limit=100, offset=55)),
    "table, filter and limit": lambda ds: _of_table(
        ds.to_table(filter="key > 3", limit=100, offset=33)
    ),
}


@pytest.fixture(scope="module", params=VERSIONS)
def tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pennon.LanceDataset]:
    folder = tmp_path_factory.mktemp("exact")
    columns = _columns() | (_newer() if request.param == "2.2" else {})
    return {
        name: pennon.write_dataset(
            pa.table({"key": pa.array(range(ROWS)), "value": values}),
            folder / str(number),
            data_storage_version=request.param,
            max_rows_per_file=ROWS - 700,
        )
        for number, (name, values) in enumerate(columns.items())
    }


@pytest.mark.parametrize("door", DOORS)
def test_arrays_have_the_memory_of_their_own_rows(
    tables: dict[str, pennon.LanceDataset], door: str
) -> None:
    wrong = {
        name: fault
        for name, table in tables.items()
        for array in DOORS[door](table)
        if (fault := _inexact(array)) is not None
    }
    assert not wrong


def test_batches_have_the_rows_of_the_table(tables: dict[str, pennon.LanceDataset]) -> None:
    for name, table in tables.items():
        batches = list(table.to_batches(batch_size=SIZE))
        for batch in batches:
            batch.validate(full=True)
        assert pa.Table.from_batches(batches).equals(table.to_table()), name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_pickles_as_its_own_rows(tmp_path: Any, version: str) -> None:
    columns = _columns()
    table = pa.table({name: columns[name] for name in ("int64", "text", "vector", "list")})
    ds = pennon.write_dataset(table, tmp_path, data_storage_version=version)
    for number, batch in enumerate(ds.to_batches(batch_size=SIZE)):
        assert len(pickle.dumps(batch)) < batch.nbytes + 4096
        rows = batch["vector"].values.to_numpy().reshape(-1, 16).tolist()
        assert rows == columns["vector"][number * SIZE : (number + 1) * SIZE].to_pylist()


def test_nested_vectors_of_a_batch_have_only_its_rows(tmp_path: Any) -> None:
    inner = _vectors(pa.float32(), 4)
    outer = pa.FixedSizeListArray.from_arrays(inner, 2)
    ds = pennon.write_dataset(pa.table({"v": outer}), tmp_path, data_storage_version="2.1")
    for number, batch in enumerate(ds.to_batches(batch_size=SIZE)):
        first = number * SIZE
        assert batch["v"].values.values.to_pylist() == [
            each for row in outer[first : first + SIZE].to_pylist() for part in row for each in part
        ]


def test_added_vector_column_of_a_batch_has_only_its_rows(tmp_path: Any) -> None:
    ds = pennon.write_dataset(pa.table({"key": range(ROWS)}), tmp_path)
    ds.add_columns(pa.schema([("v", pa.list_(pa.float32(), 4))]))
    for found in [*ds.to_batches(batch_size=SIZE), ds.to_table().combine_chunks().to_batches()[0]]:
        assert len(found["v"].values) == 4 * found.num_rows
    for chunk in ds.to_table()["v"].chunks:
        assert len(chunk.values) == 4 * len(chunk)


def test_batch_udf_receives_vectors_of_its_batch_only(tmp_path: Any) -> None:
    ds = pennon.write_dataset(pa.table({"v": _vectors(pa.float32(), 16)}), tmp_path)

    @pennon.batch_udf(output_schema=pa.schema([("sum", pa.float32())]))
    def total(batch: pa.RecordBatch) -> pa.RecordBatch:
        vectors = batch["v"].values.to_numpy().reshape(-1, 16)
        return pa.record_batch([pa.array(vectors.sum(1))], ["sum"])

    ds.add_columns(total, batch_size=SIZE)
    found = ds.to_table().to_pydict()
    assert found["sum"] == [sum(vector) for vector in found["v"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_of_a_data_file_have_the_memory_of_their_own_rows(
    tmp_path: Any, version: str
) -> None:
    columns = _columns()
    table = pa.table({name: columns[name] for name in ("int64", "text", "vector", "list")})
    ds = pennon.write_dataset(table, tmp_path, data_storage_version=version)
    (path,) = (tmp_path / "data").iterdir()
    assert ds.count_rows() == ROWS
    read = LanceFileReader(path).read_all(batch_size=SIZE).to_batches()
    wrong = [_inexact(column) for batch in read for column in batch.columns]
    assert not any(wrong)


def test_held_batches_free_the_memory_of_other_rows(tmp_path: Any) -> None:
    texts = [f"{n % 100:04d} and so on and on, the same for all rows" * 4 for n in range(50_000)]
    ds = pennon.write_dataset(pa.table({"t": texts}), tmp_path, data_storage_version="2.1")
    before = held_bytes()
    kept = [batch for n, batch in enumerate(ds.to_batches(batch_size=100)) if n % 50 == 0]
    own = sum(batch.nbytes for batch in kept)
    assert held_bytes() - before < 3 * own
    assert [batch["t"][0].as_py() for batch in kept] == texts[::5000]


def test_a_table_is_not_copied_to_be_exact(tmp_path: Any) -> None:
    ds = pennon.write_dataset(
        pa.table({"n": np.arange(1 << 20)}), tmp_path, data_storage_version="2.0"
    )
    ds.take([0])
    before = held_bytes()
    whole = ds.to_table()
    batches = list(ds.to_batches(batch_size=1000))
    held = held_bytes() - before  # 16 MiB, less what lies in the map of the file
    assert held < 1 << 20
    assert whole.num_rows == sum(batch.num_rows for batch in batches) == 1 << 20


def test_a_limit_without_columns_keeps_the_number_of_rows(tmp_path: Any) -> None:
    ds = pennon.write_dataset(pa.table({"n": range(10)}), tmp_path)
    assert ds.to_table(columns=[], limit=5, offset=2).num_rows == 5
    assert ds.to_table(columns=[], limit=5, filter="n > 1").num_rows == 5
    assert sum(batch.num_rows for batch in ds.to_batches(columns=[], limit=5)) == 5
