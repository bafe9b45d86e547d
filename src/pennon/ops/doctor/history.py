"""Checks of all that lies around a version: other versions, tags and branches, orphans, and advice about the layout."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pennon.core.thread_pools import WORK, PoolSpec, map_all
from pennon.core.units import MIB
from pennon.display.cells import size
from pennon.errors import Breadcrumb, CannotListError, LanceError, NotFoundError
from pennon.io.store import Store
from pennon.ops.cleanup.plan import Plan
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.run import preview, survey_of
from pennon.ops.cleanup.survey import View
from pennon.ops.doctor.findings import Finding, Severity, finding_of
from pennon.ops.doctor.indices import uncovered
from pennon.scan.snapshot import Snapshot
from pennon.table.base_paths import root_of
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import summarize_manifest_file
from pennon.table.naming import parse_manifest_name
from pennon.table.refs.tags_and_branches import (
    branch_folder,
    branch_path,
    list_branches,
    list_tags,
    tag_path,
)
from pennon.table.versions import (
    ManifestLocation,
    latest_location,
    list_locations,
    read_manifest_at,
)

MANY_VERSIONS: Final = 1000
MANY_SMALL: Final = 32
"""The number of small fragments from which a compaction is advised."""
SMALL_ROWS: Final = 100_000
SMALL_BYTES: Final = 32 * MIB
FEW_ROWS: Final = 1000
"""So few rows are not worth advice."""
MUCH_DELETED: Final = 0.2
MUCH_UNCOVERED: Final = 0.05
_SHOWN: Final = 10
_CLEAN: Final = "`pennon clean TABLE --older-than 14d --delete` takes away old versions and orphans"
_COMPACT: Final = "`pennon compact TABLE` rewrites them"
_OPTIMIZE: Final = "`LanceDataset.optimize.optimize_indices()` indexes them"
_RESTORE: Final = "restore the file from a copy; clean-up refuses to run while it cannot be read"


# --- opening ----------------------------------------------------------------------------------------


def locations_of(store: Store) -> list[ManifestLocation]:
    """Return where all versions lie, oldest first.  Raises NotFoundError if there is no table."""
    try:
        return list_locations(store) or [latest_location(store)]
    except CannotListError:
        return [latest_location(store)]


def newest_readable(
    store: Store, locations: Sequence[ManifestLocation], findings: list[Finding]
) -> tuple[ManifestLocation, Manifest] | None:
    """Return the newest version whose manifest can be read; what is wrong with newer ones is a finding."""
    for location in reversed(locations):
        try:
            return location, _read_whole(store, location)
        except Exception as error:  # noqa: BLE001 - damage must never end the examination
            found = finding_of(error, file=location.path)
            if found.code != "damaged-file":  # an older version would be another table
                findings.append(found)
                return None
            advice = "`pennon doctor TABLE --repair` shows which version can take its place"
            code = "damaged-manifest"
            findings.append(finding_of(error, file=location.path, code=code, advice=advice))
    return None


def _read_whole(store: Store, location: ManifestLocation) -> Manifest:
    """Return the manifest at a place, all of whose fragments can be parsed."""
    manifest = read_manifest_at(store, location)
    for _ in manifest.fragments:  # each is parsed when it is asked for
        pass
    return manifest


# --- other versions -----------------------------------------------------------------------------------


def check_versions(
    store: Store, locations: Sequence[ManifestLocation], looked_at: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding for each other version whose manifest cannot be read, and for very many versions.

    ``looked_at``: the paths of manifests that were read before.
    """
    others = [each for each in locations if each.path not in looked_at]
    limits = store.limits
    pool_spec = WORK if limits is None else PoolSpec.reads(limits.concurrency)
    for found in map_all(lambda at: _read(store, at), others, pool_spec):
        if found is not None:
            yield found
    if len(locations) > MANY_VERSIONS:
        what = f"the table has {len(locations):,} versions"
        yield Finding(Severity.NOTE, "many-versions", what, _CLEAN)
    if any(each.is_mixed for each in locations):
        what = "manifests of both naming schemes (V1 and V2) lie side by side: a migration goes on, or broke off"
        advice = "`LanceDataset.migrate_manifest_paths_v2()` finishes it"
        yield Finding(Severity.WARNING, "mixed-names", what, advice)


def _read(store: Store, location: ManifestLocation) -> Finding | None:
    try:
        summary = summarize_manifest_file(store.read_whole(location.path))
    except NotFoundError:
        return None  # a clean-up, or a migration of names, is under way
    except Exception as error:  # noqa: BLE001 - damage must never end the examination
        found = finding_of(error, file=location.path, code="damaged-version", advice=_RESTORE)
        return Finding(Severity.WARNING, found.code, found.what, found.advice, found.file)
    if summary.version != location.version:
        what = f"the manifest is of version {summary.version}, its name says {location.version}"
        return Finding(Severity.WARNING, "damaged-version", what, _RESTORE, location.path)
    return None


def check_refs(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for tags and branches that cannot be read, or that name what is not there."""
    root = root_of(snapshot.store)
    try:
        tags, branches = list_tags(root), list_branches(root)
    except CannotListError:
        return
    except LanceError as error:
        yield finding_of(
            error, code="damaged-ref", advice="delete the tag or branch, and make it again"
        )
        return
    known: dict[str | None, set[int]] = {}

    def versions(branch: str | None) -> set[int]:
        if branch not in known:
            folder = "" if branch is None else f"{branch_folder(branch)}/"
            prefix = f"{folder}_versions"
            found = [path.removeprefix(folder) for path, _ in root.list_names(prefix)]
            known[branch] = _numbers(found)
        return known[branch]

    for name, tag in tags.items():
        if tag.branch is not None and tag.branch not in branches:
            what = f"the tag {name!r} names the branch {tag.branch!r}, which is gone"
            yield Finding(Severity.WARNING, "dangling-tag", what, "delete the tag", tag_path(name))
        elif tag.version not in versions(tag.branch):
            what = f"the tag {name!r} names version {tag.version}, which is gone"
            yield Finding(Severity.WARNING, "dangling-tag", what, "delete the tag", tag_path(name))
    for name in branches:
        if not versions(name):
            what = f"the branch {name!r} has no version"
            advice = "delete the branch"
            yield Finding(Severity.WARNING, "empty-branch", what, advice, branch_path(name))


def _numbers(paths: Sequence[str]) -> set[int]:
    return {int(found[1]) for found in map(parse_manifest_name, paths) if found is not None}


# --- files --------------------------------------------------------------------------------------------


def check_files(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings of one walk through the table's folder: orphans, and old versions that miss files.

    It is the walk of a clean-up that deletes nothing; nothing is written or deleted here.
    """
    try:
        plan, view = preview(snapshot, Policy(versions=frozenset()))
    except CannotListError:
        return
    except LanceError as error:
        what = f"orphans were not looked for, and clean-up refuses to run: {error.message}"
        place = error.where.file
        yield Finding(Severity.WARNING, "no-clean-up", what, "see the other findings", place)
        return
    yield from _orphans(plan)
    yield from _incomplete(snapshot, view)


def _orphans(plan: Plan) -> Iterator[Finding]:
    if not plan.files:
        return
    total = size(sum(each.info.size_bytes for each in plan.files))
    names = ", ".join(each.path for each in plan.files[:_SHOWN])
    what = f"{len(plan.files):,} files ({total}) that no version names, e.g. {names}"
    yield Finding(Severity.NOTE, "orphans", what, _CLEAN, plan.files[0].path)


def _incomplete(snapshot: Snapshot, view: View) -> Iterator[Finding]:
    """Yield one finding for all other versions that name data or deletion files which are gone."""
    survey = survey_of(snapshot)
    there = {info.path for folder in ("data", "_deletions") for info in survey.home.list(folder)}
    versions: list[int] = []
    gone: set[str] = set()
    for version, info in sorted(view.versions.items()):
        if version != snapshot.manifest.version:
            named = survey.named_by([info]).paths
            mine = {p for p in named - there if p.startswith(("data/", "_deletions/"))}
            versions += [version] if mine else []
            gone |= mine
    if not versions:
        return
    tags = sorted(name for name, version in view.tags.items() if version in versions)
    tagged = f", {len(tags)} of which have tags ({', '.join(tags[:_SHOWN])})" if tags else ""
    first = min(gone)
    what = (
        f"{len(versions)} other versions ({versions[0]} to {versions[-1]}){tagged} name {len(gone)} files that are gone, "
        f"e.g. {first}"
    )
    advice = (
        "they cannot be read or restored; restore the files from a copy, or clean the versions up"
    )
    yield Finding(Severity.WARNING, "incomplete-version", what, advice, first)


# --- layout ---------------------------------------------------------------------------------------------


def check_layout(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield advice: many small fragments, many deleted rows, rows that indices do not cover."""
    fragments = snapshot.manifest.fragments
    small = rows = deleted = 0
    for each in fragments:
        stored = sum(file.size_bytes or 0 for file in each.files)
        is_small = each.physical_rows is not None and each.physical_rows < SMALL_ROWS
        small += is_small and stored < SMALL_BYTES
        rows += each.physical_rows or 0
        deleted += each.num_deleted_rows or 0
    if small >= MANY_SMALL:
        what = f"{small:,} of {len(fragments):,} fragments are small (fewer than {SMALL_ROWS:,} rows): each costs a request, and a plan"
        yield Finding(Severity.NOTE, "small-fragments", what, _COMPACT)
    if deleted > max(MUCH_DELETED * rows, FEW_ROWS):
        what = f"{deleted:,} of {rows:,} rows are deleted, and still stored"
        yield Finding(Severity.NOTE, "many-deleted-rows", what, _COMPACT)
    yield from _uncovered(snapshot, rows - deleted)


def _uncovered(snapshot: Snapshot, live: int) -> Iterator[Finding]:
    indices = parse_indices(snapshot.manifest.indices)
    try:
        for name, count, missing in uncovered(snapshot, indices):
            if count and missing > max(MUCH_UNCOVERED * live, FEW_ROWS):
                what = f"the index does not cover {missing:,} of {live:,} rows, in {count:,} fragments: they are scanned"
                yield Finding(Severity.NOTE, "uncovered-rows", what, _OPTIMIZE, index=name)
    except LanceError as error:
        yield finding_of(error.located(Breadcrumb()), code="damaged-index")
