"""Checks of a version as a whole: schema, fragments, base paths, transaction, kinds of tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pennon.errors import Breadcrumb, LanceError, NotFoundError
from pennon.ops.doctor.findings import Finding, Severity, finding_of
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import V0_1
from pennon.table import mem_wal
from pennon.table.apply.index_rules import believable
from pennon.table.base_paths import BasedStore
from pennon.table.blob_table import FOLDER as BLOBS
from pennon.table.blob_table import blob_version
from pennon.table.fragments import file_versions
from pennon.table.indices import MEM_WAL, SYSTEM
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import parse_manifest_file
from pennon.table.naming import transaction_path
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import ManifestLocation, Reads

_REWRITE: Final = "write the rows into a new table, or `pennon convert TABLE --to VERSION`"
_COMMIT: Final = "the next commit by Pennon gives the fields fresh ids"
_INDICES: Final = "`LanceDataset.optimize.optimize_indices(retrain=True)` makes the index anew"


def check_version(snapshot: Snapshot, location: ManifestLocation | None) -> Iterator[Finding]:
    """Yield the findings about a version as a whole; a check that fails is a finding, too."""
    file = None if location is None else location.path
    checks: tuple[Callable[[Snapshot, str | None], Iterable[Finding]], ...] = (
        _field_ids,
        _fragment_ids,
        _file_versions,
        _old_indices,
        _index_names,
        _base_paths,
        _transaction,
        _mem_wal,
        _blob_table,
    )
    for check in checks:
        try:
            yield from check(snapshot, file)
        except Exception as error:  # noqa: BLE001 - damage must never end the examination
            yield finding_of(error, file=file)


def check_raw(store: Reads, location: ManifestLocation, manifest: Manifest) -> Iterator[Finding]:
    """Yield a finding for field ids that Lance 0.10.5 and before gave twice, which readers here tell apart."""
    raw = parse_manifest_file(store.read_whole(location.path))
    before = {each.id for each in raw.schema.walk()}
    fresh = {each.id for each in manifest.schema.walk()} - before
    if fresh:
        names = [each.name for each in manifest.schema.walk() if each.id in fresh]
        what = (
            f"columns {names} have the ids of columns that were dropped, as Lance 0.10.5 and before gave them: Pennon "
            "reads the newer values, other readers the older ones"
        )
        yield Finding(Severity.WARNING, "reused-field-id", what, _COMMIT, location.path)


def _field_ids(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    seen: dict[int, str] = {}
    for each in snapshot.manifest.schema.walk():
        if each.id in seen:
            what = f"fields {seen[each.id]!r} and {each.name!r} have the same id, {each.id}"
            yield Finding(Severity.ERROR, "repeated-field-id", what, _REWRITE, file)
        seen[each.id] = each.name
    for fields in [snapshot.manifest.schema.fields]:
        names = [each.name for each in fields]
        for name in sorted({each for each in names if names.count(each) > 1}):
            what = f"two columns are called {name!r}"
            yield Finding(Severity.ERROR, "repeated-column", what, _REWRITE, file, column=name)


def _fragment_ids(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    seen: set[int] = set()
    last = -1
    for each in snapshot.manifest.fragments:
        if each.id in seen:
            what = f"two fragments have the id {each.id}, as Lance 0.16.0 could give it: their rows have the same addresses"
            yield Finding(Severity.ERROR, "repeated-fragment-id", what, _REWRITE, file, each.id)
        elif each.id < last:
            what = f"fragment {each.id} comes after fragment {last}"
            yield Finding(Severity.WARNING, "unordered-fragments", what, _REWRITE, file, each.id)
        seen.add(each.id)
        last = max(last, each.id)
        if not each.files and each.physical_rows:
            what = f"the fragment has {each.physical_rows} rows, and no data file"
            yield Finding(Severity.WARNING, "fragment-without-files", what, "", file, each.id)
    stated = snapshot.manifest.max_fragment_id
    if stated is not None and last > stated:
        what = f"fragment {last} is above {stated}, the highest id that the manifest says was given"
        yield Finding(Severity.WARNING, "fragment-above-highest", what, "", file, last)


def _file_versions(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    manifest = snapshot.manifest
    found = file_versions(manifest.fragments)
    stated = None if manifest.data_format is None else manifest.data_format.file_version
    if V0_1 in found and len(found) > 1:
        listed = ", ".join(map(str, sorted(found)))
        what = f"the table has files of versions {listed}; pylance opens no table that has both 0.1 and 2.x"
        yield Finding(Severity.WARNING, "mixed-versions", what, _REWRITE, file)
    elif stated == V0_1 and found and V0_1 not in found:
        listed = ", ".join(map(str, sorted(found)))
        what = f"the manifest says file version 0.1, as Lance 0.16.0 could say it, and the files are of {listed}"
        yield Finding(
            Severity.WARNING,
            "wrong-file-version",
            what,
            "append to it with Pennon, whose manifests say the right one",
            file,
        )


def _old_indices(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    """Yield a finding for each index whose fragments cannot be believed."""
    manifest = snapshot.manifest
    if not manifest.indices:
        return
    before = {each.uuid: each for each in parse_indices(manifest.indices)}
    wrong = {
        each.name
        for each in parse_indices(believable(manifest.indices, manifest.writer))
        if each.fragment_ids != before[each.uuid].fragment_ids
    }
    for name in sorted(wrong):
        segments = [each for each in before.values() if each.name == name]
        overlap = sum(len(s.fragment_ids or ()) for s in segments) > len(
            frozenset().union(*(s.fragment_ids or () for s in segments))
        )
        why = (
            "segments cover the same fragments"
            if overlap
            else "releases before 0.8.15 wrote wrong ones"
        )
        if any(each.fragment_ids is None for each in segments):
            why = "the entry does not say them"
        what = f"the fragments that the index covers cannot be believed: {why}"
        yield Finding(Severity.WARNING, "index-coverage", what, _INDICES, file, index=name)


def _index_names(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    """Yield a finding for each index that has a reserved name, and for fields that differ among segments of a name."""
    fields: dict[str, set[tuple[int, ...]]] = {}
    for each in parse_indices(snapshot.manifest.indices):
        if each.name in SYSTEM and each.field_ids:
            what = "the name is reserved, and pylance takes the index for one of its own: it neither filters nor writes"
            advice = "drop the index, and create it under another name"
            yield Finding(
                Severity.WARNING, "reserved-index-name", what, advice, file, index=each.name
            )
        fields.setdefault(each.name, set()).add(tuple(each.field_ids))
    for name, found in fields.items():
        if len(found) > 1:
            what = f"segments of one name are of different fields: {sorted(found)[:5]}"
            yield Finding(Severity.WARNING, "index-of-two-fields", what, _INDICES, file, index=name)


def _base_paths(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    """Yield a finding for each base path that files need, and that may not or cannot be opened."""
    manifest, store = snapshot.manifest, snapshot.store
    known = {each.id for each in manifest.base_paths}
    used: set[int] = set()
    for fragment in manifest.fragments:
        used.update(each.base_id for each in fragment.files if each.base_id is not None)
        if fragment.deletion_file is not None and fragment.deletion_file.base_id is not None:
            used.add(fragment.deletion_file.base_id)
    used.update(
        each.base_id for each in parse_indices(manifest.indices) if each.base_id is not None
    )
    for number in sorted(used - known):
        what = f"files lie in base path {number}, which the manifest does not have"
        yield Finding(
            Severity.ERROR, "missing-base-path", what, "`LanceDataset.add_bases` adds one", file
        )
    if not isinstance(store, BasedStore):
        return
    for number in sorted(used & known):
        try:
            store.open_in_base(number, "data/-")
        except LanceError as error:
            place = next(each.path for each in manifest.base_paths if each.id == number)
            yield finding_of(error, file=place)


def _transaction(snapshot: Snapshot, _: str | None) -> Iterator[Finding]:
    """Yield a finding if the transaction that made the version cannot be read: only older writers mind."""
    manifest = snapshot.manifest
    name = manifest.transaction_file
    path = None if name is None else transaction_path(name)
    try:
        find_transaction(snapshot.store, manifest)
        if path is not None:
            snapshot.store.info(path)
    except NotFoundError:
        severity = Severity.WARNING if manifest.transaction is None else Severity.NOTE
        what = "the file of the transaction that made the version is not there; writers that planned on an older version fail"
        yield Finding(severity, "missing-transaction", what, "let them try again", path)
    except LanceError as error:
        found = finding_of(error.located(Breadcrumb(path)), code="damaged-transaction")
        what = f"writers that planned on an older version fail: {found.what}"
        yield Finding(Severity.WARNING, found.code, what, "let them try again", found.file)


def _mem_wal(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    if any(each.name == MEM_WAL for each in parse_indices(snapshot.manifest.indices)):
        files = sum(1 for _ in snapshot.store.list_names(mem_wal.FOLDER))
        what = (
            f"the table has a MemWAL: rows in {files} files under {mem_wal.FOLDER}/ that were not merged into the table are "
            "not part of this version, and were not looked at"
        )
        yield Finding(
            Severity.NOTE, "mem-wal", what, "pylance's `ShardWriter.lsm_scanner` reads them", file
        )


def _blob_table(snapshot: Snapshot, file: str | None) -> Iterator[Finding]:
    version = blob_version(snapshot.manifest)
    if version:
        what = f"values of storage class blob lie in version {version} of a nested table under {BLOBS}/, which Pennon reads and does not write"
        advice = "`pennon convert` writes the table anew with the values in its own files"
        yield Finding(Severity.NOTE, "blob-table", what, advice, file)
