"""Notes in ``_versions/`` through which a clean-up and a writer that needs an old version see each other.

::

    .tmp_now-{uuid}.json                    a file whose time is now, by the store's clock
    .tmp_clean-{uuid}.json                  a clean-up's plan: the versions and files that it removes
    .tmp_hold-{version}-{uuid}.json         a version that is being restored, tagged or branched from
    .tmp_hold-{version}-later-{uuid}.json   the same, of the version and all later ones

A clean-up writes its plan first and looks for holds then, a writer its hold first and looks for plans then.
So at least one of two that run at once sees the other: the clean-up keeps the version, or the writer is refused.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import Final

from pennon.table.naming import VERSIONS

_STAMP: Final = re.compile(rf"{VERSIONS}/\.tmp_now-[0-9a-f-]{{36}}\.json", re.ASCII)
_PLAN: Final = re.compile(rf"{VERSIONS}/\.tmp_clean-[0-9a-f-]{{36}}\.json", re.ASCII)
_HOLD: Final = re.compile(
    rf"{VERSIONS}/\.tmp_hold-([0-9]{{1,20}})(-later)?-[0-9a-f-]{{36}}\.json", re.ASCII
)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """The versions and the files that a clean-up removes; ``versions`` is None if the plan does not say."""

    files: tuple[str, ...]
    versions: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A version that a clean-up must keep, ``with_later`` all later ones, too."""

    version: int
    with_later: bool

    def covers(self, version: int) -> bool:
        """Tell whether a version must stay."""
        return version == self.version or (self.with_later and version > self.version)


def new_stamp_path() -> str:
    """Return a new path for a file that shows the time, relative to the folder of the line of versions."""
    return f"{VERSIONS}/.tmp_now-{uuid.uuid4()}.json"


def is_stamp(path: str) -> bool:
    """Tell whether a file was written to show the time."""
    return _STAMP.fullmatch(path) is not None


def new_plan_path() -> str:
    """Return a new path for a plan, relative to the folder of the line of versions."""
    return f"{VERSIONS}/.tmp_clean-{uuid.uuid4()}.json"


def is_plan(path: str) -> bool:
    """Tell whether a file is the plan of a clean-up."""
    return _PLAN.fullmatch(path) is not None


def serialize_plan(plan: CleanupPlan) -> bytes:
    """Return a plan as JSON."""
    versions = None if plan.versions is None else sorted(plan.versions)
    return json.dumps({"files": plan.files, "versions": versions}).encode()


def parse_plan(data: bytes) -> CleanupPlan:
    """Return a plan; of a damaged one as much as can be read."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    found = found if isinstance(found, dict) else {}
    files, versions = found.get("files"), found.get("versions")
    paths = files if isinstance(files, list) else []
    numbers = versions if isinstance(versions, list) else None
    return CleanupPlan(
        tuple(each for each in paths if isinstance(each, str)),
        None if numbers is None else frozenset(n for n in numbers if isinstance(n, int)),
    )


def new_hold_path(hold: Hold) -> str:
    """Return a new path for the note that holds a version, relative to the folder of the line of versions."""
    later = "-later" if hold.with_later else ""
    return f"{VERSIONS}/.tmp_hold-{hold.version}{later}-{uuid.uuid4()}.json"


def parse_hold(path: str) -> Hold | None:
    """Return what a file holds; None if it is no such note."""
    found = _HOLD.fullmatch(path)
    return None if found is None else Hold(int(found[1]), bool(found[2]))
