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
from pennon.io.store import Opens
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.lance_schema import LanceSchema
from pennon.table import indices as table_indices
from pennon.table import operations as table
from pennon.table.fragment import BasePath
from pennon.table.indices_wire import rewritten
from pennon.table.manifest import Manifest
from pennon.table.transaction import Transaction as TableTransaction
from pennon.table.transaction_wire import find_transaction

Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Converter:
    """A pair of functions that convert values from users to the table layer, and back."""

    to_table: Convert
    to_user: Convert

    @property
    def optional(self) -> Converter:
        """Return the same for a value that may be None."""
        return Converter(_unless_none(self.to_table), _unless_none(self.to_user))

    @property
    def many(self) -> Converter:
        """Return the same for each of several values."""
        return Converter(_each(tuple, self.to_table), _each(list, self.to_user))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A field, by its two names; the table layer does without some."""

    user: str
    table: str | None
    way: Converter = Converter(_same, _same)


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


def _parts(kind: type) -> Converter:
    """Return how objects of a class of `FIELDS` go over."""
    return Converter(lambda it: _to_table(kind, it), lambda it: _to_user(kind, it))


_MILLISECONDS = 1000
_FRAGMENTS = Converter(FragmentMetadata.to_fragment, FragmentMetadata.from_fragment).many
_FRAGMENT_ID = Converter(FragmentId, int)
_FIELD_IDS = Converter(FieldId, int).many
_VERSION = Converter(DatasetVersion, int)
_SCHEMA = Converter(_to_schema, LanceSchema)
_BASES = Converter(lambda it: tuple(map(_to_base, it or ())), lambda _: None)
_MODE = Converter(_to_mode, _from_mode)
_FILE = Converter(DataFile.to_ref, DataFile.from_ref)
_OFFSETS = Converter(
    lambda it: {FragmentId(number): bytes(bitmap) for number, bitmap in (it or {}).items()},
    lambda it: {int(number): bitmap for number, bitmap in it.items()} or None,
)
_COVERED = Converter(lambda it: frozenset(map(FragmentId, it)), lambda it: set(it or ()))
_TIME = Converter(lambda it: round(it.timestamp() * _MILLISECONDS), table_indices.time_of).optional

_INDEX_FILES = Converter(
    lambda it: tuple(table_indices.IndexFile(each.path, each.size_bytes) for each in it or ()),
    lambda it: [IndexFile(each.path, each.size_bytes) for each in it] or None,
)
_INDICES = Converter(to_index, lambda it: _to_user(Index, it)).many
_MAP = _parts(LanceOperation.UpdateMap)
_MAPS = Converter(
    lambda it: {FieldId(number): _MAP.to_table(each) for number, each in (it or {}).items()},
    lambda it: {int(number): _MAP.to_user(each) for number, each in it.items()} or None,
)

_OPERATION = Converter(
    lambda it: to_table_operation(it),  # noqa: PLW0108 - it is defined below
    lambda it: from_table_operation(it),  # noqa: PLW0108 - as above
)

FIELDS: Mapping[tuple[type[Any], type[Any]], Sequence[FieldMapping]] = {
    (LanceOperation.Append, table.Append): [FieldMapping("fragments", "fragments", _FRAGMENTS)],
    (LanceOperation.Overwrite, table.Overwrite): [
        FieldMapping("new_schema", "schema", _SCHEMA),
        FieldMapping("fragments", "fragments", _FRAGMENTS),
        FieldMapping("initial_bases", "base_paths", _BASES),
    ],
    (LanceOperation.Delete, table.Delete): [
        FieldMapping("updated_fragments", "updated", _FRAGMENTS),
        FieldMapping("deleted_fragment_ids", "deleted_ids", _FRAGMENT_ID.many),
        FieldMapping("predicate", "predicate"),
    ],
    (LanceOperation.Update, table.Update): [
        FieldMapping("removed_fragment_ids", "removed_ids", _FRAGMENT_ID.many),
        FieldMapping("updated_fragments", "updated", _FRAGMENTS),
        FieldMapping("new_fragments", "new", _FRAGMENTS),
        FieldMapping("fields_modified", "fields_modified", _FIELD_IDS),
        FieldMapping("fields_for_preserving_frag_bitmap", "fields_preserved", _FIELD_IDS),
        FieldMapping("update_mode", "mode", _MODE),
        FieldMapping("updated_fragment_offsets", "updated_offsets", _OFFSETS),
        FieldMapping("adds_keys", None),
    ],
    (LanceOperation.Merge, table.Merge): [
        FieldMapping("fragments", "fragments", _FRAGMENTS),
        FieldMapping("schema", "schema", _SCHEMA),
        FieldMapping("preserves_nullability", "preserves_nullability"),
    ],
    (LanceOperation.Project, table.Project): [
        FieldMapping("schema", "schema", _SCHEMA),
        FieldMapping("preserves_nullability", "preserves_nullability"),
    ],
    (LanceOperation.Restore, table.Restore): [FieldMapping("version", "version", _VERSION)],
    (LanceOperation.Clone, table.Clone): [
        FieldMapping("is_shallow", "is_shallow"),
        FieldMapping("ref_name", "ref_name"),
        FieldMapping("ref_version", "ref_version", _VERSION),
        FieldMapping("ref_path", "ref_path"),
        FieldMapping("branch_name", "branch_name"),
    ],
    (LanceOperation.Rewrite, table.Rewrite): [
        FieldMapping("groups", "groups", _parts(LanceOperation.RewriteGroup).many),
        FieldMapping(
            "rewritten_indices", "rewritten_indices", _parts(LanceOperation.RewrittenIndex).many
        ),
    ],
    (LanceOperation.RewriteGroup, table.RewriteGroup): [
        FieldMapping("old_fragments", "old", _FRAGMENTS),
        FieldMapping("new_fragments", "new", _FRAGMENTS),
    ],
    (LanceOperation.RewrittenIndex, table.RewrittenIndex): [
        FieldMapping("old_id", "old_id"),
        FieldMapping("new_id", "new_id"),
        FieldMapping("new_details_type_url", "details_url"),
        FieldMapping("new_details_value", "details", Converter(bytes, bytes)),
        FieldMapping("new_index_version", "index_version"),
    ],
    (LanceOperation.CreateIndex, table.CreateIndex): [
        FieldMapping("new_indices", "new", _INDICES),
        FieldMapping("removed_indices", "removed", _INDICES),
    ],
    (Index, table_indices.Index): [
        FieldMapping("uuid", "uuid"),
        FieldMapping("name", "name"),
        FieldMapping("fields", "field_ids", _FIELD_IDS),
        FieldMapping("dataset_version", "dataset_version"),
        FieldMapping("fragment_ids", "fragment_ids", _COVERED),
        FieldMapping("index_version", "index_version"),
        FieldMapping("created_at", "created_at_ms", _TIME),
        FieldMapping("base_id", "base_id"),
        FieldMapping("files", "files", _INDEX_FILES),
        FieldMapping("index_details", "details"),
        FieldMapping("covering_fields", None),
        FieldMapping("wire", "wire"),
    ],
    (LanceOperation.DataReplacement, table.DataReplacement): [
        FieldMapping(
            "replacements", "replacements", _parts(LanceOperation.DataReplacementGroup).many
        )
    ],
    (LanceOperation.DataReplacementGroup, table.Replacement): [
        FieldMapping("fragment_id", "fragment_id", _FRAGMENT_ID),
        FieldMapping("new_file", "file", _FILE),
    ],
    (LanceOperation.UpdateConfig, table.UpdateConfig): [
        FieldMapping("config_updates", "config", _MAP.optional),
        FieldMapping("table_metadata_updates", "table_metadata", _MAP.optional),
        FieldMapping("schema_metadata_updates", "schema_metadata", _MAP.optional),
        FieldMapping("field_metadata_updates", "fields", _MAPS),
    ],
    (LanceOperation.UpdateMap, table.MapUpdate): [
        FieldMapping("updates", "entries", Converter(dict, dict)),
        FieldMapping("replace", "replace"),
    ],
    (Transaction, TableTransaction): [
        FieldMapping("read_version", "read_version"),
        FieldMapping("operation", "operation", _OPERATION),
        FieldMapping("uuid", "uuid"),
        FieldMapping("transaction_properties", "properties", Converter(lambda it: it or {}, dict)),
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


def kept_transaction(store: Opens, manifest: Manifest) -> Transaction | None:
    """Return the transaction that made a version, as users see it; None if it was not kept."""
    found = find_transaction(store, manifest)
    return None if found is None else from_table_transaction(found)


def _to_table(kind: type, value: Any) -> Any:
    made, rows = _TABLE_CLASS[kind]
    return made(**{row.table: _given(kind, row, value) for row in rows if row.table is not None})


def _to_user(kind: type, value: Any) -> Any:
    _, rows = _TABLE_CLASS[kind]
    common = [(row.user, row.table, row.way) for row in rows if row.table is not None]
    return kind(**{user: way.to_user(getattr(value, name)) for user, name, way in common})


def _given(kind: type, row: FieldMapping, value: Any) -> Any:
    """Return the value of a field that a user gave; errors name the class and the field."""
    try:
        return row.way.to_table(getattr(value, row.user))
    except LanceError as error:
        error.message = f"{kind.__name__}.{row.user}: {error.message}"
        raise
    except (AttributeError, TypeError) as error:
        message = f"{kind.__name__}.{row.user}: {error}"
        raise TypeError(message) from error
