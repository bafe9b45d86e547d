"""Concurrent commits with pylance on one table follow the conflict matrix, and reads are right.

Both plan on one version; one commits, then the other.  `tests/unit/table/commit/conflict_table.py` says what
Pennon does as the second; what pylance 14.0.2 does as the second was measured.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, IncompatibleConflict, RetryableConflict
from pennon.ops.rows.delete import commit_delete, plan_delete
from tests.interop.phase_locked import VERSION, Model, Writer, make_base, outcome
from tests.seeds import each_seed
from tests.unit.table.commit.conflict_table import cells

OURS = list(dict.fromkeys(mine for mine, _ in cells()))
THEIRS = [name for name in OURS if name != "reserve_fragments"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conflicts")
    make_base(str(folder / "base"))
    return folder


@pytest.fixture
def uri(base: Path, tmp_path: Path) -> Iterator[str]:
    place = tmp_path / "t"
    shutil.copytree(base / "base", place)
    yield str(place)
    shutil.rmtree(tmp_path)


def check(uri: str, model: Model) -> None:
    """Check that both libraries read what the model holds, and find nothing wrong."""
    for lib in (pennon, lance):
        dataset = lib.dataset(uri)
        dataset.validate()
        rows = dataset.to_table().to_pylist()
        assert sorted(rows, key=lambda row: row["a"]) == model.shown()


OTHERWISE = {
    ("overwrite", "overwrite"): "rr",
    ("overwrite", "update_config"): "..",
    ("create_index", "rewrite"): "rr",
    ("rewrite", "create_index"): "rr",
    ("create_index", "merge"): "..",
    ("create_index", "update"): "..",
    ("create_index", "project"): "..",
    ("create_index", "data_replacement"): "..",
    ("data_replacement", "create_index"): "..",
    ("merge", "update_config"): "..",
    ("project", "update_config"): "..",
    ("update_config", "overwrite"): "..",
    ("update_config", "restore"): "..",
}
"""Pairs that meet otherwise here: an overwrite sets no config, and the index is on column a of all
fragments, which only a rewrite touches."""

PYLANCE = """
                   append delete overwrite create_index rewrite merge restore reserve_fragments update project update_config data_replacement update_bases
append             ..     ..     XX        ..           ..      rr    XX      ..                ..     rr      ..            ..               ..
delete             ..     r.     XX        ..           r.      rr    XX      ..                r.     ..      ..            r.               ..
overwrite          ..     ..     rr        ..           ..      ..    ..      ..                ..     ..      ..            ..               ..
create_index       ..     ..     XX        r.           rr      ..    XX      ..                ..     ..      ..            ..               ..
rewrite            ..     r.     XX        rr           r.      rr    XX      ..                r.     ..      ..            r.               ..
merge              rr     rr     XX        ..           rr      rr    XX      ..                rr     XX      ..            rr               ..
restore            ..     ..     ..        ..           ..      ..    ..      ..                ..     ..      ..            ..               ..
update             ..     r.     XX        ..           r.      rr    XX      ..                r.     rr      ..            r.               ..
project            rr     ..     XX        ..           ..      rr    XX      ..                rr     rr      ..            rr               ..
update_config      ..     ..     ..        ..           ..      ..    ..      ..                ..     ..      X.            ..               ..
data_replacement   ..     ..     XX        ..           r.      rr    XX      ..                r.     rr      ..            r.               ..
update_bases       ..     ..     ..        ..           ..      ..    ..      ..                ..     ..      ..            ..               X.
"""
"""What pylance 14.0.2 does as the second, measured."""


def expected(mine: str, other: str, *, meet: bool) -> str:
    cell = OTHERWISE.get((mine, other), "".join(cells()[mine, other]))
    letter = cell[0 if meet else 1]
    if letter == "d":
        return "r" if mine == other else "."  # the same row of the fragment, or another
    return letter


PAIRS = [
    pytest.param(mine, other, meet, marks=[] if meet else pytest.mark.slow)
    for meet in (True, False)
    for mine in OURS
    for other in THEIRS
    if not (meet and mine == other == "append")  # they have nothing to meet in
]
MEASURED = cells(PYLANCE)


@pytest.mark.parametrize("lib", [lance, pennon])
@pytest.mark.parametrize(("mine", "other", "meet"), PAIRS)
def test_pennon_commit_after_concurrent_commit_follows_conflict_matrix(
    uri: str, lib: ModuleType, mine: str, other: str, meet: bool
) -> None:
    commit_mine = Writer(pennon, uri).plan(mine, 0)
    commit_theirs = Writer(lib, uri).plan(other, 0 if meet else 1)
    model = Model()
    commit_theirs()
    model.apply(other, 0 if meet else 1)
    found = outcome(commit_mine)
    assert found == expected(mine, other, meet=meet)
    if found == ".":
        model.apply(mine, 0)
    check(uri, model)


@pytest.mark.parametrize(("mine", "other", "meet"), PAIRS)
def test_pylance_commit_after_concurrent_pennon_commit_follows_measured_matrix(
    uri: str, mine: str, other: str, meet: bool
) -> None:
    commit_theirs = Writer(lance, uri).plan(other, 0)
    commit_mine = Writer(pennon, uri).plan(mine, 0 if meet else 1)
    model = Model()
    commit_mine()
    model.apply(mine, 0 if meet else 1)
    found = outcome(commit_theirs)
    assert found == MEASURED[other, mine][0 if meet else 1]
    if found == ".":
        model.apply(other, 0)
    check(uri, model)


@pytest.mark.slow
@each_seed(100)
def test_four_concurrent_writers_serialize_in_commit_order(
    base: Path, tmp_path: Path, seed: int
) -> None:
    """Of what each of them planned, all that is acknowledged is there, as if done in that order."""
    uri = str(tmp_path / str(seed))
    shutil.copytree(base / "base", uri)
    draw = random.Random(seed)
    model, planned = Model(), []
    for number in range(4):
        lib = draw.choice([pennon, pennon, lance])
        name = draw.choice(OURS if lib is pennon else THEIRS)
        touched = number if name == "append" else draw.randrange(3)
        planned.append((name, touched, Writer(lib, uri).plan(name, touched)))
    for name, touched, step in planned:
        if outcome(step) == ".":
            model.apply(name, touched)
    check(uri, model)


@pytest.mark.parametrize("other", ["delete", "update", "update columns", "rewrite"])
@pytest.mark.parametrize("same_row", [True, False])
def test_delete_with_row_addresses_merges_with_concurrent_changes_of_pylance(
    uri: str, other: str, same_row: bool
) -> None:
    """It is united with what pylance did to other rows of the fragment, but not of the same."""
    key = {"delete": 3, "update": 5, "update columns": 7, "rewrite": 3}[other]
    gone = key if same_row else 9
    task = plan_delete(pennon.dataset(uri).snapshot, f"a = {gone}")
    removals = [task.run(number) for number in range(task.count)]
    model = Model()
    Writer(lance, uri).plan(other, 0)()
    model.apply(other, 0)
    if other in {"delete", "update"} and not same_row:
        manifest, _ = commit_delete(task, removals)
        assert manifest.version == VERSION + 2
        del model.rows[gone]
    else:
        with pytest.raises(RetryableConflict):
            commit_delete(task, removals)
    check(uri, model)


def test_rows_of_a_cast_column_are_not_lost(uri: str) -> None:
    """pylance 14.0.2 lets an append follow a cast, and the values appended are lost; Pennon does not."""
    ours, theirs = (Writer(lib, uri).plan("append", 0) for lib in (pennon, lance))
    cast: Any = {"path": "b", "data_type": pa.large_string()}
    lance.dataset(uri).alter_columns(cast)
    assert outcome(ours) == "r"
    theirs()
    found = lance.dataset(uri).to_table(filter="a >= 100")
    assert found["b"].to_pylist() == [None, None, None]


@pytest.mark.parametrize(
    ("column", "values", "made"),
    [
        ("a", {"a": "b"}, [34, 127]),  # int8 in a column that is int64 still
        ("b", {"b": "a"}, [1, 1]),
        ("b", {"b": "b + 1"}, [35, -128]),  # a sum of int8 by now
    ],
    ids=["wider", "narrower", "a sum"],
)
def test_update_from_old_handle_uses_current_column_types(
    tmp_path: Path, column: str, values: dict[str, str], made: list[int]
) -> None:
    """Pennon does what both do with a new handle; pylance 14.0.2 fails, its types are the old ones."""
    cast: Any = {"path": "b", "data_type": pa.int8()}
    for library, is_late in ((pennon, True), (pennon, False), (lance, False), (lance, True)):
        uri = str(tmp_path / f"{library.__name__}-{is_late}")
        rows = {"a": pa.array([1, 1]), "b": pa.array([34, 127])}
        dataset = library.write_dataset(pa.table(rows), uri)
        lance.dataset(uri).alter_columns(cast)
        if is_late and library is lance:
            with pytest.raises(OSError, match=r"column types must match|Int8 \+ Int64"):
                dataset.update(values)
            assert lance.dataset(uri).version == 2
        else:
            (dataset if is_late else library.dataset(uri)).update(values)
            assert lance.dataset(uri).to_table()[column].to_pylist() == made


def test_update_from_old_handle_of_dropped_columns_is_refused(tmp_path: Path) -> None:
    """pylance 14.0.2 makes a version of it, where a retry finds no row in a table that was overwritten."""
    for library in (pennon, lance):
        uri = str(tmp_path / library.__name__)
        late = library.write_dataset(pa.table({"k": [1, 2], "a": [1, 2], "b": [1, 2]}), uri)
        merge = pennon.dataset(uri).merge_insert("k").when_matched_update_all()
        merge.write_mode("rewrite_columns").execute(pa.table({"k": [1], "a": [9]}))
        pennon.write_dataset(pa.table({"k": [15], "c": [1]}), uri, mode="overwrite")
        if library is pennon:
            with pytest.raises(ArgumentError, match="there is no column 'a'"):
                late.update({"a": "NULL"}, where="k <= 1")
        else:
            assert late.update({"a": "NULL"}, where="k <= 1") == {"num_rows_updated": 0}
        dataset = lance.dataset(uri)
        assert dataset.version == (3 if library is pennon else 4)
        assert dataset.to_table().to_pylist() == [{"k": 15, "c": 1}]


def test_commit_across_cleaned_up_versions_is_a_conflict(tmp_path: Path) -> None:
    """pylance 14.0.2 judges a late commit by the versions that a clean-up left, Pennon by all."""
    found: list[list[str] | None] = []
    for library in (pennon, lance):
        uri = str(tmp_path / library.__name__)
        late = library.write_dataset(pa.table({"k": [1], "a": [2]}), uri)
        lance.dataset(uri).drop_columns(["a"])
        lance.dataset(uri).update_config({"x": "1"})
        lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0))
        try:
            late.alter_columns({"path": "k", "name": "key"})
        except IncompatibleConflict:
            found.append(None)
        else:
            found.append(lance.dataset(uri).schema.names)
    assert found == [None, ["key", "a"]]  # the column that was dropped is back
