"""Options of scans beside pylance: the same rows, in the same order."""

from __future__ import annotations

import random
from typing import Any

import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.scanner_builder import ColumnOrdering, ScannerBuilder
from pennon.errors import ArgumentError, UnsupportedError
from tests.interop.equality import difference
from tests.interop.filter_corpus import filter_table, filters
from tests.interop.oracle import NEWEST, Oracle, OracleError

FILTERS = list(dict.fromkeys(filters()))
PROJECTIONS: list[Any] = [
    None,
    ["i32", "s"],
    ["st.x", "lst", "dic"],
    ["s", "_rowid", "b"],
    ["li"],
    {"x": "i64 * 2", "st": "st", "s": "s"},
    {"n": "st.y", "t": "ts"},
]
DEAD = "i64 = 13 or s = 'zz'"


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def uri(oracles: dict[str, Oracle], tmp_path_factory: pytest.TempPathFactory, request: Any) -> str:
    """Return a table of three fragments, from which the oracle deleted rows."""
    folder = tmp_path_factory.mktemp("scanner") / "t"
    pennon.write_dataset(
        filter_table(), folder, max_rows_per_file=100, data_storage_version=request.param
    )
    oracles[NEWEST].run([{"op": "delete", "uri": str(folder), "predicate": DEAD}])
    return str(folder)


def _both(newest: Oracle, uri: str, scans: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Return what both give for each scan: a table, or the error."""
    answers = newest.run([{"op": "scan", "uri": uri, "out": True, **scan} for scan in scans])
    dataset = pennon.dataset(uri)
    found: list[tuple[Any, Any]] = []
    for scan, theirs in zip(scans, answers, strict=True):
        orderings = [ColumnOrdering(*each) for each in scan.get("order_by", [])]
        options = {**scan, "order_by": orderings} if orderings else scan
        try:
            ours: Any = dataset.scanner(**options).to_table()
        except (ArgumentError, UnsupportedError) as error:
            ours = error
        found.append((ours, theirs))
    return found


def _random_scan(chance: random.Random) -> dict[str, Any]:
    scan: dict[str, Any] = {"filter": chance.choice(FILTERS), "columns": chance.choice(PROJECTIONS)}
    if chance.random() < 0.4:
        scan["limit"] = chance.choice([0, 1, 7, 500])
    if chance.random() < 0.4:
        scan["offset"] = chance.choice([0, 1, 30, 500])
    if chance.random() < 0.3 and "_rowid" not in (scan["columns"] or ()):  # they move it then
        scan["with_row_id"] = True
    if chance.random() < 0.3:
        scan["with_row_address"] = True
    if chance.random() < 0.3:
        scan["batch_size"] = chance.choice([1, 10, 64])
    if chance.random() < 0.5:
        scan["late_materialization"] = chance.choice([True, False, ["s", "st"], ["i32"]])
    return {name: value for name, value in scan.items() if value is not None}


def test_random_scan_options_equal_pylance(newest: Oracle, uri: str) -> None:
    chance = random.Random(4)
    scans = [_random_scan(chance) for _ in range(250)]
    compared = 0
    for scan, (ours, theirs) in zip(scans, _both(newest, uri, scans), strict=True):
        if isinstance(theirs, OracleError):
            continue
        compared += 1
        assert difference(ours, theirs) is None, scan
    assert compared > 150


ORDERINGS: list[list[list[Any]]] = [
    [["i64"], ["ts"]],
    [["i64", False], ["ts", False, True]],
    [["f64"], ["i32"]],
    [["f64", False, True], ["i32"]],
    [["f32", True, True], ["ts", False]],
    [["s"], ["i32", False]],
    [["b"], ["dec", False], ["i64"]],
    [["bin", False], ["d"], ["i64"]],
    [["dic"], ["tz"]],
]


@pytest.mark.parametrize(
    "bounds", [{}, {"limit": 9}, {"limit": 5, "offset": 20}, {"offset": 200}, {"filter": "i32 > 1"}]
)
def test_order_by_equals_pylance(newest: Oracle, uri: str, bounds: dict[str, Any]) -> None:
    """Rows that are equal may come in any order there, so only what they are sorted by is compared."""
    scans = [
        {"columns": [name for name, *_ in keys], "order_by": keys, **bounds} for keys in ORDERINGS
    ]
    for scan, (ours, theirs) in zip(scans, _both(newest, uri, scans), strict=True):
        assert not isinstance(theirs, OracleError), (scan, theirs)
        assert difference(ours, theirs) is None, scan


def test_order_by_column_outside_the_projection(uri: str) -> None:
    """The oracle cannot do it."""
    dataset = pennon.dataset(uri)
    for limit in (None, 11):
        columns = {"double": "i64 * 2", "u8": "u8"}
        whole = dataset.to_table(
            columns={**columns, "s": "s", "at": "_rowaddr"}, order_by=["s"], limit=limit
        )
        part = dataset.to_table(columns=columns, order_by=["s"], limit=limit)
        assert part.equals(whole.select(["double", "u8"]))
        texts = [(text is None, text) for text in whole["s"].to_pylist()]
        assert texts == sorted(texts, key=lambda pair: (pair[0], (pair[1] or "").encode()))
        batches = list(
            dataset.to_batches(columns=["u8"], order_by=["s"], batch_size=4, limit=limit)
        )
        assert {batch.num_rows for batch in batches[:-1]} == {4}


def test_invalid_order_by_is_refused(uri: str) -> None:
    dataset = pennon.dataset(uri)
    for column in ("li", "st"):
        with pytest.raises(UnsupportedError, match="cannot be sorted"):
            dataset.scanner(order_by=[column])
    with pytest.raises(ArgumentError, match="no column named 'nope'"):
        dataset.scanner(order_by=["nope"])
    with pytest.raises(TypeError, match="ColumnOrdering"):
        ScannerBuilder(dataset).order_by([3])


@pytest.mark.parametrize("filter", [None, "i32 > 1", "i64 = 13"])
@pytest.mark.parametrize("bounds", [{}, {"limit": 30, "offset": 80}])
def test_include_deleted_rows_equals_pylance(
    newest: Oracle, uri: str, filter: str | None, bounds: dict[str, int]
) -> None:
    """Where the filter is first, the oracle refuses what ours does, unless all columns are early."""
    options: dict[str, Any] = {"include_deleted_rows": True, **bounds}
    options |= {"filter": filter, "late_materialization": False} if filter else {}
    scans = [
        {"columns": ["i64", "s"], "with_row_id": True, **options},
        {"columns": ["i64", "_rowid"], "with_row_address": True, **options},
        {"columns": ["i64"], "with_row_address": True, **options},
    ]
    for scan, (ours, theirs) in zip(scans, _both(newest, uri, scans), strict=True):
        if isinstance(theirs, OracleError):
            assert isinstance(ours, ArgumentError), scan
        else:
            assert difference(ours, theirs) is None, scan
            late = {n: v for n, v in scan.items() if n != "late_materialization"}
            assert difference(pennon.dataset(uri).scanner(**late).to_table(), theirs) is None
            if not bounds:
                assert pennon.dataset(uri).scanner(**scan).count_rows() == ours.num_rows


def _refused(dataset: LanceDataset, **options: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        dataset.scanner(**options)
    return str(caught.value)


def test_scanner_with_contradictory_options_is_refused(uri: str) -> None:
    dataset = pennon.dataset(uri)
    assert "with_row_id" in _refused(dataset, include_deleted_rows=True)
    assert "together" in _refused(dataset, strict_batch_size=True, batch_size_bytes=100)
    assert "bool or a list" in _refused(dataset, late_materialization=3)
    assert "'zz'" in _refused(dataset, filter="b", late_materialization=["zz"])
    with pytest.raises(ArgumentError, match="not a serialized set"):
        dataset.scanner(row_addr_allowlist=b"rows")
