"""A handle on one version of a table: how it is opened, copied and turned, and the version's facts.

All that `LanceDataset` can do beyond that is in classes above this one, which knows none of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import pyarrow as pa

from pennon import ops
from pennon.compat.arguments import refuse, version_number
from pennon.compat.arrow_bases import ArrowDataset
from pennon.compat.not_implemented import Unfinished, missing
from pennon.compat.option_types import NotSupportedYet
from pennon.core.interpreter_end import check_imports_work
from pennon.io import open_store
from pennon.ops.retry import with_retries
from pennon.scan.session import Session, session_of
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.lance_schema import LanceSchema
from pennon.table.field_ids import highest_field_id
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version
from pennon.table.versions import given_manifest, latest_version, read_manifest

if TYPE_CHECKING:
    from pennon.table.commit.lock import CommitLock

R = TypeVar("R")


class DatasetBase(ArrowDataset, metaclass=Unfinished):
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
        **unsupported: Unpack[NotSupportedYet],
    ) -> None:
        """Open a version, the newest by default; see `pennon.dataset`."""
        refuse(unsupported, DatasetBase.__init__)
        for name, given in (
            ("index_cache_size", index_cache_size),
            ("metadata_cache_size", metadata_cache_size),
        ):
            if given is not None:
                message = (
                    f"{name} counts entries, and has no effect; {name}_bytes bounds the memory"
                )
                warnings.warn(message, DeprecationWarning, stacklevel=3)
        session = session_of(session, index_cache_size_bytes, metadata_cache_size_bytes)
        store = open_store(uri, storage_options, trusted_bases)
        if commit_lock is not None:
            from pennon.table.commit.lock import locked  # noqa: PLC0415 - saves locks at open

            store = locked(store, commit_lock)
        number = None if isinstance(version, str) else version_number(version)
        if serialized_manifest is None:
            manifest = read_manifest(store, number)
        else:
            manifest = given_manifest(serialized_manifest, number)
        if manifest.base_paths or manifest.branch is not None or trusted_bases is not None:
            from pennon.table.base_paths import Trust, place_store  # noqa: PLC0415 - saves base paths at open

            store = place_store(store, manifest, Trust.given(trusted_bases, storage_options))
        snapshot = Snapshot(store, manifest, session)
        if isinstance(version, str):
            snapshot = ops.open_version(snapshot, version)
        self._take_over(os.fspath(uri), snapshot, storage_options, default_scan_options)

    @property
    def _snapshot(self) -> Snapshot:
        """Return the version that this handle reads, and that its changes begin with."""
        check_imports_work()
        return self.__snapshot

    @_snapshot.setter
    def _snapshot(self, snapshot: Snapshot) -> None:
        self.__snapshot = snapshot

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
    ) -> Self:
        """Return the dataset of a version that was read already.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> pennon.LanceDataset.of_snapshot(uri, ds.snapshot).version
        1
        """
        made = cls.__new__(cls)
        made._take_over(uri, snapshot, storage_options, default_scan_options)  # noqa: SLF001
        return made

    def _at_snapshot(self, snapshot: Snapshot) -> Self:
        """Return a handle on another version of the same table, or of one of its branches."""
        is_here = snapshot.manifest.branch == self._snapshot.manifest.branch
        uri = self._uri if is_here else snapshot.store.uri
        return type(self).of_snapshot(
            uri, snapshot, self._storage_options, self._default_scan_options
        )

    def _turn_to(self, manifest: Manifest) -> None:
        """Turn this handle to another version of the same table."""
        self._snapshot = self._snapshot.at(manifest)

    def _change(
        self,
        execute: Callable[[Snapshot], tuple[Manifest, R]],
        conflict_retries: int,
        retry_timeout: timedelta,
    ) -> R:
        """Change the table, again after conflicts, and turn to the version made."""
        manifest, result = with_retries(execute, self._snapshot, conflict_retries, retry_timeout)
        self._turn_to(manifest)
        return result

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        """Pickle with the manifest, so that the other side opens the same version, unasked."""
        return type(self).of_snapshot, (
            self._uri,
            self._snapshot,
            self._storage_options,
            self._default_scan_options,
        )

    @classmethod
    def __deserialize__(
        cls,
        uri: str,
        storage_options: dict[str, str] | None,
        version: int,
        manifest: bytes,
        default_scan_options: dict[str, Any] | None = None,
        *options: Any,
    ) -> Self:
        """Open the dataset that pylance pickled; its manifest is read again."""
        del manifest, options
        return cls(
            uri,
            version,
            storage_options=storage_options,
            default_scan_options=default_scan_options,
        )

    def __copy__(self) -> Self:
        """Return another handle on the same version; caches are shared."""
        build, arguments = self.__reduce__()
        return build(*arguments)

    def __eq__(self, other: object) -> bool:
        """Compare place and version."""
        if not isinstance(other, DatasetBase):
            return NotImplemented
        mine, theirs = self._snapshot, other.snapshot
        return mine.store.uri == theirs.store.uri and mine.manifest == theirs.manifest

    def __hash__(self) -> int:
        """Hash the place."""
        return hash(self._snapshot.store.uri)

    def __repr__(self) -> str:
        """Return the place and version."""
        return f"<LanceDataset {self._uri!r} version {self.version}>"

    if not TYPE_CHECKING:  # a type checker finds absent attributes itself

        def __getattr__(self, name: str) -> Any:
            """Say of an absent attribute whether pylance has it."""
            return missing("LanceDataset", name, self)

    @property
    def snapshot(self) -> Snapshot:
        """Return the version as a `pennon.scan.snapshot.Snapshot`, which Pennon's inner functions take.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.snapshot.manifest.version
        1
        """
        return self._snapshot

    def session(self) -> Session:
        """Return the session, the cache of files and indices; other datasets may share it.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> pennon.dataset(uri, session=ds.session()).session().is_same_as(ds.session())
        True
        """
        return self._snapshot.session

    @property
    def uri(self) -> str:
        """Return the path or URI of the table, as it was given.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.uri == uri
        True
        """
        return self._uri

    @property
    def version(self) -> int:
        """Return the number of this version.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.version
        1
        """
        return self._snapshot.manifest.version

    @property
    def latest_version(self) -> int:
        """Return the number of the table's newest version; asks the store each time.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = pennon.write_dataset(pa.table({"id": [4]}), uri, mode="append")
        >>> ds.version, ds.latest_version
        (1, 2)
        """
        return latest_version(self._snapshot.store)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.schema.names
        ['id']
        """
        return schema_to_arrow(self._snapshot.manifest.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """Return the schema with field ids.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.lance_schema.field("id").id()
        0
        """
        return LanceSchema(self._snapshot.manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """Return the file version that new data files get.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.data_storage_version
        '2.1'
        """
        return str(storage_version(self._snapshot.manifest))

    @property
    def has_stable_row_ids(self) -> bool:
        """Return whether rows keep their ids when they move.

        >>> ds = pennon.write_dataset(pa.table({"id": [1]}), uri, enable_stable_row_ids=True)
        >>> ds.has_stable_row_ids
        True
        """
        return self._snapshot.manifest.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Return the highest field id in the schema and the data files, -1 if there is none.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.max_field_id
        0
        """
        return highest_field_id(self._snapshot.manifest)

    @property
    def has_index(self) -> bool:
        """Return whether the version has indices.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.has_index
        True
        """
        return bool(self._snapshot.manifest.indices)

    @property
    def metadata(self) -> dict[str, str]:
        """Return the table's own metadata.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.update_metadata({"owner": "ada"})
        >>> ds.metadata
        {'owner': 'ada'}
        """
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Return the schema's metadata as text.

        >>> ds = pennon.write_dataset(pa.table({"id": [1]}, metadata={"source": "sensor 7"}), uri)
        >>> ds.schema_metadata
        {'source': 'sensor 7'}
        """
        metadata = self._snapshot.manifest.schema.metadata
        return {key: bytes(value).decode(errors="replace") for key, value in metadata.items()}

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Return the storage options that the table was opened with.

        >>> _ = pennon.write_dataset(pa.table({"id": [1]}), uri)
        >>> pennon.dataset(uri, storage_options={"timeout": "30s"}).initial_storage_options
        {'timeout': '30s'}
        """
        return self._storage_options

    def latest_storage_options(self) -> dict[str, str] | None:
        """Return the storage options; they do not change.

        >>> _ = pennon.write_dataset(pa.table({"id": [1]}), uri)
        >>> pennon.dataset(uri, storage_options={"timeout": "30s"}).latest_storage_options()
        {'timeout': '30s'}
        """
        return self._storage_options

    def config(self) -> dict[str, str]:
        """Return the table's config.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.update_config({"lance.compaction.target_rows_per_fragment": "1000"})
        >>> ds.config()
        {'lance.compaction.target_rows_per_fragment': '1000'}
        """
        return dict(self._snapshot.manifest.config)
