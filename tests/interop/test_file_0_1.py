"""Files of version 0.1, both ways with the oracles that write them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from tests.interop.oracle import OLDEST, Oracle
from tests.interop.random_tables import Case, children_of, random_case
from tests.interop.random_types import FLOATS, has_dictionary
from tests.interop.reads import differences, reads_of

SEEDS = 60
BLOCK = 20
BLOCKS = [range(start, start + BLOCK) for start in range(0, SEEDS, BLOCK)]
GROUPS = [1, 3, 64, 1000, 1024, 5000]

BROKEN = "the table that was wanted is broken"
"""Release 0.19.2 gives some slices of lists with offsets outside of the items."""

blocks = pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


def refused(f: pa.Field) -> str | None:
    """Return why the oracle writes no such field at 0.1, or does not read what it wrote."""
    t = f.type.storage_type if isinstance(f.type, pa.BaseExtensionType) else f.type
    if pa.types.is_struct(t) and t.num_fields == 0:
        return "a struct without fields has no pages"
    if pa.types.is_dictionary(t) and t.value_type in (*FLOATS, pa.bool_(), pa.null()):
        return "a dictionary has strings, binaries or integers as values"
    if (pa.types.is_list(t) or pa.types.is_large_list(t)) and t.value_field.name != "item":
        return "it reads lists as if their items were named so"
    if pa.types.is_fixed_size_list(t):
        return None
    return next(filter(None, map(refused, children_of(t))), None)


def case_of(oracle: Oracle, seed: int) -> Case:
    """Return the random table of a seed, with what 0.1 holds."""
    case = random_case(seed, for_oldest=oracle.release == OLDEST)
    rows = case.table.num_rows
    kept = [
        f.name
        for f in case.table.schema
        if refused(f) is None and (rows or not has_dictionary(f.type))
    ]
    table = case.table.select(kept) if kept else pa.table({"only": np.arange(rows)})
    return replace(case, table=table, columns=table.schema.names[::-1], version="legacy")


@blocks
def test_what_the_oracle_writes_we_read(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for seed in seeds:
        case = case_of(oracle, seed)
        uri = folder / str(seed)
        oracle.write(
            uri,
            case.table,
            batch_rows=case.batch_rows,
            max_rows_per_group=GROUPS[seed % len(GROUPS)],
            **case.options,
        )
        found += [
            each
            for each in differences(case, reads_of(case), None, oracle, uri)
            if oracle.release != OLDEST or BROKEN not in each
        ]
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()])
def test_never_null_text_is_empty(oracle: Oracle, kind: pa.DataType, folder: Path) -> None:
    schema = pa.schema([pa.field("a", kind, nullable=False), pa.field("b", kind)])
    values = pa.array(["", "x", ""]).cast(kind)
    oracle.write(folder / "t", pa.table([values, values], schema), data_storage_version="legacy")
    ours = pennon.dataset(folder / "t").to_table()
    assert ours.equals(oracle.scan(folder / "t"))
    assert [column.null_count for column in ours.columns] == [0, 2]
