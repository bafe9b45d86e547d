"""Operations on columns, on copies of one table and in turn on one: equal results with pylance."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import UnsupportedError

Change = Callable[[Any], Any]
ROWS = 12
STRUCT = pa.struct([pa.field("x", pa.int32(), metadata={"unit": "m"}), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        ("b", pa.string()),
        ("s", STRUCT),
        ("l", pa.list_(pa.int32())),
        ("f", pa.float64()),
    ],
    metadata={"about": "columns"},
)


def rows(first: int, count: int) -> pa.Table:
    """Return rows of the table."""
    numbers = range(first, first + count)
    columns = {
        "a": numbers,
        "b": [f"row {n}" for n in numbers],
        "s": [{"x": n, "y": f"y{n}"} for n in numbers],
        "l": [[n] * (1 + n % 3) for n in numbers],
        "f": [n / 2 for n in numbers],
    }
    return pa.table(columns, schema=SCHEMA)


def _function(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"u": pc.add(batch["a"], 100)})


def _again(name: str, *, count: int) -> pa.RecordBatchReader:
    """Return a new column in batches of its own."""
    values = list(range(count))
    batches = [pa.record_batch({name: values[n : n + 4]}) for n in range(0, count, 4)]
    return pa.RecordBatchReader.from_batches(pa.schema([(name, pa.int64())]), batches)


def _joined(name: str) -> pa.Table:
    return pa.table({"key": pa.array([0, 5, 5, 99]), name: ["p", "q", "r", "s"]})


CHANGES: dict[str, Change] = {
    "sql": lambda ds: ds.add_columns({"double": "a * 2", "text": "concat(b, '!')"}),
    "constants": lambda ds: ds.add_columns({"one": "1", "t": "'x'", "n": "f is null"}),
    "column of a struct": lambda ds: ds.add_columns({"sx": "s.x + 1"}),
    "NULL by SQL": lambda ds: ds.add_columns({"nothing": "cast(null as int)"}),
    "function": lambda ds: ds.add_columns(_function, read_columns=["a"]),
    "function of addresses": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch({"at": batch["_rowaddr"]}), read_columns=["_rowaddr"]
    ),
    "reader": lambda ds: ds.add_columns(_again("again", count=ds.count_rows())),
    "merge": lambda ds: ds.merge(_joined("m"), "a", "key"),
    "merge by row id": lambda ds: ds.merge(
        pa.table({"_rowid": pa.array([1, 9, 99], pa.uint64()), "m": ["1", "2", "3"]}), "_rowid"
    ),
    "merge by text, NULL is a key": lambda ds: (
        ds.alter_columns({"path": "b", "data_type": pa.large_string()}),
        ds.merge(
            pa.table({"b": pa.array(["row 2", None], pa.large_string()), "m": ["x", "y"]}), "b"
        ),
    ),
    "drop": lambda ds: ds.drop_columns(["b"]),
    "drop in a struct": lambda ds: ds.drop_columns(["s.y"]),
    "drop all of a struct": lambda ds: ds.drop_columns(["s.x", "s.y"]),
    "drop what was added": lambda ds: (ds.add_columns({"g": "a"}), ds.drop_columns(["g"])),
    "drop and add again": lambda ds: (ds.drop_columns(["f"]), ds.add_columns({"f": "a"})),
    "rename": lambda ds: ds.alter_columns({"path": "b", "name": "B"}),
    "rename in a struct": lambda ds: ds.alter_columns({"path": "s.x", "name": "X"}),
    "swap names": lambda ds: ds.alter_columns(
        {"path": "b", "name": "f"}, {"path": "f", "name": "b"}
    ),
    "may be NULL": lambda ds: ds.alter_columns({"path": "a", "nullable": True}),
    "may not be NULL": lambda ds: ds.alter_columns({"path": "b", "nullable": False}),
    "cast": lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int16()}),
    "cast twice": lambda ds: (
        ds.alter_columns({"path": "a", "data_type": pa.int32(), "name": "A"}),
        ds.alter_columns({"path": "A", "data_type": pa.uint8()}),
    ),
    "cast all": lambda ds: ds.alter_columns(
        {"path": "f", "data_type": pa.float32()},
        {"path": "b", "data_type": pa.large_string()},
        {"path": "l", "data_type": pa.large_list(pa.int64())},
    ),
    "cast a list's items": lambda ds: ds.alter_columns({"path": "l.item", "data_type": pa.int8()}),
    "config": lambda ds: ds.update_config({"x": "1", "lance.y": "2"}),
    "delete config": lambda ds: (ds.update_config({"x": "1"}), ds.delete_config_keys(["x", "z"])),
    "table metadata": lambda ds: ds.update_metadata({"x": "1", "y": None}),
    "schema metadata": lambda ds: ds.update_schema_metadata({"x": "1", "about": None}),
    "replace schema metadata": lambda ds: ds.update_schema_metadata({"z": "9"}, replace=True),
    "field metadata": lambda ds: ds.update_field_metadata({"s.x": {"k": "v"}, "a": {"i": "j"}}),
    "replace field metadata": lambda ds: ds.update_field_metadata(
        {"s.x": {"k": "v"}}, replace=True
    ),
}
NULLS: dict[str, Change] = {
    "field": lambda ds: ds.add_columns(pa.field("n", pa.int32())),
    "fields": lambda ds: ds.add_columns(
        [pa.field("v", pa.list_(pa.float32(), 4)), pa.field("w", pa.string())]
    ),
    "schema": lambda ds: ds.add_columns(pa.schema([("z", pa.struct([("q", pa.bool_())]))])),
}
REFUSED: dict[str, Change] = {
    "name is taken": lambda ds: ds.add_columns({"a": "1"}),
    "no such column": lambda ds: ds.add_columns({"z": "nope + 1"}),
    "dotted": lambda ds: ds.add_columns({"s.z": "1"}),
    "never NULL": lambda ds: ds.add_columns(pa.field("z", pa.int8(), nullable=False)),
    "too few rows": lambda ds: ds.add_columns(_again("z", count=3)),
    "too many rows": lambda ds: ds.add_columns(_again("z", count=13)),
    "too few rows of a function": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch({"z": batch["a"].slice(batch.num_rows > 1)})
    ),
    "drop what is not there": lambda ds: ds.drop_columns(["nope"]),
    "drop all": lambda ds: ds.drop_columns(["a", "b", "s", "l", "f"]),
    "alter what is not there": lambda ds: ds.alter_columns({"path": "z", "name": "y"}),
    "alter nothing": lambda ds: ds.alter_columns({"path": "a"}),
    "two of a name": lambda ds: ds.alter_columns({"path": "a", "name": "b"}),
    "cast to text": lambda ds: ds.alter_columns({"path": "a", "data_type": pa.string()}),
    "cast overflows": lambda ds: (
        ds.add_columns({"big": "a + 1000"}),
        ds.alter_columns({"path": "big", "data_type": pa.int8()}),
    ),
    "merge without key": lambda ds: ds.merge(_joined("m"), "a"),
    "merge by a wrong key": lambda ds: ds.merge(_joined("m"), "nope", "key"),
    "merge by another type": lambda ds: ds.merge(_joined("m"), "b", "key"),
    "merge a name that is there": lambda ds: ds.merge(_joined("b"), "a", "key"),
    "metadata of what is not there": lambda ds: ds.update_field_metadata({"z": {"a": "b"}}),
}
KINDS = [("0.1", False), ("2.0", False), ("2.1", True), ("2.2", False), ("2.2", True)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}{'-stable' if kind[1] else ''}")
def twins(request: pytest.FixtureRequest, tmp_path: Path) -> Twins:
    """The table at each file version, with stable row ids and without."""
    version, stable = request.param
    return Twins(tmp_path, data_storage_version=version, enable_stable_row_ids=stable)


class Twins:
    """The same table twice, each of which one library changes: two fragments, rows deleted."""

    def __init__(self, folder: Path, table: pa.Table | None = None, **options: Any) -> None:
        theirs, ours = str(folder / "theirs"), str(folder / "ours")
        lance.write_dataset(table or rows(0, ROWS), theirs, max_rows_per_file=8, **options)
        if table is None:
            lance.dataset(theirs).delete("a in (0, 3, 4, 11)")
        shutil.copytree(theirs, ours)
        self.theirs, self.ours = lance.dataset(theirs), pennon.dataset(ours)

    def both(self, change: Change) -> tuple[Any, Any]:
        """Return what a change gives on either, or that it failed."""
        return _outcome(change, self.theirs), _outcome(change, self.ours)

    def check(self, *, same_files: bool = True, same_lineage: bool = True) -> None:
        """Raise unless both tables are alike, as pylance sees them and as we do."""
        ours = lance.dataset(self.ours.uri)
        ours.validate()
        assert ours.version == self.theirs.version == self.ours.version
        assert _ids(ours) == _ids(self.theirs)
        assert ours.schema.equals(self.theirs.schema, check_metadata=True)
        assert ours.to_table().equals(self.theirs.to_table())
        assert pennon.dataset(self.ours.uri).to_table().equals(ours.to_table())
        assert (ours.metadata, ours.config()) == (self.theirs.metadata, self.theirs.config())
        if ours.has_stable_row_ids and same_lineage:
            assert _lineage(ours) == _lineage(self.theirs)
        if same_files:
            assert _files(ours) == _files(self.theirs)


def _outcome(change: Change, dataset: Any) -> str:
    try:
        change(dataset)
    except (OSError, ValueError, NotImplementedError, TypeError):
        return "failed"
    return "done"


def _ids(dataset: Any) -> list[Any]:
    def shown(field: Any) -> Any:
        return field.name(), field.id(), [shown(child) for child in field.children()]

    return [shown(field) for field in dataset.lance_schema.fields()]


def _files(dataset: Any) -> list[Any]:
    def shown(file: Any) -> Any:
        version = file.file_major_version, file.file_minor_version
        return list(file.fields), list(file.column_indices), version

    found = [f.metadata for f in dataset.get_fragments()]
    return [(f.id, f.physical_rows, f.num_deletions, list(map(shown, f.files))) for f in found]


def _lineage(dataset: Any) -> list[Any]:
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    return dataset.to_table(columns=columns).to_pylist()


@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_column_changes_equal_pylance(twins: Twins, change: Change) -> None:
    """Schema, ids, files and rows are the same."""
    assert twins.both(change) == ("done", "done")
    twins.check()


@pytest.mark.parametrize("change", NULLS.values(), ids=NULLS)
def test_null_columns_are_added_to_the_schema_only(twins: Twins, change: Change) -> None:
    """They are in the schema only; version 0.1 has none."""
    expected = "failed" if twins.ours.data_storage_version == "0.1" else "done"
    assert twins.both(change) == (expected, expected)
    twins.check()


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_column_changes_refused_by_pylance_are_refused(twins: Twins, change: Change) -> None:
    """What pylance refuses, so does Pennon, and no version is made."""
    assert twins.both(change) == ("failed", "failed")
    twins.check()


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize(("path", "data_type"), [("s.x", pa.int64()), ("s.y", pa.large_string())])
def test_casts_in_structs(tmp_path: Path, version: str, path: str, data_type: pa.DataType) -> None:
    """Schema and rows are the same; we write the whole column, which pylance reads at all versions.

    Pylance writes the field alone, and at version 2.0 cannot read the table any more.  At 0.1 all of
    the column gets new ids, for pylance's validation wants them in order.
    """
    twins = Twins(tmp_path, data_storage_version=version)
    twins.both(lambda ds: ds.alter_columns({"path": path, "data_type": data_type}))
    ours = lance.dataset(twins.ours.uri)
    assert version == "0.1" or _ids(ours) == _ids(twins.theirs)
    assert ours.schema == twins.theirs.schema
    expected = twins.ours.checkout_version(2).to_table().to_pylist()
    assert ours.to_table().to_pylist() == twins.ours.to_table().to_pylist() == expected
    assert ours.to_table(columns=[path]).num_rows == len(expected)
    ours.validate()


@pytest.mark.parametrize("path", ["l.item.x", "l.item.y", "l.item.deep.item.z"])
def test_casts_in_lists_by_pylance(tmp_path: Path, path: str) -> None:
    """It writes that field alone, also where it cannot read the table any more, as we can."""
    deep = pa.list_(pa.struct([("z", pa.int16())]))
    point = pa.struct([("x", pa.int32()), ("y", pa.int32()), ("deep", deep)])
    item = {"x": 1, "y": None, "deep": [{"z": 3}, None]}
    lists = [[item], None, [], [None, item | {"deep": None}], [item, item | {"deep": []}], [item]]
    table = pa.table({"a": range(6), "l": pa.array(lists, pa.list_(point))})
    lance.write_dataset(table, tmp_path, max_rows_per_file=4, data_storage_version="2.1")
    theirs = lance.dataset(tmp_path)
    theirs.delete("a in (0, 5)")
    cast: Any = {"path": path, "data_type": pa.int64()}
    theirs.alter_columns(cast)
    ours = pennon.dataset(tmp_path)
    assert ours.schema == theirs.schema
    expected = table.slice(1, 4).to_pylist()
    assert ours.to_table().to_pylist() == expected
    assert ours.take([3, 0]).to_pylist() == [expected[3], expected[0]]
    ours.optimize.compact_files()
    assert lance.dataset(tmp_path).to_table().to_pylist() == expected


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_null_type_column_cast_to_other_types_is_read_by_pylance(
    tmp_path: Path, version: Any
) -> None:
    """At the top, in a struct and in a list; pylance itself casts no such column."""
    inner = pa.struct([("v", pa.null()), ("w", pa.int32())])
    table = pa.table(
        {
            "id": [1, 2, 3],
            "x": pa.nulls(3),
            "s": pa.array([{"w": 1}, {"w": 2}, {"w": 3}], inner),
            "l": pa.array([[None], [], None], pa.list_(pa.null())),
        }
    )
    lance.write_dataset(table, tmp_path, data_storage_version=version, max_rows_per_file=2)
    cast: Any = {"path": "x", "data_type": pa.string()}
    with pytest.raises(OSError, match='Cannot cast column "x" from Null'):
        lance.dataset(tmp_path).alter_columns(cast)
    ours = pennon.dataset(tmp_path)
    kinds: dict[str, Any] = {"x": pa.string(), "s.v": pa.list_(pa.int32()), "l.item": pa.float64()}
    changes: list[Any] = [{"path": path, "data_type": kind} for path, kind in kinds.items()]
    ours.alter_columns(*changes)
    row = {"id": 4, "x": "t", "s": {"v": [7], "w": 4}, "l": [0.5]}
    theirs = lance.dataset(tmp_path)
    theirs.insert(pa.Table.from_pylist([row], theirs.schema))
    ours = pennon.dataset(tmp_path)
    assert theirs.to_table().to_pylist() == [*table.to_pylist(), row]
    assert ours.to_table().to_pylist() == [*table.to_pylist(), row]
    ours.optimize.compact_files()
    assert lance.dataset(tmp_path).to_table().to_pylist() == [*table.to_pylist(), row]


ROUND: tuple[Change, ...] = (
    lambda ds: ds.add_columns({"n1": "a + 1"}),
    lambda ds: ds.alter_columns({"path": "n1", "data_type": pa.int32(), "name": "n2"}),
    lambda ds: ds.merge(_joined("m"), "a", "key"),
    lambda ds: ds.drop_columns(["n2", "s.y"]),
    lambda ds: ds.add_columns({"n3": "a * 2", "n4": "b"}),
    lambda ds: ds.alter_columns({"path": "s.x", "name": "X"}),
    lambda ds: ds.delete("a = 7"),
    lambda ds: ds.update_field_metadata({"n4": {"k": "v"}}),
    lambda ds: ds.add_columns(_again("n5", count=ds.count_rows())),
    lambda ds: ds.update_config({"k": "v"}),
    lambda ds: ds.drop_columns(["m", "l"]),
)


@pytest.mark.parametrize("first", [0, 1])
def test_column_changes_in_turn_with_pylance(twins: Twins, first: int) -> None:
    """Each makes every other version of one table; the other table is made by pylance alone."""
    uri = twins.ours.uri
    for number, change in enumerate(ROUND):
        library = (pennon, lance)[(first + number) % 2]
        change(library.dataset(uri))
        change(twins.theirs)
    twins.ours = pennon.dataset(uri)
    twins.check()


def test_updated_columns_of_a_fragment(twins: Twins) -> None:
    """Files, ids and offsets are the same, and what we write pylance commits."""
    address = [(0 << 32) | 1, (0 << 32) | 7, 77 << 32]
    data = pa.table({"_rowaddr": pa.array(address, pa.uint64()), "b": ["P", "Q", "R"]})
    made = [
        each.get_fragment(0).update_columns(data, left_on="_rowaddr", with_offsets=True)
        for each in (twins.theirs, twins.ours)
    ]
    assert made[0][1:] == made[1][1:]
    files = [[(f.fields, f.column_indices) for f in fragment.files] for fragment, *_ in made]
    assert files[0] == files[1]
    fragment = lance.FragmentMetadata.from_json(_json(made[1][0]))
    operation = lance.LanceOperation.Update(
        updated_fragments=[fragment], fields_modified=made[1][1]
    )
    done = lance.LanceDataset.commit(twins.ours.uri, operation, read_version=2)
    assert done.to_table(columns=["b"])["b"].to_pylist()[:5] == [
        "P",
        "row 2",
        "row 5",
        "row 6",
        "Q",
    ]


def _json(fragment: Any) -> str:
    return json.dumps(fragment.to_json())


def test_update_columns_commit_equals_pylance_but_for_row_versions(twins: Twins) -> None:
    """The same call and commit in both libraries give the same table, but for the versions of rows.

    Without offsets we say that all rows of the fragment are updated, and pylance that none is (F-362).
    """
    data = pa.table({"k": [1, 2, 7], "f": [0.5, None, 1.5], "s": [{"x": 9, "y": "z"}] * 3})
    if twins.ours.data_storage_version == "0.1":
        data = data.set_column(1, "f", pa.array([0.5, 2.5, 1.5]))
    data = data.cast(pa.schema([("k", pa.int64()), ("f", pa.float64()), ("s", STRUCT)]))
    done = []
    for library, dataset in ((lance, twins.theirs), (pennon, twins.ours)):
        fragment, fields, *_ = dataset.get_fragment(0).update_columns(data, "a", "k")
        operation = library.LanceOperation.Update(
            updated_fragments=[fragment], fields_modified=fields, update_mode="rewrite_columns"
        )
        done.append(library.LanceDataset.commit(dataset.uri, operation, read_version=2))
    twins.theirs, twins.ours = done
    twins.check(same_lineage=False)
    if twins.ours.has_stable_row_ids:
        live = twins.ours.get_fragment(0).count_rows()
        moved = [n < live for n in range(twins.ours.count_rows())]
        name = "_row_last_updated_at_version"
        theirs, ours = _lineage(twins.theirs), _lineage(lance.dataset(twins.ours.uri))
        assert [row[name] for row in ours] == [
            3 if is_moved else row[name] for row, is_moved in zip(theirs, moved, strict=True)
        ]
        assert [{**row, name: 0} for row in ours] == [{**row, name: 0} for row in theirs]


def test_data_replacement_is_committed_by_both(twins: Twins) -> None:
    """A file that we write for a column of NULLs, or instead of one, both libraries put in."""
    if twins.ours.data_storage_version == "0.1":
        return
    for library, dataset in ((lance, twins.theirs), (pennon, twins.ours)):
        dataset.add_columns(pa.field("n", pa.int32()))
        made, _ = dataset.get_fragment(0).merge_columns({"tmp": "cast(a as int)"})
        file = made.files[-1]
        file.fields = [dataset.lance_schema.field("n").id()]
        group = library.LanceOperation.DataReplacementGroup(0, file)
        operation = library.LanceOperation.DataReplacement([group])
        library.LanceDataset.commit(dataset.uri, operation, read_version=3)
        dataset.checkout_latest()
    assert twins.ours.to_table()["n"].to_pylist() == [1, 2, 5, 6, 7, None, None, None]
    twins.check()


def test_fragments_with_merged_columns_are_committed_by_pylance(twins: Twins) -> None:
    """Fragments that we wrote columns for, one by one, pylance commits as a merge."""
    made = [f.merge_columns({"z": "a * 3"}) for f in twins.ours.get_fragments()]
    fragments = [lance.FragmentMetadata.from_json(_json(fragment)) for fragment, _ in made]
    twins.theirs.add_columns({"z": "a * 3"})
    operation = lance.LanceOperation.Merge(fragments, twins.theirs.lance_schema)
    lance.LanceDataset.commit(twins.ours.uri, operation, read_version=2)
    twins.ours.checkout_latest()
    twins.check()


def test_column_data_for_2_3_files_is_refused(tmp_path: Path) -> None:
    """In a table of version 2.3 columns are renamed, dropped and NULL, but none is written."""
    lance.write_dataset(rows(0, 3), tmp_path, data_storage_version="2.3")
    dataset = pennon.dataset(tmp_path)
    dataset.alter_columns({"path": "a", "name": "A"})
    dataset.add_columns(pa.field("n", pa.int8()))
    dataset.drop_columns(["l"])
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        dataset.add_columns({"c": "b"})
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        dataset.alter_columns({"path": "A", "data_type": pa.int8()})
    assert lance.dataset(tmp_path).to_table(columns=["A", "n"]).to_pylist() == [
        {"A": n, "n": None} for n in range(3)
    ]
