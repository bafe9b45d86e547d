"""Files of version 0.1, written and read by pylance and Pennon in both directions."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.proto import file_pb2
from tests.interop.oracle import OLDEST, Oracle
from tests.interop.random_tables import Case, children_of, random_case
from tests.interop.random_types import FLOATS, has_dictionary
from tests.interop.reads import differences, reads_of

SEEDS = 160
BLOCK = 8
BLOCKS = [
    pytest.param(range(start, start + BLOCK), marks=[pytest.mark.slow] if start else [])
    for start in range(0, SEEDS, BLOCK)
]
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
def test_file_0_1_of_pylance_is_read(oracle: Oracle, seeds: range, folder: Path) -> None:
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


@blocks
@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
def test_file_0_1_of_pennon_is_read_by_pylance(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for seed in seeds:
        case = case_of(oracle, seed)
        uri = folder / str(seed)
        batches = case.table.to_batches(max_chunksize=case.batch_rows)
        reader = pa.RecordBatchReader.from_batches(case.table.schema, batches)
        group = GROUPS[seed % len(GROUPS)]
        pennon.write_dataset(reader, uri, max_rows_per_group=group, **case.options)
        found += [
            each
            for each in differences(case, reads_of(case), None, oracle, uri)
            if oracle.release != OLDEST or BROKEN not in each
        ]
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@blocks
@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
def test_file_0_1_bytes_equal_those_of_pylance(newest: Oracle, seeds: range, folder: Path) -> None:
    """Pages, page table, statistics and dictionaries; the manifest behind them names its writer."""
    for seed in seeds:
        table = whole(case_of(newest, seed).table)
        if not table.num_rows or table.num_rows > LARGEST:
            continue
        options: dict[str, Any] = {
            "data_storage_version": "legacy",
            "max_rows_per_group": GROUPS[seed % len(GROUPS)],
        }
        newest.write(folder / f"t{seed}", table, **options)
        pennon.write_dataset(table, folder / f"o{seed}", **options)
        theirs, ours = data_file(folder / f"t{seed}"), data_file(folder / f"o{seed}")
        end = metadata_of(theirs).manifest_position
        assert ours[:end] == theirs[:end], f"seed {seed}: {first_difference(ours, theirs)}"
        assert metadata_of(ours) == metadata_of(theirs), f"seed {seed}"


LARGEST = 20_000


def whole(table: pa.Table) -> pa.Table:
    """Return a table of one batch, as the oracle's process gets it."""
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    columns = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=table.schema)])


def data_file(uri: Path) -> bytes:
    (path,) = (uri / "data").iterdir()
    return path.read_bytes()


def metadata_of(data: bytes) -> file_pb2.Metadata:
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    return file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size])


def first_difference(ours: bytes, theirs: bytes) -> int:
    return next(
        (at for at, both in enumerate(zip(ours, theirs, strict=False)) if both[0] != both[1]), -1
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()])
def test_required_text_at_0_1_reads_as_empty(
    oracle: Oracle, kind: pa.DataType, folder: Path
) -> None:
    schema = pa.schema([pa.field("a", kind, nullable=False), pa.field("b", kind)])
    values = pa.array(["", "x", ""]).cast(kind)
    oracle.write(folder / "t", pa.table([values, values], schema), data_storage_version="legacy")
    ours = pennon.dataset(folder / "t").to_table()
    assert ours.equals(oracle.scan(folder / "t"))
    assert [column.null_count for column in ours.columns] == [0, 2]
