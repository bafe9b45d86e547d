"""Files of 2.1 and 2.2 no larger than pylance's: every row of format-facts 0.2, and the bench's groups.

A ratio is our bytes over pylance 14.0.2's, of one data file with the same rows.
"""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.interop.oracle import Oracle
from tests.interop.random_tables import random_case
from tests.interop.test_sizes import ROWS, _columns
from tests.interop.test_write_2_1 import write

LARGEST_RATIO = 1.01
MEAN_RATIO = 0.95
LARGE_BYTES = 50_000
SLACK_BYTES = 8
"""What a message may be longer by: files of a few values are all messages."""

GROUPS: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "groups.py"))[
    "GROUPS"
]


versions = pytest.mark.parametrize("version", ["2.1", "2.2"])


def _ratio(oracle: Oracle, table: pa.Table, folder: Path, version: str) -> float:
    theirs = folder / "theirs.lance"
    ours = write(folder / "ours.lance", table, version=version)
    oracle.call("write_file", path=str(theirs), table=table, version=version)
    return (ours - SLACK_BYTES) / theirs.stat().st_size


def _more_columns() -> dict[str, pa.Array]:
    """Return columns that are not in format-facts 0.2: other widths, strings, lists and structs."""
    rng = np.random.default_rng(8)
    numbers = np.arange(ROWS)
    some = numbers % 5 == 2
    words = [f"word{i}" for i in range(12)]
    wide = [" ".join(rng.choice(words, 60)) for _ in range(4000)]
    paths = [f"/api/v1/users/{n % 977}/orders?page={n % 13}" for n in numbers.tolist()]
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 6, ROWS))]).astype(np.int32)
    count = int(offsets[-1])
    items = pa.array(rng.integers(0, 1 << 20, count))
    texts = pa.array([f"tag {n % 500}" for n in range(count)])
    one = pa.array(offsets)
    floats = pa.array(rng.random(ROWS))
    hexes = pa.array([rng.bytes(8).hex() for _ in range(ROWS)])
    struct = pa.StructArray.from_arrays(
        [floats, hexes, pa.array(paths)], ["x", "h", "p"], mask=pa.array(some)
    )
    return {
        "i8 random": pa.array(rng.integers(-128, 128, ROWS).astype(np.int8)),
        "u16 narrow": pa.array((numbers % 300).astype(np.uint16)),
        "i32 <100k": pa.array(rng.integers(0, 100_000, ROWS).astype(np.int32)),
        "i64 ±50": pa.array(rng.integers(-50, 50, ROWS)),
        "i64 mostly NULL": pa.array(numbers, mask=numbers % 100 != 0),
        "f16": pa.array(rng.random(ROWS).astype(np.float16)),
        "f64 NULL": pa.array(rng.random(ROWS), mask=some),
        "bool runs": pa.array(numbers // 1000 % 2 == 0),
        "bool NULL": pa.array(numbers % 3 == 0, mask=some),
        "date": pa.array(rng.integers(0, 20_000, ROWS).astype(np.int32)).cast(pa.date32()),
        "timestamp": pa.array(numbers * 1_000_003).cast(pa.timestamp("us", "UTC")),
        "decimal128 few": pa.array(numbers % 7).cast(pa.decimal128(38, 2)),
        "decimal256": pa.array(numbers).cast(pa.decimal256(50, 2)),
        "string empty": pa.array([""] * ROWS),
        "string one": pa.array(["one and only"] * ROWS),
        "string sorted twice": pa.array([f"{n // 2:012d}" for n in range(ROWS)]),
        "string hex": hexes,
        "string paths": pa.array(paths),
        "string wide": pa.array(wide),
        "string wide, NULL": pa.array([text if n % 3 else None for n, text in enumerate(wide)]),
        "large_string": pa.array(paths, pa.large_string()),
        "binary random": pa.array([rng.bytes(20) for _ in range(ROWS)]),
        "binary compressible": pa.array([bytes([n % 256]) * 40_000 for n in range(200)]),
        "list<i64>": pa.ListArray.from_arrays(one, items),
        "large_list<i64>": pa.LargeListArray.from_arrays(one.cast(pa.int64()), items),
        "list<string> few": pa.ListArray.from_arrays(one, texts),
        "list NULL": pa.ListArray.from_arrays(one, items, mask=pa.array(some)),
        "list<bool>": pa.ListArray.from_arrays(one, pa.array(np.arange(count) % 3 == 0)),
        "list<fsl>": pa.ListArray.from_arrays(
            pa.array(offsets // 4, pa.int32()),
            pa.FixedSizeListArray.from_arrays(items[: count // 4 * 4], 4),
        ),
        "struct NULL": struct,
        "list<struct>": pa.ListArray.from_arrays(
            pa.array([*range(0, ROWS, 5), ROWS], pa.int32()), struct
        ),
        "fsl bool": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS) % 3 == 0), 8),
    }


@versions
def test_file_sizes_2_1_of_documented_columns(newest: Oracle, version: str, folder: Path) -> None:
    rng = np.random.default_rng(6)
    zstd = {"lance-encoding:compression": "zstd"}
    more = {
        "i64, zstd": (pa.array(rng.integers(0, 1 << 40, ROWS)), zstd),
        "i64 0..n, zstd": (pa.array(np.arange(ROWS)), zstd),
        "f64, zstd": (pa.array(rng.random(ROWS)), zstd),
    }
    ratios = {}
    for name, (array, metadata) in {**_columns(), **more}.items():
        if (name, version) == ("blob", "2.2"):
            continue  # blobs of another version, in files of their own
        schema = pa.schema([pa.field("c", array.type, metadata=metadata)])
        ratios[name] = _ratio(newest, pa.table([array], schema), folder, version)
    assert {name: ratio for name, ratio in ratios.items() if ratio > LARGEST_RATIO} == {}


@versions
def test_file_sizes_2_1_of_more_columns(newest: Oracle, version: str, folder: Path) -> None:
    ratios = {}
    for name, array in _more_columns().items():
        for rows in (len(array), 1000, 20):
            ratios[name, rows] = _ratio(newest, pa.table([array[:rows]], ["c"]), folder, version)
    assert {name: ratio for name, ratio in ratios.items() if ratio > LARGEST_RATIO} == {}


@versions
@pytest.mark.parametrize("group", GROUPS)
def test_file_sizes_2_1_of_benchmark_groups(
    group: str, version: str, newest: Oracle, folder: Path
) -> None:
    make, rows = GROUPS[group].make, GROUPS[group].rows
    table = make(rows // 20, np.random.default_rng(2013))
    assert _ratio(newest, table, folder, version) <= LARGEST_RATIO


def test_file_sizes_2_2_of_random_tables(newest: Oracle, folder: Path) -> None:
    """On the average much smaller, and none above the oracle's that is worth a word."""
    logs = []
    for seed in range(60):
        table = random_case(seed).table
        table = table.select([f.name for f in table.schema if not pa.types.is_nested(f.type)])
        if not table.num_columns or not table.num_rows:
            continue
        ratio = _ratio(newest, table, folder, "2.2")
        assert ratio <= (1.05 if table.nbytes > LARGE_BYTES else 1.1), seed
        logs.append(math.log(ratio))
    assert math.exp(sum(logs) / len(logs)) <= MEAN_RATIO
