"""The fields of operations: pylance's names beside the table layer's.

`FIELDS` has the classes that both sides have, and for each a row for every field: its name as pylance's
users see it, its name in `pennon.table.operations`, and how its value goes over, both ways.  To add an
operation is to add its rows; a field of either class that has none fails a test
(tests/unit/dataset/test_operation_fields.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.operation import Index, IndexFile, LanceOperation, Transaction
from pennon.errors import ArgumentError, LanceError, UnsupportedError
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.lance_schema import LanceSchema
from pennon.table import indices as table_indices
from pennon.table import operations as table
from pennon.table.fragment import BasePath
from pennon.table.indices_wire import rewritten
from pennon.table.transaction import Transaction as TableTransaction

Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Way:
    """How values go over: from users to the table layer, and back."""

    to_table: Convert
    to_user: Convert

    @property
    def optional(self) -> Way:
        """Return the same for a value that may be None."""
        return Way(_unless_none(self.to_table), _unless_none(self.to_user))

    @property
    def many(self) -> Way:
        """Return the same for each of several values."""
        return Way(_each(tuple, self.to_table), _each(list, self.to_user))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Row:
    """A field, by its two names; the table layer does without some."""

    user: str
    table: str | None
    way: Way = Way(_same, _same)


NOT_SHOWN = frozenset({"unknown", "fields_wire", "config_upserts", "tag", "new_files", "deferred"})
"""Fields of the table layer alone: what a message that was read holds and users do not see."""


def _unless_none(convert: Convert) -> Convert:
    return lambda it: None if it is None else convert(it)


def _each(kind: Callable[[Iterable[Any]], Any], convert: Convert) -> Convert:
    return lambda many: kind(convert(it) for it in many)


def _to_schema(schema: LanceSchema | pa.Schema) -> Schema:
    return schema.schema if isinstance(schema, LanceSchema) else schema_from_arrow(schema)


def _to_base(base: Any) -> BasePath:
    return BasePath(base.id or 0, base.path, base.name, base.is_dataset_root)


_MODES = {
    "": None,
    "rewrite_rows": table.UpdateMode.REWRITE_ROWS,
    "rewrite_columns": table.UpdateMode.REWRITE_COLUMNS,
}


def _to_mode(name: str) -> table.UpdateMode | None:
    if name not in _MODES:
        known = ", ".join(map(repr, _MODES))
        message = f"there is no update mode {name!r}; the modes are {known}"
        raise ArgumentError(message)
    return _MODES[name]


def _from_mode(mode: table.UpdateMode | None) -> str:
    return (mode or table.UpdateMode.REWRITE_ROWS).name.lower()


def to_index(index: Index) -> table_indices.Index:
    """Return an index as the table layer has it."""
    made: table_indices.Index = _to_table(Index, index)
    return rewritten(made)


def _parts(kind: type) -> Way:
    """Return how objects of a class of `FIELDS` go over."""
    return Way(lambda it: _to_table(kind, it), lambda it: _to_user(kind, it))


_MILLISECONDS = 1000
_FRAGMENTS = Way(FragmentMetadata.to_fragment, FragmentMetadata.from_fragment).many
_FRAGMENT_ID = Way(FragmentId, int)
_FIELD_IDS = Way(FieldId, int).many
_VERSION = Way(DatasetVersion, int)
_SCHEMA = Way(_to_schema, LanceSchema)
_BASES = Way(lambda it: tuple(map(_to_base, it or ())), lambda _: None)
_MODE = Way(_to_mode, _from_mode)
_FILE = Way(DataFile.to_ref, DataFile.from_ref)
_OFFSETS = Way(
    lambda it: {FragmentId(number): bytes(bitmap) for number, bitmap in (it or {}).items()},
    lambda it: {int(number): bitmap for number, bitmap in it.items()} or None,
)
_COVERED = Way(lambda it: frozenset(map(FragmentId, it)), lambda it: set(it or ()))
_TIME = Way(
    lambda it: round(it.timestamp() * _MILLISECONDS),
    table_indices.time_of,
).optional

_INDEX_FILES = Way(
    lambda it: tuple(table_indices.IndexFile(each.path, each.size_bytes) for each in it or ()),
    lambda it: [IndexFile(each.path, each.size_bytes) for each in it] or None,
)
_INDICES = Way(to_index, lambda it: _to_user(Index, it)).many
_MAP = _parts(LanceOperation.UpdateMap)
_MAPS = Way(
    lambda it: {FieldId(number): _MAP.to_table(each) for number, each in (it or {}).items()},
    lambda it: {int(number): _MAP.to_user(each) for number, each in it.items()} or None,
)

_OPERATION = Way(
    lambda it: to_table_operation(it),  # noqa: PLW0108 - it is defined below
    lambda it: from_table_operation(it),  # noqa: PLW0108 - as above
)

FIELDS: Mapping[tuple[type[Any], type[Any]], Sequence[Row]] = {
    (LanceOperation.Append, table.Append): [
        Row("fragments", "fragments", _FRAGMENTS),
    ],
    (LanceOperation.Overwrite, table.Overwrite): [
        Row("new_schema", "schema", _SCHEMA),
        Row("fragments", "fragments", _FRAGMENTS),
        Row("initial_bases", "base_paths", _BASES),
    ],
    (LanceOperation.Delete, table.Delete): [
        Row("updated_fragments", "updated", _FRAGMENTS),
        Row("deleted_fragment_ids", "deleted_ids", _FRAGMENT_ID.many),
        Row("predicate", "predicate"),
    ],
    (LanceOperation.Update, table.Update): [
        Row("removed_fragment_ids", "removed_ids", _FRAGMENT_ID.many),
        Row("updated_fragments", "updated", _FRAGMENTS),
        Row("new_fragments", "new", _FRAGMENTS),
        Row("fields_modified", "fields_modified", _FIELD_IDS),
        Row("fields_for_preserving_frag_bitmap", "fields_preserved", _FIELD_IDS),
        Row("update_mode", "mode", _MODE),
        Row("updated_fragment_offsets", "updated_offsets", _OFFSETS),
        Row("adds_keys", None),
    ],
    (LanceOperation.Merge, table.Merge): [
        Row("fragments", "fragments", _FRAGMENTS),
        Row("schema", "schema", _SCHEMA),
        Row("preserves_nullability", "preserves_nullability"),
    ],
    (LanceOperation.Project, table.Project): [
        Row("schema", "schema", _SCHEMA),
        Row("preserves_nullability", "preserves_nullability"),
    ],
    (LanceOperation.Restore, table.Restore): [
        Row("version", "version", _VERSION),
    ],
    (LanceOperation.Clone, table.Clone): [
        Row("is_shallow", "is_shallow"),
        Row("ref_name", "ref_name"),
        Row("ref_version", "ref_version", _VERSION),
        Row("ref_path", "ref_path"),
        Row("branch_name", "branch_name"),
    ],
    (LanceOperation.Rewrite, table.Rewrite): [
        Row("groups", "groups", _parts(LanceOperation.RewriteGroup).many),
        Row("rewritten_indices", "rewritten_indices", _parts(LanceOperation.RewrittenIndex).many),
    ],
    (LanceOperation.RewriteGroup, table.RewriteGroup): [
        Row("old_fragments", "old", _FRAGMENTS),
        Row("new_fragments", "new", _FRAGMENTS),
    ],
    (LanceOperation.RewrittenIndex, table.RewrittenIndex): [
        Row("old_id", "old_id"),
        Row("new_id", "new_id"),
        Row("new_details_type_url", "details_url"),
        Row("new_details_value", "details", Way(bytes, bytes)),
        Row("new_index_version", "index_version"),
    ],
    (LanceOperation.CreateIndex, table.CreateIndex): [
        Row("new_indices", "new", _INDICES),
        Row("removed_indices", "removed", _INDICES),
    ],
    (Index, table_indices.Index): [
        Row("uuid", "uuid"),
        Row("name", "name"),
        Row("fields", "field_ids", _FIELD_IDS),
        Row("dataset_version", "dataset_version"),
        Row("fragment_ids", "fragment_ids", _COVERED),
        Row("index_version", "index_version"),
        Row("created_at", "created_at_ms", _TIME),
        Row("base_id", "base_id"),
        Row("files", "files", _INDEX_FILES),
        Row("index_details", "details"),
        Row("covering_fields", None),
        Row("wire", "wire"),
    ],
    (LanceOperation.DataReplacement, table.DataReplacement): [
        Row("replacements", "replacements", _parts(LanceOperation.DataReplacementGroup).many),
    ],
    (LanceOperation.DataReplacementGroup, table.Replacement): [
        Row("fragment_id", "fragment_id", _FRAGMENT_ID),
        Row("new_file", "file", _FILE),
    ],
    (LanceOperation.UpdateConfig, table.UpdateConfig): [
        Row("config_updates", "config", _MAP.optional),
        Row("table_metadata_updates", "table_metadata", _MAP.optional),
        Row("schema_metadata_updates", "schema_metadata", _MAP.optional),
        Row("field_metadata_updates", "fields", _MAPS),
    ],
    (LanceOperation.UpdateMap, table.MapUpdate): [
        Row("updates", "entries", Way(dict, dict)),
        Row("replace", "replace"),
    ],
    (Transaction, TableTransaction): [
        Row("read_version", "read_version"),
        Row("operation", "operation", _OPERATION),
        Row("uuid", "uuid"),
        Row("transaction_properties", "properties", Way(lambda it: it or {}, dict)),
    ],
}
_TABLE_CLASS = {user: (kind, rows) for (user, kind), rows in FIELDS.items()}
_USER_CLASS = {kind: user for user, kind in FIELDS}


def to_table_operation(operation: LanceOperation.BaseOperation) -> table.Operation:
    """Return the operation as the table layer has it; raises UnsupportedError for the others.

    Errors name the operation and the field.
    """
    if type(operation) not in _TABLE_CLASS:
        message = f"a commit of {type(operation).__name__} is not supported"
        raise UnsupportedError(message)
    made: table.Operation = _to_table(type(operation), operation)
    return made


def from_table_operation(operation: table.Operation) -> LanceOperation.BaseOperation:
    """Return an operation as users see it."""
    kind = _USER_CLASS.get(type(operation))
    if kind is not None:
        shown: LanceOperation.BaseOperation = _to_user(kind, operation)
        return shown
    body = operation.message if isinstance(operation, table.Other) else b""
    return LanceOperation.Other(table.operation_name(operation), body)


def from_update(operation: table.Update, *, adds_keys: bool) -> LanceOperation.Update:
    """Return an update as users see it; ``adds_keys`` is never part of a transaction's file."""
    shown: LanceOperation.Update = _to_user(LanceOperation.Update, operation)
    shown.adds_keys = adds_keys
    return shown


def from_index(index: table_indices.Index) -> Index:
    """Return an index as users see it."""
    shown: Index = _to_user(Index, index)
    return shown


def to_table_transaction(transaction: Transaction) -> TableTransaction:
    """Return a transaction as the table layer has it; raises as `to_table_operation`."""
    made: TableTransaction = _to_table(Transaction, transaction)
    return made


def from_table_transaction(transaction: TableTransaction) -> Transaction:
    """Return a transaction as users see it."""
    shown: Transaction = _to_user(Transaction, transaction)
    return shown


def _to_table(kind: type, value: Any) -> Any:
    made, rows = _TABLE_CLASS[kind]
    return made(**{row.table: _given(kind, row, value) for row in rows if row.table is not None})


def _to_user(kind: type, value: Any) -> Any:
    _, rows = _TABLE_CLASS[kind]
    common = [(row.user, row.table, row.way) for row in rows if row.table is not None]
    return kind(**{user: way.to_user(getattr(value, name)) for user, name, way in common})


def _given(kind: type, row: Row, value: Any) -> Any:
    """Return the value of a field that a user gave; errors name the class and the field."""
    try:
        return row.way.to_table(getattr(value, row.user))
    except LanceError as error:
        error.message = f"{kind.__name__}.{row.user}: {error.message}"
        raise
    except (AttributeError, TypeError) as error:
        message = f"{kind.__name__}.{row.user}: {error}"
        raise TypeError(message) from error
