"""What Spark itself charges a source in Python: one that hands over ready batches and drops rows.

The batches lie in Arrow IPC files, which are mapped into memory, so nothing is decoded.  No format
that Spark reads through Python can be quicker than this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

# Spark's workers do not have this folder on their path.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

BATCH_ROWS = 16_384


def write_floor(table: pa.Table, folder: Path, files: int) -> None:
    """Write a table as IPC files of batches of `BATCH_ROWS` rows."""
    folder.mkdir()
    step = -(-table.num_rows // files)
    for number in range(files):
        with pa.ipc.new_file(folder / f"{number}.arrow", table.schema) as writer:
            writer.write_table(table.slice(number * step, step), BATCH_ROWS)


def read_floor(path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one file."""
    with pa.memory_map(path) as mapped:
        reader = pa.ipc.open_file(mapped)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number).select(list(names))


@dataclass(frozen=True)
class FloorPartition(ds.InputPartition):
    """One file."""

    path: str


class FloorReader(ds.DataSourceReader):
    """Hands over what lies in the files."""

    def __init__(self, folder: str, names: list[str]) -> None:
        self._folder = folder
        self._names = names

    def partitions(self) -> list[ds.InputPartition]:
        """Return one partition a file."""
        return [FloorPartition(str(path)) for path in sorted(Path(self._folder).iterdir())]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file."""
        assert isinstance(partition, FloorPartition)
        return read_floor(partition.path, self._names)


class FloorWriter(ds.DataSourceArrowWriter):
    """Takes rows, and keeps none."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Drop the rows."""
        for _ in iterator:
            pass
        return ds.WriterCommitMessage()

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Nothing was written."""

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        """Nothing was written."""


class FloorStreamWriter(ds.DataSourceStreamArrowWriter):
    """Takes the rows of a batch, and keeps none."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Drop the rows."""
        for _ in iterator:
            pass
        return ds.WriterCommitMessage()

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Nothing was written."""

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Nothing was written."""


class Floor(ds.DataSource):
    """The format ``floor``; the option ``ddl`` is its schema."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "floor"

    def schema(self) -> str:
        """Return what the option says."""
        return self.options["ddl"]

    def reader(self, schema: StructType) -> FloorReader:
        """Return a reader of the columns asked for."""
        return FloorReader(self.options["path"], schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> FloorWriter:  # noqa: ARG002 - Spark's
        """Return a writer that drops rows."""
        return FloorWriter()

    def streamWriter(self, schema: StructType, overwrite: bool) -> FloorStreamWriter:  # noqa: ARG002, N802 - Spark's
        """Return a writer that drops the rows of a batch."""
        return FloorStreamWriter()


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """``mapInArrow`` function: each incoming row is the number of a file."""

    folder: str
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the files named by the incoming ones."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_floor(f"{self.folder}/{number}.arrow", self.names)
