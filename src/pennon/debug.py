"""Manifests, schemas, fragments and transactions as text, with the names of ``lance.debug``.

The text is for people who look for a fault; its layout is like Rust's, as pylance's is, and may change.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from pennon.dataset.base import DatasetBase
from pennon.dataset.metadata import FragmentMetadata
from pennon.errors import ColumnTypeError
from pennon.schema.field import Field, Schema
from pennon.table.manifest import Manifest
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import list_locations, read_manifest

__all__ = ["format_fragment", "format_manifest", "format_schema", "list_transactions"]

_HIDDEN = frozenset({"arrow", "fields_wire", "unknown"})
_NAMES = {
    "config": "config",
    "reader_flags": "reader_feature_flags",
    "timestamp_ns": "timestamp_nanos",
    "writer": "writer_version",
    "writer_flags": "writer_feature_flags",
}
_INDENT = "    "


@dataclasses.dataclass(frozen=True, slots=True)
class _Struct:
    """A name with fields, or with one value that has no name of its own."""

    name: str
    fields: Mapping[str, Any]


def format_schema(dataset: DatasetBase) -> str:
    """Return the fields of a table with their ids, logical types and metadata.

    >>> import pennon, pyarrow as pa
    >>> from pennon.debug import format_schema
    >>> ds = pennon.write_dataset(pa.table({"id": [1]}), "memory://docs/debug-schema.lance")
    >>> print(format_schema(ds)[:58])
    Schema {
        fields: [
            Field {
                name: "id",
    """
    return _text(_of(_manifest(dataset).schema))


def format_manifest(dataset: DatasetBase) -> str:
    """Return the manifest of a table's version: schema, fragments with their files, flags, configuration.

    >>> import pennon, pyarrow as pa
    >>> from pennon.debug import format_manifest
    >>> ds = pennon.write_dataset(pa.table({"id": [1]}), "memory://docs/debug-manifest.lance")
    >>> format_manifest(ds)[:10]
    'Manifest {'
    """
    return _text(_of(_manifest(dataset)))


def format_fragment(fragment: Any, dataset: DatasetBase) -> str:
    """Return a fragment, as `FragmentMetadata`: its files with the fields that each of them has, and its deletion file.

    Raises ColumnTypeError (a TypeError) for what is no `FragmentMetadata`.

    >>> import pennon, pyarrow as pa
    >>> from pennon.debug import format_fragment
    >>> ds = pennon.write_dataset(pa.table({"id": [1]}), "memory://docs/debug-fragment.lance")
    >>> format_fragment(ds.get_fragments()[0].metadata, ds)[:25]
    'PrettyPrintableFragment {'
    """
    if not isinstance(fragment, FragmentMetadata):
        message = f"format_fragment takes a FragmentMetadata, got {type(fragment).__name__}"
        raise ColumnTypeError(message)
    schema = _manifest(dataset).schema
    files = [
        _Struct(
            "PrettyPrintableDataFile",
            {
                "path": file.path,
                "fields": file.fields,
                "column_indices": file.column_indices,
                "schema": _schema_of(schema, set(file.fields)),
                "major_version": file.file_major_version,
                "minor_version": file.file_minor_version,
            },
        )
        for file in fragment.files
    ]
    shown = {
        "id": fragment.id,
        "files": files,
        "deletion_file": _option(fragment.deletion_file),
        "physical_rows": _option(fragment.physical_rows),
    }
    return _text(_Struct("PrettyPrintableFragment", shown))


def list_transactions(dataset: DatasetBase, max_transactions: int = 10) -> list[str]:
    """Return the transactions that made a table's version and those before it, newest first.

    It ends at a version that clean-up has removed.

    >>> import pennon, pyarrow as pa
    >>> from pennon.debug import list_transactions
    >>> ds = pennon.write_dataset(pa.table({"id": [1]}), "memory://docs/debug-transactions.lance")
    >>> [text[:13] for text in list_transactions(ds)]
    ['Transaction {']
    """
    store = dataset._snapshot.store  # noqa: SLF001 - a method of datasets, as far as users see
    newest = _manifest(dataset)
    known = {at.version for at in list_locations(store)}
    shown: list[str] = []
    version = newest.version
    while len(shown) < max_transactions and (version == newest.version or version in known):
        manifest = newest if version == newest.version else read_manifest(store, version)
        transaction = find_transaction(store, manifest)
        shown.append("Transaction: None" if transaction is None else _text(_of(transaction)))
        version = type(version)(version - 1)
    return shown


def _manifest(dataset: DatasetBase) -> Manifest:
    return dataset._snapshot.manifest  # noqa: SLF001 - as above


# --- values ---------------------------------------------------------------------------------------


def _of(value: Any) -> Any:
    """Return a value as structs, lists, mappings and literals."""
    if isinstance(value, _Struct):
        return value
    if isinstance(value, Schema):
        return _schema_of(value, None)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _Struct(type(value).__name__, dict(_members(value)))
    if isinstance(value, Mapping):
        return {str(_key(key)): _of(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_of(item) for item in value]
    return value


def _key(key: Any) -> Any:
    return key.name if isinstance(key, Field) else key


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(value):
        if field.name in _HIDDEN or field.name.startswith("_"):
            continue
        member = _of(getattr(value, field.name))
        is_optional = "None" in str(field.type) or member is None
        yield _NAMES.get(field.name, field.name), _option(member) if is_optional else member


def _option(value: Any) -> Any:
    return None if value is None else _Struct("Some", {"": _of(value)})


def _schema_of(schema: Schema, ids: set[int] | None) -> _Struct:
    """Return a schema: the fields with these ids and those above them, by default all."""
    fields = [shown for each in schema.fields for shown in _field(each, -1, ids)]
    return _Struct("Schema", {"fields": fields, "metadata": _of(schema.metadata)})


def _field(field: Field, parent: int, ids: set[int] | None) -> Iterator[_Struct]:
    children = [shown for each in field.children for shown in _field(each, field.id, ids)]
    if ids is not None and field.id not in ids and not children:
        return
    yield _Struct(
        "Field",
        {
            "name": field.name,
            "id": field.id,
            "parent_id": parent,
            "logical_type": _Struct("LogicalType", {"": field.logical_type}),
            "metadata": _of(field.metadata),
            "nullable": field.nullable,
            "children": children,
        },
    )


# --- text -----------------------------------------------------------------------------------------


def _text(value: Any, indent: str = "") -> str:
    """Return a value as text; lines after the first begin with ``indent``."""
    deeper = indent + _INDENT
    if isinstance(value, _Struct):
        if set(value.fields) == {""}:
            return f"{value.name}(\n{deeper}{_text(value.fields[''], deeper)},\n{indent})"
        lines = [f"{deeper}{name}: {_text(each, deeper)}," for name, each in value.fields.items()]
        return "\n".join([f"{value.name} {{", *lines, indent + "}"]) if lines else value.name
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(k)}: {_text(each, deeper)}," for k, each in value.items()]
        return "\n".join(["{", *lines, indent + "}"]) if lines else "{}"
    if isinstance(value, list):
        lines = [f"{deeper}{_text(each, deeper)}," for each in value]
        return "\n".join(["[", *lines, indent + "]"]) if lines else "[]"
    return _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return json.dumps(text) if text.isprintable() else f"{len(value)} bytes"
    if isinstance(value, Enum):
        return str(value.name)
    return json.dumps(value) if isinstance(value, str) else str(value)
