"""Each kind of finding, made by one change of a sound table; and what a repair of it does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon import doctor
from pennon.io import open_store
from pennon.ops.doctor import history
from pennon.ops.doctor.findings import Finding, Severity
from pennon.ops.doctor.task import ExamineTask
from pennon.schema.field import Schema
from pennon.table.fragment import BasePath, DataFileRef, DeletionFileRef, Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import (
    parse_index,
    parse_indices,
    serialize_index,
    serialize_indices,
)
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.row_ids.encode_wire import encode_row_id_range

Edit = Callable[[Manifest], Manifest]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of three fragments with stable row ids, a deletion file, a second file and an index."""
    uri = tmp_path / "t.lance"
    rows = pa.table({"id": range(30), "s": [f"row {n}" for n in range(30)]})
    ds = pennon.write_dataset(rows, uri, max_rows_per_file=10, enable_stable_row_ids=True)
    ds.add_columns({"twice": "id * 2"})
    ds.create_scalar_index("id", "BTREE")
    ds.delete("id = 3 OR id = 4")
    return uri


def rewrite(uri: Path, edit: Edit) -> str:
    """Write the newest manifest anew, and return its path."""
    path = min((uri / "_versions").glob("*.manifest"))
    manifest = edit(pennon.dataset(uri).snapshot.manifest)
    path.write_bytes(serialize_manifest_file(manifest))
    return f"_versions/{path.name}"


def first(**change: Any) -> Edit:
    """Return an edit of the first fragment."""
    return lambda m: replace(
        m, fragments=(replace(m.fragments[0], **change), *tuple(m.fragments)[1:])
    )


def first_file(edit: Callable[[DataFileRef], DataFileRef]) -> Edit:
    def change(m: Manifest) -> Manifest:
        files = m.fragments[0].files
        return first(files=(edit(files[0]), *files[1:]))(m)

    return change


def deletions(count: int) -> Edit:
    def change(m: Manifest) -> Manifest:
        deletion = m.fragments[0].deletion_file
        assert isinstance(deletion, DeletionFileRef)
        return first(deletion_file=replace(deletion, num_deleted_rows=count))(m)

    return change


def fragments(edit: Callable[[list[Fragment]], list[Fragment]]) -> Edit:
    return lambda m: replace(m, fragments=tuple(edit(list(m.fragments))))


def indices(edit: Callable[[Index], Index]) -> Edit:
    return lambda m: replace(m, indices=serialize_indices(map(edit, parse_indices(m.indices))))


def of_missing_field(index: Index) -> Index:
    message = serialize_index(index)
    del message.fields[:]
    message.fields.append(77)
    return parse_index(message)


def fields(edit: Callable[[Manifest], tuple[Any, ...]]) -> Edit:
    return lambda m: replace(m, schema=Schema(edit(m), m.schema.metadata), fields_wire=None)


def without_second_files(m: Manifest) -> Manifest:
    """Return a manifest whose last column is required, and in no file of the first fragment."""
    twice = replace(m.schema.fields[2], nullable=False)
    required = fields(lambda it: (*it.schema.fields[:2], twice))(m)
    return first(files=required.fragments[0].files[:1])(required)


EDITS: dict[str, tuple[Edit, set[str], dict[str, Any] | None]] = {
    "size": (
        first_file(lambda f: replace(f, size_bytes=99)),
        {"wrong-size"},
        {"rows": 28, "rows_lost": 0},
    ),
    "rows": (first(physical_rows=11), {"wrong-rows"}, {"rows": 28, "rows_lost": 0}),
    "too few deleted rows": (deletions(1), {"wrong-deletions"}, {"rows": 28, "rows_lost": 0}),
    "too many deleted rows": (deletions(3), {"wrong-deletions"}, {"rows": 20, "rows_lost": 8}),
    "no such column": (
        first_file(lambda f: replace(f, column_indices=(0, 77))),
        {"no-such-column"},
        {"rows": 28, "values_lost": 8},
    ),
    "numbers of fields and columns": (
        first_file(lambda f: replace(f, column_indices=(0,))),
        {"damaged-manifest"},
        {"rows": 30, "rows_lost": 0},
    ),
    "another type": (
        fields(
            lambda m: (
                m.schema.fields[0],
                replace(m.schema.fields[1], logical_type="int64"),
                m.schema.fields[2],
            )
        ),
        {"wrong-type"},
        {"rows": 28, "values_lost": 28},
    ),
    "a field in two files": (
        lambda m: first(files=(m.fragments[0].files[0], *m.fragments[0].files))(m),
        {"field-held-twice"},
        None,
    ),
    "no data file has a required column": (
        without_second_files,
        {"required-column-missing"},
        None,
    ),
    "two fields of one id": (
        fields(lambda m: (*m.schema.fields, replace(m.schema.fields[0], name="more"))),
        {"repeated-field-id"},
        None,
    ),
    "two fragments of one id": (
        fragments(lambda all_: [all_[0], all_[1], replace(all_[2], id=all_[1].id)]),
        {"repeated-fragment-id"},
        None,
    ),
    "order of fragments": (
        fragments(lambda all_: [all_[0], all_[2], all_[1]]),
        {"unordered-fragments"},
        None,
    ),
    "highest fragment": (
        lambda m: replace(m, max_fragment_id=1),
        {"fragment-above-highest"},
        None,
    ),
    "row ids are cut": (
        first(row_ids=b"\x0a\x05ab"),
        {"damaged-row-ids"},
        {"rows": 28, "rows_lost": 0},
    ),
    "row ids of another fragment": (
        first(row_ids=encode_row_id_range(10, 10)),
        {"repeated-row-ids"},
        {"rows": 28, "rows_lost": 0},
    ),
    "next row id": (
        lambda m: replace(m, next_row_id=25),
        {"next-row-id"},
        {"rows": 28, "rows_lost": 0},
    ),
    "row versions are cut": (
        first(created_at_versions=b"\x0a\x05ab"),
        {"damaged-row-versions"},
        {"rows": 28, "rows_lost": 0},
    ),
    "index of a field that is gone": (
        indices(of_missing_field),
        {"index-of-missing-field"},
        {"rows": 28, "rows_lost": 0},
    ),
    "index section": (
        lambda m: replace(m, indices=b"\x0a\xff"),
        {"damaged-manifest", "no-clean-up"},
        {"rows": 30},
    ),
    "base path": (
        first_file(lambda f: replace(f, base_id=7)),
        {"missing-base-path", "missing-file"},
        {"rows": 28, "values_lost": 16},
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_each_fault_of_a_manifest_has_its_code_and_its_repair(table: Path, name: str) -> None:
    assert doctor.examine(table, deep=True).findings == ()
    edit, codes, repaired = EDITS[name]
    path = rewrite(table, edit)
    report = doctor.examine(table)
    found = {each.code for each in report if each.severity is not Severity.NOTE}
    assert found == codes, str(report)
    assert all(each.file or each.fragment is not None or each.index for each in report), path
    plan = doctor.repair(table)
    if repaired is None:
        assert plan.steps == ()
        return
    for key in repaired.keys() - {"rows"}:
        assert getattr(plan, key) == repaired[key], str(plan.steps)
    plan.apply()
    after = doctor.examine(table, deep=True)
    left = {each.code for each in after if each.severity is Severity.ERROR}
    assert left == set(), str(after)
    assert pennon.dataset(table).to_table().num_rows == repaired["rows"]
    ids = pennon.dataset(table).to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids)


def test_two_untold_base_paths_are_named_by_their_places(table: Path, tmp_path: Path) -> None:
    def edit(m: Manifest) -> Manifest:
        base = BasePath(1, str(tmp_path / "away"), is_dataset_root=True)
        return first_file(lambda f: replace(f, base_id=1))(replace(m, base_paths=(base,)))

    rewrite(table, edit)
    (found,) = doctor.examine(table)
    assert found.code == "missing-file"
    assert (found.file or "").startswith(str(tmp_path / "away" / "data"))


def test_tags_and_branches_of_missing_versions_are_named(table: Path) -> None:
    ds = pennon.dataset(table)
    ds.tags.create("old", 1)
    ds.create_branch("side")
    max((table / "_versions").iterdir()).unlink()
    for path in (table / "tree" / "side" / "_versions").iterdir():
        path.unlink()
    found = {each.code: each.file for each in doctor.examine(table)}
    assert found == {
        "dangling-tag": "_refs/tags/old.json",
        "empty-branch": "_refs/branches/side.json",
    }


def test_orphans_are_a_note_after_a_week_and_stay(table: Path) -> None:
    path = table / "data" / "00000000-0000-0000-0000-000000000000.lance"
    path.write_bytes(b"x" * 100)
    assert doctor.examine(table).findings == ()
    past = time.time() - 8 * 24 * 3600
    os.utime(path, (past, past))
    (found,) = doctor.examine(table)
    assert (found.severity, found.code, found.file) == ("note", "orphans", f"data/{path.name}")
    assert doctor.examine(table).is_sound
    assert path.exists()


def test_many_small_fragments_and_versions_and_uncovered_rows_are_notes(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MANY_VERSIONS", 3)
    monkeypatch.setattr(history, "MANY_SMALL", 3)
    monkeypatch.setattr(history, "FEW_ROWS", 1)
    ds = pennon.dataset(table)
    ds.insert(ds.to_table(limit=20))
    ds.delete("id > 15")
    found = {each.code: each.advice for each in doctor.examine(table)}
    assert found.keys() == {
        *("many-versions", "small-fragments", "many-deleted-rows", "uncovered-rows")
    }
    assert "pennon clean" in found["many-versions"]
    assert "pennon compact" in found["small-fragments"]
    assert "optimize_indices" in found["uncovered-rows"]


def test_missing_transaction_file_is_a_note_where_the_manifest_has_it(table: Path) -> None:
    for path in (table / "_transactions").iterdir():
        path.unlink()
    report = doctor.examine(table)
    assert [(each.severity, each.code) for each in report] == [("note", "missing-transaction")]
    rewrite(table, lambda m: replace(m, transaction=None))
    (found,) = doctor.examine(table)
    assert (found.severity, found.code) == ("warning", "missing-transaction")
    assert (found.file or "").startswith("_transactions/")


def test_older_version_can_be_examined_and_names_its_lost_files(table: Path) -> None:
    for fragment in pennon.dataset(table).snapshot.manifest.fragments:
        (table / fragment.files[1].store_path).unlink()
    assert doctor.examine(table, version=1).count(Severity.ERROR) == 0
    assert pennon.dataset(table, version=1).doctor().count(Severity.ERROR) == 0
    assert doctor.examine(table).count(Severity.ERROR) == 3
    with pytest.raises(pennon.errors.NotFoundError):
        doctor.examine(table, version=9)


def test_tasks_pickle_their_findings_as_messages(table: Path) -> None:
    snapshot = pennon.dataset(table).snapshot
    min((table / "data").iterdir()).unlink()
    task = ExamineTask.of(snapshot, deep=True)
    assert task.count == 4
    for number in range(task.count):
        state = task.run(number)
        assert task.from_bytes(task.to_bytes(state)) == state
    for wrong in (b"", b"{}", b"[1]", b'{"fragment": {"id": 1}}', b'{"segment": 5}'):
        with pytest.raises(pennon.errors.FormatError):
            task.from_bytes(wrong)


def test_control_characters_of_names_do_not_reach_the_lines_of_a_report() -> None:
    found = Finding(Severity.ERROR, "missing-file", "a\x1b[2Jb", file="x\ny", column="\u202e")
    assert str(found).isprintable()
    assert found.where.isprintable()


def test_tables_in_memory_are_examined(tmp_path: Path) -> None:
    uri = "memory://doctor/t.lance"
    pennon.write_dataset(pa.table({"id": range(30)}), uri, max_rows_per_file=10)
    assert doctor.examine(uri, deep=True).is_sound
    store = open_store(uri)
    path = next(iter(store.list_names("data")))[0]
    store.delete(path)
    assert [each.file for each in doctor.examine(uri)] == [path]
