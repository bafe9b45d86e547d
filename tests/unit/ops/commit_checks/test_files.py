"""Data files of explicit commits have the columns that the schema assigns to their field ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pennon
from pennon import LanceOperation
from pennon.dataset.operation_fields import to_table_transaction
from pennon.errors import SchemaMismatchError
from pennon.fragment import LanceFragment, write_fragments
from pennon.io import open_store
from pennon.ops.commit_checks.given import check_given
from pennon.schema.lance_schema import LanceSchema
from pennon.testing import CountingStore
from tests.unit.ops.commit_checks.hand_made import (
    I64,
    ROWS,
    WAYS,
    A,
    B,
    C,
    Sent,
    commit,
    metadata,
    refused,
    table_with_a_gap,
)


def test_append_of_fragments_written_for_other_ids_is_refused(
    uri: str, version: str, sent: Sent
) -> None:
    """Overwrite mode numbers fields from 0, append mode as the table does."""
    dataset = table_with_a_gap(uri, version)
    rows = pa.table({"a": [5], "c": [500], "d": [7]})
    wrong = sent(write_fragments(rows, uri, mode="overwrite", data_storage_version=version))
    refused(dataset, LanceOperation.Append(wrong), "column [cd] .* under field id [12]")
    right = sent(write_fragments(rows, uri, mode="append"))
    made = commit(dataset, LanceOperation.Append(right))
    assert made.to_table().slice(2).to_pydict() == rows.to_pydict()


def test_append_of_columns_with_other_field_ids_is_refused(uri: str) -> None:
    """The id is not the table's at all, so the column would read as NULL."""
    dataset = pennon.write_dataset(ROWS.select(["a", "b"]), uri)
    dataset.drop_columns(["a"])
    dataset.add_columns({"c": "b * 2"})
    wrong = write_fragments(pa.table({"c": [1], "b": [2]}), uri, mode="overwrite")
    refused(dataset, LanceOperation.Append(wrong), "column c .* under field id 0")


def test_overwrite_with_fragments_of_append_mode_is_refused(
    uri: str, version: str, sent: Sent
) -> None:
    """A pyarrow schema numbers its fields from 0, and the fragments have the table's ids."""
    dataset = table_with_a_gap(uri, version)
    rows = pa.table({"a": [5], "c": [500], "d": [7]})
    fragments = sent(write_fragments(rows, uri, mode="append"))
    refused(dataset, LanceOperation.Overwrite(rows.schema, fragments), "under field id [23]")
    made = commit(dataset, LanceOperation.Overwrite(dataset.lance_schema, fragments))
    assert made.to_table().equals(rows)


def test_overwrite_with_a_schema_in_another_order_is_refused(uri: str, sent: Sent) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    fragments = sent(write_fragments(ROWS, uri, mode="overwrite"))
    turned = pa.schema([C, B, A])
    refused(dataset, LanceOperation.Overwrite(turned, fragments), "column a .* under field id 0")
    made = commit(dataset, LanceOperation.Overwrite(ROWS.schema, fragments))
    assert made.to_table().equals(ROWS)


def test_overwrite_with_other_types_is_refused(uri: str, version: str, sent: Sent) -> None:
    dataset = pennon.write_dataset(ROWS, uri, data_storage_version=version)
    fragments = sent(write_fragments(ROWS, uri, mode="overwrite", data_storage_version=version))
    others = pa.schema([A, pa.field("b", pa.string()), C])
    refused(
        dataset, LanceOperation.Overwrite(others, fragments), "column b .int64. under field id 1"
    )


def test_new_table_of_fragments_with_another_schema_is_refused(uri: str, sent: Sent) -> None:
    fragments = sent(write_fragments(ROWS, uri, mode="create"))
    for wrong in (pa.schema([B, A, C]), pa.schema([A, B, pa.field("c", pa.float64())])):
        with pytest.raises(SchemaMismatchError, match="under field id"):
            pennon.LanceDataset.commit(uri, LanceOperation.Overwrite(wrong, fragments))
    made = pennon.LanceDataset.commit(uri, LanceOperation.Overwrite(ROWS.schema, fragments))
    assert made.to_table().equals(ROWS)


def test_overwrite_with_the_fragments_of_the_table(uri: str) -> None:
    """Fragments that stay keep their ids; other ids would show other columns."""
    dataset = table_with_a_gap(uri)
    made = commit(dataset, LanceOperation.Overwrite(dataset.lance_schema, metadata(dataset)))
    assert made.to_table().to_pydict() == {"a": [1, 2], "c": [100, 200], "d": [2, 4]}
    refused(made, LanceOperation.Overwrite(made.schema, metadata(made)), "under field id 1")
    less = LanceSchema(pennon.dataset(uri, version=1).lance_schema.schema)
    made = commit(made, LanceOperation.Overwrite(less, metadata(made)))
    assert made.to_table().equals(ROWS)  # b is back, d is gone


def test_overwrite_with_fragments_written_before_a_rename(uri: str) -> None:
    """The files say b, the version that names them says z, and so does the overwrite."""
    dataset = pennon.write_dataset(ROWS, uri, max_rows_per_file=1)
    dataset.alter_columns({"path": "b", "name": "z"})
    old, schema = metadata(dataset), dataset.lance_schema
    dataset.optimize.compact_files()
    made = commit(pennon.dataset(uri), LanceOperation.Overwrite(schema, old))
    assert made.to_table().to_pydict() == {"a": [1, 2], "z": [10, 20], "c": [100, 200]}


def test_update_and_replacement_with_files_of_other_columns_are_refused(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    other = LanceFragment.create(uri, pa.table({"b": [3, 4]}), mode="overwrite")
    replaced = LanceOperation.DataReplacement(
        [LanceOperation.DataReplacementGroup(0, other.files[0])]
    )
    refused(dataset, replaced, "column b .* under field id 0")
    update = LanceOperation.Update(removed_fragment_ids=[0], new_fragments=[other])
    refused(dataset, update, "column b .* under field id 0")
    rewrite = LanceOperation.Rewrite([LanceOperation.RewriteGroup(metadata(dataset), [other])], [])
    refused(dataset, rewrite, "column b .* under field id 0")


def test_data_file_column_mapped_to_another_field_of_same_type(uri: str, sent: Sent) -> None:
    """Who says so by the ids of a data file may, if the types are the same."""
    dataset = pennon.write_dataset(ROWS, uri)
    dataset.add_columns(pa.field("n", I64))
    for values, type_ in (([5, 6], I64), ([1.5, 2.5], pa.float64())):
        made = LanceFragment.create(
            uri, pa.table({"tmp": pa.array(values, type_)}), mode="overwrite"
        )
        file = sent([made])[0].files[0]
        file.fields = [3]
        group = LanceOperation.DataReplacementGroup(0, file)
        operation = LanceOperation.DataReplacement([group])
        if type_ == I64:
            dataset = commit(dataset, operation)
        else:
            refused(dataset, operation, "column tmp .double. under field id 3, which is n .int64")
    assert dataset.to_table()["n"].to_pylist() == [5, 6]


def test_append_of_file_with_missing_column_index_is_refused(uri: str) -> None:
    dataset = pennon.write_dataset(ROWS, uri)
    (fragment,) = write_fragments(ROWS, uri, mode="append")
    fragment.files[0].column_indices = [0, 1, 7]
    refused(dataset, LanceOperation.Append([fragment]), "column 7, which the file does not have")


def test_list_and_map_items_with_other_names_are_accepted(uri: str) -> None:
    """Arrow libraries call them item, element, key and keys."""
    lists = pa.array([[1], []], pa.list_(pa.field("element", I64)))
    maps = pa.array([[("k", 1)], []], pa.map_(pa.string(), I64))
    rows = pa.table({"l": lists, "m": maps})
    fragments = write_fragments(rows, uri, mode="create", data_storage_version="2.2")
    schema = pa.schema([pa.field("l", pa.list_(I64)), pa.field("m", maps.type)])
    made = pennon.LanceDataset.commit(uri, LanceOperation.Overwrite(schema, fragments))
    assert made.to_table()["l"].to_pylist() == [[1], []]


@pytest.mark.parametrize(("way", "reads"), [("here", 0), ("pickled", 0), ("json", 3)])
def test_commit_reads_footers_of_new_files_only(uri: str, way: str, reads: int) -> None:
    """A file that says what it was written with is not read, nor is one that the table has."""
    dataset = pennon.write_dataset(ROWS, uri, max_rows_per_file=1)
    new = write_fragments(
        pa.concat_tables([ROWS, ROWS[:1]]), uri, mode="append", max_rows_per_file=1
    )
    columns = [f.merge_columns({"z": "a + 1"}) for f in dataset.get_fragments()]
    for operation, files in (
        (LanceOperation.Append(WAYS[way](new)), reads),
        (LanceOperation.Overwrite(ROWS.schema, WAYS[way](new)), reads),
        (LanceOperation.Merge(WAYS[way]([f for f, _ in columns[:2]]), columns[0][1]), reads - 1),
    ):
        store = CountingStore(open_store(uri))
        transaction = to_table_transaction(pennon.Transaction(1, operation))
        check_given(store, transaction, dataset.snapshot.manifest)
        assert len(store.by_path) == max(files, 0)
        assert all(path.startswith("data/") for path in store.by_path)
