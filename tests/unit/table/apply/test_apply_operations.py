"""The manifest after each operation; ids, row versions and indices above all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.errors import ArgumentError, RetryableConflict, UnsupportedError
from pennon.io import MemoryStore
from pennon.proto import file_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_fields
from pennon.table.apply import ApplyContext, apply, create
from pennon.table.commit.loop import commit
from pennon.table.fragment import BasePath, DeletionFileRef, DeletionKind, Fragment, Sequence
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import parse_indices, serialize_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)
from pennon.table.roaring import serialize_roaring
from pennon.table.row_ids.decode_wire import decode_row_ids, decode_row_versions
from pennon.table.row_ids.encode_wire import encode_row_ids
from pennon.table.transaction import Transaction
from tests.unit.table.commit.test_conflict_matrix import index
from tests.unit.table.tables import SCHEMA, append, data_file, new_fragment

NOW = ApplyContext(now_ns=5)
DELETION = DeletionFileRef(DeletionKind.ARROW, 1, 5, 2)
S_ONLY = data_file("s.lance")


def table(*rows: int, stable: bool = False, **changes: Any) -> Manifest:
    """Return a table with a fragment of each number of rows, each made in a version of its own."""
    first = Transaction(0, Overwrite((new_fragment(rows[0]),), SCHEMA))
    head = create(first, ApplyContext(1, stable_row_ids=stable))
    for count in rows[1:]:
        head = apply(head, append(head.version, new_fragment(count)), NOW)
    return replace(head, **changes)


@pytest.mark.parametrize("left", [0, 3])
def test_row_ids_beyond_64_bits_are_refused(left: int) -> None:
    head = table(4, stable=True, next_row_id=2**64 - 1 - left)
    with pytest.raises(ArgumentError, match=f"next one would be {2**64 + 3 - left}"):
        apply(head, append(head.version, new_fragment(4)), NOW)
    with pytest.raises(ArgumentError, match=f"next one would be {2**64 + 3 - left}"):
        done(head, Update((), (), (new_fragment(4),)))


def done(head: Manifest, operation: Operation, around: ApplyContext = NOW) -> Manifest:
    return apply(head, Transaction(head.version, operation), around)


def ids(manifest: Manifest) -> list[int]:
    return [fragment.id for fragment in manifest.fragments]


def numbers(sequence: Sequence | None, rows: int, decode: Callable[..., Any]) -> list[int]:
    assert isinstance(sequence, bytes)
    found: list[int] = decode(sequence, rows).tolist()
    return found


def row_ids(fragment: Fragment) -> list[int]:
    return numbers(fragment.row_ids, fragment.physical_rows or 0, decode_row_ids)


def versions(fragment: Fragment) -> tuple[list[int], list[int]]:
    rows = fragment.physical_rows or 0
    pair = (fragment.created_at_versions, fragment.last_updated_at_versions)
    created, updated = (numbers(each, rows, decode_row_versions) for each in pair)
    return created, updated


def with_indices(head: Manifest, *indices: Index) -> Manifest:
    return replace(head, indices=serialize_indices(indices))


def covered(manifest: Manifest) -> dict[str, set[int]]:
    return {each.name: set(each.fragment_ids or ()) for each in parse_indices(manifest.indices)}


def known_rows(*given: int) -> bytes:
    return encode_row_ids(np.array(given, np.uint64))


def test_delete_operation_removes_or_updates_fragments() -> None:
    head = table(10, 10, 10)
    odd = replace(head.fragments[1], unknown=b"\xa2\x1f\x03abc")
    head = replace(head, fragments=(head.fragments[0], odd, head.fragments[2]))
    dead = replace(new_fragment(), id=FragmentId(1), deletion_file=DELETION)
    after = done(head, Delete((dead,), (FragmentId(0),)))
    assert after.fragments == (replace(odd, deletion_file=DELETION), head.fragments[2])
    assert (after.reader_flags, after.max_fragment_id) == (1, 2)
    for wrong in (Delete((), (FragmentId(9),)), Delete((replace(dead, id=FragmentId(9)),), ())):
        with pytest.raises(ArgumentError, match="no fragment 9"):
            done(head, wrong)


def test_append_after_deleting_all_rows_continues_ids() -> None:
    head = table(10, 10, stable=True)
    empty = done(head, Delete((), (FragmentId(0), FragmentId(1))))
    again = done(empty, append(0, new_fragment(3)).operation)
    assert ids(again) == [2]
    assert row_ids(again.fragments[0]) == [20, 21, 22]


def test_update_keeps_row_ids_and_creation_versions() -> None:
    head = table(4, 4, stable=True)
    rest = [replace(f, deletion_file=DELETION) for f in head.fragments]
    moved = replace(new_fragment(5), row_ids=known_rows(6, 1, 2))
    after = done(head, Update((), tuple(rest), (moved, new_fragment(1))))
    first, second = after.fragments[2:]
    assert row_ids(first) == [6, 1, 2, 8, 9]
    assert versions(first) == ([2, 1, 1, 3, 3], [3] * 5)
    assert (row_ids(second), versions(second)) == ([10], ([3], [3]))
    assert after.next_row_id == 11
    assert versions(after.fragments[0]) == ([1] * 4, [1] * 4)


def test_update_without_stable_row_ids_drops_row_ids() -> None:
    moved = replace(new_fragment(2), row_ids=known_rows(6, 1))
    after = done(table(4), Update((FragmentId(0),), (), (moved,)))
    assert (ids(after), after.fragments[0].row_ids, after.next_row_id) == ([1], None, 0)


def test_columns_written_anew() -> None:
    head = table(4, 4, stable=True)
    changed = replace(new_fragment(4), id=FragmentId(1), row_ids=None)
    fields = tuple(field.id for field in SCHEMA.walk())
    columns = Update((), (changed,), (), fields, mode=UpdateMode.REWRITE_COLUMNS)
    plain = done(head, columns).fragments[1]
    assert (plain.files, row_ids(plain)) == (changed.files, [4, 5, 6, 7])
    assert versions(plain) == ([2] * 4, [3] * 4)  # nothing says which rows, so all are updated
    only_deleted = replace(head.fragments[1], deletion_file=DELETION)
    assert versions(done(head, Update((), (only_deleted,), ())).fragments[1]) == ([2] * 4, [2] * 4)
    offsets = {FragmentId(1): serialize_roaring(np.array([1, 3], np.uint32))}
    marked = done(head, replace(columns, updated_offsets=offsets)).fragments[1]
    assert versions(marked) == ([2] * 4, [2, 3, 2, 3])
    offsets = {FragmentId(1): serialize_roaring(np.array([4], np.uint32))}
    with pytest.raises(ArgumentError, match="has no row 4"):
        done(head, replace(columns, updated_offsets=offsets))
    with pytest.raises(RetryableConflict, match="column 's' of fragment 1"):
        done(head, replace(columns, fields_modified=fields[:1]))


def test_merge_operation_replaces_schema_and_fragments() -> None:
    head = table(4, 4, stable=True)
    new = replace(head.fragments[0], files=(*head.fragments[0].files, S_ONLY), row_ids=None)
    after = done(head, Merge((new, head.fragments[1]), SCHEMA, (b"wire",)))
    assert row_ids(after.fragments[0]) == [0, 1, 2, 3]
    assert versions(after.fragments[0]) == ([1] * 4, [3] * 4)
    assert after.fragments[1] == head.fragments[1]
    assert after.fields_wire == (b"wire",)
    with pytest.raises(ArgumentError, match=r"\[1\] are missing"):
        done(head, Merge((new,), SCHEMA))
    with pytest.raises(ArgumentError, match="keep the rows of fragment 1"):
        done(head, Merge((new, replace(head.fragments[1], physical_rows=5)), SCHEMA))
    with pytest.raises(ArgumentError, match="one id"):
        done(head, Merge((new, new), SCHEMA))


def test_merge_operation_keeps_row_ids_and_versions_of_moved_rows() -> None:
    head = table(4, 4, 4, stable=True)
    left = replace(head.fragments[0], deletion_file=DELETION)
    new = replace(
        new_fragment(3), id=FragmentId(9), row_ids=encode_row_ids(np.array([1, 6], np.uint64))
    )
    merge = Merge((left, head.fragments[2], new), SCHEMA)
    after = done(head, merge, replace(NOW, keeps_rows=True))
    assert ids(after) == [0, 2, 3]
    assert after.fragments[0].deletion_file == DELETION
    assert after.fragments[1] == head.fragments[2]
    assert (row_ids(after.fragments[2]), after.next_row_id) == ([1, 6, 12], 13)
    assert versions(after.fragments[2]) == ([1, 2, 4], [4] * 3)
    with pytest.raises(ArgumentError, match=r"\[1\] are missing"):
        done(head, merge)


def test_project_drops_files_without_a_column() -> None:
    head = table(4)
    head = replace(head, schema=replace(head.schema, metadata={"k": b"v"}))
    two = tuple(replace(data_file(), field_ids=(FieldId(n),), column_indices=(0,)) for n in (0, 1))
    head = replace(head, fragments=(replace(head.fragments[0], files=two),))
    after = done(with_indices(head, index("i", 0, 0), index("j", 1, 0)), Project(ONLY_S))
    assert after.fragments[0].files == (two[1],)
    assert after.schema == replace(ONLY_S, metadata={"k": b"v"})
    assert covered(after) == {"j": {0}}


ONLY_S = Schema(SCHEMA.fields[1:])


def test_apply_refuses_schema_or_fragment_without_files() -> None:
    head = table(4)
    narrow = Schema((replace(SCHEMA.fields[0], logical_type="int8"), *SCHEMA.fields[1:]))
    for operation in (Project(narrow), Merge(tuple(head.fragments), narrow)):
        with pytest.raises(ArgumentError, match=r"field 0 \('a'\) is of type int64"):
            done(head, operation)
    with pytest.raises(ArgumentError, match="has none"):
        done(head, Project(Schema(())))
    bare = replace(new_fragment(5), files=())
    for adding in (
        Append((bare,)),
        Update((), (), (bare,)),
        Merge((*head.fragments, replace(bare, id=FragmentId(9))), SCHEMA),
    ):
        with pytest.raises(ArgumentError, match="5 rows, but no data file"):
            done(head, adding)
    with pytest.raises(ArgumentError, match="no version -1"):
        commit(MemoryStore("negative"), Transaction(-1, Append(())))


def test_rewrite_needs_reserved_ids() -> None:
    head = done(table(4, 4, 8), ReserveFragments(2))
    assert (head.max_fragment_id, ids(head)) == (4, [0, 1, 2])
    new = [replace(new_fragment(4), id=FragmentId(n)) for n in (3, 4)]
    group = RewriteGroup(tuple(head.fragments[:2]), tuple(new))
    after = done(head, Rewrite((group,)))
    assert (ids(after), after.max_fragment_id) == ([2, 3, 4], 4)
    whole = replace(new[0], physical_rows=8)
    with pytest.raises(ArgumentError, match="5 was not reserved"):
        done(head, Rewrite((replace(group, new=(replace(whole, id=FragmentId(5)),)),)))
    with pytest.raises(ArgumentError, match=r"\[2\] are there already"):
        done(head, Rewrite((replace(group, new=(replace(whole, id=FragmentId(2)),)),)))
    with pytest.raises(ArgumentError, match=r"\[0, 1\] have 8 rows, but would be rewritten as 4"):
        done(head, Rewrite((replace(group, new=(new[0],)),)))
    with pytest.raises(ArgumentError, match="no fragment 0"):
        done(after, Rewrite((group,)))
    for other in (replace(new_fragment(4)), replace(head.fragments[0], deletion_file=DELETION)):
        with pytest.raises(RetryableConflict, match="fragment 0 has other files"):
            done(replace(head, fragments=(other, *head.fragments[1:])), Rewrite((group,)))
    unnamed = replace(group, new=(new_fragment(8),))
    assert ids(done(head, Rewrite((unnamed,)))) == [2, 5]
    assert done(table(1), ReserveFragments(0)).max_fragment_id == 0


@pytest.mark.parametrize("stable", [True, False])
def test_indices_after_a_rewrite(stable: bool) -> None:
    head = done(table(4, 4, 8, stable=stable), ReserveFragments(1))
    mine, other = index("mine", 0, 0, 1), index("other", 0, 2)
    head = with_indices(head, mine, other)
    old = tuple(head.fragments[:2])
    new = replace(old[0], id=FragmentId(3), physical_rows=8)
    new = replace(new, row_ids=known_rows(*range(8))) if stable else new
    remapped = () if stable else (RewrittenIndex(mine.uuid, "0" * 32, "type", b"details", 7),)
    after = done(head, Rewrite((RewriteGroup(old, (new,)),), remapped))
    assert covered(after) == {"mine": {3}, "other": {2}}
    found = parse_indices(after.indices)[0]
    assert (found.uuid == mine.uuid) is stable
    split = with_indices(head, index("split", 0, 1, 2))
    if stable:
        with pytest.raises(ArgumentError, match="cannot be rewritten into one"):
            done(split, Rewrite((RewriteGroup(old, (new,)),)))
    missing = (RewrittenIndex("ab" * 16, "0" * 32),)
    with pytest.raises(ArgumentError, match="not there"):
        done(head, Rewrite((RewriteGroup(old, (new,)),), missing))


def test_indices_after_updates() -> None:
    head = with_indices(table(4, 4, 4, stable=True), index("a", 0, 0, 1), index("s", 1, 0, 1, 2))
    columns = Update(
        (), (replace(head.fragments[1]),), (), (FieldId(0),), mode=UpdateMode.REWRITE_COLUMNS
    )
    assert covered(done(head, columns)) == {"a": {0}, "s": {0, 1, 2}}
    rest = tuple(replace(f, deletion_file=DELETION) for f in head.fragments[:2])
    moved = replace(new_fragment(2), row_ids=known_rows(1, 5))
    rows = Update((), rest, (moved,), fields_preserved=(FieldId(0),))
    assert covered(done(head, rows)) == {"a": {0, 1}, "s": {0, 1, 2, 3}}
    partly = replace(rows, new=(replace(moved, physical_rows=3),))
    assert covered(done(head, partly)) == {"a": {0, 1}, "s": {0, 1, 2}}


def test_empty_index_segments_are_removed_except_the_oldest() -> None:
    head = with_indices(table(4, 4, 4), index("k", 0, 2))
    head = replace(head, indices=head.indices + serialize_indices(segments_of(0, 1)))
    one = done(head, Delete((), (FragmentId(0),)))
    assert covered(one)["i"] == {1}
    assert [each.name for each in parse_indices(one.indices)].count("i") == 1
    none = done(one, Delete((), (FragmentId(1),)))
    assert set(covered(none)) == {"k", "i"}


def test_index_coverage_under_a_fragment_reuse_index() -> None:
    """Fragments 7 and 8 became 0 and 1, but indices name them still, until their columns change."""
    reuse = index(FRAGMENT_REUSE, 99, 0, 1)
    head = with_indices(table(4, 4, 4), reuse, index("a", 0, 2, 7, 8), index("s", 1, 7, 8))
    kept = {FRAGMENT_REUSE: {0, 1}, "a": {2, 7, 8}, "s": {7, 8}}
    assert covered(done(head, Delete((), (FragmentId(0),)))) == kept
    columns = Update((), (head.fragments[1],), (), (FieldId(0),), mode=UpdateMode.REWRITE_COLUMNS)
    assert covered(done(head, columns)) == kept | {"a": {2}}


def segments_of(*fragments: int) -> list[Index]:
    """Return segments of one index, each of a fragment."""
    found = []
    for number in fragments:
        each = index("i", 0, number)
        wire = each.wire.replace(f"{'i':16}".encode(), f"{number:016}".encode())
        found.append(replace(each, wire=wire))
    return found


def test_create_index_replaces_the_index_of_the_same_name() -> None:
    head = with_indices(table(4), index("i", 0, 0), index("j", 1, 0), index("k", 1, 0))
    after = done(head, CreateIndex((index("i", 1, 0),), (index("k", 1, 0),)))
    assert {each.name: each.field_ids for each in parse_indices(after.indices)} == {
        "j": (1,),
        "i": (1,),
    }


def test_data_replacement_operation_replaces_files() -> None:
    head = with_indices(table(4, 4), index("a", 0, 0, 1), index("s", 1, 0, 1))
    new = data_file("new.lance")
    after = done(head, DataReplacement((Replacement(FragmentId(1), new),)))
    assert after.fragments[1].files == (new,)
    assert covered(after) == {"a": {0}, "s": {0}}
    column = replace(new, field_ids=(FieldId(1),), column_indices=(0,))
    narrow = replace(data_file(), field_ids=(FieldId(0),), column_indices=(0,))
    lacks = replace(head, fragments=(replace(head.fragments[0], files=(narrow,)),))
    added = done(lacks, DataReplacement((Replacement(FragmentId(0), column),)))
    assert added.fragments[0].files == (narrow, column)
    with pytest.raises(ArgumentError, match="no file of fragment 0"):
        done(head, DataReplacement((Replacement(FragmentId(0), column),)))
    two = (Replacement(FragmentId(0), column), Replacement(FragmentId(1), new))
    with pytest.raises(ArgumentError, match="same fields"):
        done(head, DataReplacement(two))
    with pytest.raises(ArgumentError, match="no fragment 7"):
        done(head, DataReplacement((Replacement(FragmentId(7), new),)))


def test_restore_keeps_id_counters_of_the_newest_version() -> None:
    past = table(4, stable=True)
    head = done(done(past, append(1, new_fragment(4)).operation), ReserveFragments(3))
    head = replace(head, branch="b")
    after = done(head, Restore(past.version), replace(NOW, past=past))
    assert (ids(after), after.version, after.branch) == ([0], 4, "b")
    assert (after.max_fragment_id, after.next_row_id) == (4, 8)
    with pytest.raises(ArgumentError, match="version 1 is needed"):
        done(head, Restore(past.version))
    plain = replace(past, reader_flags=0, fragments=())
    with pytest.raises(UnsupportedError, match="no stable row ids"):
        done(head, Restore(past.version), replace(NOW, past=plain))


def test_config_and_metadata() -> None:
    head = table(4)
    wire = tuple(f.SerializeToString() + b"\xfa\x3e\x03abc" for f in serialize_fields(head.schema))
    head = replace(head, config={"a": "1", "b": "2"}, table_metadata={"t": "1"}, fields_wire=wire)
    after = done(
        head,
        UpdateConfig(
            MapUpdate({"a": None, "c": "3"}),
            MapUpdate({"u": "2", "v": None}, replace=True),
            MapUpdate({"s": "x"}),
            {FieldId(1): MapUpdate({"f": "y"})},
        ),
    )
    assert after.config == {"b": "2", "c": "3"}
    assert after.table_metadata == {"u": "2"}
    assert after.schema.metadata == {"s": b"x"}
    assert [field.metadata for field in after.schema.fields] == [{}, {"f": b"y"}]
    assert after.fields_wire is not None
    assert after.fields_wire[0] == wire[0]
    assert dict(file_pb2.Field.FromString(after.fields_wire[1]).metadata) == {"f": b"y"}
    assert after.fields_wire[1].endswith(b"\xfa\x3e\x03abc")
    assert after.writer_flags == 8
    assert done(after, UpdateConfig(MapUpdate({}, replace=True))).writer_flags == 0
    with pytest.raises(ArgumentError, match="no field with id 9"):
        done(head, UpdateConfig(fields={FieldId(9): MapUpdate({})}))


def test_update_bases_operation_adds_base_paths() -> None:
    after = done(table(4), UpdateBases((BasePath(0, "/x", "x"), BasePath(7, "/y"))))
    assert [base.id for base in after.base_paths] == [1, 7]
    assert (after.reader_flags, after.writer_flags) == (16, 16)
    assert done(after, UpdateBases((BasePath(0, "/z"),))).base_paths[-1].id == 8
    for clash in (BasePath(7, "/q"), BasePath(0, "/q", "x"), BasePath(0, "/y")):
        with pytest.raises(ArgumentError, match="clashes"):
            done(after, UpdateBases((clash,)))


def test_shallow_clone_refers_to_files_of_the_source_table() -> None:
    past = done(table(4, 4), Delete((replace(new_fragment(), deletion_file=DELETION),), ()))
    operation = Clone(
        is_shallow=True, ref_name="main", ref_version=past.version, ref_path="/origin"
    )
    made = create(Transaction(past.version, operation), replace(NOW, past=past))
    assert made.version == past.version
    assert made.base_paths == (BasePath(0, "/origin", "main", is_dataset_root=True),)
    assert {file.base_id for f in made.fragments for file in f.files} == {0}
    deletion = made.fragments[0].deletion_file
    assert deletion is not None
    assert deletion.base_id == 0
    assert made.reader_flags == 17
    with pytest.raises(ArgumentError, match="is needed to clone"):
        create(Transaction(1, replace(operation, ref_version=DatasetVersion(1))), NOW)
