"""Every type that versions 2.1 and 2.2 hold, written by the oracle with its own choices, read by us.

With no, some and only NULLs at every level, structs among them; scans, and takes of scattered rows.

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
from tests.interop.null_structs import random_maps, random_struct_lists, with_null_structs
from tests.interop.oracle import Oracle, OracleError
from tests.interop.random_arrays import NULLS, random_array
from tests.interop.random_tables import as_lance_reads
from tests.interop.test_matrix_2_0 import TYPES

SIZES = [0, 9, 1030]
VERSIONS = ["2.1", "2.2"]


def _tables(nulls: str, rows: int, version: str) -> dict[str, pa.Table]:
    """Return one table of one column for each type."""
    tables = {}
    for number, t in enumerate(TYPES):
        rng = np.random.default_rng(number)
        array = random_array(rng, t, rows, nulls)
        if nulls == "some" and not isinstance(t, pa.BaseExtensionType):
            array = with_null_structs(rng, array)
        tables[f"{number} {t}"] = pa.table([array], ["c"])
    if version == "2.2" and nulls == "some":
        rng = np.random.default_rng(rows)
        tables["map"] = pa.table([random_maps(rng, rows)], ["c"])
        tables["lists of structs"] = pa.table([random_struct_lists(rng, rows)], ["c"])
    return tables


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("version", VERSIONS)
def test_theirs_to_ours(newest: Oracle, nulls: str, rows: int, version: str, folder: Path) -> None:
    tables = _tables(nulls, rows, version)
    uris = {name: folder / str(number) for number, name in enumerate(tables)}
    written = newest.run(
        [
            {"op": "write", "uri": str(uris[name]), "table": t, "data_storage_version": version}
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


def _is_refused(table: pa.Table, made: Any) -> bool:
    """Tell whether the oracle cannot write the table; only bare structs below others are known."""
    if not isinstance(made, OracleError):
        return False
    assert "Empty structs" in str(made), (table.schema, made)
    return True


def _differences(oracle: Oracle, tables: dict[str, pa.Table], uris: dict[str, Path]) -> list[str]:
    """Compare what we scan and take with what the oracle does, and both with the source."""
    calls: list[dict[str, Any]] = []
    wanted = []
    for name, table in tables.items():
        source, dataset = as_lance_reads(table), pennon.dataset(uris[name])
        calls.append({"op": "scan", "uri": str(uris[name]), "out": True})
        wanted.append((name, source, dataset.to_table()))
        indices = sorted({0, table.num_rows // 2, table.num_rows - 1}) if table.num_rows else []
        if indices:
            calls.append({"op": "take", "uri": str(uris[name]), "out": True, "indices": indices})
            wanted.append((name, source.take(indices), dataset.take(indices)))
    found = []
    for (name, source, ours), theirs in zip(wanted, oracle.run(calls), strict=True):
        if isinstance(theirs, OracleError):
            found.append(f"{name}, the oracle: {theirs}")
        elif (different := difference(ours, theirs)) is not None:
            found.append(f"{name}, ours and the oracle's: {different}")
        elif (different := difference(ours, source)) is not None:
            found.append(f"{name}, ours and the source: {different}")
    return found
