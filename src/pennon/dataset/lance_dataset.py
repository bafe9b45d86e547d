"""A table at one of its versions: pylance's ``LanceDataset``."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.compat.arguments import (
    check_arrow_options,
    check_columns,
    refuse,
    row_ids,
    row_numbers,
    version_number,
)
from pennon.dataset.blobs import DatasetBlobs
from pennon.dataset.columns import DatasetColumns
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.history import Version, VersionRef, describe, read_history
from pennon.dataset.indices import DatasetIndices
from pennon.dataset.maintenance import DatasetUpkeep
from pennon.dataset.operation import LanceOperation as LanceOperation
from pennon.dataset.operation import Transaction as Transaction
from pennon.dataset.rows import DatasetChanges
from pennon.dataset.scanner import LanceScanner as LanceScanner
from pennon.dataset.scanner_builder import ScannerBuilder as ScannerBuilder
from pennon.dataset.transactions import DatasetTransactions
from pennon.dataset.versions import DatasetRefs
from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.scan.plan import live_row_counts
from pennon.scan.session import Session, session_of
from pennon.scan.snapshot import Snapshot
from pennon.scan.take import take_batches, take_offsets, take_row_ids
from pennon.scan.take_plan import plan_take
from pennon.scan.validate import validate
from pennon.schema.arrow import schema_to_arrow
from pennon.table.versions import list_locations, read_manifest

if TYPE_CHECKING:
    from pennon.table.commit.lock import CommitLock


class LanceDataset(
    DatasetBlobs,
    DatasetChanges,
    DatasetColumns,
    DatasetIndices,
    DatasetRefs,
    DatasetTransactions,
    DatasetUpkeep,
):
    """One version of a table.  It pickles, and may be shared by threads."""

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: int | str | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: dict[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: dict[str, Any] | None = None,
        session: Session | None = None,
        *,
        trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
        **unsupported: Any,
    ) -> None:
        """Open a version, the newest by default; see `pennon.dataset`."""
        refuse({"serialized_manifest": serialized_manifest, **unsupported})
        session = session_of(session, index_cache_size_bytes, metadata_cache_size_bytes)
        store = open_store(uri, storage_options)
        if commit_lock is not None:
            from pennon.table.commit.lock import locked  # noqa: PLC0415 - few programs have locks

            store = locked(store, commit_lock)
        number = None if isinstance(version, str) else version_number(version)
        manifest = read_manifest(store, number)
        if manifest.base_paths or manifest.branch is not None:
            from pennon.table.base_paths import Trust, place_store  # noqa: PLC0415 - few tables need it

            store = place_store(store, manifest, Trust.given(trusted_bases, storage_options))
        snapshot = Snapshot(store, manifest, session)
        if isinstance(version, str):
            from pennon.ops.versions.refs import open_point, resolve  # noqa: PLC0415 - few programs use tags

            snapshot = open_point(snapshot, resolve(snapshot, version))
        self._take_over(os.fspath(uri), snapshot, storage_options, default_scan_options)

    def _take_over(
        self,
        uri: str,
        snapshot: Snapshot,
        storage_options: Mapping[str, str] | None,
        default_scan_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._uri = uri
        self._snapshot = snapshot
        self._storage_options = dict(storage_options) if storage_options else None
        self._default_scan_options = dict(default_scan_options) if default_scan_options else None

    @classmethod
    def of_snapshot(
        cls,
        uri: str,
        snapshot: Snapshot,
        storage_options: Mapping[str, str] | None = None,
        default_scan_options: Mapping[str, Any] | None = None,
    ) -> LanceDataset:
        """Return the dataset of a version that was read already."""
        made = cls.__new__(cls)
        made._take_over(uri, snapshot, storage_options, default_scan_options)  # noqa: SLF001
        return made

    def __reduce__(self) -> tuple[Callable[..., LanceDataset], tuple[Any, ...]]:
        """Pickle with the manifest, so that the other side opens the same version, unasked."""
        return LanceDataset.of_snapshot, (
            self._uri,
            self._snapshot,
            self._storage_options,
            self._default_scan_options,
        )

    def __copy__(self) -> LanceDataset:
        """Return another handle on the same version; caches are shared."""
        build, arguments = self.__reduce__()
        return build(*arguments)

    def __eq__(self, other: object) -> bool:
        """Compare place and version."""
        if not isinstance(other, LanceDataset):
            return NotImplemented
        mine, theirs = self._snapshot, other.snapshot
        return mine.store.uri == theirs.store.uri and mine.manifest == theirs.manifest

    def __hash__(self) -> int:
        """Hash the place."""
        return hash(self._snapshot.store.uri)

    def __repr__(self) -> str:
        """Return the place and version."""
        return f"<LanceDataset {self._uri!r} version {self.version}>"

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count_rows()

    @property
    def schema(self) -> pa.Schema:
        """Return the schema, as scans show it."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return schema_to_arrow(self._snapshot.manifest.schema)

    # Scans

    def scanner(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Any = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: Any = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Any = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        **arrow_options: Any,
    ) -> LanceScanner:
        """Describe a scan.

        ``columns``: names (``st.x`` reaches into structs), or a dict from new name to column or SQL.
        ``filter``: SQL or a pyarrow expression; its columns are read first, and the others for the
        rows that remain (``late_materialization`` chooses which).  ``limit`` and ``offset`` count
        rows.  ``order_by``: names or `ColumnOrdering`.  Batches have ``batch_size`` rows (8192, fewer
        of wide rows), fewer where what is read together ends unless ``strict_batch_size``.
        ``fragments``: only these, in that order.  ``io_buffer_size``: bytes read ahead.

        Raises ArgumentError for a column that is not there, UnsupportedError for what is not done
        yet.  Options of pyarrow's own scanners (``use_threads``, ...) are accepted and ignored.
        """
        given = {name: value for name, value in locals().items() if value is not None}
        check_arrow_options(arrow_options)
        given = {n: v for n, v in given.items() if n not in {"self", "arrow_options", "fragments"}}
        allow = (given.pop("row_addr_allowlist", None), given.pop("row_addr_blocklist", None))
        renamed = {"full_text_query": "full_text_search", "index_segments": "with_index_segments"}
        builder = ScannerBuilder(self).apply_defaults(self._default_scan_options or {})
        builder.row_addr_prefilter(*allow)
        builder.apply_defaults({renamed.get(name, name): v for name, v in given.items()})
        if fragments is not None:
            builder.with_fragments(fragments)
        return builder.to_scanner()

    def to_table(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read rows into a table; the arguments are those of `scanner`."""
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **options)
        return scanner.to_table()

    def to_batches(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch; the arguments are those of `scanner`."""
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **options)
        return scanner.to_batches()

    def to_pandas(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        *,
        blob_mode: str = "lazy",
        **options: Any,
    ) -> Any:
        """Read rows into a pandas frame.

        The arguments are those of `scanner`; others go to `pyarrow.Table.to_pandas`.
        """
        known = signature(self.scanner).parameters
        ours = {name: options.pop(name) for name in list(options) if name in known}
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **ours)
        return scanner.to_pandas(blob_mode=blob_mode, **options)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows as an Arrow C stream."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        """Read the first rows."""
        return self.scanner(**{**kwargs, "limit": num_rows}).to_table()

    def slice(
        self, start: int, end: int, columns: list[str] | dict[str, str] | None = None
    ) -> pa.Table:
        """Read the rows ``start <= row < end``."""
        if start < 0 or end < start:
            message = f"a slice needs 0 <= start <= end, got start {start} and end {end}"
            raise ArgumentError(message)
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def count_rows(self, filter: Any = None, **kwargs: Any) -> int:
        """Return the number of rows that pass the filter."""
        if filter is not None or kwargs:
            return self.scanner(columns=[], filter=filter, **kwargs).count_rows()
        return sum(live_row_counts(self._snapshot))

    # Single rows

    def take(self, indices: Any, columns: list[str] | dict[str, str] | None = None) -> pa.Table:
        """Read rows by their number, in the order given; any row more than once.

        Raises OutOfRangeError for a row that the table does not have.
        """
        plan = plan_take(self._snapshot, check_columns(columns))
        take = partial(take_offsets, self._snapshot, plan)
        return pa.Table.from_batches(take_batches(take, row_numbers(indices)))

    def _take_rows(
        self,
        row_ids_or_addresses: Any,
        columns: list[str] | dict[str, str] | None = None,
        **_: Any,
    ) -> pa.Table:
        """Read rows by ``_rowid``, in the order given; deleted rows are left out."""
        plan = plan_take(self._snapshot, check_columns(columns))
        take = partial(take_row_ids, self._snapshot, plan)
        return pa.Table.from_batches(take_batches(take, row_ids(row_ids_or_addresses)))

    def sample(
        self,
        num_rows: int,
        columns: list[str] | dict[str, str] | None = None,
        randomize_order: bool = True,
        **kwargs: Any,
    ) -> pa.Table:
        """Read rows chosen at random, none twice; ``kwargs`` go to `take`."""
        chosen = random.sample(range(self.count_rows()), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns, **kwargs)

    # Fragments

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return all fragments."""
        if filter is not None:
            message = "get_fragments takes no filter"
            raise ArgumentError(message)
        fragments = self._snapshot.manifest.fragments
        return [LanceFragment(self, None, fragment=fragment) for fragment in fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment of that id, or None."""
        found = self._snapshot.manifest.fragment(fragment_id)
        return None if found is None else LanceFragment(self, None, fragment=found)

    def fragment_ids(self) -> set[int]:
        """Return the ids of all fragments."""
        return {fragment.id for fragment in self._snapshot.manifest.fragments}

    def validate(self) -> None:
        """Raise FormatError or NotFoundError if something of this version is missing or wrong."""
        validate(self._snapshot)

    # Versions

    def versions(self) -> list[Version]:
        """Return all versions of the table, oldest first."""
        return read_history(self._snapshot.store)

    def version_refs(self) -> list[VersionRef]:
        """Return the numbers of all versions, oldest first; no manifest is read."""
        return [VersionRef(version=at.version) for at in list_locations(self._snapshot.store)]

    def get_version(self) -> Version:
        """Return this version's number, time and summary."""
        return describe(self._snapshot.manifest.summary)

    def checkout_latest(self) -> None:
        """Turn this handle to the newest version."""
        self._snapshot = self._at(None).snapshot

    def _at(self, version: int | None) -> LanceDataset:
        snapshot = self._snapshot.at(read_manifest(self._snapshot.store, version))
        return LanceDataset.of_snapshot(
            self._uri, snapshot, self._storage_options, self._default_scan_options
        )

    # Writes

    def insert(self, data: Any, *, mode: str = "append", **kwargs: Any) -> None:
        """Write data into the table, and turn this handle to the version made."""
        from pennon.dataset.open import write_dataset  # noqa: PLC0415 - dataset imports us

        self._snapshot = write_dataset(data, self, mode=mode, **kwargs).snapshot

    _get_fragments = get_fragments
