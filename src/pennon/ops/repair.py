"""Repairing what a manifest says wrong of files that are good: tables of version 0.1 only.

Pennon wrote, for a while, the field ids of a file in the order of the data's columns where they must
ascend, and left out the dictionaries of tables that were made empty; pylance 1.0.4 states wrong sizes.
No data file is written: the next version names the same files, rightly.
"""

from __future__ import annotations

from dataclasses import replace

from pennon.ops.columns.commits import commit_columns
from pennon.ops.dictionaries import known_dictionaries
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import TOMBSTONE, DataFileRef, Fragment
from pennon.table.manifest import Manifest


def repair_manifest(snapshot: Snapshot) -> Manifest:
    """Commit a version without these mistakes, and return it; the version itself if it has none.

    Raises what a commit raises, and NotFoundError or FormatError for a data file.
    """
    manifest = snapshot.manifest
    fragments = tuple(_repaired(snapshot, fragment) for fragment in manifest.fragments)
    has_all = known_dictionaries(snapshot.store, manifest).keys() == manifest.dictionaries.keys()
    if has_all and fragments == tuple(manifest.fragments):
        return manifest
    return commit_columns(snapshot, fragments, manifest.schema)


def _repaired(snapshot: Snapshot, fragment: Fragment) -> Fragment:
    files = tuple(
        _repaired_file(snapshot, ref) if ref.has_page_table else ref for ref in fragment.files
    )
    return replace(fragment, files=files)


def _repaired_file(snapshot: Snapshot, ref: DataFileRef) -> DataFileRef:
    opened = snapshot.open_file(ref)
    actual = opened.source.size_bytes
    if ref.size_bytes and ref.size_bytes != actual:
        ref = replace(ref, size_bytes=actual)
    if ref.has_ascending_ids:
        return ref
    ids = sorted(each for each in ref.field_ids if each >= 0)
    first = min(opened.data.schema.walk(), key=lambda field: field.id).id
    return replace(ref, field_ids=(TOMBSTONE,) * (ids[0] - first) + tuple(ids))
