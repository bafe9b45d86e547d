"""The file version of a table's data files."""

from __future__ import annotations

from pennon.errors import ArgumentError, FormatError
from pennon.schema.version import V0_1, V2_0, FileVersion, check_not_newer
from pennon.table.flags import V2_FORMAT
from pennon.table.fragments import file_versions
from pennon.table.manifest import Manifest


def storage_version(manifest: Manifest) -> FileVersion:
    """Return the version in which new data files of a table are written.

    Tables before Lance 0.16 do not say it: their files do, or else a writer flag.  Lance 0.16
    could say 0.1 of a table of newer files; the files are right then.

    Source: format-facts 1.17; golden v0.16.0.
    """
    stated = _stated(manifest)
    if stated is not None and stated != V0_1:
        return stated
    found = file_versions(manifest.fragments)
    if found:
        return max(found)
    if stated is None and manifest.writer_flags & V2_FORMAT:
        return V2_0
    return V0_1


def _stated(manifest: Manifest) -> FileVersion | None:
    if manifest.data_format is None:
        return None
    name = manifest.data_format.version
    check_not_newer(name)
    try:
        return FileVersion.parse(name)
    except ArgumentError as error:
        message = f"the manifest names an unknown file version, {name!r}"
        raise FormatError(message) from error
