"""Random columns at versions 2.1 and 2.2, NULL structs among them, written by the oracle, read by us.

Each test takes a block of seeds.  A failure names its seed: ``random_column(seed)`` gives it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.file.reader import DataFile
from pennon.io import open_store
from tests.interop.equality import difference
from tests.interop.null_structs import with_null_structs
from tests.interop.oracle import Oracle, OracleError
from tests.interop.random_arrays import random_array
from tests.interop.random_tables import as_lance_reads
from tests.interop.random_types import random_type

SEEDS = 500
BLOCK = 25
BLOCKS = [range(start, start + BLOCK) for start in range(0, SEEDS, BLOCK)]
SIZES = [1, 2, 7, 64, 100, 1000, 1023, 1024, 1025, 4095, 4096, 4097]
METADATA: list[dict[str, str]] = [
    *({}, {}, {}),
    {"lance-encoding:structural-encoding": "fullzip"},
    {"lance-encoding:compression": "zstd"},
    {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"},
    {"lance-encoding:rle-threshold": "1.0"},
]
MOST_REFUSED = 0.2


@dataclass(frozen=True)
class Column:
    """One random column, and the version to write it in."""

    seed: int
    table: pa.Table
    version: str


def random_column(seed: int) -> Column:
    """Return the column of a seed."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    t = random_type(rng)
    array = random_array(numbers, t, rng.choice(SIZES), rng.choice(["none", "some", "some", "all"]))
    if not isinstance(t, pa.BaseExtensionType):
        array = with_null_structs(numbers, array)
    field = pa.field("c", array.type, metadata=rng.choice(METADATA) or None)
    table = pa.table([array], schema=pa.schema([field]))
    return Column(seed, table, rng.choice(["2.1", "2.2"]))


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_what_the_oracle_writes_we_read(newest: Oracle, seeds: range, tmp_path: Path) -> None:
    columns = [random_column(seed) for seed in seeds]
    found, refused = [], 0
    for column in columns:
        path = tmp_path / f"{column.seed}.lance"
        try:
            newest.call("write_file", path=str(path), table=column.table, version=column.version)
        except OracleError:
            refused += 1  # it panics on some NULL structs, and refuses bare ones with NULLs
            continue
        found += _differences(column, path)
        path.unlink()
    assert not found, "\n".join(found)
    assert refused <= BLOCK * MOST_REFUSED


def _differences(column: Column, path: Path) -> list[str]:
    """Compare all rows, a slice and scattered rows with the source."""
    file = DataFile.open(open_store(path.parent).open(path.name))
    source, rng = as_lance_reads(column.table), np.random.default_rng(column.seed)
    rows = source.num_rows
    picks = {
        "all": Rows.between(0, rows),
        "slice": Rows.between(rows // 3, rows // 3 + max(1, rows // 2)),
        "scattered": Rows.at(np.unique(rng.integers(0, rows, 40))),
    }
    found = []
    for name, wanted in picks.items():
        (chunks,) = file.read_rows(file.schema.fields, file.column_of, wanted)
        for chunk in chunks:
            chunk.validate(full=True)
        got = pa.table({"c": pa.chunked_array(chunks, source.schema.field(0).type)})
        different = difference(got, source.take(pa.array(wanted.indices())))
        if different is not None:
            found.append(f"seed {column.seed}, {name}, {column.version}: {different}")
    return found
