"""The plan of a clean-up: all deletions, decided before the first one.

A version goes if the policy calls it old, and nobody needs it: it is not the newest, nor that of the
caller's handle or newer, no tag names it, or keeps it for a reader that has still to come there, no branch
left it, no commit is about to restore it.  A file goes if no version that stays names it, and either a version that goes named it (*verified*), or a clean-up that was cut short had
planned it, or it is an orphan that is old enough.  The times of other files never matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pennon.errors import NotFoundError, TaggedVersionsError
from pennon.io.store import ObjectInfo
from pennon.ops.cleanup.file_kinds import FOLDERS, PLAN, Kind, kind_of
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.survey import Survey, View
from pennon.table.named_files_wire import Names


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
    """Manifests to take away, oldest first, then files; ``adopted``: plans of runs cut short."""

    manifests: tuple[Doomed, ...]
    files: tuple[Doomed, ...]
    adopted: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return what the next run must know if this one is cut short."""
        return json.dumps({"files": [each.path for each in self.files]}).encode()


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
    adopted = {info.path: _read_plan(survey, info.path) for info in view.files if is_plan(info)}
    for paths in adopted.values():
        named.paths.update(paths)
    files = tuple(
        doomed
        for info in _all_files(survey, view)
        if (doomed := _judge(info, kept, named, policy, now)) is not None
    )
    manifests = tuple(Doomed(info, Kind.MANIFEST) for info in going)
    return Plan(manifests, files, tuple(adopted))


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
    return old - set(tagged.values()) - set(view.children.values()) - view.held


def is_plan(info: ObjectInfo) -> bool:
    """Tell whether a file is the plan of a clean-up."""
    return PLAN.fullmatch(info.path) is not None


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


def _read_plan(survey: Survey, path: str) -> list[str]:
    """Return the files that a run which was cut short had planned to take away; none if it is torn."""
    try:
        found = json.loads(survey.home.read_whole(path).to_pybytes())
        files = found["files"]
    except (NotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [each for each in files if isinstance(each, str)] if isinstance(files, list) else []
