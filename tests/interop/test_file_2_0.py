"""Single data files of version 2.0, both ways with the newest oracle, by type and by size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from pennon.file import LanceFileReader, LanceFileWriter

ROWS = 5000
TEXT = [f"{i % 13} bottles of {i % 7} on the wall" for i in range(ROWS)]
RANDOM = np.random.default_rng(1)


def some_null(values: Any, every: int = 3) -> Any:
    return [None if i % every == 0 else value for i, value in enumerate(values)]


def vectors(dimension: int) -> Any:
    items = pa.array(RANDOM.random(100 * dimension, np.float32))
    return pa.FixedSizeListArray.from_arrays(items, dimension)


COLUMNS = {
    "integers": pa.array(range(ROWS)),
    "integers, some NULL": pa.array(some_null(range(ROWS)), pa.int32()),
    "integers, all NULL": pa.nulls(ROWS, pa.int16()),
    "text, all NULL": pa.nulls(ROWS, pa.string()),
    "floats": pa.array(RANDOM.random(ROWS)),
    "half floats": pa.array(RANDOM.random(ROWS).astype(np.float16)),
    "booleans": pa.array(some_null([i % 2 == 0 for i in range(ROWS)], 5)),
    "text, 10 values": pa.array([f"value {i % 10}" for i in range(ROWS)]),
    "text, 99 values, NULL": pa.array(some_null([f"v{i % 99}" for i in range(ROWS)])),
    "text, 100 values": pa.array([f"v{i % 100}" for i in range(ROWS)]),
    "text": pa.array(some_null(TEXT)),
    "large text": pa.array(some_null(TEXT), pa.large_string()),
    "binary": pa.array([text.encode() for text in TEXT]),
    "empty text": pa.array(some_null([""] * 50)),
    "decimals": pa.array(range(ROWS)).cast(pa.decimal128(30, 2)),
    "fixed-size binary": pa.array([b"%05d" % i for i in range(ROWS)], pa.binary(5)),
    "timestamps": pa.array(range(ROWS)).cast(pa.timestamp("us", "UTC")),
    "vectors": vectors(32),
    "vectors, NULL": pa.array(some_null([[1, 2, 3]] * 100), pa.list_(pa.float32(), 3)),
    "vectors, NULL items": pa.array([[1, None, 3]] * 100, pa.list_(pa.float32(), 3)),
    "lists": pa.array(some_null([list(range(i % 4)) for i in range(ROWS)]), pa.list_(pa.int32())),
    "lists of text": pa.array([["a", None][: i % 3] for i in range(ROWS)]),
    "lists of lists": pa.array([[[1, 2], None, []][: i % 4] for i in range(ROWS)]),
    "lists of structs": pa.array([[{"a": i}] * (i % 3) for i in range(ROWS)]),
    "structs": pa.array([{"a": i, "b": str(i)} for i in range(ROWS)]),
    "dictionary": pa.array(some_null([f"v{i % 50}" for i in range(ROWS)])).dictionary_encode(),
    "one value": pa.array([1]),
    "no rows": pa.array([], pa.struct([("a", pa.list_(pa.int8()))])),
}
FIELDS = {
    "packed": pa.field("c", pa.struct([("x", pa.int8()), ("y", pa.float64())]),
                       metadata={"packed": "true"}),
    "blob": pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    "zstd": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "zstd"}),
    "zstd 9": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "zstd",
                                                   "lance-encoding:compression-level": "9"}),
    "lz4": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "lz4"}),
}  # fmt: skip
VALUES = {
    "packed": [{"x": i % 100, "y": i / 7} for i in range(ROWS)],
    "blob": [None, b"", b"x" * 1000, b"yz"] * 20,
}
TABLES = {name: pa.table({"c": column}) for name, column in COLUMNS.items()} | {
    name: pa.table(
        [pa.array(VALUES.get(name, [*TEXT, "once"] * 2), field.type)], pa.schema([field])
    )
    for name, field in FIELDS.items()
}


def write(writer: Any, table: pa.Table) -> Any:
    for batch in table.to_batches(max_chunksize=1700):
        writer.write_batch(batch)
    writer.close()


@pytest.mark.parametrize("name", TABLES)
def test_file_2_0_is_read_in_both_directions(name: str, tmp_path: Path) -> None:
    table = TABLES[name]
    ours, oracle = str(tmp_path / "ours.lance"), str(tmp_path / "oracle.lance")
    write(LanceFileWriter(ours, table.schema, version="2.0"), table)
    write(lance.file.LanceFileWriter(oracle, table.schema, version="2.0"), table)
    assert lance.file.LanceFileReader(ours).read_all().to_table().to_pydict() == table.to_pydict()
    for path in (ours, oracle):
        reader = LanceFileReader(path)
        assert reader.read_all().to_table().to_pydict() == table.to_pydict()
        chosen = list(range(0, len(table), 7))
        assert (
            reader.take_rows(chosen).to_table().to_pydict()
            == table.take(pa.array(chosen, pa.int64())).to_pydict()
        )
    sizes = [sum(c.size_bytes for c in LanceFileReader(p).file_statistics().columns)
             for p in (ours, oracle)]  # fmt: skip
    assert sizes[0] <= sizes[1]
    assert (tmp_path / "ours.lance").stat().st_size <= (tmp_path / "oracle.lance").stat().st_size


def test_fsst_of_the_oracle(tmp_path: Path) -> None:
    metadata = {"lance-encoding:compression": "fsst"}
    schema = pa.schema([pa.field("c", pa.string(), metadata=metadata)])
    texts = some_null([f"{text} number {i}" for i, text in enumerate(TEXT)], 11)
    table = pa.table([pa.array(texts)], schema)
    path = str(tmp_path / "f.lance")
    write(lance.file.LanceFileWriter(path, schema, version="2.0"), table)
    reader = LanceFileReader(path)
    assert "Fsst" in reader.metadata().columns[0].pages[0].encoding
    assert reader.read_all().to_table()["c"].to_pylist() == texts
    assert reader.take_rows([0, 7, 4999]).to_table()["c"].to_pylist() == [
        texts[i] for i in (0, 7, 4999)
    ]
