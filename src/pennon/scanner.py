"""A scan that is described but not yet run: pylance's ``LanceScanner``."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.arrow_bases import ArrowScanner
from pennon.blob_bytes import BytesOfBlobs
from pennon.blob_frames import blob_paths, check_blob_mode, frame_with_files
from pennon.errors import UnsupportedError
from pennon.lazy import lazy
from pennon.scan.batches import rebatch
from pennon.scan.compute import Computation, Computed, Condition
from pennon.scan.execute import READ_AHEAD_BYTES, Scan, read_batches, read_table
from pennon.scan.filter import Predicate, SqlPredicate, limit_batches
from pennon.scan.filtered import count_filtered, read_filtered_batches, read_filtered_table
from pennon.scan.plan import bytes_per_row, check_batch_rows, default_batch_rows, plan_tasks
from pennon.scan.projection import MetaColumn, Projection, plan_scan_projection
from pennon.scan.prune import prune_tasks
from pennon.scan.snapshot import Snapshot
from pennon.scan.unit_filter import FilteredScan
from pennon.schema.blob import describe_blobs, is_blob_v2
from pennon.schema.field import Schema
from pennon.table.manifest import Fragment

if TYPE_CHECKING:
    from pennon.lance_dataset import LanceDataset


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What a scan is asked for, as far as Pennon does it."""

    columns: tuple[str, ...] | Mapping[str, str] | None = None
    computation: Computation = field(default_factory=Computation)
    limit: int | None = None
    offset: int = 0
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    fragments: tuple[Fragment, ...] | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    strict_batch_size: bool = False
    io_buffer_size: int | None = None
    blobs_as_bytes: bool = False


class LanceScanner(ArrowScanner):
    """Reads rows of one version of a table; every method starts the scan anew."""

    def __init__(self, dataset: LanceDataset, snapshot: Snapshot, options: ScanOptions) -> None:
        """Describe the scan; nothing is read yet."""
        self._ds = dataset
        self._snapshot = snapshot
        self._options = options
        self._query  # noqa: B018 - wrong columns are found now, not at the first batch

    def __reduce__(
        self,
    ) -> tuple[type[LanceScanner], tuple[LanceDataset, Snapshot, ScanOptions]]:
        """Pickle the description; the other side starts the scan anew."""
        return LanceScanner, (self._ds, self._snapshot, self._options)

    @lazy
    def _projection(self) -> Projection:
        options, metas = self._options, _metas(self._options)
        key = "projection", _hashable(options.columns), *metas, options.blobs_as_bytes
        schema = _schema(self._snapshot, options)
        plan = partial(plan_scan_projection, schema, options.columns, metas)
        return self._snapshot.remember(key, plan)

    @lazy
    def _query(self) -> FilteredScan:
        """Return the scan with its condition and computed columns, but without tasks."""
        schema = _schema(self._snapshot, self._options)
        computation = self._options.computation
        condition = computed = None
        if computation.predicate is not None:
            condition = self._condition(computation.predicate, schema)
        if computation.expressions:
            computed = Computed.of(computation.expressions, schema)
        scan = Scan(self._snapshot, self._projection, ())
        shown = computation.shown(self._projection)
        return FilteredScan(scan, shown, condition, computed)

    def _condition(self, predicate: Predicate, schema: Schema) -> Condition:
        def bind() -> Condition:
            return Condition.of(predicate, schema, every_column(self._snapshot, schema))

        if not isinstance(predicate, SqlPredicate):
            return bind()
        key = "condition", predicate.text, self._options.blobs_as_bytes
        return self._snapshot.remember(key, bind)

    @lazy
    def projected_schema(self) -> pa.Schema:
        """Return the schema of the rows that come out."""
        if self._bytes_of_blobs is not None:
            return self._bytes_of_blobs.schema
        return self._query.schema

    @lazy
    def _bytes_of_blobs(self) -> BytesOfBlobs | None:
        """Return what fetches blobs, where a scan of data files cannot: for those of version 2."""
        read = [self._projection, *self._query.inputs]
        fields = chain.from_iterable(each.read.walk() for each in read)
        if not self._options.blobs_as_bytes or not any(map(is_blob_v2, fields)):
            return None
        columns = self._options.columns
        sources = columns if isinstance(columns, Mapping) else {}
        shown = self._with(blobs_as_bytes=False).projected_schema
        return BytesOfBlobs(self._snapshot, shown, sources)

    @property
    def dataset_schema(self) -> pa.Schema:
        """Return the schema of the table."""
        return self._ds.schema

    def to_table(self) -> pa.Table:
        """Read all rows."""
        if self._bytes_of_blobs is not None:
            return pa.Table.from_batches(self.to_batches(), self.projected_schema)
        if not self._options.computation:
            return read_table(self._plan())
        found = read_filtered_table(self._plan_query())
        is_cut = self._options.computation.predicate is None  # the plan has cut the rows already
        return found if is_cut else found.slice(self._options.offset)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; closing the iterator early stops the work."""
        options = self._options
        if self._bytes_of_blobs is not None:
            described = self._with(blobs_as_bytes=False, with_row_address=True)
            return self._bytes_of_blobs.convert(described.to_batches())
        batches = self._computed_batches() if options.computation else self._plain_batches()
        if options.strict_batch_size:
            return rebatch(batches, self._batch_rows())
        return batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs: Any) -> Any:
        """Read all rows into a pandas frame; ``kwargs`` go to `pyarrow.Table.to_pandas`.

        ``blob_mode``: blobs are files that read when they are asked (``lazy``), ``bytes``, or
        ``descriptions`` of where they lie.
        """
        check_blob_mode(blob_mode)
        if blob_mode == "descriptions" or not blob_paths(self.projected_schema):
            return self.to_table().to_pandas(**kwargs)
        if blob_mode == "bytes":
            return self._with(blobs_as_bytes=True).to_table().to_pandas(**kwargs)
        table = self._with(with_row_address=True).to_table()
        addresses = table.column(MetaColumn.ROW_ADDRESS.value).to_pylist()
        columns = self._options.columns
        sources = columns if isinstance(columns, Mapping) else {}
        shown = table.select(self.projected_schema.names)
        return frame_with_files(self._snapshot, sources, shown, addresses, kwargs)

    def _with(self, **changes: Any) -> LanceScanner:
        """Return the scan with other options."""
        return LanceScanner(self._ds, self._snapshot, replace(self._options, **changes))

    def count_rows(self) -> int:
        """Return how many rows come out; without a filter no column is read."""
        if self._options.computation.predicate is None:
            return self._plan().rows
        query = self._plan_query().counting()
        if query.most is None:
            return max(count_filtered(query) - self._options.offset, 0)
        found: int = read_filtered_table(query).num_rows
        return max(found - self._options.offset, 0)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        limit = num_rows if self._options.limit is None else min(num_rows, self._options.limit)
        return self._with(limit=limit).to_table()

    def scan_batches(self) -> list[pa.RecordBatch]:
        """Return all batches."""
        return list(self.to_batches())

    def take(self, indices: Any) -> pa.Table:
        """Refuse; `LanceDataset.take` does it."""
        message = "a scanner takes no single rows; LanceDataset.take does"
        raise UnsupportedError(message)

    def explain_plan(self, verbose: bool = False) -> str:
        """Return the plan as text, a line for each fragment."""
        scan = self._plan()
        read = ", ".join(field.name for field in self._projection.read.fields)
        lines = [f"Scan: uri={self._ds.uri}, columns=[{read}], fragments={len(scan.tasks)}"]
        if self._options.computation.predicate is not None:
            lines.insert(0, f"Filter: {self._options.computation.predicate}")
        if verbose:
            lines += [f"  fragment {t.fragment.id}: rows {t.start}..{t.end}" for t in scan.tasks]
        return "\n".join(lines) + "\n"

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Refuse; there are no metrics yet."""
        message = "analyze_plan is not supported yet; explain_plan is"
        raise UnsupportedError(message)

    @staticmethod
    def from_dataset(*_: Any, **__: Any) -> LanceScanner:
        """Refuse; `LanceDataset.scanner` makes scanners."""
        message = "use LanceDataset.scanner"
        raise UnsupportedError(message)

    from_fragment = from_dataset
    from_batches = from_dataset

    def _plan(self) -> Scan:
        options = self._options
        filtered = options.computation.predicate is not None
        tasks = plan_tasks(
            self._snapshot,
            options.fragments,
            0 if filtered else options.offset,
            None if filtered else options.limit,
        )
        return Scan(self._snapshot, self._projection, tuple(tasks))

    def _batch_rows(self) -> int:
        rows = check_batch_rows(self._options.batch_size or default_batch_rows())
        if self._options.batch_size_bytes is None:
            return rows
        widest = max((bytes_per_row(f) for f in self._snapshot.manifest.fragments), default=1)
        return max(min(rows, self._options.batch_size_bytes // widest), 1)

    def _plain_batches(self) -> Iterator[pa.RecordBatch]:
        ahead = self._options.io_buffer_size or READ_AHEAD_BYTES
        return read_batches(self._plan(), self._batch_rows(), ahead)

    def _plan_query(self) -> FilteredScan:
        options = self._options
        most = None
        if options.computation.predicate is not None and options.limit is not None:
            most = options.offset + options.limit
        plan = self._plan()
        if isinstance(options.computation.predicate, SqlPredicate):
            condition = options.computation.predicate.condition
            plan = replace(plan, tasks=tuple(prune_tasks(self._snapshot, plan.tasks, condition)))
        return replace(self._query, scan=plan, most=most)

    def _computed_batches(self) -> Iterator[pa.RecordBatch]:
        options = self._options
        ahead = options.io_buffer_size or READ_AHEAD_BYTES
        found = read_filtered_batches(self._plan_query(), self._batch_rows(), ahead)
        if options.computation.predicate is None:  # the plan has cut the rows already
            return found
        return limit_batches(found, options.offset, options.limit)


def _metas(options: ScanOptions) -> list[MetaColumn]:
    asked = [(options.with_row_id, MetaColumn.ROW_ID)]
    asked.append((options.with_row_address, MetaColumn.ROW_ADDRESS))
    return [meta for wanted, meta in asked if wanted]


def every_column(snapshot: Snapshot, schema: Schema) -> pa.Schema:
    """Return what an expression may name: the columns of ``schema``, and those of row ids."""
    key = "every column", schema is snapshot.manifest.schema
    return snapshot.remember(
        key, lambda: plan_scan_projection(schema, None, list(MetaColumn)).arrow
    )


def _hashable(columns: tuple[str, ...] | Mapping[str, str] | None) -> Hashable:
    return tuple(columns.items()) if isinstance(columns, Mapping) else columns


def _schema(snapshot: Snapshot, options: ScanOptions) -> Schema:
    """Return the schema that the scan's columns are chosen from."""
    schema = snapshot.manifest.schema
    return schema if options.blobs_as_bytes else describe_blobs(schema)
