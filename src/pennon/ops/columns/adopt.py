"""A fragment made of a data file that lies in the table's folder already."""

from __future__ import annotations

from collections.abc import Iterator

from pennon.core.units import FieldId, FragmentId
from pennon.errors import Breadcrumb, LanceError, SchemaMismatchError
from pennon.ops.fit import fit_schema
from pennon.scan.fragment_reader import FileColumns
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.storage_version import storage_version


def adopt_file(snapshot: Snapshot, name: str, number: FragmentId) -> Fragment:
    """Return the fragment that a data file of that name in ``data/`` makes; nothing is committed.

    Its columns become those of the same names in the table.  Raises NotFoundError if it is not
    there, SchemaMismatchError if it does not fit the table.
    """
    blank = DataFileRef(name, (), (), *storage_version(snapshot.manifest).to_numbers())
    try:
        return _adopt(snapshot, blank, number)
    except LanceError as error:
        raise error.located(Breadcrumb(blank.store_path)) from None


def _adopt(snapshot: Snapshot, blank: DataFileRef, number: FragmentId) -> Fragment:
    opened = snapshot.open_file(blank)
    file, version = opened.data, storage_version(snapshot.manifest)
    if file.version != version:
        message = f"a file of version {file.version} does not fit a table of version {version}"
        raise SchemaMismatchError(message)
    fitted = {top.name: top for top in fit_schema(snapshot.manifest.schema, file.schema).fields}
    pairs = [pair for top in file.schema.fields for pair in _pairs(top, fitted[top.name])]
    known = [(ours, theirs) for theirs, ours in pairs if theirs in file.column_of]
    ids = tuple(ours for ours, _ in known)
    columns = tuple(int(file.column_of[theirs]) for _, theirs in known)
    numbers = version.to_numbers()
    if numbers[0]:
        ref = DataFileRef(blank.path, ids, columns, *numbers, opened.source.size_bytes)
        return Fragment(number, (ref,), file.num_rows)
    ref = DataFileRef(blank.path, ids, (), *numbers, opened.source.size_bytes)
    if tuple(FileColumns.of(ref).column_of.values()) != columns:
        message = "the fields of this file have other numbers than those of the table"
        raise SchemaMismatchError(message)
    return Fragment(number, (ref,), file.num_rows)


def _pairs(file: Field, table: Field) -> Iterator[tuple[FieldId, FieldId]]:
    """Yield the id in the file and the id in the table of each field, depth first."""
    yield file.id, table.id
    by_name = {child.name: child for child in table.children}
    for at, child in enumerate(file.children):
        is_struct = file.logical_type == "struct"
        yield from _pairs(child, by_name[child.name] if is_struct else table.children[at])
