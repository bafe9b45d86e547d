"""Tables of version 0.1 in both directions with releases that have no newer version.

``make test-all`` installs them, each in an environment of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from tests.interop.equality import difference
from tests.interop.oracle import Oracle, interpreter
from tests.interop.random_arrays import random_array

RELEASES = ["0.7.5", "0.8.14", "0.10.18", "0.15.0"]
SEEDS = 3
OURS: dict[str, Any] = {"data_storage_version": "legacy", "enable_v2_manifest_paths": False}
TYPES = {
    "bool": pa.bool_(),
    "i8": pa.int8(),
    "u32": pa.uint32(),
    "i64": pa.int64(),
    "f16": pa.float16(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "day": pa.date32(),
    "time": pa.time64("us"),
    "stamp": pa.timestamp("ns"),
    "zone": pa.timestamp("us", "UTC"),
    "span": pa.duration("ms"),
    "decimal": pa.decimal128(20, 3),
    "text": pa.string(),
    "large": pa.large_string(),
    "bytes": pa.binary(),
    "many": pa.large_binary(),
    "fixed": pa.binary(5),
    "list": pa.list_(pa.int16()),
    "lists": pa.list_(pa.list_(pa.int32())),
    "texts": pa.list_(pa.string()),
    "long": pa.large_list(pa.float64()),
    "vector": pa.list_(pa.float32(), 4),
    "struct": pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]),
    "structs": pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())])),
    "null": pa.null(),
}
DICTIONARY = pa.array(["p", "q", "r"])


def table_of(seed: int, names: list[str], rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {name: random_array(rng, TYPES[name], rows, "none") for name in names}
    places = pa.array(rng.integers(0, 3, rows), pa.int32())
    columns["dictionary"] = pa.DictionaryArray.from_arrays(places, DICTIONARY)
    columns["n"] = pa.array(np.arange(rows), pa.int64())
    return pa.table(columns)


def known_types(oracle: Oracle, folder: Path) -> list[str]:
    """Return the types that a release writes and reads."""
    known = []
    for name in TYPES:
        table = table_of(1, [name], 7)
        calls = [
            {"op": "write", "uri": str(folder / name), "table": table},
            {"op": "scan", "uri": str(folder / name), "out": True},
        ]
        wrote, read = oracle.run(calls)
        if wrote == 1 and isinstance(read, pa.Table) and read.schema.types == table.schema.types:
            known.append(name)
    return known


def check(oracle: Oracle, uri: Path, rows: int, rng: np.random.Generator) -> None:
    """Compare scans, projections, slices and takes."""
    dataset = pennon.dataset(uri)
    whole = oracle.scan(uri)
    assert difference(dataset.to_table(), whole) is None
    assert dataset.count_rows() == whole.num_rows == rows
    names = whole.schema.names[::3]
    assert difference(dataset.to_table(columns=names), oracle.scan(uri, columns=names)) is None
    start, count = int(rng.integers(rows)), int(rng.integers(1, 100))
    sliced = dataset.to_table(offset=start, limit=count)
    assert difference(sliced, whole.slice(start, count)) is None
    picked = np.sort(rng.choice(rows, 20, replace=False)).tolist()
    assert difference(dataset.take(picked), oracle.take(uri, picked)) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
@pytest.mark.parametrize("release", RELEASES)
def test_tables_0_1_are_read_in_both_directions_by_old_releases(
    release: str, tmp_path: Path
) -> None:
    assert Path(interpreter(release)).exists(), "`make test-all` installs the old releases"
    with Oracle.start(release, tmp_path) as oracle:
        _both_ways(oracle, tmp_path)


def _both_ways(oracle: Oracle, folder: Path) -> None:
    names = known_types(oracle, folder / "types")
    assert len(names) > len(TYPES) - 6, names
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        parts = [
            table_of(seed * 10 + number, names, int(rng.integers(20, 400))) for number in range(4)
        ]
        group: dict[str, Any] = {"max_rows_per_group": int(rng.choice([16, 64, 1024]))}
        uri, rows = folder / str(seed), 0
        for number, part in enumerate(parts):
            mode: Any = "append" if number else "create"
            if (number + seed) % 2:
                pennon.write_dataset(part, uri, mode=mode, **OURS, **group)
            else:
                oracle.write(uri, part, mode=mode, **group)
            rows += part.num_rows
            check(oracle, uri, rows, rng)
        oracle.call("delete", uri=str(uri), predicate="n % 3 = 1")
        rows = pennon.dataset(uri).count_rows()
        assert difference(pennon.dataset(uri).to_table(), oracle.scan(uri)) is None
        pennon.write_dataset(parts[0], uri, mode="append", **OURS, **group)
        assert oracle.call("count", uri=str(uri)) == rows + parts[0].num_rows
        assert difference(pennon.dataset(uri).to_table(), oracle.scan(uri)) is None
