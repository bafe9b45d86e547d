"""The dictionaries of tables of version 0.1: one for each field, for all rows of the table.

Every data file holds the values of its dictionaries, and so does every manifest.  Readers of other
makes look at the manifest only, so all files of a table must have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, Breadcrumb
from pennon.file.open import open_data_file
from pennon.io.store import Opens
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.operations import Append, Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import Reads, read_manifest


def dictionaries_of(store: Reads, transaction: Transaction) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries that a commit gives a table: an overwrite has those of its files.

    Raises ArgumentError if those of the files that it adds differ from one another, or from those of
    the table.
    """
    operation = transaction.operation
    if isinstance(operation, Overwrite):
        return _collect(store, operation.schema, operation.fragments, {})
    if isinstance(operation, Append):
        head = read_manifest(store)
        _collect(store, head.schema, operation.fragments, head.dictionaries)
    return {}


def _collect(
    store: Opens,
    schema: Schema,
    fragments: Iterable[Fragment],
    known: Mapping[FieldId, pa.Array],
) -> Mapping[FieldId, pa.Array]:
    """Return the dictionaries of all files, and those that were known."""
    fields = {each.id: each for each in schema.walk() if each.logical_type.startswith("dict:")}
    found = dict(known)
    if not fields:
        return found
    for ref in filter(_is_old, _files(fragments)):
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


def _is_old(ref: DataFileRef) -> bool:
    return FileVersion.from_numbers(ref.major, ref.minor) == V0_1
