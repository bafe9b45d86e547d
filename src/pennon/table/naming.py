"""The names of the files of a table.

A manifest is ``_versions/{version}.manifest`` (scheme V1) or, in scheme V2,
``_versions/{2**64 - 1 - version, 20 digits}.manifest``, so that the first name of a sorted listing
is the newest version.  A table uses one scheme.  ``d{version}.manifest`` is a detached version,
which is never the newest.  Every other name is no manifest: temporary files of writers (``.tmp_``,
``...manifest-{uuid}``) and ``latest_version_hint.json``, a hint for those who cannot list files.

Source: ledger F-40; rust/lance-table/src/io/commit.rs in the Lance repository.
"""

from __future__ import annotations

import re
from enum import Enum

from pennon.core.units import DatasetVersion
from pennon.errors import FormatError

VERSIONS = "_versions"
LATEST = "_latest.manifest"
"""A copy of the newest manifest, for readers that know no better; never the authority."""
TRANSACTIONS = "_transactions"
HINT = f"{VERSIONS}/latest_version_hint.json"

MAX_VERSION = (1 << 63) - 1
"""The highest version; bit 63 marks detached versions."""

_U64_MAX = (1 << 64) - 1
_V2_DIGITS = 20
_MANIFEST = re.compile(rf"(?:.*/)?([0-9]{{1,{_V2_DIGITS}}})\.manifest", re.ASCII | re.DOTALL)
_TRANSACTION = re.compile(r"[0-9]{1,20}-[0-9A-Za-z-]{1,64}\.txn", re.ASCII)


class Naming(Enum):
    """The naming scheme of a table's manifests."""

    V1 = "v1"
    V2 = "v2"

    def manifest_path(self, version: int) -> str:
        """Return the path of the manifest of ``version``, relative to the table's root."""
        if not 0 < version <= MAX_VERSION:
            message = f"version {version} is not in 1..{MAX_VERSION}"
            raise FormatError(message)
        number = str(version) if self is Naming.V1 else f"{_U64_MAX - version:020}"
        return f"{VERSIONS}/{number}.manifest"


def detached_path(version: int) -> str:
    """Return the path of the manifest of a detached version, relative to the table's root."""
    if not MAX_VERSION < version <= _U64_MAX:
        message = (
            f"{version} is not a detached version; detached versions begin at {MAX_VERSION + 1}"
        )
        raise FormatError(message)
    return f"{VERSIONS}/d{version}.manifest"


def is_detached(version: int) -> bool:
    """Tell whether a number is that of a detached version, in no line of versions."""
    return MAX_VERSION < version <= _U64_MAX


def parse_manifest_name(path: str) -> tuple[Naming, DatasetVersion] | None:
    """Return the scheme and the version that a path stands for; None if it is no manifest.

    Detached versions and numbers that no version can have give None.
    """
    found = _MANIFEST.fullmatch(path)
    if found is None:
        return None
    number = int(found[1])
    naming = Naming.V2 if len(found[1]) == _V2_DIGITS else Naming.V1
    version = _U64_MAX - number if naming is Naming.V2 else number
    return (naming, DatasetVersion(version)) if 0 < version <= MAX_VERSION else None


def transaction_path(name: str) -> str:
    """Return the path of a transaction file, relative to the table's root.

    Raises FormatError if the name, which comes from a manifest, is not that of such a file.
    """
    if not _TRANSACTION.fullmatch(name):
        message = f"{name!r} is not the name of a transaction file"
        raise FormatError(message)
    return f"{TRANSACTIONS}/{name}"


def transaction_name(read_version: int, uuid: str) -> str:
    """Return the name of a transaction's file."""
    return f"{read_version}-{uuid}.txn"
