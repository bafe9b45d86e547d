"""Every type that file version 2.0 holds, with no, some and only NULLs; and every one it does not.

Source: format-facts 0.1, column 2.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import UnsupportedError
from tests.interop.equality import difference
from tests.interop.oracle import OLDEST, Oracle, OracleError
from tests.interop.random_arrays import NULLS, random_array
from tests.interop.random_tables import as_lance_reads
from tests.interop.random_types import (
    DICTIONARY_VALUES,
    EXTENSIONS,
    FIXED,
    INTEGERS,
    TEXTS,
    VIEWS,
    has_dictionary,
    refused_by_oldest,
)

SIZES = [0, 9, pytest.param(1030, marks=pytest.mark.slow)]
INDICES = [5, 0, 0, 8, 1]
STRUCT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
LISTED = [pa.int32(), pa.string(), pa.bool_(), pa.null(), STRUCT, pa.list_(pa.float32(), 3)]
NESTED = [
    *map(pa.list_, LISTED),
    *map(pa.large_list, LISTED),
    *(pa.list_(pa.list_(pa.int8())), pa.large_list(pa.list_(pa.string()))),
    *(pa.list_(pa.dictionary(pa.int16(), pa.string())), pa.struct([]), STRUCT),
    pa.struct([("s", pa.struct([("l", pa.list_(STRUCT))])), ("t", pa.timestamp("us"))]),
]
DICTIONARIES = [
    *(pa.dictionary(pa.int32(), t) for t in DICTIONARY_VALUES),
    *(pa.dictionary(t, pa.string()) for t in INTEGERS),
]
TYPES = [
    *(pa.null(), *FIXED, *TEXTS, *VIEWS, *EXTENSIONS, *DICTIONARIES, *NESTED),
    *(pa.list_(t, 3) for t in FIXED),
    *(pa.list_(pa.list_(pa.float32(), 2), 3), pa.list_(pa.bool_(), 9), pa.list_(pa.null(), 2)),
]

Tables = dict[str, pa.Table]


def _tables(release: str, nulls: str, rows: int) -> Tables:
    """Return one table of one column for each type that the oracle of this release takes."""
    tables = {}
    for number, t in enumerate(TYPES):
        old = release == OLDEST and (refused_by_oldest(t) or (not rows and has_dictionary(t)))
        if not old:
            array = random_array(np.random.default_rng(number), t, rows, nulls)
            tables[f"{number} {t}"] = pa.table([array], ["c"])
    return tables


def _differences(oracle: Oracle, tables: Tables, uris: dict[str, Path]) -> list[str]:
    """Read every dataset with us and with the oracle, and compare with what was written."""
    calls: list[dict[str, Any]] = []
    wanted = []
    for name, table in tables.items():
        indices = [i for i in INDICES if i < table.num_rows]
        uri = str(uris[name])
        calls.append({"op": "scan", "uri": uri, "out": True})
        wanted.append((name, as_lance_reads(table), pennon.dataset(uri).to_table()))
        if indices:
            calls.append({"op": "take", "uri": uri, "out": True, "indices": indices})
            taken = pennon.dataset(uri).take(indices)
            wanted.append((name, as_lance_reads(table).take(indices), taken))
    found = []
    for (name, source, ours), theirs in zip(wanted, oracle.run(calls), strict=True):
        for who, read in (("ours", ours), ("the oracle's", theirs)):
            broken = isinstance(read, OracleError)
            different = str(read) if broken else difference(read, source)
            if different is not None:
                found.append(f"{name}, {who}: {different}")
    return found


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_every_type_of_pennon_at_2_0_is_read_by_both(
    oracle: Oracle, nulls: str, rows: int, folder: Path
) -> None:
    tables = _tables(oracle.release, nulls, rows)
    uris = {name: folder / str(number) for number, name in enumerate(tables)}
    for name, table in tables.items():
        pennon.write_dataset(table, uris[name], data_storage_version="2.0")
    found = _differences(oracle, tables, uris)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_every_type_of_pylance_at_2_0_is_read_by_both(
    oracle: Oracle, nulls: str, rows: int, folder: Path
) -> None:
    tables = _tables(oracle.release, nulls, rows)
    uris = {name: folder / str(number) for number, name in enumerate(tables)}
    oracle.run(
        [
            {"op": "write", "uri": str(uris[name]), "table": t, "data_storage_version": "2.0"}
            for name, t in tables.items()
        ]
    )
    found = _differences(oracle, tables, uris)
    assert not found, "\n".join(found)


def test_json_column_at_2_0_is_read_by_both(newest: Oracle, folder: Path) -> None:
    texts = [
        '{"b": [1, 2.5, "x", null, true], "a": {}}',
        None,
        '"s"',
        "-3",
        "[ ]",
        "1e300",
        '"é\\n"',
    ]
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts * 3))
    table = pa.table([array], ["c"])
    pennon.write_dataset(table, folder / "ours", data_storage_version="2.0")
    newest.write(folder / "theirs", table, data_storage_version="2.0")
    plain = [None if text is None else json.loads(text) for text in texts * 3]
    for uri in (folder / "ours", folder / "theirs"):
        theirs, ours = newest.scan(uri), pennon.dataset(uri).to_table()
        assert difference(ours, theirs) is None
        read = ours["c"].to_pylist()
        assert [None if text is None else json.loads(text) for text in read] == plain


REFUSED: dict[str, tuple[pa.Field, list[Any]]] = {
    "NULL struct": (pa.field("c", STRUCT), [{"x": 1, "y": "a"}, None]),
    "NULL struct in a struct": (pa.field("c", pa.struct([("s", STRUCT)])), [{"s": None}]),
    "NULL struct in a list": (pa.field("c", pa.list_(STRUCT)), [[{"x": 1, "y": "a"}, None]]),
    "map": (pa.field("c", pa.map_(pa.string(), pa.int8())), [[("a", 1)]]),
    "fixed-size list of strings": (pa.field("c", pa.list_(pa.string(), 2)), [["a", "b"]]),
    "fixed-size list of no items": (pa.field("c", pa.list_(pa.int8(), 0)), [[]]),
    "fixed-size list of lists": (pa.field("c", pa.list_(pa.list_(pa.int8()), 1)), [[[1]]]),
    "packed struct of strings": (pa.field("c", STRUCT, metadata={"packed": "true"}), [{"x": 1}]),
    "decimal32": (pa.field("c", pa.decimal32(5, 2)), [1]),
    "decimal64": (pa.field("c", pa.decimal64(5, 2)), [1]),
    "interval": (pa.field("c", pa.month_day_nano_interval()), [(1, 2, 3)]),
    "list view": (pa.field("c", pa.list_view(pa.int8())), [[1]]),
    "sorted map": (pa.field("c", pa.map_(pa.int8(), pa.int8(), keys_sorted=True)), [[(1, 1)]]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_write_2_0_of_unsupported_type_is_refused_by_both(
    name: str, newest: Oracle, folder: Path
) -> None:
    field, rows = REFUSED[name]
    table = pa.table([pa.array(rows, field.type)], pa.schema([field]))
    with pytest.raises(OracleError):
        newest.write(folder / "theirs", table, data_storage_version="2.0")
    with pytest.raises(UnsupportedError) as caught:
        pennon.write_dataset(table, folder / "ours", data_storage_version="2.0")
    message = str(caught.value)
    assert "'c" in message
    assert "version" in message
    assert not (folder / "ours" / "_versions").exists()


UNREADABLE = {
    "fixed-size list of structs": pa.array(
        [[{"x": 1}]], pa.list_(pa.struct([("x", pa.int8())]), 1)
    ),
    "fixed-size binary of no bytes": pa.array([b""], pa.binary(0)),
    "fixed-size list of dictionaries": pa.FixedSizeListArray.from_arrays(
        pa.array(["a"]).dictionary_encode(), 1
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_write_2_0_of_type_unreadable_by_pylance_is_refused(
    name: str, newest: Oracle, folder: Path
) -> None:
    table = pa.table([UNREADABLE[name]], ["c"])
    newest.write(folder / "theirs", table, data_storage_version="2.0")
    with pytest.raises(OracleError):
        newest.scan(folder / "theirs")
    with pytest.raises(UnsupportedError, match="'c'"):
        pennon.write_dataset(table, folder / "ours", data_storage_version="2.0")
