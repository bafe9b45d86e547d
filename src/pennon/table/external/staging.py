"""The names of manifests whose commit is half done: ``{final name}-{uuid}``.

Readers of a listing take no notice of them (`pennon.table.naming`).
"""

from __future__ import annotations

import re
import uuid

from pennon.errors import Breadcrumb, FormatError
from pennon.table.external.manifests import Entry
from pennon.table.naming import VERSIONS, parse_manifest_name

_STAGED = re.compile(r"(.+\.manifest)-[0-9A-Za-z-]{1,64}", re.ASCII)


def new_staging_path(final: str) -> str:
    """Return a name that nobody else chooses, for a manifest that is to be ``final``."""
    return f"{final}-{uuid.uuid4()}"


def version_of(path: str) -> int | None:
    """Return the version whose manifest has this path; None if it is no (finished) manifest's."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder == VERSIONS else None
    return None if parsed is None else parsed[1]


def final_path(entry: Entry) -> str:
    """Return where the manifest of an entry lies in the end.

    Raises FormatError if its path is none that a manifest of its version can have: an entry is
    somebody else's word, and what it names is copied.
    """
    staged = _STAGED.fullmatch(entry.path)
    final = staged.group(1) if staged else entry.path
    if version_of(final) != entry.version:
        message = f"the manifest store says that version {entry.version} is {entry.path[:200]!r}"
        raise FormatError(message, where=Breadcrumb(file=VERSIONS))
    return final


def is_staged(entry: Entry) -> bool:
    """Tell whether the commit of an entry is half done."""
    return entry.path != final_path(entry)
