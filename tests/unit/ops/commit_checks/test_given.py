"""Schemas that a caller commits by hand: a field id keeps its name, and no field becomes required unseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon import LanceOperation
from pennon.errors import ConflictError, RetryableConflict
from pennon.fragment import LanceFragment, write_fragments
from pennon.schema.lance_schema import LanceSchema
from tests.unit.ops.commit_checks.hand_made import (
    I64,
    ROWS,
    WAYS,
    A,
    B,
    C,
    D,
    Sent,
    commit,
    metadata,
    refused,
    renumbered,
    table_with_a_gap,
)

# --- schemas ----------------------------------------------------------------------------------------


def test_merge_with_renumbered_fields_is_refused(uri: str, version: str) -> None:
    """The ids of a pyarrow schema count from 0, so c would show the values of b, which was dropped."""
    dataset = table_with_a_gap(uri, version)
    merge = LanceOperation.Merge(metadata(dataset), renumbered(dataset.schema))
    refused(dataset, merge, "id 1 to the new column c|id 2, which is column c .*, to d")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_merge_with_pyarrow_schema_over_an_id_gap_is_refused(uri: str) -> None:
    """It goes through where the fields happen to be numbered as they are."""
    dataset = table_with_a_gap(uri)
    refused(dataset, LanceOperation.Merge(metadata(dataset), dataset.schema), "id [12]")
    other = pennon.write_dataset(ROWS, uri + "2")
    merged = commit(other, LanceOperation.Merge(metadata(other), other.schema))
    assert merged.to_table().equals(ROWS)


def test_merge_with_names_in_another_order_is_refused(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    for order in ([B, A, C], [A, C, B], [C, B, A]):
        merge = LanceOperation.Merge(metadata(dataset), renumbered(order))
        refused(dataset, merge, "which is column [abc]")
    nested = pennon.write_dataset(pa.table({"s": [{"x": 1, "y": 2}]}), uri + "2")
    turned = pa.struct([pa.field("y", I64), pa.field("x", I64)])
    merge = LanceOperation.Merge(metadata(nested), renumbered([pa.field("s", turned)]))
    refused(nested, merge, r"id 1, which is column s\.x .*, to s\.y")


def test_merge_with_reused_id_of_dropped_column_is_refused(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    dataset.drop_columns(["c"])
    merge = LanceOperation.Merge(metadata(dataset), renumbered([A, B, D]))
    refused(dataset, merge, "id 2 to the new column d, but a column that was dropped had it")


def test_merge_that_renames_a_column_is_refused(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    merge = LanceOperation.Merge(metadata(dataset), renumbered([A, D, C]))
    refused(dataset, merge, "id 1, which is column b .*, to d .*alter_columns")


def test_merge_moves_a_name_only_with_its_values(uri: str) -> None:
    """A name may get a new id if every fragment has a file of it."""
    dataset = pennon.write_dataset(ROWS, uri, max_rows_per_file=1)
    schema = renumbered([A, B, pa.field("old", I64), C])
    merge = LanceOperation.Merge(metadata(dataset), schema)
    refused(dataset, merge, "id 2, which is column c")
    dataset.drop_columns(["c"])
    dataset = pennon.dataset(uri)
    changed = [f.merge_columns({"c": "a + 5"}) for f in dataset.get_fragments()]
    made = commit(dataset, LanceOperation.Merge([f for f, _ in changed], changed[0][1]))
    assert made.to_table()["c"].to_pylist() == [6, 7]


def test_merge_of_rewritten_column_under_a_new_id(uri: str) -> None:
    """As a program does that replaces a column: the name is the same, id and values are new."""
    dataset = pennon.write_dataset(ROWS, uri)
    fragment, schema = dataset.get_fragments()[0].merge_columns({"n": "a + 5"})
    fields = {each.name: each for each in schema.schema.fields}
    named = replace(fields["n"], name="b")
    wanted = replace(schema.schema, fields=(fields["a"], named, fields["c"]))
    (file,) = fragment.files[1:]
    refused(
        dataset,
        LanceOperation.Merge([fragment], LanceSchema(wanted)),
        "column n .*under field id 3",
    )
    other = LanceFragment.create(uri, pa.table({"b": [6, 7]}), mode="overwrite").files[0]
    other.fields = [3]
    fragment.files[1] = other
    made = commit(dataset, LanceOperation.Merge([fragment], LanceSchema(wanted)))
    assert made.to_table().to_pydict() == {"a": [1, 2], "b": [6, 7], "c": [100, 200]}
    assert file.fields == [3]


def test_project_with_renumbered_fields_is_refused(uri: str, version: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri, data_storage_version=version)
    refused(dataset, LanceOperation.Project(renumbered([B, C])), "id 0, which is column a .*, to b")
    refused(dataset, LanceOperation.Project(renumbered([B, A])), "id 0, which is column a .*, to b")
    gap = table_with_a_gap(uri + "2", version)
    refused(gap, LanceOperation.Project(renumbered([A, C])), "id 1, which is column b .*, to c")
    refused(gap, LanceOperation.Project(renumbered([A, pa.field("z", I64)])), "column b .*, to z")


def test_project_renames_drops_orders_and_brings_back(uri: str) -> None:
    """A Project that keeps ids does what it did: rename, drop, order, and bring a dropped column back."""
    dataset = pennon.write_dataset(ROWS, uri)
    whole = dataset.lance_schema
    made = commit(dataset, LanceOperation.Project(renumbered([A, pa.field("z", I64), C])))
    assert made.to_table().to_pydict() == {"a": [1, 2], "z": [10, 20], "c": [100, 200]}
    made = commit(made, LanceOperation.Project(whole))
    made.drop_columns(["b"])
    made = commit(made, LanceOperation.Project(whole))
    assert made.to_table().equals(ROWS)
    turned = LanceSchema(turned_fields(whole))
    assert commit(made, LanceOperation.Project(turned)).schema.names == ["c", "b", "a"]


def turned_fields(schema: LanceSchema) -> Any:
    return replace(schema.schema, fields=tuple(reversed(schema.schema.fields)))


# --- required fields --------------------------------------------------------------------------------

SOME_NULL = pa.table({"a": [1, None], "b": [1, 2]})
NEVER_NULL = pa.field("a", I64, nullable=False)


def test_nullable_column_with_nulls_does_not_become_required(uri: str, version: str) -> None:
    dataset = pennon.write_dataset(SOME_NULL, uri, data_storage_version=version)
    schema = renumbered([NEVER_NULL, B])
    refused(dataset, LanceOperation.Merge(metadata(dataset), schema), "column a is never NULL")
    refused(dataset, LanceOperation.Project(schema), "column a is never NULL")
    added = renumbered([pa.field("a", I64), B, pa.field("z", I64, nullable=False)])
    refused(dataset, LanceOperation.Merge(metadata(dataset), added), "column z is never NULL")
    overwrite = LanceOperation.Overwrite(schema, metadata(dataset))
    refused(dataset, overwrite, "column a is never NULL")


def test_nullable_column_without_nulls_becomes_required(uri: str) -> None:
    """Deleted rows do not count, and a required column whose file says so is not read."""
    dataset = pennon.write_dataset(SOME_NULL, uri)
    dataset.delete("a IS NULL")
    schema = renumbered([NEVER_NULL, B])
    made = commit(dataset, LanceOperation.Project(schema))
    assert made.schema.field("a") == NEVER_NULL
    made = commit(made, LanceOperation.Merge(metadata(made), schema))
    assert made.to_table().to_pylist() == [{"a": 1, "b": 1}]
    other = pennon.write_dataset(SOME_NULL, uri + "2")
    new = pa.schema([pa.field("z", I64, nullable=False)])

    @pennon.batch_udf(output_schema=new)
    def ones(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([1] * batch.num_rows)], schema=new)

    fragment, schema = other.get_fragments()[0].merge_columns(ones, columns=["b"])
    made = commit(other, LanceOperation.Merge([fragment], schema))
    assert made.to_table()["z"].to_pylist() == [1, 1]


def test_rewritten_file_with_nulls_does_not_fill_a_required_column(uri: str) -> None:
    """The new file's own schema says that there may be NULLs, so they are looked for."""
    rows = pa.table({"a": [1, 2], "b": [1, 2]}, schema=pa.schema([NEVER_NULL, B]))
    pennon.write_dataset(rows, uri)
    bad = LanceFragment.create(uri, pa.table({"a": [1, None]}), mode="overwrite")
    operation = LanceOperation.DataReplacement(
        [LanceOperation.DataReplacementGroup(0, bad.files[0])]
    )
    separate = pennon.dataset(uri)
    changed, ids, *_ = separate.get_fragments()[0].update_columns(
        pa.table({"b": [1, 2], "a": [3, 4]}), "b"
    )
    separate = commit(
        separate, LanceOperation.Update(updated_fragments=[changed], fields_modified=ids)
    )
    refused(separate, operation, "column a is never NULL")
    refused(separate, LanceOperation.Append([bad]), "column a is never NULL")
    good = LanceFragment.create(uri, pa.table({"a": [5, 6]}), mode="overwrite")
    operation.replacements[0].new_file = good.files[0]
    assert commit(separate, operation).to_table()["a"].to_pylist() == [5, 6]


def test_required_field_below_a_null_struct_has_no_null(uri: str) -> None:
    point = pa.struct([pa.field("x", I64, nullable=False)])
    dataset = pennon.write_dataset(
        pa.table({"p": pa.array([None, {"x": 1}])}), uri, data_storage_version="2.1"
    )
    made = commit(dataset, LanceOperation.Project(renumbered([pa.field("p", point)])))
    assert made.schema.field("p").type == point
    assert made.to_table()["p"].to_pylist() == [None, {"x": 1}]


# --- what goes on working ---------------------------------------------------------------------------


def test_alter_columns_renames_pass_the_commit_checks(uri: str, version: str) -> None:
    """Swaps, a rename beside a cast, nested names, and changes of the table afterwards."""
    rows = ROWS.append_column("s", pa.array([{"x": 1, "y": 2}] * 2))
    dataset = pennon.write_dataset(rows, uri, data_storage_version=version)
    dataset.alter_columns({"path": "a", "name": "b"}, {"path": "b", "name": "a"})
    dataset.alter_columns({"path": "s.x", "name": "y"}, {"path": "s.y", "name": "x"})
    dataset.alter_columns(
        {"path": "c", "name": "k"}, {"path": "a", "data_type": pa.int32(), "name": "m"}
    )
    want: dict[str, list[Any]] = {
        "b": [1, 2],
        "m": [10, 20],
        "k": [100, 200],
        "s": [{"y": 1, "x": 2}] * 2,
    }
    assert dataset.to_table().to_pydict() == want
    fragments = [f.merge_columns({"z": "b + m"}) for f in dataset.get_fragments()]
    made = commit(dataset, LanceOperation.Merge([f for f, _ in fragments], fragments[0][1]))
    new = write_fragments(made.to_table(), uri, mode="append")
    made = commit(made, LanceOperation.Append(new))
    made.optimize.compact_files()
    assert made.to_table().to_pydict() == {k: v * 2 for k, v in (want | {"z": [11, 22]}).items()}
    for fragment in made.get_fragments():
        changed, ids, *_ = fragment.update_columns(pa.table({"b": [1], "z": [0]}), "b")
        update = LanceOperation.Update(updated_fragments=[changed], fields_modified=ids)
        made = commit(made, update)
    assert made.to_table()["z"].to_pylist() == [0, 22, 0, 22]


def test_append_of_fragments_written_before_a_rename(uri: str, sent: Sent) -> None:
    """The fragments keep their ids, whichever version the commit says that it read."""
    dataset = pennon.write_dataset(ROWS, uri)
    old = pennon.dataset(uri)
    fragments = [sent(write_fragments(ROWS, uri, mode="append")) for _ in range(2)]
    dataset.alter_columns({"path": "b", "name": "z"})
    made = commit(old, LanceOperation.Append(fragments[0]))
    assert made.to_table()["z"].to_pylist() == [10, 20, 10, 20]
    dataset.checkout_latest()
    dataset.alter_columns({"path": "a", "name": "c"}, {"path": "c", "name": "a"})
    assert (
        commit(old, LanceOperation.Append(fragments[1])).to_table()["c"].to_pylist() == [1, 2] * 3
    )


def test_append_from_old_handle_of_fragments_written_after_a_rename(uri: str) -> None:
    """Planned on a version before the rename by its number, but written after it."""
    dataset = pennon.write_dataset(ROWS, uri)
    old = pennon.dataset(uri)
    dataset.alter_columns({"path": "b", "name": "z"})
    new = write_fragments(ROWS.rename_columns(["a", "z", "c"]), uri, mode="append")
    assert commit(old, LanceOperation.Append(new)).count_rows() == 4


def test_merge_after_concurrent_rename_conflicts(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    old = pennon.dataset(uri)
    fragment, schema = old.get_fragments()[0].merge_columns({"z": "a + 1"})
    dataset.alter_columns({"path": "b", "name": "n"})
    with pytest.raises(ConflictError):
        commit(old, LanceOperation.Merge([fragment], schema))
    assert pennon.dataset(uri).schema.names == ["a", "n", "c"]


def test_commit_of_files_for_a_reused_field_id_conflicts(uri: str) -> None:
    """The file of a dropped column is gone with it, so its id is free, and the next column takes it."""
    dataset = pennon.write_dataset(ROWS.select(["a"]), uri)
    dataset.add_columns({"b": "a * 10"})
    old = pennon.dataset(uri)
    append = LanceOperation.Append(
        write_fragments(pa.table({"a": [3], "b": [30]}), uri, mode="append")
    )
    file = LanceFragment.create(uri, pa.table({"b": [8, 9]}), mode="overwrite").files[0]
    file.fields = [1]
    group = LanceOperation.DataReplacementGroup(0, file)
    dataset.drop_columns(["b"])
    dataset.add_columns({"z": "a * 7"})
    assert [field.id() for field in dataset.lance_schema.fields()] == [0, 1]
    with pytest.raises(RetryableConflict, match="field id 1 of the new files"):
        commit(old, append)
    with pytest.raises(RetryableConflict, match="conflicts with merge"):
        commit(old, LanceOperation.DataReplacement([group]))
    assert pennon.dataset(uri).to_table().to_pydict() == {"a": [1, 2], "z": [7, 14]}


def test_append_of_concurrently_dropped_column_is_not_read(uri: str) -> None:
    """Its values are not read, and no later column gets its id."""
    dataset = pennon.write_dataset(ROWS.select(["a"]), uri)
    dataset.add_columns({"b": "a * 10"})
    old = pennon.dataset(uri)
    appended = write_fragments(pa.table({"a": [3], "b": [30]}), uri, mode="append")
    dataset.drop_columns(["b"])
    made = commit(old, LanceOperation.Append(appended))
    made.add_columns({"z": "a * 7"})
    assert made.to_table().to_pydict() == {"a": [1, 2, 3], "z": [7, 14, 21]}


def test_merge_of_dropped_column_name_gets_a_new_id(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    dataset.drop_columns(["b"])
    fragment, schema = dataset.get_fragments()[0].merge_columns({"b": "a + 1"})
    made = commit(dataset, LanceOperation.Merge([fragment], schema))
    assert made.to_table().to_pydict() == {"a": [1, 2], "c": [100, 200], "b": [2, 3]}
    assert [field.id() for field in made.lance_schema.fields()] == [0, 2, 3]


def test_old_file_version_is_checked_too(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri, data_storage_version="legacy")
    fragments = write_fragments(
        ROWS.select(["c", "b", "a"]), uri, mode="overwrite", data_storage_version="legacy"
    )
    for way in WAYS.values():
        refused(dataset, LanceOperation.Append(way(fragments)), "column c .* under field id 0")
    right = write_fragments(ROWS, uri, mode="append")
    assert commit(dataset, LanceOperation.Append(WAYS["json"](right))).count_rows() == 4
