"""Changing the rows of a table: delete, update, merge."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypedDict

import pyarrow as pa

from pennon import ops
from pennon.dataset.base import DatasetBase
from pennon.errors import ArgumentError
from pennon.ops.retry import CONFLICT_RETRIES, RETRY_TIMEOUT

if TYPE_CHECKING:
    from pennon.dataset.merge_insert import MergeInsertBuilder


class DeleteResult(TypedDict):
    """The result of a delete.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.delete("id > 1")
    {'num_deleted_rows': 2}
    """

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """The result of an update.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.update({"id": "id + 10"}, where="id > 1")
    {'num_rows_updated': 2}
    """

    num_rows_updated: int


class DatasetRows(DatasetBase):
    """The methods of `LanceDataset` that change rows; each turns the handle to the version made."""

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: type[Any],
        data: list[Any],
        uri: str | os.PathLike[str] | None = None,
        mode: str = "create",
        **options: Any,
    ) -> Self:
        """Write pydantic models of one class, and return the dataset; the schema is that of the class.

        ``uri``: by default the class's name in snake case, in the working directory.  ``options``: those of
        `pennon.write_dataset`.  Raises TypeError for what is no model, or no list of models of this class,
        ArgumentError for an empty list.

        >>> import pydantic
        >>> class Row(pydantic.BaseModel):
        ...     id: int
        >>> pennon.LanceDataset.from_pydantic_model(Row, [Row(id=1)], uri).to_table().to_pylist()
        [{'id': 1}]
        """
        write = import_module("pennon.dataset.write")
        models = import_module("pennon.schema.pydantic_models")
        schema = models.pydantic_to_schema(models.check_model(model_class))
        rows = models.rows_of_models(data, model_class)
        if not rows:
            message = (
                "an empty list of models is no table: write an empty table with pydantic_to_schema"
            )
            raise ArgumentError(message)
        place = os.fspath(models.snake_case(model_class.__name__) if uri is None else uri)
        table = pa.Table.from_pylist(rows, schema=schema)
        chosen = write.WriteOptions.named({"mode": mode, **options})
        snapshot = write.write_version(table, place, None, chosen)
        return cls.of_snapshot(place, snapshot, options.get("storage_options"))

    def delete(
        self,
        predicate: Any,
        *,
        conflict_retries: int = CONFLICT_RETRIES,
        retry_timeout: timedelta = RETRY_TIMEOUT,
    ) -> DeleteResult:
        """Delete the rows for which SQL text, or a pyarrow expression, is true.

        Their bytes stay in the data files until the table is compacted, and in older versions.  Where
        another writer changed the same rows, they are found again on the newest version, up to
        ``conflict_retries`` times, until ``retry_timeout`` has passed.

        Raises ArgumentError if the condition is none, RetryableConflict if retries did not help.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.delete("id > 1")
        {'num_deleted_rows': 2}
        >>> ds.count_rows()
        1
        """
        rows = self._change(
            lambda snapshot: ops.delete(snapshot, predicate), conflict_retries, retry_timeout
        )
        return {"num_deleted_rows": rows}

    def update(
        self,
        updates: Mapping[str, str],
        where: Any = None,
        conflict_retries: int = CONFLICT_RETRIES,
        retry_timeout: timedelta = RETRY_TIMEOUT,
        data_storage_version: str | None = None,
    ) -> UpdateResult:
        """Give columns new values: ``{column: SQL}``, in the rows for which ``where`` is true.

        Each expression sees the row as it was, and its value is cast to the column's type.  Updated
        rows move to the end of the table; stable row ids stay.  Conflicts are handled as in `delete`.

        Raises ArgumentError for what the table does not have, and for values that a column cannot
        take (the message names it).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.update({"id": "id * 10"}, where="id > 2")
        {'num_rows_updated': 1}
        >>> ds.to_table()["id"].to_pylist()
        [1, 2, 30]
        """
        rows = self._change(
            lambda snapshot: ops.update(snapshot, updates, where, data_storage_version),
            conflict_retries,
            retry_timeout,
        )
        return {"num_rows_updated": rows}

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Return a builder of a merge: it updates, inserts or deletes rows by the key columns ``on``.

        Choose what becomes of rows that match, that are new, and that the data lacks; then
        ``execute``.  Without ``on`` the key is the schema's primary key.

        Raises ArgumentError for a column that is not there.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> merge.execute(pa.table({"id": [3, 4]}))["num_inserted_rows"]
        1
        """
        from pennon.dataset.merge_insert import MergeInsertBuilder  # noqa: PLC0415 - saves writers at open

        return MergeInsertBuilder(self, on)
