"""Writes that pylance accepts or refuses: Pennon accepts, refuses and stores the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import pennon

STRICT = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
NESTED = pa.schema(
    [pa.field("s", pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.utf8())]))]
)
BASE = pa.table({"a": [1, 2], "b": ["x", None]}, schema=STRICT)

APPENDS: dict[str, pa.Table] = {
    "same": BASE,
    "other order": BASE.select(["b", "a"]),
    "nullable without NULLs": pa.table({"a": [3], "b": ["q"]}),
    "NULL where there must be none": pa.table({"a": pa.array([None], pa.int64()), "b": ["q"]}),
    "missing, may be NULL": pa.table({"a": [3]}),
    "missing, never NULL": pa.table({"b": ["q"]}),
    "one too many": pa.table({"a": [1], "b": ["q"], "c": [1]}),
    "int32": pa.table({"a": pa.array([1], pa.int32()), "b": ["q"]}),
    "large_string": pa.table({"a": [1], "b": pa.array(["q"], pa.large_string())}),
    "other metadata": BASE.replace_schema_metadata({"k": "v"}),
    "no rows": BASE.slice(0, 0),
}


versions = pytest.mark.parametrize("version", ["2.0", "2.1"])


@versions
@pytest.mark.parametrize("name", APPENDS)
def test_append_schema_rules_equal_pylance(name: str, version: Any, tmp_path: Path) -> None:
    outcomes = []
    for module in (lance, pennon):
        uri = str(tmp_path / f"{module.__name__}.lance")
        lance.write_dataset(BASE, uri, data_storage_version=version)
        try:
            module.write_dataset(APPENDS[name], uri, mode="append")
            outcomes.append("written")
        except OSError:
            outcomes.append("OSError")
    theirs, ours = (lance.dataset(str(tmp_path / f"{m}.lance")) for m in ("lance", "pennon"))
    assert outcomes[0] == outcomes[1]
    assert ours.version == theirs.version
    assert ours.to_table().equals(theirs.to_table())
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    ours.validate()
    assert pennon.dataset(ours.uri).to_table().equals(ours.to_table())


@versions
@pytest.mark.parametrize(
    "rows",
    [
        [{"s": {"x": 1, "y": "a"}}],
        [{"s": {"y": "a", "x": 1}}],
        [{"s": {"x": 7}}],
        [{"s": {"x": 7, "z": 1}}],
    ],
    ids=["same", "other order", "missing child", "one child too many"],
)
def test_append_schema_rules_inside_structs_equal_pylance(
    rows: list[dict[str, Any]], version: Any, tmp_path: Path
) -> None:
    tables = []
    for module in (lance, pennon):
        uri = str(tmp_path / f"{module.__name__}.lance")
        start = pa.table({"s": [{"x": 1, "y": "a"}]}, schema=NESTED)
        lance.write_dataset(start, uri, data_storage_version=version)
        with suppress(OSError):
            module.write_dataset(pa.Table.from_pylist(rows), uri, mode="append")
        tables.append(lance.dataset(uri).to_table())
        assert pennon.dataset(uri).to_table().equals(tables[-1])
    assert tables[0].equals(tables[1])


PLAIN = pa.table({"n": [1, 2, 3], "t": ["x", None, "z"]})
SOURCES: dict[str, Callable[[], Any]] = {
    "table": lambda: PLAIN,
    "batch": lambda: PLAIN.to_batches()[0],
    "reader": PLAIN.to_reader,
    "iterator": lambda: iter(PLAIN.to_batches()),
    "pandas": lambda: pd.DataFrame({"n": [1, 2, 3], "m": [1.5, None, 2]}),
    "polars": lambda: pl.DataFrame({"n": [1, 2, 3], "t": ["x", None, "z"]}),
    "arrow dataset": lambda: pads.dataset(PLAIN),
    "arrow scanner": lambda: pads.dataset(PLAIN).scanner(),
    "list of dicts": PLAIN.to_pylist,
    "dict of lists": PLAIN.to_pydict,
}


@versions
@pytest.mark.parametrize("name", SOURCES)
def test_write_sources_equal_pylance(name: str, version: str, tmp_path: Path) -> None:
    tables = []
    for module in (lance, pennon):
        schema = PLAIN.schema if name == "iterator" else None
        uri = str(tmp_path / f"{module.__name__}.lance")
        options = {"data_storage_version": version}
        written = module.write_dataset(SOURCES[name](), uri, schema=schema, **options)
        tables.append(written.to_table())
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
    assert tables[0].equals(tables[1])


def test_write_accepts_duckdb_relations_datasets_and_scanners(tmp_path: Path) -> None:
    relation = duckdb.sql("select 1::bigint as n, 'x' as t")
    assert pennon.write_dataset(relation, tmp_path / "d.lance").to_table().num_rows == 1
    copy = pennon.write_dataset(pennon.dataset(tmp_path / "d.lance"), tmp_path / "e.lance")
    assert copy.to_table().to_pylist() == [{"n": 1, "t": "x"}]
    scanner = copy.scanner(columns=["t"])
    assert pennon.write_dataset(scanner, tmp_path / "f.lance").schema.names == ["t"]


REFUSED: dict[str, Callable[[Any, str], Any]] = {
    "there already": lambda m, uri: m.write_dataset(BASE, uri),
    "mode": lambda m, uri: m.write_dataset(BASE, uri, mode="replace"),
    "file version": lambda m, uri: m.write_dataset(BASE, uri + "n", data_storage_version="9.9"),
    "no uri": lambda m, uri: m.write_dataset(BASE, None),
    "uri": lambda m, uri: m.write_dataset(BASE, 5),
    "number": lambda m, uri: m.write_dataset(5, uri, mode="append"),
    "text": lambda m, uri: m.write_dataset("abc", uri, mode="append"),
    "empty list": lambda m, uri: m.write_dataset([], uri, mode="append"),
    "iterator": lambda m, uri: m.write_dataset(iter(BASE.to_batches()), uri, mode="append"),
    "metadata": lambda m, uri: m.write_dataset(
        BASE.replace_schema_metadata({b"k": b"\xff"}), uri, mode="overwrite"
    ),
    "no read version": lambda m, uri: m.LanceDataset.commit(uri, m.LanceOperation.Append([])),
    "no operation": lambda m, uri: m.LanceDataset.commit(uri, 3),
    "fragments": lambda m, uri: m.LanceOperation.Append([1]),
    "tuple of fragments": lambda m, uri: m.LanceOperation.Append((1,)),
    "stale": lambda m, uri: m.LanceDataset.commit(
        uri, m.LanceOperation.Append([]), read_version=77
    ),
    "append commit to nothing": lambda m, uri: m.LanceDataset.commit(
        uri + "n", m.LanceOperation.Append([]), read_version=1
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_writes_refused_by_pylance_are_refused(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(BASE, uri, data_storage_version="2.0")
    with pytest.raises(Exception) as theirs:
        REFUSED[name](lance, uri)
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[name](pennon, uri)
    assert str(ours.value)
    assert lance.dataset(uri).version == 1


@versions
def test_overwrite_keeps_history_and_transaction_properties(version: str, tmp_path: Path) -> None:
    for module in (lance, pennon):
        uri = str(tmp_path / f"{module.__name__}.lance")
        module.write_dataset(BASE, uri, data_storage_version=version)
        module.write_dataset(BASE, uri, mode="append")
        module.write_dataset(PLAIN, uri, mode="overwrite", commit_message="anew")
    theirs, ours = (lance.dataset(str(tmp_path / f"{m}.lance")) for m in ("lance", "pennon"))
    assert [f.fragment_id for f in ours.get_fragments()] == [
        f.fragment_id for f in theirs.get_fragments()
    ]
    assert ours.data_storage_version == theirs.data_storage_version == version
    assert ours.schema == theirs.schema
    assert ours.checkout_version(2).to_table() == theirs.checkout_version(2).to_table()
    properties = {"__lance_commit_message": "anew"}
    assert ours.read_transaction(3).transaction_properties == properties
    assert pennon.dataset(ours.uri).read_transaction(3).transaction_properties == properties
    assert pennon.dataset(theirs.uri).read_transaction(3).transaction_properties == properties


def test_fragments_are_committed_by_the_other_library(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ours = pennon.fragment.write_fragments(BASE, uri, mode="create")
    text = [json.dumps(fragment.to_json()) for fragment in ours]
    as_theirs = [lance.FragmentMetadata.from_json(line) for line in text]
    assert [json.dumps(fragment.to_json()) for fragment in as_theirs] == text
    lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(BASE.schema, as_theirs))
    theirs = lance.fragment.write_fragments(BASE, uri)
    as_ours = [pennon.FragmentMetadata.from_json(json.dumps(f.to_json())) for f in theirs]
    append = pennon.LanceOperation.Append(as_ours)
    done = pennon.LanceDataset.commit(uri, append, read_version=1)
    assert done.version == 2
    assert done.to_table().equals(pa.concat_tables([BASE, BASE]))
    assert lance.dataset(uri).to_table().equals(done.to_table())


def test_transaction_of_write_fragments(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    made = pennon.fragment.write_fragments(BASE, uri, mode="create", return_transaction=True)
    first = pennon.LanceDataset.commit(uri, made)
    more = pennon.fragment.write_fragments(BASE, first, return_transaction=True)
    assert more.read_version == 1
    assert pennon.LanceDataset.commit(first, more).count_rows() == 4
    assert lance.dataset(str(uri)).count_rows() == 4


@pytest.mark.parametrize("v2", [True, False])
def test_manifest_names_of_both_schemes_equal_pylance(tmp_path: Path, v2: bool) -> None:
    names = []
    for module in (lance, pennon):
        uri = tmp_path / f"{module.__name__}.lance"
        module.write_dataset(BASE, str(uri), enable_v2_manifest_paths=v2)
        module.write_dataset(BASE, str(uri), mode="append")
        names.append(sorted(file.name for file in (uri / "_versions").glob("*.manifest")))
    assert names[0] == names[1]


@versions
def test_stable_row_ids_equal_pylance(version: str, tmp_path: Path) -> None:
    tables = []
    for module in (lance, pennon):
        uri = str(tmp_path / f"{module.__name__}.lance")
        module.write_dataset(PLAIN, uri, data_storage_version=version, enable_stable_row_ids=True)
        lance.write_dataset(PLAIN, uri, mode="append")
        module.write_dataset(PLAIN, uri, mode="append")
        lance.dataset(uri).delete("n = 2")
        lance.dataset(uri).update({"t": "'new'"}, where="n = 3")
        ours, theirs = pennon.dataset(uri), lance.dataset(uri)
        columns: dict[str, Any] = {"with_row_id": True, "with_row_address": True}
        assert ours.to_table(**columns).equals(theirs.to_table(**columns))
        ids = [5, 0, 8, 5]
        assert ours._take_rows(ids).equals(theirs._take_rows(ids))
        tables.append(theirs.to_table(with_row_id=True))
    assert tables[0].sort_by("_rowid").equals(tables[1].sort_by("_rowid"))


def test_duckdb_and_polars_query_the_table(tmp_path: Path) -> None:
    rows = pa.table({"k": list(range(1000)), "t": [str(n % 10) for n in range(1000)]})
    stored = pennon.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=300)
    counted = duckdb.sql("select t, count(*) c from stored where k >= 500 group by t").fetchall()
    assert sorted(counted) == [(str(n), 50) for n in range(10)]
    assert duckdb.sql("select max(k) from stored where t = '3'").fetchall() == [(993,)]
    frame = pl.scan_pyarrow_dataset(stored).filter(pl.col("k") < 5).select("t").collect()
    assert frame["t"].to_list() == list("01234")
    assert pl.scan_pyarrow_dataset(stored).head(3).collect().height == 3
    assert pl.DataFrame(stored).height == 1000
    assert pa.table(stored).num_rows == 1000
    assert pa.table(stored.scanner(columns=["k"])).schema.names == ["k"]
    scanner = stored.scanner(columns=["k"])  # noqa: F841 - duckdb finds it by its name
    assert duckdb.sql("select sum(k) from scanner").fetchall() == [(499500,)]
