"""Checks of new fragments against a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, RetryableConflict
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import TOMBSTONE, Fragment
from pennon.table.fragments import file_versions


def missing_field(schema: Schema, fragments: Iterable[Fragment]) -> Field | None:
    """Return a field that must not be null, but that some fragment has no data for."""
    required = [field for top in schema.fields for field in _required(top)]
    for fragment in fragments if required else ():
        present = {field_id for file in fragment.files for field_id in file.field_ids}
        for each in required:
            if not any(below.id in present for below in each.walk()):
                return each
    return None


def with_known_files(fragment: Fragment, schema: Schema) -> Fragment:
    """Leave out files without a field of the schema: no reader knows what to do with them."""
    known = {field.id for field in schema.walk()}
    files = tuple(file for file in fragment.files if not known.isdisjoint(file.field_ids))
    return fragment if files == fragment.files else replace(fragment, files=files)


def check_keeps_columns(
    old: Fragment, new: Fragment, schema: Schema, modified: Iterable[FieldId]
) -> None:
    """Raise RetryableConflict if a column that is not said to change lies in another file, or in none.

    As where a change was planned on an older version than it says: what others wrote would be lost.
    """
    if old.files == new.files:
        return
    changed, places = set(modified), _places(new)
    for number, path in _places(old).items():
        if number in changed or places.get(number) == path:
            continue
        field = next((field for field in schema.walk() if field.id == number), None)
        if field is not None:
            message = (
                f"column {field.name!r} of fragment {old.id} lies in {path}, which this change would "
                "lose, though it does not say that it writes it; try again on the newest version"
            )
            raise RetryableConflict(message)


def _places(fragment: Fragment) -> dict[FieldId, str]:
    """Return the file of each column."""
    return {
        number: file.path
        for file in fragment.files
        for number in file.field_ids
        if number != TOMBSTONE
    }


def check_mixture(new: Iterable[Fragment], version: FileVersion) -> None:
    """Refuse files of 0.1 in a table of 2.x, and the other way round; 2.x may be mixed.

    Source: ledger F-111.
    """
    for other in sorted(file_versions(new)):
        if (other == V0_1) != (version == V0_1):
            message = f"files of version {other} cannot be added to a table of version {version}"
            raise ArgumentError(message)


def check_one_version(fragments: Iterable[Fragment], version: FileVersion) -> None:
    """Raise ArgumentError if there are files of another version."""
    others = file_versions(fragments) - {version}
    if others:
        found = ", ".join(str(other) for other in sorted(others))
        message = f"the overwrite is of file version {version}, but there are files of {found}"
        raise ArgumentError(message)


def check_no_deletions(fragments: Iterable[Fragment]) -> None:
    """Raise ArgumentError if a fragment that gets its id now has a deletion file already."""
    if any(fragment.deletion_file is not None for fragment in fragments):
        message = "a fragment with a deletion file cannot be appended: the file's name holds its id"
        raise ArgumentError(message)


def check_have_files(fragments: Iterable[Fragment]) -> None:
    """Raise ArgumentError if a new fragment has rows, but no file for them."""
    for fragment in fragments:
        if fragment.physical_rows and not fragment.files:
            message = f"a new fragment has {fragment.physical_rows} rows, but no data file"
            raise ArgumentError(message)


def check_same_types(old: Schema, new: Schema) -> None:
    """Raise if a field has another type, for the files hold values of the old one, or if none is left."""
    if not new.fields:
        message = "a table needs a column, but the new schema has none"
        raise ArgumentError(message)
    types = {field.id: field.logical_type for field in old.walk()}
    for field in new.walk():
        known = types.get(field.id, field.logical_type)
        if known != field.logical_type:
            message = (
                f"field {field.id} ({field.name!r}) is of type {known}, and cannot become "
                f"{field.logical_type} under the same id"
            )
            raise ArgumentError(message)


def _required(field: Field) -> Iterable[Field]:
    """Yield the fields, this one or below it, that hold a value in every row; no structs."""
    if field.nullable:
        return
    if field.logical_type != "struct":
        yield field
        return
    for child in field.children:
        yield from _required(child)
