"""Versions by the names of tags and branches, and by times: what ``--at`` takes beside numbers (`pennon.cli.at`)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from pennon.cli.at import is_number
from pennon.errors import ArgumentError, NotFoundError
from pennon.ops.versions.branches import branches_of
from pennon.ops.versions.refs import open_version, tags_of
from pennon.scan.snapshot import Snapshot
from pennon.table.refs.tags_and_branches import MAIN
from pennon.table.versions import version_as_of

_LATEST: Final = "latest"
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}T")


def find_version(here: Snapshot, at: str) -> Snapshot:
    """Return the version of the same table that a text names.

    Raises ArgumentError for a text that names no version, NotFoundError for a version that is not there.
    """
    if is_number(at):
        return open_version(here, int(at))
    if at in tags_of(here):
        return open_version(here, at)
    if _is_branch(here, at):
        return open_version(here, (at, None))
    if _DATE.match(at):
        return _as_of(here, at)
    branch, colon, version = at.partition(":")
    if not colon:
        message = f"{at!r} is no version, tag, branch or time of the table"
        raise NotFoundError(message)
    if version == _LATEST:
        return open_branch(here, branch)
    if is_number(version):
        return open_version(open_branch(here, branch), int(version))
    return _as_of(open_branch(here, branch), version)


def open_branch(here: Snapshot, branch: str) -> Snapshot:
    """Return the newest version of a branch.  Raises NotFoundError."""
    if not _is_branch(here, branch):
        message = f"there is no branch {branch!r}"
        raise NotFoundError(message)
    return open_version(here, (branch, None))


def _is_branch(here: Snapshot, name: str) -> bool:
    return name == MAIN or name in branches_of(here)


def _as_of(here: Snapshot, text: str) -> Snapshot:
    """Return the newest version of a branch at a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is no version and no time such as 2026-01-31T12:00:00"
        raise ArgumentError(message) from None
    return open_version(here, (here.manifest.branch, version_as_of(here.store, moment)))
