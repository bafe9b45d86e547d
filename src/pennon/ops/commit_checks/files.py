"""Comparing data files that are new to a table with the schema that they are committed under."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from pennon.core.thread_pools import WORK, map_all
from pennon.core.units import ColumnIndex, FieldId
from pennon.errors import Breadcrumb, FormatError, NotFoundError, SchemaMismatchError
from pennon.io.store import Store
from pennon.ops.commit_checks.contents import Contents, contents_of
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.schema.named_fields import NamedField, named_fields
from pennon.table.commit.new_files import fragments_of
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import DataReplacement, Operation, Overwrite
from pennon.table.versions import list_locations, read_manifest, read_manifest_at

_VERSIONS_LOOKED_AT: Final = 100
"""The number of newest versions that are asked whether one of them shows a file as the commit does."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file of a fragment that the version planned on does not have, or not so."""

    fragment: Fragment
    ref: DataFileRef
    contents: Contents


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The data files that an operation brings, and the schema that it gives the table."""

    store: Store
    head: Manifest
    operation: Operation
    schema: Schema
    files: tuple[NewFile, ...]

    @classmethod
    def of(cls, store: Store, head: Manifest, operation: Operation, schema: Schema) -> Self:
        """Read what the new files hold; files that the table has already are not looked at."""
        brought = [(f, ref) for f in _brought(head, operation) for ref in f.files]
        known = _known(head, {ref.store_path for _, ref in brought})
        old = named_fields(head.schema) if isinstance(operation, Overwrite) else None
        after = named_fields(schema)
        new = [pair for pair in brought if not _is_known(pair[1], known, old, after)]
        snapshot = Snapshot(store, head)
        contents = map_all(lambda pair: contents_of(snapshot, pair[1]), new, WORK)
        files = [NewFile(f, ref, it) for (f, ref), it in zip(new, contents, strict=True) if it]
        return cls(store, head, operation, schema, tuple(files))

    def check_names(self) -> None:
        """Raise SchemaMismatchError if a file holds another column under an id than the schema says."""
        for file in self.files:
            wrong = next(_differences(file, self.schema), None)
            if wrong is not None and not self._is_older(file):
                raise SchemaMismatchError(wrong, where=Breadcrumb(file=file.ref.store_path))

    def _is_older(self, file: NewFile) -> bool:
        """Return whether a file has the names of another version, between which columns were renamed."""
        if self.schema is self.head.schema:  # there may be newer names of the same ids
            newest = read_manifest(self.store).schema
            if next(_differences(file, newest), None) is None:
                return True
        return _was_shown(self.store, file, named_fields(self.schema))


def _brought(head: Manifest, operation: Operation) -> Iterable[Fragment]:
    """Return the fragments that an operation brings, and those that get other files."""
    if not isinstance(operation, DataReplacement):
        return fragments_of(operation)
    replaced = [(head.fragment(each.fragment_id), each.file) for each in operation.replacements]
    return [replace(f, files=(file,)) for f, file in replaced if f is not None]


def _known(head: Manifest, paths: Collection[str]) -> dict[str, dict[FieldId, ColumnIndex]]:
    """Return where the fields of files with these paths lie, of those that the table has."""
    return {
        file.store_path: FileColumns.of(file).column_of
        for fragment in (head.fragments if paths else ())
        for file in fragment.files
        if file.store_path in paths
    }


def _is_known(
    ref: DataFileRef,
    known: Mapping[str, Mapping[FieldId, ColumnIndex]],
    old: Mapping[FieldId, NamedField] | None,
    after: Mapping[FieldId, NamedField],
) -> bool:
    """Return whether the table has the file already, with the same fields in the same columns.

    ``old``, of an overwrite alone, are the fields of the table: those of the file must stay what they are.
    """
    mine, theirs = FileColumns.of(ref).column_of, known.get(ref.store_path)
    if theirs is None or not mine.items() <= theirs.items():
        return False
    return old is None or all(old.get(each) == after[each] for each in mine if each in after)


def _differences(file: NewFile, schema: Schema) -> Iterator[str]:
    """Yield what a file holds under an id that is another field in the schema, and the other way round.

    The name of a column counts unless somebody gave it to another field than it was written for, as
    `LanceOperation.DataReplacement` has it: then it must have that field's type.
    """
    wanted = named_fields(schema)
    id_of = {each.path: number for number, each in wanted.items()}
    in_fragment = {number for ref in file.fragment.files for number in ref.field_ids}
    for number, held in file.contents.named.items():
        want, is_moved = wanted.get(number), number in file.contents.moved
        place = f"the file holds column {held.text} ({held.logical_type}) under field id {number}"
        if want is not None and want != (replace(held, path=want.path) if is_moved else held):
            yield f"{place}, which is {want.text} ({want.logical_type}) in the schema; {_WAYS}"
        other = id_of.get(held.path) if want is None and not is_moved else None
        if other is not None and other not in in_fragment:
            yield f"{place}, but the schema has {held.text} under id {other}; {_WAYS}"


_WAYS: Final = (
    "write fragments with the schema and the mode that they are committed with, on the version that is "
    "given as read_version"
)


def _was_shown(store: Store, file: NewFile, wanted: Mapping[FieldId, NamedField]) -> bool:
    """Return whether a late version of the table has the file, and names its fields as they are wanted."""
    named = file.contents.named.keys() & wanted.keys()
    for location in reversed(list_locations(store)[-_VERSIONS_LOOKED_AT:]):
        try:
            manifest = read_manifest_at(store, location)
        except (NotFoundError, FormatError):
            continue
        fields = named_fields(manifest.schema)
        if all(fields.get(each) == wanted[each] for each in named) and _has(manifest, file.ref):
            return True
    return False


def _has(manifest: Manifest, ref: DataFileRef) -> bool:
    return any(file.path == ref.path for fragment in manifest.fragments for file in fragment.files)
