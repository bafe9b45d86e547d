"""Fitting data to a table: required fields below a struct that is NULL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import pennon
from pennon.errors import InvalidSchemaError, SchemaMismatchError
from pennon.file import LanceFileReader, LanceFileWriter

VERSIONS: Final = ("2.1", "2.2")
_INNER: Final = pa.field(
    "in", pa.struct([pa.field("y", pa.int32(), nullable=False)]), nullable=False
)
LEAVES: Final[dict[str, tuple[pa.Field[Any], list[Any]]]] = {
    "double": (pa.field("x", pa.float64(), nullable=False), [0.0, 1.0, 2.0]),
    "bool": (pa.field("x", pa.bool_(), nullable=False), [True, False, True]),
    "text": (pa.field("x", pa.string(), nullable=False), ["", "b", "c"]),
    "list": (pa.field("x", pa.list_(pa.int64()), nullable=False), [[], [1], [2, 3]]),
    "vector": (pa.field("x", pa.list_(pa.float32(), 2), nullable=False), [[0, 0], [1, 2], [3, 4]]),
    "dictionary": (
        pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        ["a", "b", "a"],
    ),
    "struct": (_INNER, [{"y": 0}, {"y": 1}, {"y": 2}]),
    "nullable struct": (_INNER.with_nullable(nullable=True), [None, None, {"y": 2}]),
}
"""A field of a struct of every kind, required but for the last, and its values in three rows."""


NULL_FIRST: Final = pa.array([True, False, False])


def _structs_of(leaf: str) -> pa.StructArray:
    """Return three structs with one field, the first of which is NULL."""
    field, values = LEAVES[leaf]
    return pa.StructArray.from_arrays(
        [pa.array(values, field.type)], fields=[field], mask=NULL_FIRST
    )


def _rows() -> pa.Table:
    """Return three rows with a struct of every kind, NULL in the first row."""
    columns = {"id": pa.array([1, 2, 3]), **{leaf: _structs_of(leaf) for leaf in LEAVES}}
    return pa.table(columns)


def _update(uri: str) -> None:
    pennon.dataset(uri).update({"id": "id + 10"}, where="id = 1")


def _compact(uri: str) -> None:
    table = pennon.dataset(uri)
    table.delete("id = 3")
    table.optimize.compact_files(materialize_deletions_threshold=0.0)


def _insert_table(uri: str) -> None:
    pennon.dataset(uri).insert(pennon.dataset(uri).to_table())


def _insert_taken(uri: str) -> None:
    pennon.dataset(uri).insert(pennon.dataset(uri).take([0, 2, 0]))


def _insert_filtered(uri: str) -> None:
    pennon.dataset(uri).insert(pennon.dataset(uri).to_table(filter="text IS NULL"))


def _insert_scanner(uri: str) -> None:
    pennon.write_dataset(pennon.dataset(uri).scanner(), uri, mode="append")


def _insert_arrow_dataset(uri: str) -> None:
    rows = pads.dataset(pennon.dataset(uri).to_table())
    pennon.write_dataset(rows, uri, mode="append")


def _merge_all(uri: str) -> None:
    rows = pennon.dataset(uri).to_table()
    merge = pennon.dataset(uri).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _merge_some(uri: str) -> None:
    rows = pennon.dataset(uri).to_table(columns=["id", "text", "struct"])
    pennon.dataset(uri).merge_insert("id").when_matched_update_all().execute(rows.slice(0, 2))


def _add_columns(uri: str) -> None:
    table = pennon.dataset(uri)
    made = pa.schema([table.schema.field(leaf).with_name(f"copy of {leaf}") for leaf in LEAVES])

    @pennon.batch_udf(output_schema=made)
    def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(batch.columns, schema=made)

    table.add_columns(copied, read_columns=list(LEAVES))


def _rewrite_column(uri: str) -> None:
    table = pennon.dataset(uri)
    rows = table.to_table(with_row_id=True)
    fragment = table.get_fragments()[0]
    changed, ids, *_ = fragment.update_columns(rows.select(["_rowid", *LEAVES]))
    operation = pennon.LanceOperation.Update(updated_fragments=[changed], fields_modified=ids)
    pennon.LanceDataset.commit(uri, operation, read_version=table.version)


CHANGES: Final[dict[str, Callable[[str], None]]] = {
    each.__name__: each
    for each in (
        _update,
        _compact,
        _insert_table,
        _insert_taken,
        _insert_filtered,
        _insert_scanner,
        _insert_arrow_dataset,
        _merge_all,
        _merge_some,
        _add_columns,
        _rewrite_column,
    )
}


WRITTEN_AGAIN: Final = {
    "_compact": [0, 1],
    "_insert_taken": [0, 0, 0, 1, 2, 2],
    "_insert_filtered": [0, 0, 1, 2],
    "_insert_table": [0, 0, 1, 1, 2, 2],
    "_insert_scanner": [0, 0, 1, 1, 2, 2],
    "_insert_arrow_dataset": [0, 0, 1, 1, 2, 2],
}
"""Which of the three rows there are afterwards; all three where nothing is said."""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("version", VERSIONS)
def test_operations_rewrite_null_structs_with_required_fields(
    tmp_path: Path, version: str, change: str
) -> None:
    """Every operation that writes what it read keeps a NULL struct, whatever is required in it."""
    uri, rows = str(tmp_path / "x.lance"), _rows()
    pennon.write_dataset(rows, uri, data_storage_version=version)
    CHANGES[change](uri)
    made = pennon.dataset(uri).to_table()
    for leaf in made.column_names[1:]:
        whole = rows[leaf.removeprefix("copy of ")].to_pylist()
        want = [whole[row] for row in WRITTEN_AGAIN.get(change, [0, 1, 2])]
        assert sorted(made[leaf].to_pylist(), key=repr) == sorted(want, key=repr), leaf
    assert ("copy of text" in made.column_names) == (change == "_add_columns")


@pytest.mark.parametrize("version", VERSIONS)
def test_required_field_refuses_null_within_present_struct(tmp_path: Path, version: str) -> None:
    """A NULL in a struct that is not NULL is refused, beside one whose struct is NULL."""
    fields = [pa.field("x", pa.float64(), nullable=False)]
    mask = pa.array([True, False])
    bad = pa.StructArray.from_arrays(
        [pa.array([None, None], pa.float64())], fields=fields, mask=mask
    )
    table = pa.table([bad], schema=pa.schema([("p", pa.struct(fields))]))
    with pytest.raises(SchemaMismatchError, match=r"p\.x.*never NULL.*1 NULL"):
        pennon.write_dataset(table, str(tmp_path / "x.lance"), data_storage_version=version)
    good = pa.StructArray.from_arrays([pa.array([None, 1.0])], fields=fields, mask=mask)
    made = pennon.write_dataset(
        pa.table([good], schema=table.schema),
        str(tmp_path / "y.lance"),
        data_storage_version=version,
    )
    assert made.to_table()["p"].to_pylist() == [None, {"x": 1.0}]


@pytest.mark.parametrize("version", VERSIONS)
def test_required_field_two_structs_deep(tmp_path: Path, version: str) -> None:
    """NULLs count where both structs are there, sliced arrays among them."""
    leaf = pa.field("x", pa.int64(), nullable=False)
    inner = pa.StructArray.from_arrays(
        [pa.array([None, None, 3, 4])], fields=[leaf], mask=pa.array([False, True, False, False])
    )
    middle = pa.field("in", inner.type)
    outer = pa.StructArray.from_arrays(
        [inner], fields=[middle], mask=pa.array([True, False, False, False])
    )
    table = pa.table([outer], schema=pa.schema([pa.field("p", outer.type)]))
    want = [None, {"in": None}, {"in": {"x": 3}}, {"in": {"x": 4}}]
    assert table["p"].to_pylist() == want
    for start in range(3):
        uri = str(tmp_path / f"{start}.lance")
        part = table.slice(start)
        pennon.write_dataset(part, uri, data_storage_version=version)
        pennon.write_dataset(part.slice(1), uri, mode="append")
        got = pennon.dataset(uri).to_table()["p"].to_pylist()
        assert got == want[start:] + want[start + 1 :]


def test_file_writer_takes_a_null_struct_with_a_required_field(tmp_path: Path) -> None:
    """A data file by itself keeps it as well."""
    rows = _rows()
    path = str(tmp_path / "x.lance")
    with LanceFileWriter(path, rows.schema, version="2.1") as writer:
        writer.write_batch(rows)
    assert LanceFileReader(path).read_all().to_table().to_pylist() == rows.to_pylist()


def test_nested_field_becomes_required_below_a_null_struct(tmp_path: Path) -> None:
    """`alter_columns` looks for NULLs only where the struct is there."""
    uri = str(tmp_path / "x.lance")
    structs = pa.array([None, {"x": 1}, {"x": 2}])
    table = pennon.write_dataset(pa.table({"p": structs}), uri, data_storage_version="2.1")
    table.alter_columns({"path": "p.x", "nullable": False})
    assert not table.schema.field("p").type.field("x").nullable
    assert table.to_table()["p"].to_pylist() == [None, {"x": 1}, {"x": 2}]
    other = pa.array([{"x": None}, {"x": 1}])
    bad = pennon.write_dataset(
        pa.table({"p": other}), str(tmp_path / "y"), data_storage_version="2.1"
    )
    with pytest.raises(InvalidSchemaError, match="contains NULL"):
        bad.alter_columns({"path": "p.x", "nullable": False})


def test_field_in_lists_and_maps_becomes_required(tmp_path: Path) -> None:
    """NULLs are looked for in items of lists and values of maps, but not where these are NULL."""
    lists = pa.array([None, [], [{"x": 1}, {"x": 2}]])
    maps = pa.array([None, [("a", 1)], []], pa.map_(pa.string(), pa.int64()))
    rows = pa.table({"l": lists, "m": maps})
    table = pennon.write_dataset(rows, str(tmp_path / "x.lance"), data_storage_version="2.2")
    table.alter_columns(
        {"path": "l.item.x", "nullable": False}, {"path": "m.entries.value", "nullable": False}
    )
    assert not table.schema.field("l").type.value_type.field("x").nullable
    assert not table.schema.field("m").type.item_field.nullable
    assert table.to_table()["l"].to_pylist() == rows["l"].to_pylist()
    bad = pa.table({"l": pa.array([[{"x": None}]]), "m": pa.array([[("a", None)]], maps.type)})
    other = pennon.write_dataset(bad, str(tmp_path / "y.lance"), data_storage_version="2.2")
    for path in ("l.item.x", "m.entries.value"):
        with pytest.raises(InvalidSchemaError, match="contains NULL"):
            other.alter_columns({"path": path, "nullable": False})
