"""Changing the columns of a table, and what is said about them: schema, metadata, config."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, NotRequired, TypedDict

import pyarrow as pa

from pennon import ops
from pennon.dataset.base import DatasetBase
from pennon.errors import ArgumentError, UnsupportedError
from pennon.ops.retry import with_retries

if TYPE_CHECKING:
    from pennon.dataset.new_columns import NewColumns

_ALTERATIONS = {"path": str, "name": str, "nullable": bool, "data_type": pa.DataType}


class AlterColumn(TypedDict):
    """A change of one column for `LanceDataset.alter_columns`; only ``path`` must be there.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.alter_columns({"path": "id", "name": "key"})
    >>> ds.schema.names
    ['key']
    """

    path: str
    name: NotRequired[str | None]
    nullable: NotRequired[bool | None]
    data_type: NotRequired[pa.DataType | None]


class DatasetColumns(DatasetBase):
    """The methods of `LanceDataset` that change columns; each turns the handle to the version made."""

    def add_columns(
        self,
        transforms: Any,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns, in new data files beside the old ones, which stay as they are.

        ``transforms`` is one of these:

        * a dict from new names to SQL expressions over the table's columns;
        * a function from a record batch to one of the new columns, or a `pennon.batch_udf`; it gets
          ``batch_size`` rows (1024) of ``read_columns``, ``_rowid`` and ``_rowaddr`` if named there;
        * data (`pennon.ops.source.as_reader`) with a row for each row of the table, in order;
          ``reader_schema`` is for an iterable of batches;
        * a pyarrow field, a list of them, or a schema: columns of NULLs, for which no file is written.

        Raises InvalidSchemaError for a name that is taken, SchemaMismatchError for wrong rows or
        columns, ArgumentError for wrong SQL, UnsupportedError for types.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.add_columns({"twice": "id * 2"})
        >>> ds.to_table().to_pydict()
        {'id': [1, 2, 3], 'twice': [2, 4, 6]}
        """
        planned = _new_columns().described(
            self._snapshot, transforms, read_columns, reader_schema, batch_size
        )
        self._turn_to(planned.commit())

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, or fields inside them (``a.b``); their bytes stay until a compaction.

        Raises NotFoundError for a column that is not there, InvalidSchemaError if none is left.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2], "name": ["a", "b"]}), uri)
        >>> ds.drop_columns(["name"])
        >>> ds.schema.names
        ['id']
        """
        if isinstance(columns, str):
            message = f"columns must be a list of names, got {columns!r}"
            raise TypeError(message)
        self._turn_to(ops.drop_columns(self._snapshot, columns))

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Change names, nullability or types of columns.

        Each alteration is a dict with ``path`` and some of ``name``, ``nullable``, ``data_type``.
        Another type writes the column anew, in a new file beside the old ones; whole numbers become
        whole numbers, text becomes text, and so on.

        Raises NotFoundError for a column that is not there, InvalidSchemaError for names, and for a
        column that is to be never NULL but has NULLs, ArgumentError for values that do not fit.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
        >>> ds.schema
        key: int32
        """
        plan = ops.plan_alter(self._snapshot, [_parse_alteration(each) for each in alterations])
        self._turn_to(ops.alter_columns(plan))

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: Any = None
    ) -> None:
        """Add the columns of other data, joined by a key; NULL where that has no such key.

        ``left_on`` names a column of the table, ``_rowid`` or ``_rowaddr``; ``right_on`` one of the
        data, by default of the same name.  The data is held in memory; of two rows with one key the
        later counts.

        Raises NotFoundError for a key that is not there, InvalidSchemaError for a name that is
        taken, SchemaMismatchError for keys of different types.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.merge(pa.table({"id": [1, 3], "name": ["a", "c"]}), "id")
        >>> ds.to_table()["name"].to_pylist()
        ['a', None, 'c']
        """
        planned = _new_columns().merged(self._snapshot, data_obj, left_on, right_on, schema)
        self._turn_to(planned.commit())

    def replace_schema(self, schema: Any) -> NoReturn:
        """Refuse: a schema is changed column by column."""
        del schema
        message = (
            "the schema of a table cannot be replaced as a whole; see add_columns, drop_columns, "
            "alter_columns and update_schema_metadata"
        )
        raise UnsupportedError(message)

    def truncate_table(self) -> None:
        """Delete all rows; schema, metadata and older versions stay.

        Where another writer changed rows meanwhile, it is done again on the newest version.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.truncate_table()
        >>> ds.count_rows(), ds.checkout_version(1).count_rows()
        (0, 3)
        """
        self._turn_to(with_retries(ops.truncate, self._snapshot))

    # Metadata

    def update_metadata(
        self, values: Mapping[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Change the table's own metadata, and return it; None takes a key away.

        ``replace``: nothing else stays.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.update_metadata({"owner": "ada"})
        {'owner': 'ada'}
        """
        self._turn_to(ops.update_table_metadata(self._snapshot, values, replace=replace))
        return self.metadata

    def update_config(
        self, values: Mapping[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Change the table's config, and return it; see `update_metadata`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.update_config({"lance.compaction.target_rows_per_fragment": "1000"})
        {'lance.compaction.target_rows_per_fragment': '1000'}
        """
        self._turn_to(ops.update_config(self._snapshot, values, replace=replace))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Take keys out of the table's config; those that are not there do not matter.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.update_config({"a": "1", "b": "2"})
        >>> ds.delete_config_keys(["a"])
        >>> ds.config()
        {'b': '2'}
        """
        self.update_config(dict.fromkeys(keys))

    def update_schema_metadata(
        self, values: Mapping[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Change the schema's metadata, and return it; see `update_metadata`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.update_schema_metadata({"source": "sensor 7"})
        {'source': 'sensor 7'}
        """
        self._turn_to(ops.update_schema_metadata(self._snapshot, values, replace=replace))
        return self.schema_metadata

    def update_field_metadata(
        self, field_updates: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
    ) -> None:
        """Change the metadata of fields, named by their paths; see `update_metadata`.

        Raises NotFoundError for a field that is not there.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.update_field_metadata({"id": {"unit": "m"}})
        >>> ds.schema.field("id").metadata
        {b'unit': b'm'}
        """
        self._turn_to(ops.update_field_metadata(self._snapshot, field_updates, replace=replace))

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace the schema's metadata (pylance's old name).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.replace_schema_metadata({"source": "sensor 7"})
        >>> ds.schema.metadata
        {b'source': b'sensor 7'}
        """
        message = "use update_schema_metadata(metadata, replace=True)"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace a field's metadata (pylance's old name).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.replace_field_metadata("id", {"unit": "m"})
        >>> ds.schema.field("id").metadata
        {b'unit': b'm'}
        """
        message = "use update_field_metadata({path: metadata}, replace=True)"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.update_field_metadata({field_name: new_metadata}, replace=True)


def _parse_alteration(given: Mapping[str, Any]) -> ops.Alteration:
    """Return an alteration; raises ArgumentError for keys that are missing or not known."""
    if "path" not in given:
        message = "path is required"
        raise ArgumentError(message)
    for key, value in given.items():
        kind = _ALTERATIONS.get(key)
        if kind is None:
            message = f"Unknown key: {key}. Valid keys are name, nullable, and data_type."
            raise ArgumentError(message)
        if value is not None and not isinstance(value, kind):
            message = f"{key} must be of type {kind.__name__}, got {value!r}"
            raise TypeError(message)
    if all(value is None for key, value in given.items() if key != "path"):
        message = "At least one of name, nullable, or data_type must be specified"
        raise ArgumentError(message)
    return ops.Alteration(**given)


def _new_columns() -> type[NewColumns]:
    """Return the class that plans new columns; opening a table does not import it."""
    from pennon.dataset.new_columns import NewColumns  # noqa: PLC0415 - saves writers and SQL at open

    return NewColumns
