"""One fragment of a table, and writing fragments without committing them (``lance.fragment``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from pennon import ops
from pennon.compat.arguments import check_columns, check_options, refuse, row_numbers
from pennon.compat.arrow_bases import ArrowFragment
from pennon.compat.option_types import (
    BlobHandling,
    BlobMode,
    Columns,
    Filter,
    FragmentScanKeywords,
    FragmentsNotSupportedYet,
    FragmentTableKeywords,
    PandasOptions,
    WriteModeName,
    WriteNotSupportedYet,
)
from pennon.core.interpreter_end import check_imports_work
from pennon.dataset.base import DatasetBase
from pennon.dataset.fragment_columns import FragmentColumns
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.scanner import LanceScanner
from pennon.dataset.scanner_builder import ScannerBuilder
from pennon.errors import NotFoundError
from pennon.io.durability import hands_over
from pennon.ops.file_limits import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, MAX_ROWS_PER_GROUP
from pennon.scan.plan.take_plan import TakePlan, plan_take
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import live_row_count
from pennon.scan.run.take import read_fragment_offsets, take_table
from pennon.scan.snapshot import Snapshot
from pennon.scan.validate import validate_fragment
from pennon.schema.project import quoted
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.dataset.scanner_builder import ColumnOrdering

DEFAULT_MAX_BYTES_PER_FILE: Final = MAX_BYTES_PER_FILE
_NO_LIMIT = 2**63 - 1


class FragmentSession:
    """Takes the same columns of one fragment, again and again."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment, plan: TakePlan) -> None:
        self._take = partial(read_fragment_offsets, snapshot, plan, fragment)

    def take(self, indices: Any) -> pa.Table:
        """Read rows by their offsets among the live rows of the fragment, in the order given."""
        return take_table(self._take, row_numbers(indices))


class LanceFragment(FragmentColumns, ArrowFragment):
    """The rows of one fragment of a table, without the deleted ones.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
    >>> first, second = ds.get_fragments()
    >>> first.to_table()["id"].to_pylist(), second.count_rows()
    ([1, 2], 1)
    """

    def __init__(
        self, dataset: DatasetBase, fragment_id: int | None, *, fragment: Fragment | None = None
    ) -> None:
        """Take the fragment of that id; raises NotFoundError if there is none."""
        self._ds = dataset
        found = fragment
        if found is None and fragment_id is not None:
            found = dataset.snapshot.manifest.fragment(fragment_id)
        if found is None:
            ids = [known.id for known in dataset.snapshot.manifest.fragments]
            message = f"there is no fragment {fragment_id}; the fragments are {ids[:20]}"
            raise NotFoundError(message)
        self._fragment: Fragment = found

    @property
    def fragment(self) -> Fragment:
        """Return what the manifest says of the fragment."""
        return self._fragment

    @property
    def fragment_id(self) -> int:
        """Return the fragment's id."""
        return self._fragment.id

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        return self._ds.schema

    @property
    def physical_rows(self) -> int:
        """Return the number of rows, deleted ones counted."""
        return self._reader().physical_rows()

    @property
    def num_deletions(self) -> int:
        """Return the number of deleted rows."""
        return self.physical_rows - self.count_rows()

    @property
    def metadata(self) -> FragmentMetadata:
        """Return what the manifest says of the fragment, as something that turns into JSON."""
        rows = self.physical_rows
        return FragmentMetadata.from_fragment(self._fragment, rows, rows - self.count_rows())

    def data_files(self) -> list[DataFile]:
        """Return the data files."""
        return [DataFile.from_ref(ref) for ref in self._fragment.files]

    def deletion_file(self) -> str | None:
        """Return the path of the deletion file below the table's root, if there is one."""
        deletion = self._fragment.deletion_file
        return None if deletion is None else deletion.store_path(self._fragment.id)

    def scanner(
        self,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: BlobHandling | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> LanceScanner:
        """Describe a scan of this fragment; the arguments are those of `LanceDataset.scanner`."""
        options = {name: value for name, value in locals().items() if name != "self"}
        builder = ScannerBuilder(self._ds).with_fragments([self])
        given = {name: value for name, value in options.items() if value is not None}
        return builder.apply_defaults(given).to_scanner()

    def to_batches(
        self,
        *,
        columns: Columns = None,
        filter: Filter = None,
        **options: Unpack[FragmentScanKeywords],
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; the options are those of `scanner`."""
        check_options(options, self.scanner)
        return self.scanner(columns=columns, filter=filter, **options).to_batches()

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        **options: Unpack[FragmentTableKeywords],
    ) -> pa.Table:
        """Read the rows; the options are those of `scanner`."""
        said = {name: value for name, value in locals().items() if name not in {"self", "options"}}
        check_options(options, self.scanner)
        return self.scanner(**said, **options).to_table()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: BlobMode = "lazy",
        order_by: Sequence[str | ColumnOrdering] | None = None,
        **kwargs: Unpack[PandasOptions],
    ) -> Any:
        """Read the rows into a pandas frame; ``kwargs`` go to `pyarrow.Table.to_pandas`."""
        scanner = self.scanner(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            order_by=order_by,
        )
        return scanner.to_pandas(blob_mode=blob_mode, **kwargs)

    def head(self, num_rows: int) -> pa.Table:
        """Read the first rows."""
        return self.scanner(limit=num_rows).to_table()

    def take(self, indices: Any, columns: list[str] | None = None) -> pa.Table:
        """Read rows by their offsets among the live rows of the fragment, in the order given."""
        return self._session(check_columns(columns)).take(indices)

    def open_session(
        self,
        columns: list[str] | dict[str, str] | None = None,
        with_row_address: bool | None = None,
    ) -> FragmentSession:
        """Return what takes the same columns, all by default, again and again."""
        chosen = check_columns(columns)
        if with_row_address:
            address = MetaColumn.ROW_ADDRESS.value
            if isinstance(chosen, Mapping):
                chosen = {**chosen, address: address}
            else:
                names = map(quoted, self._ds.schema.names) if chosen is None else chosen
                chosen = (*names, address)
        return self._session(chosen)

    def _session(self, columns: tuple[str, ...] | Mapping[str, str] | None) -> FragmentSession:
        snapshot = self._ds.snapshot
        plan = plan_take(snapshot, columns, blobs_as_bytes=True)
        return FragmentSession(snapshot, self._fragment, plan)

    def count_rows(self, filter: Any = None) -> int:
        """Return the number of rows that are not deleted and pass the filter."""
        if filter is not None:
            return self.scanner(filter=filter).count_rows()
        return live_row_count(self._ds.snapshot, self._fragment)

    def validate(self) -> None:
        """Raise FormatError or NotFoundError unless the fragment's files are there and agree."""
        validate_fragment(self._ds.snapshot, self._fragment)

    @property
    def physical_schema(self) -> pa.Schema:
        """Return the schema of the table: every fragment reads with all its columns."""
        return self._ds.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """Return what is true of all rows; a table has no partitions, so it is just ``true``."""
        return pc.scalar(value=True)

    @staticmethod
    def create(
        dataset_uri: str | Path,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = MAX_ROWS_PER_GROUP,
        progress: Any = None,
        mode: WriteModeName = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: dict[str, str] | None = None,
        **unsupported: Unpack[WriteNotSupportedYet],
    ) -> FragmentMetadata:
        """Write all data as one fragment, without committing it.

        Raises NoDataError if the data has no rows or no columns.
        """
        from pennon.dataset.write import WriteOptions, WriteRequest  # noqa: PLC0415 - saves writers at open

        refuse(unsupported, LanceFragment.create)
        options = WriteOptions(
            mode=mode,
            max_rows_per_file=_NO_LIMIT,
            max_rows_per_group=max_rows_per_group,
            max_bytes_per_file=_NO_LIMIT,
            progress=progress,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            storage_options=storage_options,
        )
        return WriteRequest.of(data, dataset_uri, schema, options).write_one(fragment_id or 0)

    @hands_over
    def delete(self, predicate: Any) -> FragmentMetadata | None:
        """Write a deletion file for the rows for which SQL, or a pyarrow expression, is true.

        Returns the fragment as `LanceOperation.Delete` takes it, None if no row is left.
        """
        snapshot = self._ds.snapshot
        for rows in ops.find_rows(ops.bind_search(snapshot, predicate), [self._fragment]):
            return self._metadata_of(ops.remove_rows(snapshot, rows).left)
        return self.metadata

    @hands_over
    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Write a deletion file for rows by their physical offsets; those deleted before stay so.

        Returns as `delete` does.  Raises OutOfRangeError for a row that the fragment does not have.
        """
        snapshot = self._ds.snapshot
        rows = ops.rows_at(snapshot, self._fragment, row_numbers(offsets))
        return (
            self._metadata_of(ops.remove_rows(snapshot, rows).left) if len(rows) else self.metadata
        )

    def _metadata_of(self, left: Fragment | None) -> FragmentMetadata | None:
        return None if left is None else LanceFragment(self._ds, None, fragment=left).metadata

    def _reader(self) -> FragmentReader:
        return FragmentReader(self._ds.snapshot, self._fragment)

    def __repr__(self) -> str:
        """Return the id and the files."""
        files = [file.path for file in self._fragment.files]
        deletion = self.deletion_file()
        tail = "" if deletion is None else f", deletion_file={deletion!r}"
        return f"LanceFragment(id={self.fragment_id}, data_files={files}{tail})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: rows, files, columns."""
        from pennon.dataset.notebook import fragment_html  # noqa: PLC0415 - saves HTML where no notebook is

        return fragment_html(self, self._ds.snapshot)

    def __reduce__(self) -> tuple[Callable[..., LanceFragment], tuple[Any, ...]]:
        """Pickle as the table's version and the id."""
        return LanceFragment, (self._ds, self.fragment_id)

    def __eq__(self, other: object) -> bool:
        """Compare table and manifest entry."""
        if not isinstance(other, LanceFragment):
            return NotImplemented
        return self._ds == other._ds and self._fragment == other._fragment

    def __hash__(self) -> int:
        """Hash the id."""
        return hash(self.fragment_id)


def write_fragments(
    data: Any,
    dataset_uri: str | Path | DatasetBase,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: WriteModeName = "append",
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = MAX_ROWS_PER_GROUP,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: Any = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: dict[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    validate_input: bool = True,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    **unsupported: Unpack[FragmentsNotSupportedYet],
) -> Any:
    """Write data files, and return what a later `LanceDataset.commit` needs.

    Returns a list of FragmentMetadata, without ids, or with ``return_transaction`` the Transaction
    that would commit them.  ``create`` and ``overwrite`` number the fields from 0; ``append`` checks
    the data against the table.
    """
    check_imports_work()
    from pennon.dataset.write import WriteOptions, WriteRequest  # noqa: PLC0415 - as above

    refuse(unsupported, write_fragments)
    options = WriteOptions.among(locals())
    request = WriteRequest.of(data, dataset_uri, schema, options)
    return request.write_uncommitted(as_transaction=return_transaction)
