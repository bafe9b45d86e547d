"""Write options: every argument of the functions that write, once, with its default and unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

from pennon.compat.arguments import refuse, unknown_option
from pennon.dataset.operation import LANCE_COMMIT_MESSAGE_KEY
from pennon.errors import ArgumentError
from pennon.ops.blob_files import BlobRule, ExternalBlobs
from pennon.ops.file_limits import (
    MAX_BYTES_PER_FILE,
    MAX_ROWS_PER_FILE,
    MAX_ROWS_PER_GROUP,
    FileLimits,
)
from pennon.schema.version import FileVersion
from pennon.table.commit.lock import CommitLock

if TYPE_CHECKING:
    from pennon.dataset.metadata import DatasetBasePath
    from pennon.dataset.progress import FragmentWriteProgress
    from pennon.scan.snapshot import Snapshot
    from pennon.table.commit.lock import CommitLock

_TWO_WEEKS_S: Final = 14 * 24 * 3600
_AUTO_STATISTICS: Final = "pennon.auto_statistics"
"""The key of a table's config that asks for statistics; its value is ``true`` or ``false``."""


class AutoCleanupConfig(TypedDict, total=False):
    """Settings of automatic clean-up, which pylance does and Pennon does not.

    >>> options = {"interval": 20, "older_than_seconds": 14 * 24 * 3600}
    >>> ds = pennon.write_dataset(pa.table({"id": [1]}), uri, auto_cleanup_options=options)
    >>> ds.config()
    {'lance.auto_cleanup.interval': '20', 'lance.auto_cleanup.older_than': '1209600s'}
    """

    interval: int
    older_than_seconds: int


def cleanup_config(options: AutoCleanupConfig) -> dict[str, str]:
    """Return how a table's config says it: by default every 20 commits, beyond two weeks.

    Raises TypeError for a key that there is not.
    """
    for name in sorted(options.keys() - AutoCleanupConfig.__annotations__.keys()):
        raise unknown_option("AutoCleanupConfig", name, AutoCleanupConfig.__annotations__)
    seconds = options.get("older_than_seconds", _TWO_WEEKS_S)
    return {
        "lance.auto_cleanup.interval": str(options.get("interval", 20)),
        "lance.auto_cleanup.older_than": f"{seconds}s",
    }


def with_statistics(made: Snapshot, asked: bool | None = None) -> Snapshot:
    """Return a version that was written with statistics of its rows, if that is asked for, or by the table's config."""
    if asked is None:
        asked = made.manifest.config.get(_AUTO_STATISTICS, "").lower() == "true"
    if not asked:
        return made
    from pennon.ops.index.statistics import keep_statistics  # noqa: PLC0415 - saves indices for most tables

    return keep_statistics(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write; `pennon.write_dataset` describes each of them.

    Sizes are in bytes.  None leaves the choice to the table, or else to Pennon.
    """

    mode: str = "create"
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_rows_per_group: int | None = MAX_ROWS_PER_GROUP
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    rows_per_zone: int | None = None
    data_storage_version: str | None = None
    use_legacy_format: bool | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    commit_lock: CommitLock | None = None
    progress: FragmentWriteProgress | None = None
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False
    auto_cleanup_options: AutoCleanupConfig | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] | None = None
    initial_bases: Sequence[DatasetBasePath] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    validate_input: bool = True
    external_blob_mode: str = "reference"
    allow_external_blob_outside_bases: bool = False
    blob_pack_file_size_threshold: int | None = None
    auto_statistics: bool | None = None

    def __post_init__(self) -> None:
        """Refuse combinations that are invalid for all data and tables."""
        if self.target_bases and self.target_all_bases:
            message = "either target_bases or target_all_bases, not both"
            raise ArgumentError(message)

    @classmethod
    def among(cls, said: Mapping[str, Any]) -> Self:
        """Return the options among all arguments of a call, by their names."""
        return cls(**{each.name: said[each.name] for each in fields(cls) if each.name in said})

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> Self:
        """Return options by their names.

        Raises TypeError for one that there is not, UnsupportedError for one that is not done yet.
        """
        known = [field.name for field in fields(cls)]
        unknown = {name: value for name, value in given.items() if name not in known}
        refuse(unknown, "insert", known=known)
        return cls(**{name: value for name, value in given.items() if name in known})

    @property
    def properties(self) -> dict[str, str] | None:
        """Return the transaction properties, with the commit message among them."""
        merged = dict(self.transaction_properties or {})
        if self.commit_message is not None:
            merged[LANCE_COMMIT_MESSAGE_KEY] = self.commit_message
        return merged or None

    @property
    def limits(self) -> FileLimits:
        """Return when a data file is full.  Raises ArgumentError for what no file can keep."""
        group = self.max_rows_per_group
        return FileLimits(
            self.max_rows_per_file,
            self.max_bytes_per_file,
            self.data_cache_bytes,
            self.max_page_bytes,
            MAX_ROWS_PER_GROUP if group is None else group,
            self.rows_per_zone,
        )

    @property
    def blobs(self) -> BlobRule:
        """Return how blobs of version 2 are written.  Raises ArgumentError for what makes no sense."""
        return BlobRule(
            ExternalBlobs.parse(self.external_blob_mode),
            self.allow_external_blob_outside_bases,
            self.blob_pack_file_size_threshold,
            storage_options=tuple((self.storage_options or {}).items()),
        )

    @property
    def file_version(self) -> FileVersion | None:
        """Return the version of new data files; None leaves it to the table."""
        name = self.data_storage_version
        if self.use_legacy_format is not None:
            name = "legacy" if self.use_legacy_format else "stable"
        return None if name is None else FileVersion.parse(name)

    @property
    def config(self) -> dict[str, str]:
        """Return the config of a new table."""
        options = self.auto_cleanup_options
        found = {} if options is None else cleanup_config(options)
        if self.auto_statistics is not None:
            found[_AUTO_STATISTICS] = str(self.auto_statistics).lower()
        return found
