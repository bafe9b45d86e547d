"""The file version of a table's data files."""

from __future__ import annotations

from typing import Final

from pennon.schema.version import V0_1, V2_0, V2_1, V2_2, FileVersion
from pennon.table.flags import MIXED_FILE_VERSIONS, V2_FORMAT
from pennon.table.fragments import file_versions
from pennon.table.manifest import Manifest

_READ_SINCE: Final = {
    V0_1: (0, 0),
    V2_0: (0, 16),
    V2_1: (0, 38),
    V2_2: (3, 0),
    FileVersion(2, 3): (14, 0),
}
"""The first release of pylance that reads data files of a version rightly."""
_MIXTURES_READ_SINCE: Final = (12, 0)


def storage_version(manifest: Manifest) -> FileVersion:
    """Return the version in which new data files of a table are written.

    Tables before Lance 0.16 do not say it: their files do, or else a writer flag.  Lance 0.16
    could say 0.1 of a table of newer files; the files are right then.

    Source: format-facts 1.17; golden v0.16.0.
    """
    stated = None if manifest.data_format is None else manifest.data_format.file_version
    if stated is not None and stated != V0_1:
        return stated
    found = file_versions(manifest.fragments)
    if found:
        return max(found)
    if stated is None and manifest.writer_flags & V2_FORMAT:
        return V2_0
    return V0_1


def describe_file_versions(manifest: Manifest) -> str:
    """Return in words which versions a table's data files have, and which pylance reads them.

    Other features of a table may need a newer one.

    Source: ledger F-390.
    """
    version = storage_version(manifest)
    found = sorted({version, *file_versions(manifest.fragments)})
    since = max(_READ_SINCE[each] for each in found)
    if manifest.reader_flags & MIXED_FILE_VERSIONS:
        since = max(since, _MIXTURES_READ_SINCE)
    read = "every pylance" if since == (0, 0) else "pylance {}.{} and later".format(*since)
    others = ", ".join(str(each) for each in found if each != version)
    return f"{version}{others and f' (and files of {others})'}, read by {read}"
