"""Opening and writing tables (``lance.dataset``)."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from pennon.compat.arguments import refuse
from pennon.compat.option_types import NotSupportedYet, WriteModeName, WriteNotSupportedYet
from pennon.core.interpreter_end import check_imports_work
from pennon.dataset.namespace_tables import place_of_table
from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.ops.file_limits import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, MAX_ROWS_PER_GROUP
from pennon.scan.session import Session as Session
from pennon.table.versions import version_as_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.dataset.lance_dataset import LanceDataset
    from pennon.dataset.metadata import DatasetBasePath
    from pennon.dataset.write_options import AutoCleanupConfig
    from pennon.table.commit.lock import CommitLock


def dataset(
    uri: str | os.PathLike[str] | None = None,
    version: int | str | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: dict[str, str] | None = None,
    default_scan_options: dict[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: dict[str, Any] | None = None,
    session: Session | None = None,
    *,
    trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
    **unsupported: Unpack[NotSupportedYet],
) -> LanceDataset:
    """Open a table.

    ``uri``: a path or URI.  ``version``: a version's number, or a tag's name; the newest by default.  ``asof``: a
    time (naive: local), to open the newest version made at or before it.  ``storage_options``:
    credentials, endpoints and the like, and ``durability`` of changes to a local table, ``full``, ``commit`` or
    ``none`` (`pennon.io.durability`).  ``default_scan_options``: arguments of `scanner` that
    apply where a call gives none.  ``session``: the memory of other datasets, to be shared; the
    ``*_cache_size_bytes`` bound that of a new one.  ``trusted_bases``: places outside of the table
    that it may name files in, as a shallow clone does, or have links to.  Without the list, those that this
    process named for the table (base paths, sources of clones) and, to read, all local places for a local table,
    and those of its bucket for another; with it those listed instead, ``[]`` for tables of strangers
    (`pennon.io.trust`).  Block sizes and counts of index pages are
    accepted and change nothing, the latter with a DeprecationWarning.

    Raises NotFoundError if there is no such table or version, UnsupportedError if the table needs
    what this release does not know.

    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> pennon.dataset(uri, version=1).count_rows()
    3
    """
    check_imports_work()
    opened = _dataset_class()
    refuse(unsupported, dataset)
    uri, storage_options = place_of_table(uri, unsupported, storage_options)
    if version is None and asof is not None:
        store = open_store(uri, storage_options, trusted_bases)
        version = version_as_of(store, parse_time(asof))
    return opened(
        uri,
        version,
        index_cache_size=index_cache_size,
        commit_lock=commit_lock,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
        session=session,
        trusted_bases=trusted_bases,
    )


def td_to_micros(td: timedelta) -> int:
    """Return a duration in microseconds.

    >>> from datetime import timedelta
    >>> from pennon.util import td_to_micros
    >>> td_to_micros(timedelta(milliseconds=1))
    1000
    """
    return round(td / timedelta(microseconds=1))


def parse_time(when: Any) -> datetime:
    """Return a time; text is ISO 8601, also with a blank for the T.  Raises ArgumentError.

    >>> from pennon.dataset import parse_time
    >>> parse_time("2026-01-31 12:00:00+00:00")
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    if isinstance(when, datetime):
        # pandas has a datetime of its own, whose methods want other arguments
        return datetime.fromisoformat(when.isoformat())
    if not isinstance(when, str):
        message = f"a time is a datetime or text, got {type(when).__name__}"
        raise TypeError(message)
    try:
        return datetime.fromisoformat(when.strip())
    except ValueError:
        message = f"{when!r} is no time such as '2024-01-31 12:00:00'"
        raise ArgumentError(message) from None


def write_dataset(
    data_obj: Any,
    uri: str | os.PathLike[str] | LanceDataset | None = None,
    schema: Any = None,
    mode: WriteModeName = "create",
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_rows_per_group: int = MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    rows_per_zone: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: Any = None,
    storage_options: dict[str, str] | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: dict[str, str] | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    validate_input: bool = True,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    auto_statistics: bool | None = None,
    **unsupported: Unpack[WriteNotSupportedYet],
) -> LanceDataset:
    """Write data as a new version of a table, and return it.

    ``data_obj``: anything of `pennon.ops.source.as_reader`.  ``mode``: ``create`` (there must be no
    table), ``append`` (also makes a table), ``overwrite`` (old versions stay).  A data file ends at
    ``max_rows_per_file`` rows or about ``max_bytes_per_file`` bytes.  ``data_storage_version``:
    ``0.1`` (in row groups of ``max_rows_per_group``), ``2.0``, ``2.1`` or ``2.2``; where it is not
    given, the table's version, and for a new table 2.1, or 2.2 if 2.1 cannot hold a type.
    ``schema`` is used where the data has none.

    ``storage_options``: as of `dataset`; ``durability`` counts for this write.

    ``rows_per_zone``: files of version 2.0 get a zone map of each column of plain values, the bounds
    of so many rows each, by which filters of Pennon skip rows.  Off by default: no release of pylance
    reads such a column.

    ``auto_cleanup_options``: a new table tells other writers, pylance's, to clear away old versions
    (`DatasetOptimizer.enable_auto_cleanup`); Pennon never does so unasked.

    ``initial_bases``: further places for the files of a new table.  ``target_bases``: those, by name or
    path, that data files are written to, each file to the next; ``target_all_bases``: all, and the
    table's own folder.  A place that the table knows by a name must be trusted (`dataset`).

    ``validate_input``: data is looked at before it is written, for one value that breaks Arrow's rules
    (falling offsets, text that is no UTF-8, an index past its dictionary) makes a table that nobody can
    read.  False saves that look, where another has checked.

    ``external_blob_mode``: blobs that are given by a URI (`pennon.Blob`) stay where they are
    (``reference``), which is in one of the table's base paths, or, if
    ``allow_external_blob_outside_bases``, anywhere; or they are copied (``ingest``).
    ``blob_pack_file_size_threshold``: files of blobs of medium size get so many bytes, whatever their
    column says.

    ``auto_statistics``: columns of numbers, times, booleans and texts get an index of the kind ZONEMAP,
    in a version of its own behind the data; a new table does so from then on, and its compactions, too
    (``pennon.auto_statistics`` in its config).  Filters skip rows by it, and `LanceDataset.aggregate` reads
    nothing else.  By default the table's config decides.

    Raises AlreadyExistsError, SchemaMismatchError, UnsupportedError for types or file versions that
    cannot be written, and `CommitError` if another writer was faster and cannot be reconciled.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds = pennon.write_dataset(pa.table({"id": [4]}), uri, mode="append")
    >>> ds.version, ds.count_rows()
    (2, 4)
    """
    check_imports_work()
    opened = _dataset_class()
    from pennon.dataset.write import WriteOptions, write_version  # noqa: PLC0415 - saves writers

    refuse(unsupported, write_dataset)
    uri, storage_options = place_of_table(uri, unsupported, storage_options, mode)
    options = WriteOptions.among(locals())
    snapshot = write_version(data_obj, uri, schema, options)
    if isinstance(uri, opened):
        return opened.of_snapshot(uri.uri, snapshot, uri.initial_storage_options)
    place = cast("str | os.PathLike[str]", uri)
    return opened.of_snapshot(os.fspath(place), snapshot, storage_options)


def _dataset_class() -> type[LanceDataset]:
    from pennon.dataset.lance_dataset import LanceDataset  # noqa: PLC0415 - saves pandas

    return LanceDataset
