"""Field ids of a table: the highest one, and ids that an old writer gave twice.

The id of a field outlives its name, and data files are found by it, so a new field must not get an
id that a data file still has, even if the schema has no such field any more.

Lance 0.10.5 and before gave a column that was added the id of one that had been dropped.  Then two
files of a fragment have one id, and readers take the wrong one.  The later file is right, for its
column is the one that the schema has now.

Source: ``fix_schema`` of the reference; golden v0.10.5 (corrupt_schema).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pennon.core.units import FieldId
from pennon.schema.field import UNASSIGNED, Field, Schema
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest

_FIRST_RIGHT = (0, 11)
"""Writers of Lance from this version on leave no id twice."""


def highest_field_id(manifest: Manifest) -> FieldId:
    """Return the highest id in the schema and in the data files, -1 if there is none."""
    in_files = {file.field_ids for fragment in manifest.fragments for file in fragment.files}
    found = (max(ids, default=UNASSIGNED) for ids in in_files)
    return FieldId(max(manifest.schema.max_field_id(), max(found, default=UNASSIGNED)))


def with_distinct_ids(manifest: Manifest) -> Manifest:
    """Return the manifest with a fresh id for each field whose id two files of a fragment have.

    Data files that hold nothing of the schema go, as the reference has it.
    """
    if not _may_repeat_ids(manifest):
        return manifest
    repeated = sorted(set().union(*map(_repeated, manifest.fragments)))
    if not repeated:
        return manifest
    first = highest_field_id(manifest) + 1
    fresh = {old: FieldId(first + number) for number, old in enumerate(repeated)}
    schema = _renumbered(manifest.schema, fresh)
    known = frozenset(field.id for field in schema.walk())
    fragments = tuple(_repaired(fragment, fresh, known) for fragment in manifest.fragments)
    return replace(manifest, schema=schema, fields_wire=None, fragments=fragments)


def without_unused_files(fragment: Fragment, known: frozenset[FieldId]) -> Fragment:
    """Return the fragment without the data files that have none of the known fields.

    One stays if all would go: it tells how many rows there are.
    """
    used = tuple(file for file in fragment.files if not known.isdisjoint(file.field_ids))
    return replace(fragment, files=used or fragment.files[:1])


def in_newest_file(fragment: Fragment, known: frozenset[FieldId]) -> Fragment:
    """Return the fragment with the columns of its newest file dead in all older ones, and without files of no use.

    ``known``: the ids of the table's fields.
    """
    *older, new = fragment.files
    files = (*(file.without(new.field_ids) for file in older), new)
    return without_unused_files(replace(fragment, files=files), known)


def _may_repeat_ids(manifest: Manifest) -> bool:
    writer = manifest.writer
    if writer is None:
        return True
    if writer.library != "lance":
        return False
    numbers = [int(part) for part in writer.version.split(".")[:2] if part.isdecimal()]
    return tuple(numbers) < _FIRST_RIGHT


def _repeated(fragment: Fragment) -> set[FieldId]:
    """Return the ids that more than one column of a fragment has."""
    if len(fragment.files) < 2:
        return set()
    times = Counter(field_id for file in fragment.files for field_id in file.field_ids)
    return {field_id for field_id, count in times.items() if count > 1 and field_id >= 0}


def _repaired(
    fragment: Fragment, fresh: Mapping[FieldId, FieldId], known: frozenset[FieldId]
) -> Fragment:
    """Return the fragment with the fresh ids in the last file that has an old one, only there."""
    left, files = dict(fresh), list[DataFileRef]()
    for file in reversed(fragment.files):
        mine = {old: left.pop(old) for old in file.field_ids if old in left}
        ids = tuple(mine.get(field_id, field_id) for field_id in file.field_ids)
        files.append(replace(file, field_ids=ids))
    return without_unused_files(replace(fragment, files=tuple(reversed(files))), known)


def _renumbered(schema: Schema, fresh: Mapping[FieldId, FieldId]) -> Schema:
    return replace(schema, fields=_fields(schema.fields, fresh))


def _fields(fields: Iterable[Field], fresh: Mapping[FieldId, FieldId]) -> tuple[Field, ...]:
    return tuple(
        replace(each, id=fresh.get(each.id, each.id), children=_fields(each.children, fresh))
        for each in fields
    )
