"""The dictionaries of tables of version 0.1: one for each field, for all rows of the table.

Every data file holds the values of its dictionaries, and so does every manifest.  Readers of other
makes look at the manifest only, so all files of a table must have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, Breadcrumb
from pennon.file.open import open_data_file
from pennon.io.store import Opens
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.table.commit.new_files import fragments_of
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Append, Merge, Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import Reads, read_manifest


def dictionaries_of(
    store: Reads, transaction: Transaction, base: Manifest | None = None
) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries that a commit gives a table: an overwrite has those of its files.

    Others, which add files of version 0.1, bring those of columns that are new, or had no value yet.
    ``base`` is the version that was planned on.  Raises ArgumentError if those of the files that an
    append adds differ from one another, or from those of the table.
    """
    operation = transaction.operation
    if isinstance(operation, Overwrite):
        return _collect(store, operation.schema, operation.fragments, {})
    new = fragments_of(operation)
    if isinstance(operation, Append):
        head = read_manifest(store)
        known = known_dictionaries(store, head)
        return _collect(store, head.schema, operation.fragments, known)
    head = base or read_manifest(store)
    schema = operation.schema if isinstance(operation, Merge) else head.schema
    return _missing(store, schema, [*head.fragments, *new], head.dictionaries)


def known_dictionaries(store: Opens, manifest: Manifest) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries of a version, those among them that its manifest should have, but has not.

    Pennon left out, for a while, those of tables that were made empty; the files have them.
    """
    missing = _missing(store, manifest.schema, manifest.fragments, manifest.dictionaries)
    return {**missing, **manifest.dictionaries}


def _missing(
    store: Opens, schema: Schema, fragments: Sequence[Fragment], known: Mapping[FieldId, pa.Array]
) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries that are not known and the same in all files that have the field."""
    found: dict[FieldId, pa.Array] = {}
    for field in _dictionary_fields(schema):
        if field.id not in known:
            with suppress(ArgumentError):
                found.update(_collect(store, Schema((field,)), fragments, {}))
    return found


def _dictionary_fields(schema: Schema) -> Iterator[Field]:
    return (each for each in schema.walk() if each.logical_type.startswith("dict:"))


def _collect(
    store: Opens, schema: Schema, fragments: Iterable[Fragment], known: Mapping[FieldId, pa.Array]
) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries of all files, and those that were known."""
    fields = {each.id: each for each in _dictionary_fields(schema)}
    found = dict(known)
    if not fields:
        return found
    for ref in _files(fragments):
        if not ref.has_page_table:
            continue
        for field_id in set(ref.field_ids) & set(fields):
            values = _values(store, ref, fields[field_id])
            if not found.setdefault(field_id, values).equals(values):
                message = (
                    f"column {fields[field_id].name!r} has another dictionary in this file than in "
                    "others, and at file version 0.1 a table has one for all its rows; write plain "
                    "values, or a table of a newer version"
                )
                raise ArgumentError(message, where=Breadcrumb(ref.store_path))
    return found


def _values(store: Opens, ref: DataFileRef, of: Field) -> pa.Array:
    file = open_data_file(store.open(ref.store_path, ref.size_bytes or None))
    values = file.dictionary_values(of, storage_field(of).type.value_type)
    if values is None:
        message = f"the manifest has it as a file of version 0.1, but it is of {file.version}"
        raise ArgumentError(message, where=Breadcrumb(ref.store_path))
    return values


def _files(fragments: Iterable[Fragment]) -> Iterator[DataFileRef]:
    return (ref for fragment in fragments for ref in fragment.files)
