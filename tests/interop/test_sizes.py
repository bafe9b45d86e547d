"""Files no larger than pylance's, for the columns of format-facts 0.2 at file version 2.0."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from tests.interop.oracle import Oracle

ROWS = 50_000
FEW = 5000
LARGEST_RATIO = 1.05


def _columns() -> dict[str, tuple[pa.Array, dict[str, str] | None]]:
    """Return the columns by name, with their field metadata."""
    rng = np.random.default_rng(5)
    numbers = np.arange(ROWS)
    words = [f"word{i}" for i in range(12)]
    text = [" ".join(rng.choice(words, 15)) for _ in range(ROWS)]
    vector = rng.random(ROWS * 4, np.float32)
    lists = [list(range(n)) for n in (numbers % 4).tolist()]
    plain: dict[str, Any] = {
        "i64 0..n": numbers,
        "i64 constant": np.full(ROWS, 7),
        "i64 runs of 100": numbers // 100,
        "i64 random": rng.integers(0, 1 << 62, ROWS),
        "i32 small": rng.integers(-50, 50, ROWS, np.int32),
        "i64 every 7th NULL": pa.array(numbers, mask=numbers % 7 == 0),
        "i32 all NULL": pa.nulls(ROWS, pa.int32()),
        "f32 random": vector[:ROWS],
        "f64 5 values": rng.choice([0.0, 0.25, 0.5, 1.0, 9.0], ROWS),
        "bool": rng.random(ROWS) < 0.5,
        "string 10 distinct": [f"v{n}" for n in (numbers % 10).tolist()],
        "string 10 distinct, NULL": [f"v{n}" if n else None for n in (numbers % 10).tolist()],
        "string 1000 distinct": [f"value {n}" for n in (numbers % 1000).tolist()],
        "string unique 8 B": [f"{n:08d}" for n in numbers.tolist()],
        "string unique, NULL": [f"{n:08d}" if n % 3 else None for n in numbers.tolist()],
        "text": text,
        "string 300 B": [f"{n:0300d}" for n in range(FEW)],
        "binary 40 KB": [rng.bytes(40_000) for _ in range(200)],
        "decimal128": pa.array(numbers).cast(pa.decimal128(38, 2)),
        "fsb 16": pa.array([rng.bytes(16) for _ in range(ROWS)], pa.binary(16)),
        "fsl 4": pa.FixedSizeListArray.from_arrays(vector, 4),
        "fsl 768": pa.FixedSizeListArray.from_arrays(rng.random(500 * 768, np.float32), 768),
        "fsl NULL rows": pa.array([[1, 2] if n % 3 else None for n in range(FEW)], _FSL),
        "fsl NULL items": pa.array([[1, None] for _ in range(FEW)], _FSL),
        "list<i32>": pa.array(lists, pa.list_(pa.int32())),
        "list<list<i32>>": pa.array([[a, a] for a in lists[:FEW]], pa.list_(pa.list_(pa.int32()))),
        "list<string>": pa.array([[str(n) for n in a] for a in lists]),
        "struct": pa.array([{"a": n, "b": f"{n:012d}"} for n in range(ROWS)]),
        "dictionary": pa.array([f"v{n % 60}" for n in range(ROWS)]).dictionary_encode(),
    }
    packed = pa.array([{"x": n, "y": n / 3} for n in range(FEW)])
    blob = pa.array([rng.bytes(1024) for _ in range(100)], pa.large_binary())
    return {
        **{name: (pa.array(values), None) for name, values in plain.items()},
        "packed": (packed, {"packed": "true"}),
        "blob": (blob, {"lance-encoding:blob": "true"}),
        "text, zstd": (pa.array(text), {"lance-encoding:compression": "zstd"}),
    }


_FSL = pa.list_(pa.float32(), 2)


@pytest.fixture(scope="module")
def columns() -> dict[str, tuple[pa.Array, dict[str, str] | None]]:
    return _columns()


def _file_bytes(uri: Path) -> int:
    return sum(path.stat().st_size for path in (uri / "data").glob("*.lance"))


def test_files_2_0_are_no_larger_than_those_of_pylance(
    columns: dict[str, tuple[pa.Array, dict[str, str] | None]], newest: Oracle, folder: Path
) -> None:
    ratios = {}
    for number, (name, (array, metadata)) in enumerate(columns.items()):
        field = pa.field("c", array.type, metadata=metadata)
        table = pa.table([array], pa.schema([field]))
        ours, theirs = folder / f"ours-{number}", folder / f"theirs-{number}"
        pennon.write_dataset(table, ours, data_storage_version="2.0")
        newest.write(theirs, table, data_storage_version="2.0")
        ratios[name] = _file_bytes(ours) / _file_bytes(theirs)
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    too_large = {name: ratio for name, ratio in ratios.items() if ratio > LARGEST_RATIO}
    assert not too_large
    assert mean <= 1.0, ratios
