"""Feature flags: what a reader or writer of a table must know.

A manifest has one mask for readers and one for writers.  A bit that is not known stands for a
feature that would be misread, so the table is refused; unknown is every bit that Pennon does not
implement, also where the bit has a name.  Writers obey both masks.

The masks are computed anew from the contents at every commit.

Source: seed 003 (format 1.6); rust/lance-table/src/feature_flags.rs in the Lance repository.
"""

from __future__ import annotations

from dataclasses import replace

from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema.version import V0_1
from pennon.table.fragments import Fragments, file_versions
from pennon.table.manifest import Manifest

DELETION_FILES = 1
STABLE_ROW_IDS = 2
V2_FORMAT = 4
TABLE_CONFIG = 8
BASE_PATHS = 16
NO_TRANSACTION_FILE = 32
MIXED_FILE_VERSIONS = 256

_NAMES = {
    DELETION_FILES: "deletion files",
    STABLE_ROW_IDS: "stable row ids",
    V2_FORMAT: "file format 2",
    TABLE_CONFIG: "table config",
    BASE_PATHS: "base paths",
    NO_TRANSACTION_FILE: "no transaction files",
    64: "data overlay files",
    128: "covering indices",
    MIXED_FILE_VERSIONS: "mixed file versions",
    512: "fragment reuse with stable row ids",
    1024: "fragment reuse index",
    2048: "managed blobs",
}

_READABLE = (
    DELETION_FILES
    | STABLE_ROW_IDS
    | V2_FORMAT
    | TABLE_CONFIG
    | BASE_PATHS
    | NO_TRANSACTION_FILE
    | MIXED_FILE_VERSIONS
)
_WRITABLE = _READABLE


def check_readable(reader_flags: int) -> None:
    """Raise UnsupportedError unless Pennon can read a table with these flags."""
    unknown = reader_flags & ~_READABLE
    if unknown:
        message = f"Pennon cannot read this table: it uses {_describe(unknown)} (reader flags)"
        raise UnsupportedError(message)


def check_writable(manifest: Manifest) -> None:
    """Raise UnsupportedError unless Pennon can write to the table of this manifest."""
    used = manifest.reader_flags | manifest.writer_flags
    unknown = used & ~_WRITABLE
    if unknown:
        message = (
            f"Pennon can read version {manifest.version} of this table, but not write to it: it uses "
            f"{_describe(unknown)} (writer flags)"
        )
        raise UnsupportedError(message)


def with_flags(manifest: Manifest, *, stable_row_ids: bool, transaction_file: bool) -> Manifest:
    """Return the manifest with the flags that its contents ask for."""
    fragments = Fragments.of(manifest.fragments)
    both = DELETION_FILES if fragments.deletion_files() else 0
    if stable_row_ids or fragments.with_row_ids():
        if fragments.with_row_ids() < len(fragments):
            message = "all fragments of a table have stable row ids, or none has"
            raise ArgumentError(message)
        both |= STABLE_ROW_IDS
    if manifest.base_paths:
        both |= BASE_PATHS
    versions = file_versions(fragments)
    stated = manifest.data_format
    if versions and stated is not None:  # pylance wants files of this version, or the flag
        versions |= {stated.file_version}
    if len(versions) > 1 and V0_1 not in versions:  # pylance opens no table that has both
        both |= MIXED_FILE_VERSIONS
    writer_only = (TABLE_CONFIG if manifest.config else 0) | (
        0 if transaction_file else NO_TRANSACTION_FILE
    )
    flags = both | writer_only
    return replace(manifest, fragments=fragments, reader_flags=both, writer_flags=flags)


def _describe(flags: int) -> str:
    """Return e.g. ``base paths (16), flag 4096``."""
    bits = [1 << bit for bit in range(flags.bit_length()) if flags >> bit & 1]
    return ", ".join(f"{_NAMES[b]} ({b})" if b in _NAMES else f"flag {b}" for b in bits)
