"""Delete, update and merge on copies of one table: the results of pylance and Pennon are equal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("f", pa.float32()),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
)
ROWS = 12


def rows(first: int, count: int, tag: str) -> pa.Table:
    """Return rows with the keys from ``first`` on."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "a": pa.array(numbers, pa.int64()),
            "b": [f"{tag}{n}" if n % 3 else None for n in numbers],
            "f": pa.array([n / 2 for n in numbers], pa.float32()),
            "s": [{"x": n, "y": tag} for n in numbers],
        },
        schema=SCHEMA,
    )


def keyed(*keys: int | None) -> pa.Table:
    """Return rows of a merge's source."""
    return rows(0, len(keys), "n").set_column(0, SCHEMA.field(0), pa.array(keys, pa.int64()))


class Twins:
    """The same table twice, each of which one library changes."""

    def __init__(self, folder: Path, **options: Any) -> None:
        theirs, ours = str(folder / "theirs"), str(folder / "ours")
        lance.write_dataset(rows(0, ROWS, "s"), theirs, max_rows_per_file=5, **options)
        lance.dataset(theirs).delete("a = 3")
        shutil.copytree(theirs, ours)
        self.theirs, self.ours = lance.dataset(theirs), pennon.dataset(ours)

    def both(self, change: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return what a change gives on either, or that it failed."""
        return _outcome(change, self.theirs), _outcome(change, self.ours)

    def check(self) -> None:
        """Raise unless both tables are alike, as pylance sees them."""
        ours = lance.dataset(self.ours.uri)
        ours.validate()
        assert ours.version == self.theirs.version == self.ours.version
        assert _seen(ours) == _seen(self.theirs)
        assert _shape(ours) == _shape(self.theirs)
        columns = [*SCHEMA.names, "_rowid"]
        mine = self.ours.to_table(columns=columns)
        assert mine.equals(ours.to_table(columns=columns))


def _outcome(change: Callable[[Any], Any], dataset: Any) -> Any:
    try:
        return dict(change(dataset))
    except (OSError, ValueError, NotImplementedError):
        return "failed"


def _seen(dataset: Any) -> list[Any]:
    columns = list(SCHEMA.names)
    if dataset.has_stable_row_ids:
        columns += ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    table = dataset.to_table(columns=columns)
    return sorted(map(repr, table.to_pylist()))


def _shape(dataset: Any) -> list[Any]:
    """Return the fragments: ids, rows, deleted rows, and the fields of their files."""
    return [
        (f.fragment_id, f.physical_rows, f.num_deletions, [d.fields for d in f.data_files()])
        for f in dataset.get_fragments()
    ]


@pytest.fixture(params=["2.2", "2.1 stable", "2.0", "2.2 stable", "0.1"])
def twins(request: Any, tmp_path: Path) -> Twins:
    version, _, stable = request.param.partition(" ")
    return Twins(tmp_path, data_storage_version=version, enable_stable_row_ids=bool(stable))


PREDICATES: list[Any] = [
    "a > 100",
    "a >= 0",
    "a < 5",
    "true",
    "false",
    "1 = 1",
    "b IS NULL",
    "s.x = 4 OR f > 4",
    "a IN (1, 7)",
    "_rowid = 2",
    "b",
    "",
    "nope = 1",
    "a +",
    "NULL",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_deletes_equal_pylance(twins: Twins, predicate: str) -> None:
    theirs, ours = twins.both(lambda dataset: dataset.delete(predicate))
    assert ours == theirs
    twins.check()


def test_deletes_by_expressions_of_pyarrow(twins: Twins) -> None:
    theirs, ours = twins.both(lambda dataset: dataset.delete(pc.field("a") < 7))
    assert ours == theirs == {"num_deleted_rows": 6}
    twins.check()


UPDATES: list[tuple[dict[str, str], str | None]] = [
    ({"a": "a + 1"}, None),
    ({"a": "a + 1"}, "a > 3"),
    ({"a": "b"}, "a > 3"),
    ({"a": "f"}, "a = 1"),
    ({"b": "a"}, "a = 1"),
    ({"a": "'x'"}, "a = 1"),
    ({"a": "'12'"}, "a = 1"),
    ({"a": "1.7"}, "a = 1"),
    ({"a": "true"}, "a = 1"),
    ({"f": "1e300"}, "a = 1"),
    ({"a": "NULL"}, "a = 1"),
    ({"s": "s"}, "a = 2"),
    ({"s": "named_struct('x', 1, 'y', 'z')"}, "a = 1"),
    ({"a": "b", "b": "a"}, "a = 400"),
    ({"a": "1"}, "a > 100"),
    ({"nope": "1"}, None),
    ({"a": "nope"}, None),
    ({"a": "1"}, "nope = 1"),
    ({"a": "1"}, "b"),
    ({"a": "_rowid"}, None),
    ({"_rowid": "1"}, None),
    ({"s.x": "1"}, None),
    ({"A": "1"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("updates", "where"), UPDATES)
def test_updates_equal_pylance(twins: Twins, updates: dict[str, str], where: str | None) -> None:
    theirs, ours = twins.both(lambda dataset: dataset.update(updates, where=where))
    assert ours == theirs
    twins.check()


def test_update_expressions_read_the_old_row(twins: Twins) -> None:
    """Pylance applies them one after the other, in any order."""
    twins.ours.update({"a": "f", "f": "a"}, where="a IN (4, 11)")
    swapped = lance.dataset(twins.ours.uri).to_table(["a", "f"], filter="f IN (4, 11) AND a < 8")
    assert swapped.to_pydict() == {"a": [2, 5], "f": [4.0, 11.0]}


def update(builder: Any) -> Any:
    return builder.when_matched_update_all()


def insert(builder: Any) -> Any:
    return builder.when_not_matched_insert_all()


def upsert(builder: Any) -> Any:
    return insert(update(builder))


CONDITION = "source.a > 4 AND target.f < 100"
SOME = keyed(2, 5, 20, 21)
PART = SOME.select(["a", "b"])
MERGES: dict[str, tuple[Callable[[Any], Any], pa.Table, Any]] = {
    "upsert": (upsert, SOME, "a"),
    "find or create": (insert, SOME, "a"),
    "update": (update, SOME, "a"),
    "update if": (lambda b: insert(b.when_matched_update_all(CONDITION)), SOME, "a"),
    "delete": (lambda b: b.when_matched_delete(), SOME, "a"),
    "delete and insert": (lambda b: insert(b.when_matched_delete()), SOME, "a"),
    "last clause counts": (lambda b: update(b).when_matched_delete(), SOME, "a"),
    "replace all": (lambda b: upsert(b).when_not_matched_by_source_delete(), SOME, "a"),
    "replace some": (lambda b: upsert(b).when_not_matched_by_source_delete("a < 2"), SOME, "a"),
    "delete others": (lambda b: b.when_not_matched_by_source_delete("b IS NULL"), SOME, "a"),
    "fail": (lambda b: insert(b.when_matched_fail()), SOME, "a"),
    "fail, but nothing does": (lambda b: insert(b.when_matched_fail()), keyed(20, 21), "a"),
    "nothing matches": (update, keyed(20, 21), "a"),
    "a deleted row does not match": (upsert, keyed(3, 4), "a"),
    "no data": (upsert, SOME.slice(0, 0), "a"),
    "no clause": (lambda b: b, SOME, "a"),
    "some columns": (update, PART, "a"),
    "some columns, insert": (upsert, PART, "a"),
    "some columns, find or create": (insert, PART, "a"),
    "key only": (update, SOME.select(["a"]), "a"),
    "other order": (upsert, SOME.select(["s", "f", "b", "a"]), "a"),
    "twice the same key": (upsert, keyed(2, 2, 20), "a"),
    "twice, but not updated": (insert, keyed(2, 2, 20), "a"),
    "twice, both new": (upsert, keyed(20, 20), "a"),
    "twice, one by condition": (
        lambda b: insert(b.when_matched_update_all("source.f = 0.5")),
        keyed(2, 2),
        "a",
    ),
    "twice, delete": (lambda b: b.when_matched_delete(), keyed(2, 2), "a"),
    "NULL keys": (upsert, keyed(None, None, 2), "a"),
    "NULL keys, others go": (
        lambda b: upsert(b).when_not_matched_by_source_delete(),
        keyed(None, 2),
        "a",
    ),
    "key of text": (upsert, rows(1, 3, "s"), "b"),
    "key of two columns": (upsert, rows(1, 3, "s"), ["a", "b"]),
    "key of floats": (upsert, SOME, "f"),
    "key in another case": (upsert, SOME, "A"),
    "no such key": (upsert, SOME, "nope"),
    "no key": (upsert, SOME, []),
    "data without the key": (upsert, SOME.select(["b"]), "a"),
    "key of another type": (
        upsert,
        SOME.set_column(0, "a", SOME.column(0).cast(pa.int32())),
        "a",
    ),
    "value of another type": (upsert, SOME.set_column(1, "b", SOME.column(0)), "a"),
    "a column too many": (upsert, SOME.append_column("q", SOME.column(0)), "a"),
    "condition on nothing": (lambda b: b.when_matched_update_all("nope = 1"), SOME, "a"),
    "condition not of a side": (lambda b: b.when_matched_update_all("b = 3"), SOME, "a"),
    "condition that is none": (lambda b: b.when_matched_update_all("source.a"), SOME, "a"),
    "columns": (lambda b: update(b).write_mode("rewrite_columns"), PART, "a"),
    "columns, all": (lambda b: update(b).write_mode("rewrite_columns"), SOME, "a"),
    "columns, insert": (lambda b: upsert(b).write_mode("rewrite_columns"), PART, "a"),
    "columns, key only": (
        lambda b: update(b).write_mode("rewrite_columns"),
        SOME.select(["a"]),
        "a",
    ),
    "rows": (lambda b: update(b).write_mode("rewrite_rows"), PART, "a"),
    "no such mode": (lambda b: update(b).write_mode("zzz"), PART, "a"),
}


@pytest.mark.parametrize("name", MERGES)
def test_merge_inserts_equal_pylance(twins: Twins, name: str) -> None:
    build, data, on = MERGES[name]
    theirs, ours = twins.both(lambda dataset: build(dataset.merge_insert(on)).execute(data))
    assert ours == theirs
    twins.check()


# --- columns of other kinds -----------------------------------------------------------------------

KINDS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "uuid": pa.array([bytes([n] * 16) for n in range(4)], pa.uuid()),
        "json": pa.array(['{"a":1}', "[]", None, "5"], pa.json_()),
        "time": pa.array([1, 2, None, 3], pa.timestamp("us", "Europe/Berlin")),
        "list": pa.array([[1, 2], [], None, [None]], pa.list_(pa.int32())),
        "word": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "code": pa.array([1.5, None, 1.5, 2.5], pa.float32()).dictionary_encode(),
        "half": pa.array([1, 2, None, 3], pa.float16()),
    }
)
BLOBS = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ]
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_changes_of_columns_of_many_types_equal_pylance(version: Any, tmp_path: Path) -> None:
    seen = []
    for module in (lance, pennon):
        uri = str(tmp_path / module.__name__)
        dataset: Any = module.write_dataset(KINDS, uri, data_storage_version=version)
        dataset.update({"k": "k + 10"}, where="k > 1")
        same = {name: name for name in KINDS.schema.names[1:]}
        assert dataset.update(same, where="k > 11") == {"num_rows_updated": 3}
        values = {"list": "[7, 8]", "json": "'{}'", "word": "'z'", "time": "'2020-01-01'"}
        assert dataset.update(values, where="k = 1") == {"num_rows_updated": 1}
        upsert(dataset.merge_insert("k")).execute(KINDS.slice(0, 2))
        dataset.merge_insert("uuid").when_matched_delete().execute(KINDS.slice(2, 1))
        found = lance.dataset(uri).to_table().to_pylist()
        assert pennon.dataset(uri).to_table().to_pylist() == found
        seen.append(sorted(found, key=lambda row: row["k"]))
    assert seen[0] == seen[1]
    assert [row["k"] for row in seen[0]] == [1, 2, 12, 14]


DEEP = pa.struct([("x", pa.int64()), ("y", pa.struct([("p", pa.int64()), ("q", pa.string())]))])
PART_OF_IT = pa.struct([("y", pa.struct([("q", pa.string())]))])


@pytest.mark.parametrize("build", [upsert, update, insert])
def test_merge_insert_with_partial_structs_keeps_missing_fields(
    build: Callable[[Any], Any], tmp_path: Path
) -> None:
    old = [{"x": 1, "y": {"p": 2, "q": "a"}}, None, {"x": 5, "y": None}, {"x": 7, "y": {"p": 8}}]
    new = [{"y": {"q": "n"}}, {"y": {"q": "m"}}, {"y": {"q": "l"}}, None, {"y": None}, None]
    seen = []
    for module in (lance, pennon):
        uri = str(tmp_path / module.__name__)
        data = pa.table({"k": [0, 1, 2, 3], "s": pa.array(old, DEEP)})
        dataset: Any = module.write_dataset(data, uri, data_storage_version="2.2")
        source = pa.table({"k": [0, 1, 2, 3, 4, 5], "s": pa.array(new, PART_OF_IT)})
        counts = build(dataset.merge_insert("k")).execute(source)
        found = lance.dataset(uri).to_table().to_pylist()
        seen.append((counts, sorted(found, key=lambda row: row["k"])))
    assert seen[0] == seen[1]


def test_update_and_merge_keep_blob_columns(tmp_path: Path) -> None:
    data = pa.table({"k": [1, 2, 3], "b": [b"x" * 100, b"", None]}, BLOBS)
    dataset = pennon.write_dataset(data, tmp_path / "t")
    dataset.update({"k": "k + 10"}, where="k = 2")
    dataset.update({"b": "X'0102'"}, where="k = 3")
    upsert(dataset.merge_insert("k")).execute(pa.table({"k": [12, 5], "b": [b"q", b"w"]}, BLOBS))
    theirs = lance.dataset(dataset.uri)
    keys = theirs.to_table(["k"]).column("k").to_pylist()
    blobs = [blob.readall() for blob in theirs.take_blobs("b", indices=range(4))]
    assert dict(zip(keys, blobs, strict=True)) == {1: b"x" * 100, 3: b"\1\2", 12: b"q", 5: b"w"}


# --- both libraries on one table ------------------------------------------------------------------

CHANGES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda d: d.delete("a = 1"),
    "update": lambda d: d.update({"b": "'u'"}, where="a = 2"),
    "merge": lambda d: update(d.merge_insert("a")).execute(keyed(4)),
}


VALUES: dict[str, dict[int, str | None]] = {"update": {2: "u"}, "merge": {4: None}}


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("ours_first", [True, False])
def test_concurrent_changes_of_different_rows_equal_pylance(
    first: str, second: str, ours_first: bool, tmp_path: Path
) -> None:
    """Both read one version; the second commit unites its deletions with those of the first."""
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 6, "s"), uri)
    handles: list[Any] = [pennon.dataset(uri), lance.dataset(uri)]
    if not ours_first:
        handles.reverse()
    one, other = CHANGES[first](handles[0]), CHANGES[second](handles[1])
    dataset = lance.dataset(uri)
    dataset.validate()
    found = {row["a"]: row["b"] for row in dataset.to_table().to_pylist()}
    expected = {n: f"s{n}" if n % 3 else None for n in range(6)}
    for change in {first, second}:
        expected |= VALUES.get(change, {})
        if change == "delete":
            expected.pop(1, None)
    assert found == expected
    assert pennon.dataset(uri).to_table().equals(dataset.to_table())
    assert sum(one.values()) == 1
    assert sum(other.values()) == (0 if first == second == "delete" else 1)
