"""The plan of a clean-up: all deletions, decided before the first one.

A version goes if the policy calls it old, and nobody needs it: it is not the newest, nor that of the
caller's handle or newer, no tag names it, or keeps it for a reader that has still to come there, no branch
left it, nobody is about to restore it, to tag it or to branch from it.  A file goes if no version that stays names it, and either a version that goes named it (*verified*), or a clean-up that was cut short had
planned it, or it is an orphan that is old enough.  The times of other files never matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pennon.errors import NotFoundError, TaggedVersionsError
from pennon.io.store import ObjectInfo
from pennon.ops.cleanup.file_kinds import FOLDERS, Kind, kind_of
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.survey import Survey, View
from pennon.table.cleanup_notes import CleanupPlan, is_plan, parse_plan, serialize_plan
from pennon.table.named_files_wire import Names
from pennon.table.naming import parse_manifest_name


@dataclass(frozen=True, slots=True)
class Doomed:
    """A file to take away; ``unverified`` if no version is known to have named it."""

    info: ObjectInfo
    kind: Kind
    unverified: bool = False

    @property
    def path(self) -> str:
        """Return the path relative to the folder of the line."""
        return self.info.path


@dataclass(frozen=True, slots=True)
class Plan:
    """Manifests to take away, oldest first, then files.

    ``adopted``: the plans of other runs, which were cut short or are under way, by path; each with the versions
    that must be gone before it may be deleted.
    """

    manifests: tuple[Doomed, ...]
    files: tuple[Doomed, ...]
    adopted: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return what others must know while this runs, and the next run if this one is cut short."""
        versions = frozenset(filter(None, map(version_of, self.manifests)))
        return serialize_plan(CleanupPlan(tuple(each.path for each in self.files), versions))


def version_of(manifest: Doomed) -> int | None:
    """Return the version that a manifest is of."""
    parsed = parse_manifest_name(manifest.path)
    return None if parsed is None else int(parsed[1])


def make_plan(
    survey: Survey, view: View, policy: Policy, handle_version: int, now: datetime
) -> Plan:
    """Plan a clean-up by what one look showed; ``now`` by the store's clock.

    Raises TaggedVersionsError if tags name old versions and the policy calls that an error, and whatever
    reading a manifest raises.
    """
    old = old_versions(view, policy, handle_version, now)
    going = [view.versions[version] for version in sorted(old)]
    staying = [info for version, info in view.versions.items() if version not in old]
    kept = survey.named_by(staying)
    kept.add(survey.named_elsewhere(view))
    named = survey.named_by(going)
    adopted = {}
    for info in filter(lambda info: is_plan(info.path), view.files):
        other = _read_plan(survey, info.path)
        named.paths.update(other.files)
        may_run = not policy.is_orphan(info.modified, now)
        adopted[info.path] = (other.versions or frozenset()) if may_run else frozenset()
    files = tuple(
        doomed
        for info in _all_files(survey, view)
        if (doomed := _judge(info, kept, named, policy, now)) is not None
    )
    manifests = tuple(Doomed(info, Kind.MANIFEST) for info in going)
    return Plan(manifests, files, adopted)


def old_versions(view: View, policy: Policy, handle_version: int, now: datetime) -> set[int]:
    """Return the versions that go.  Raises TaggedVersionsError for old ones that have a tag."""
    newest = max(view.versions)
    if newest < handle_version:
        message = f"version {handle_version} was opened, but {newest} is the newest: another table?"
        raise NotFoundError(message)
    old = {
        version
        for version in policy.old(view.stored(), now)
        if version < min(newest, handle_version, view.kept_from or newest)
    }
    tagged = {name: version for name, version in view.tags.items() if version in old}
    if tagged and policy.error_if_tagged:
        message = (
            f"{len(set(tagged.values()))} old versions have tags: {tagged}; delete the tags, or pass "
            "error_if_tagged_old_versions=False to keep such versions"
        )
        raise TaggedVersionsError(message)
    named = {*tagged.values(), *view.children.values()}
    return {v for v in old - named if not any(hold.covers(v) for hold in view.holds)}


def _all_files(survey: Survey, view: View) -> Iterator[ObjectInfo]:
    for folder in FOLDERS:
        yield from survey.home.list(folder)
    yield from view.files


def _judge(
    info: ObjectInfo, kept: Names, named: Names, policy: Policy, now: datetime
) -> Doomed | None:
    kind = kind_of(info.path)
    if kind is None or kept.may_name(info.path):
        return None
    if kind is not Kind.TEMPORARY and named.name(info.path):
        return Doomed(info, kind)
    return Doomed(info, kind, unverified=True) if policy.is_orphan(info.modified, now) else None


def _read_plan(survey: Survey, path: str) -> CleanupPlan:
    """Return what another run planned to take away; nothing if that run has ended since."""
    try:
        return parse_plan(survey.home.read_whole(path).to_pybytes())
    except NotFoundError:
        return CleanupPlan(())
