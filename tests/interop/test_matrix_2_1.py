"""Every type of versions 2.1 and 2.2, written by pylance and read by Pennon, and the reverse.

With no, some and only NULLs at every level, structs among them; scans, slices, and takes of scattered
rows.  Version 2.2 is what the oracle writes if it is not told otherwise.

Source: format-facts 0.1, columns 2.1 and 2.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from tests.interop.equality import difference
from tests.interop.nested_arrays import nested_array
from tests.interop.null_structs import random_maps, random_struct_lists, with_null_structs
from tests.interop.oracle import Oracle, OracleError
from tests.interop.random_arrays import NULLS, Rng, random_array
from tests.interop.random_tables import PACKED, as_lance_reads
from tests.interop.reads import Read
from tests.interop.test_matrix_2_0 import TYPES

SIZES = [0, 9, pytest.param(1030, marks=pytest.mark.slow)]
VERSIONS = {"2.1": {"data_storage_version": "2.1"}, "2.2": {}}
"""File versions, and the options that the oracle needs to write them."""

NULL_CHANCES = {"none": 0.0, "some": 0.3, "all": 1.0}
_POINT = pa.struct([("x", pa.float32()), ("y", pa.list_(pa.int8()))])
MAPS = [
    *(pa.map_(pa.int64(), pa.float64()), pa.map_(pa.binary(), pa.list_(pa.string()))),
    *(pa.map_(pa.string(), _POINT), pa.map_(pa.string(), pa.map_(pa.int8(), pa.bool_()))),
    *(pa.list_(pa.map_(pa.string(), pa.int32())), pa.struct([("m", pa.map_(pa.date32(), _POINT))])),
    pa.map_(pa.string(), pa.dictionary(pa.int16(), pa.string())),
]


def tables_of(nulls: str, rows: int, version: str) -> dict[str, pa.Table]:
    """Return one table of one column for each type."""
    tables = {}
    for number, t in enumerate(TYPES):
        rng = np.random.default_rng(number)
        array = random_array(rng, t, rows, nulls)
        if nulls == "some" and not isinstance(t, pa.BaseExtensionType):
            array = with_null_structs(rng, array)
        tables[f"{number} {t}"] = pa.table([array], ["c"])
    if version == "2.2":
        tables |= _tables_of_2_2(nulls, rows)
    return tables


def _tables_of_2_2(nulls: str, rows: int) -> dict[str, pa.Table]:
    """Return tables of the types that came with 2.2, and of JSON."""
    rng = np.random.default_rng(rows)
    arrays = {"map": random_maps(rng, rows), "lists of structs": random_struct_lists(rng, rows)}
    if nulls == "none":
        arrays = {name: _filled(array) for name, array in arrays.items()}
    elif nulls == "all":
        arrays = {name: pa.nulls(rows, array.type) for name, array in arrays.items()}
    for t in MAPS:
        arrays[str(t)] = nested_array(rng, t, rows)
    texts = random_array(rng, pa.string(), rows, "none")
    json = pa.array(
        [f'["{len(text)}",{{"a":{number}}}]' for number, text in enumerate(texts.to_pylist())],
        pa.string(),
    )
    arrays["json"] = pa.ExtensionArray.from_storage(pa.json_(), _with_nulls(rng, json, nulls))
    tables = {name: pa.table([array], ["c"]) for name, array in arrays.items()}
    numbers = random_array(rng, pa.int64(), rows, "none")
    mask = pa.array(rng.random(rows) < NULL_CHANCES[nulls])
    packed = pa.StructArray.from_arrays([texts, numbers, json], ["a", "b", "d"], mask=mask)
    field = pa.field("c", packed.type, metadata=PACKED)
    tables["packed rows of any width"] = pa.table([packed], pa.schema([field]))
    return tables


def _filled(array: pa.Array) -> pa.Array:
    """Return as many rows as ``array`` has, none of them NULL."""
    kept = array.drop_null()
    return kept.take(pa.array(np.arange(len(array)) % max(len(kept), 1)))


def _with_nulls(rng: Rng, array: pa.Array, nulls: str) -> pa.Array:
    mask = rng.random(len(array)) < NULL_CHANCES[nulls]
    return pa.compute.if_else(pa.array(~mask), array, pa.scalar(None, array.type))


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_of_pylance_at_2_1_and_2_2_is_read(
    newest: Oracle, nulls: str, rows: int, version: str, folder: Path
) -> None:
    tables = tables_of(nulls, rows, version)
    uris = {name: folder / str(number) for number, name in enumerate(tables)}
    written = newest.run(
        [
            {"op": "write", "uri": str(uris[name]), "table": t, **VERSIONS[version]}
            for name, t in tables.items()
        ]
    )
    kept = {
        name: table
        for (name, table), made in zip(tables.items(), written, strict=True)
        if not _is_refused(table, made)
    }
    found = _differences(newest, kept, uris)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_every_type_of_pennon_at_2_2_is_read_by_pylance(
    newest: Oracle, nulls: str, rows: int, folder: Path
) -> None:
    """Version 2.1 is tested in `test_write_2_1`."""
    tables = tables_of(nulls, rows, "2.2")
    uris = {name: folder / str(number) for number, name in enumerate(tables)}
    for name, table in tables.items():
        pennon.write_dataset(table, uris[name], data_storage_version="2.2")
    found = _differences(newest, tables, uris)
    assert not found, "\n".join(found)


def _is_refused(table: pa.Table, made: Any) -> bool:
    """Tell whether the oracle cannot write the table; only bare structs below others are known."""
    if not isinstance(made, OracleError):
        return False
    assert "Empty structs" in str(made), (table.schema, made)
    return True


def reads_of_rows(rows: int) -> list[Read]:
    """Return a scan, slices at the borders of chunks, and a take."""
    slices = [(start, rows // 3 + 1) for start in (1, 1023) if start < rows]
    reads = [Read("scan", {"offset": start, "limit": limit}) for start, limit in slices]
    if rows:
        reads.append(Read("take", {"indices": [rows - 1, 0, rows // 2, 0]}))
    return [Read("scan", {}), *reads]


def _differences(oracle: Oracle, tables: dict[str, pa.Table], uris: dict[str, Path]) -> list[str]:
    """Compare what we scan and take with what the oracle does, and both with the source."""
    calls: list[dict[str, Any]] = []
    wanted = []
    for name, table in tables.items():
        source, dataset = as_lance_reads(table), pennon.dataset(uris[name])
        for read in reads_of_rows(table.num_rows):
            calls.append(read.call(uris[name]))
            wanted.append((f"{name}, {read}", read.wanted(source), read.ours(dataset)))
    found = []
    for (name, source, ours), theirs in zip(wanted, oracle.run(calls), strict=True):
        if isinstance(theirs, OracleError):
            found.append(f"{name}, the oracle: {theirs}")
        elif (different := difference(ours, theirs)) is not None:
            found.append(f"{name}, ours and the oracle's: {different}")
        elif (different := difference(ours, source)) is not None:
            found.append(f"{name}, ours and the source: {different}")
    return found
