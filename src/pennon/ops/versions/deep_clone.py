"""Deep clones: a version of a table copied, with all of its files, to another place.

The plan lists the files, a task copies one of them, and the commit makes the copy's first version.
Row ids, versions of rows, indices and configuration stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pennon.core.byte_ranges import ByteRange
from pennon.core.units import MIB
from pennon.errors import AlreadyExistsError
from pennon.io.store import Store
from pennon.ops.run_tasks import run_tasks
from pennon.ops.task_wire import parse_number, serialize_number
from pennon.ops.versions.branches import commit_copy
from pennon.ops.versions.refs import Reference, open_version
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.table.blob_table import check_no_blob_table
from pennon.table.flags import check_writable
from pennon.table.fragment import DataFileRef, ExternalFile, Fragment
from pennon.table.indices_wire import parse_indices, serialize_indices, unbased
from pennon.table.manifest import Manifest
from pennon.table.versions import list_locations

_PIECE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class CopyTask:
    """A task that copies the files of a version; it pickles.

    ``files`` are pairs of a path in the source (`pennon.table.base_paths`) and one in the target.
    """

    to_bytes = staticmethod(serialize_number)
    from_bytes = staticmethod(parse_number)

    source: Store
    target: Store
    files: tuple[tuple[str, str], ...]

    @property
    def count(self) -> int:
        """Return how many files there are to copy."""
        return len(self.files)

    def run(self, number: int) -> int:
        """Copy the file of that number, a piece at a time, and return its size in bytes."""
        path, name = self.files[number]
        reader = self.source.open(path)
        with self.target.open_writer(name) as writer:
            for offset in range(0, reader.size_bytes, _PIECE_BYTES):
                size = min(_PIECE_BYTES, reader.size_bytes - offset)
                for buffer in reader.read([ByteRange(offset, size)]):
                    writer.write(buffer)
        return reader.size_bytes


def copy_table(snapshot: Snapshot, reference: Reference, target: Store) -> Manifest:
    """Copy a version to a new table at ``target``, and return the version made.

    Raises NotFoundError if there is no such version, AlreadyExistsError if there is a table at the
    target already.
    """
    source = open_version(snapshot, reference)
    task = plan_copy(source, target)
    run_tasks(task, task.count, what="copying files")
    return commit_copied(source, target)


def commit_copied(source: Snapshot, target: Store) -> Manifest:
    """Make a version whose files have all been copied the first one of the table at ``target``."""
    return commit_copy(target, source, _as_own(source.manifest))


def plan_copy(source: Snapshot, target: Store) -> CopyTask:
    """Return what copies all files that a version names.

    Raises AlreadyExistsError if there is a table at the target.
    """
    if list_locations(target):
        message = f"there is a table at {target.uri!r} already"
        raise AlreadyExistsError(message)
    check_writable(source.manifest)
    check_no_blob_table(source.manifest)
    files: dict[str, str] = {}
    for fragment in source.manifest.fragments:
        files.update(files_of_rows(source, fragment))
        files.update((path, path) for path in _external_paths(fragment))
    for index in parse_indices(source.manifest.indices):
        for folder in (index.folder, index.own_folder):
            for path, _ in source.store.list_names(folder):
                files[path] = path[path.index("_indices/") :]
    return CopyTask(source.store, target, tuple(files.items()))


def files_of_rows(source: Snapshot, fragment: Fragment) -> dict[str, str]:
    """Return the data files and the deletion file of a fragment, with where each goes in a copy."""
    files: dict[str, str] = {}
    has_blobs = has_blobs_v2(source.manifest.schema)
    for file in fragment.files:
        own = replace(file, base_id=None).store_path
        files[file.store_path] = own
        files.update(_blob_files(source, file, own) if has_blobs else {})
    deletion = fragment.deletion_file
    if deletion is not None:
        own = replace(deletion, base_id=None).store_path(fragment.id)
        files[deletion.store_path(fragment.id)] = own
    return files


def _blob_files(source: Snapshot, file: DataFileRef, own: str) -> dict[str, str]:
    """Return the files of blobs beside a data file, and where each goes."""
    folder, target = file.store_path.removesuffix(".lance"), own.removesuffix(".lance")
    names = (path for path, _ in source.store.list_names(folder))
    return {path: f"{target}/{path.rpartition('/')[2]}" for path in names}


def _external_paths(fragment: Fragment) -> list[str]:
    sequences = (fragment.row_ids, fragment.created_at_versions, fragment.last_updated_at_versions)
    return [each.path for each in sequences if isinstance(each, ExternalFile)]


def _as_own(manifest: Manifest) -> Manifest:
    """Return the version with all files in the table's own place.

    Base paths stay where blobs may lie in them, which belong to others and are not copied.
    """
    bases = tuple(base for base in manifest.base_paths if not base.is_dataset_root)
    return replace(
        manifest,
        fragments=tuple(copied_fragment(fragment) for fragment in manifest.fragments),
        base_paths=bases if has_blobs_v2(manifest.schema) else (),
        branch=None,
        indices=serialize_indices(map(unbased, parse_indices(manifest.indices))),
    )


def copied_fragment(fragment: Fragment) -> Fragment:
    """Return a fragment whose files have been copied into the table's own place."""
    deletion = fragment.deletion_file
    return replace(
        fragment,
        files=tuple(replace(file, base_id=None) for file in fragment.files),
        deletion_file=None if deletion is None else replace(deletion, base_id=None),
    )
