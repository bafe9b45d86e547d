"""The data of a merge: all of it in memory, with its keys numbered.

Memory holds the source, the numbers of its keys (about 40 bytes a row) and, for each thread, the key
columns of up to a million rows of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.large_columns import take_rows
from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.ops.fit import fit_batch, fit_schema
from pennon.ops.merge_insert.keys import Keys, check_key
from pennon.ops.rows.rewrite_rows import Moved
from pennon.scan.projection import Projection, plan_take_projection
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.blob_arrays import written_schema
from pennon.schema.field import Field, Schema
from pennon.schema.project import quoted as quoted
from pennon.schema.project import resolve


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows that are merged into a table; it pickles, and makes merged rows of old ones.

    ``table`` has columns of the table, all or some, with the table's types.
    """

    table: pa.Table
    on: tuple[str, ...]
    keys: Keys
    schema: Schema
    """That of the table which is merged into."""
    partial: frozenset[str] = frozenset()
    """Columns of structs that lack some fields: rows that match keep theirs."""

    @classmethod
    def of(cls, data: pa.Table, schema: Schema, on: Sequence[str]) -> Source:
        """Fit data to a table.

        Raises SchemaMismatchError if it does not fit or lacks a key, UnsupportedError for keys that
        are no plain values.
        """
        fitted = fit_schema(schema, schema_from_arrow(data.schema), may_lack=True)
        whole = {field.id: field for field in schema.fields}
        partial = frozenset(part.name for part in fitted.fields if part != whole[part.id])
        target = written_schema(fitted)
        batches = [fit_batch(batch, target) for batch in data.to_batches()]
        table = pa.Table.from_batches(batches, target)
        for name in on:
            if name not in table.column_names:
                names = ", ".join(table.column_names)
                message = f"the data lacks {name!r}, by which rows are matched; it has {names}"
                raise SchemaMismatchError(message)
            check_key(name, table.schema.field(name).type)
        keys = Keys.of([table.column(name) for name in on])
        return cls(table, tuple(on), keys, schema, partial)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the table's fields that the data has, in the table's order."""
        return tuple(f for f in self.schema.fields if f.name in self.table.column_names)

    @property
    def is_whole(self) -> bool:
        """Tell whether the data has all columns of the table."""
        return len(self.fields) == len(self.schema.fields) and not self.partial

    @property
    def needs(self) -> Projection:
        """Return the columns of old rows that the data does not have, or not as a whole."""
        given = set(self.table.column_names) - self.partial
        return plan_take_projection(
            self.schema, [quoted(f.name) for f in self.schema.fields if f.name not in given]
        )

    @property
    def row_bytes(self) -> int:
        """Return how many bytes a row of the data takes, on average."""
        return int(self.table.nbytes // max(self.table.num_rows, 1))

    def make(self, old: pa.RecordBatch, moved: Moved) -> pa.RecordBatch:
        """Return rows of the data; columns that it lacks are those of the old rows, else NULL."""
        if moved.source is None:
            message = "merged rows have their values from the data"
            raise ValueError(message)
        new = self.take(moved.source, self.table.column_names)
        arrays = []
        for field in written_schema(self.schema):
            mine, theirs = _column_of(new, field.name), _column_of(old, field.name)
            if mine is None:
                mine = pa.nulls(new.num_rows, field.type) if theirs is None else theirs
            elif field.name in self.partial:
                mine = _filled(field, mine, theirs)
            arrays.append(mine)
        return pa.RecordBatch.from_arrays(arrays, self.schema.names)

    def take(self, rows: Int64Array, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of rows of the data."""
        return one_batch(take_rows(self.table.select(list(names)), rows))

    def describe_key(self, row: int) -> str:
        """Return the key of a row as people read it, e.g. ``a = 2, b = 'x'``."""
        values = ((name, self.table.column(name)[row].as_py()) for name in self.on)
        return ", ".join(f"{name} = {value!r}" for name, value in values)


def key_columns(schema: Schema, on: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of a key as the table has them.

    Raises ArgumentError for a column that is not there, or inside a struct.
    """
    return tuple(dict.fromkeys(_column(schema, given) for given in on))


def _column(schema: Schema, given: str) -> str:
    """Return the one column of that name, or of that name in another case."""
    alike = [name for name in schema.names if name.lower() == given.lower()]
    if given not in alike and len(alike) == 1:
        return alike[0]
    path = resolve(schema, given)
    if len(path) > 1:
        message = f"rows are matched by columns, not by a field inside one ({given!r})"
        raise ArgumentError(message)
    return path[0].name


def _column_of(batch: pa.RecordBatch, name: str) -> pa.Array[Any] | None:
    return batch.column(name) if name in batch.schema.names else None


def _filled(field: pa.Field[Any], new: pa.Array[Any], old: pa.Array[Any] | None) -> pa.StructArray:
    """Return structs with the fields that the new ones have, and others of the old ones, else NULL.

    A struct is NULL where the new one is, and the old one or there is none.
    """
    children = []
    for child in field.type:
        mine, theirs = _child_of(new, child.name), _child_of(old, child.name)
        if mine is None:
            mine = pa.nulls(len(new), child.type) if theirs is None else theirs
        elif mine.type != child.type and pa.types.is_struct(child.type):
            mine = _filled(child, mine, theirs)
        children.append(mine)
    is_null = new.is_null() if old is None else pc.and_(new.is_null(), old.is_null())
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=is_null)


def _child_of(structs: pa.Array[Any] | None, name: str) -> pa.Array[Any] | None:
    """Return a field of structs, NULL where they are."""
    if structs is None or structs.type.get_field_index(name) < 0:
        return None
    return pc.struct_field(structs, [name])


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    arrays = [_one_array(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.array([], column.type)
    return pa.concat_arrays(column.chunks)
