"""`LanceTable.diff`: the rows in which versions differ, beside a comparison in Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
from pennon.errors import ArgumentError
from pennon.spark import LanceTable
from tests.unit.cli.commands import done, from_json

NESTED = pa.struct({"a": pa.int64(), "m": pa.map_(pa.string(), pa.int64())})


def rows(ids: list[int], each: random.Random) -> pa.Table:
    """Return rows with these ids."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([each.choice([None, 0.5, float("nan")]) for _ in ids], pa.float64()),
            "s": pa.array(
                [{"a": each.randrange(3), "m": [("k", each.randrange(3))]} for _ in ids], NESTED
            ),
            "l": pa.array([[each.randrange(2)] for _ in ids], pa.list_(pa.int64())),
        }
    )


def by_key(uri: str, version: Any) -> dict[int, dict[str, str]]:
    """Return the rows of a version by their keys, each value as text."""
    found = pennon.dataset(uri).checkout_version(version).to_table().to_pylist()
    return {row.pop("id"): {name: repr(value) for name, value in row.items()} for row in found}


def expected(old: dict[int, Any], new: dict[int, Any]) -> dict[int, tuple[str, Any]]:
    """Return what differs, by key."""
    found: dict[int, tuple[str, Any]] = dict.fromkeys(new.keys() - old.keys(), ("added", None))
    found |= dict.fromkeys(old.keys() - new.keys(), ("removed", None))
    for key in old.keys() & new.keys():
        names = [name for name in old[key] if name in new[key] and old[key][name] != new[key][name]]
        if names:
            found[key] = ("changed", names)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_diff_of_random_versions_equals_a_comparison_by_key(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    uri, each = str(tmp_path / "t"), random.Random(seed)
    ds = pennon.write_dataset(
        rows(list(range(40)), each), uri, max_rows_per_file=9, data_storage_version="2.2"
    )
    ds.tags.create("first", 1)
    ds.delete("id % 7 = 3")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        rows([1, 2, 3, 20, 50, 51], each)
    )
    ds.optimize.compact_files()
    ds.insert(rows([60], each))
    ds.add_columns({"more": "id + 1"})
    table = LanceTable.forPath(spark, uri)
    for before, after in ((1, None), ("first", 3), (ds.version, 2), (2, 2)):
        found = table.diff(before, after, on=["id"]).collect()
        new = ds.version if after is None else after
        wanted = expected(by_key(uri, before), by_key(uri, new))
        assert {row.id: (row._difference, row._changed_columns) for row in found} == wanted
        assert len(found) == len(wanted)


def test_diff_of_a_branch_shows_each_row_as_it_was_and_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}), uri)
    branch = ds.create_branch("trial")
    branch.update({"x": "x * 10"}, where="id = 2")
    table = LanceTable.forPath(spark, uri)
    (found,) = table.diff(1, ("trial", None), on=["id"]).collect()
    assert (found.id, found._difference, found._changed_columns) == (2, "changed", ["x"])
    assert (found.before.x, found.after.x) == (2, 20)


def test_diff_refuses_a_key_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(pa.table({"id": [1]}), uri)
    table = LanceTable.forPath(spark, uri)
    with pytest.raises(ValueError, match="version 1 has no key column 'zz'; it has id"):
        table.diff(1, on=["zz"])
    with pytest.raises(ValueError, match="on names the key columns"):
        table.diff(1, on=[])


def test_diff_on_the_command_line_counts_rows_and_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "x": [1, 2, 3], "y": [1, 2, 3]}), uri)
    ds.tags.create("first", 1)
    ds.update({"x": "x * 10"}, where="id > 1")
    ds.insert(pa.table({"id": [4], "x": [4], "y": [4]}))
    printed = done("diff", uri, "first", "--on", "id", "--master", "local[1]")
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["difference", "rows"]
    assert [each for each in lines if each[-1].isdecimal()] == [
        ["added", "1"],
        ["removed", "0"],
        ["changed", "2"],
        ["x", "2"],
    ]


def test_diff_on_the_command_line_compares_versions_of_a_branch_in_json(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(pa.table({"id": [1, 2], "x": [1, 2]}), uri)
    trial = ds.create_branch("trial")
    trial.update({"x": "x * 10"}, where="id > 1")
    found = from_json("diff", uri, "trial:1", "trial", "--on", "id", "--master", "local[1]")
    assert (found["before"], found["after"]) == (1, 2)
    assert (found["added"], found["removed"], found["changed"]) == (0, 0, 1)
    assert found["columns"] == {"x": 1}
    with pytest.raises(ArgumentError, match="diff compares versions of one"):
        done("diff", uri, "1", "trial", "--on", "id", "--master", "local[1]")


def test_ingest_on_the_command_line_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;word\n1;a\n")
    uri = str(tmp_path / "t.lance")
    master = ("--master", "local[1]", "--option", "sep=;")
    found = from_json("ingest", str(tmp_path / "a.csv"), uri, *master)
    assert (found["version"], found["rows"]) == (1, 1)
    assert pennon.dataset(uri).to_table().to_pydict() == {"id": [1], "word": ["a"]}


def test_html_of_a_lance_table_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t<b>.lance")
    pennon.write_dataset(pa.table({"<i>": [1, 2]}), uri)
    html = LanceTable.forPath(spark, uri)._repr_html_()
    for part in ("LanceTable", "<th>rows</th><td>2</td>", "<td>&lt;i&gt;</td><td>int64</td>"):
        assert part in html
    assert "<b>" not in html
