"""The versions that ``--at`` names, parsed once for all commands.

===================  ==========================================================================
text                 version
===================  ==========================================================================
``7``                number 7
``v1.0``             the one that the tag ``v1.0`` names
``main``, ``trial``  the newest one of a branch (where no tag has that name)
``trial:3``          number 3 of a branch; ``trial:latest`` is the newest one
``2026-01-31``       the newest one at that time, ISO 8601; without a zone: local time
``trial:2026-01-31`` the same of a branch
===================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping

from pennon.io import open_store
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest


def open_at(uri: str, at: str | None, storage_options: Mapping[str, str] | None) -> Snapshot:
    """Open the version of a table that ``--at`` names, the newest one by default.

    Raises ArgumentError for a text that names no version, NotFoundError for a version that is not there.
    """
    store = open_store(uri, storage_options)
    number = int(at) if at is not None and is_number(at) else None
    manifest = read_manifest(store, number)
    if manifest.base_paths or manifest.branch is not None:
        from pennon.table.base_paths import Trust, place_store  # saves base paths at open

        store = place_store(store, manifest, Trust.given(None, storage_options))
    here = Snapshot(store, manifest)
    if at is None or number is not None:
        return here
    from pennon.cli.named_versions import find_version  # saves commits and refs at a plain read

    return find_version(here, at)


def is_number(text: str) -> bool:
    """Return whether a text is the number of a version."""
    return text.isascii() and text.isdecimal() and len(text) < 20
