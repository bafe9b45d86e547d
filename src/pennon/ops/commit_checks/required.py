"""Looking for NULLs in fields that a commit makes required.

The schema's word is enough for a field that was required before, and for a file whose own schema says so.
Elsewhere the values are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pennon.errors import InvalidSchemaError, SchemaMismatchError
from pennon.io.store import Store
from pennon.ops.columns.nulls import check_no_nulls
from pennon.ops.commit_checks.files import NewFiles
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field, Schema
from pennon.schema.named_fields import named_fields
from pennon.table.apply.ids import with_fresh_ids
from pennon.table.fragment import Fragment
from pennon.table.fragments import Fragments
from pennon.table.manifest import Manifest
from pennon.table.operations import Merge, Operation, Overwrite, Project


def check_new_requirements(
    store: Store, head: Manifest, operation: Operation, files: NewFiles
) -> None:
    """Raise SchemaMismatchError if a field that the schema calls required has a NULL, or no data.

    Looked at are the rows that new files bring, and all rows where the field was not required before.
    """
    doubtful: dict[str, list[Fragment]] = {}
    for text, fragment in (*_in_new_files(files), *_in_old_files(head, operation, files)):
        fragments = doubtful.setdefault(text, [])
        if fragment not in fragments:
            fragments.append(fragment)
    for text, fragments in doubtful.items():
        read = replace(head, schema=_relaxed(files.schema), fragments=_numbered(fragments))
        try:
            check_no_nulls(Snapshot(store, read), text)
        except InvalidSchemaError as error:
            message = (
                f"column {text} is never NULL by the schema that is committed, but rows have NULLs in it, "
                "or no value; let it be nullable, or write the rows again"
            )
            raise SchemaMismatchError(message) from error


def _in_new_files(files: NewFiles) -> Iterator[tuple[str, Fragment]]:
    """Yield the required fields that the schema of a new file lets be NULL."""
    required = [each for each in named_fields(files.schema).values() if not each.nullable]
    for file in files.files if required else ():
        for field in required:
            held = file.contents.fields.get(field.path)
            if held is not None and held.nullable:
                yield field.text, file.fragment


def _in_old_files(
    head: Manifest, operation: Operation, files: NewFiles
) -> Iterator[tuple[str, Fragment]]:
    """Yield the fields that become required in fragments whose new files do not have them.

    Files in base paths that the table does not have yet are not looked at.
    """
    if isinstance(operation, Merge | Overwrite):
        fragments: Iterable[Fragment] = operation.fragments
    elif isinstance(operation, Project):
        fragments = head.fragments
    else:
        return
    before, new = named_fields(head.schema), {id(file.ref) for file in files.files}
    names, bases = named_fields(files.schema), {None, *(base.id for base in head.base_paths)}
    for field in files.schema.walk():
        known = before.get(field.id)
        if field.nullable or (known is not None and not known.nullable):
            continue
        ids = {below.id for below in field.walk()}
        for fragment in fragments:
            holders = [f for f in fragment.files if not ids.isdisjoint(f.field_ids)]
            if not any(id(file) in new or file.base_id not in bases for file in holders):
                yield names[field.id].text, fragment


def _relaxed(schema: Schema) -> Schema:
    """Return a schema by which any field may be NULL."""

    def relax(field: Field) -> Field:
        return replace(field, nullable=True).with_children(relax)

    return replace(schema, fields=tuple(map(relax, schema.fields)))


def _numbered(fragments: Iterable[Fragment]) -> Fragments:
    """Return fragments with distinct ids: those without a deletion file, whose name holds the id, get others."""
    fixed = [each for each in fragments if each.deletion_file is not None]
    free = [each for each in fragments if each.deletion_file is None]
    last = max((each.id for each in fixed), default=-1)
    return Fragments.of((*fixed, *with_fresh_ids(free, last)))
