"""The sides of the comparison, under one roof: how each opens, scans, counts and takes.

Pennon and pylance have the same names, so one class serves both.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from groups import GROUPS, KEY


class Format(ABC):
    """Something that writes tables and opens them."""

    @abstractmethod
    def write(self, table: pa.Table, uri: str, version: str) -> int:
        """Write a table; return how many rows the format says it has."""

    @abstractmethod
    def open(self, uri: str) -> Table:
        """Open a table, with nothing remembered from the last time."""

    def reads(self) -> dict[str, int]:
        """Return what was read since the last call, if that is counted."""
        return {}


class Table(ABC):
    """An open table.  A filter is ``key`` below a number, or the group's own."""

    @abstractmethod
    def width(self) -> int:
        """Return the number of columns of the schema."""

    @abstractmethod
    def scan(self, columns: list[str], below: int | None = None) -> pa.Table:
        """Return all rows, or those of which the key is below a number."""

    @abstractmethod
    def count(self, group: str) -> int:
        """Return how many rows the group's own filter keeps."""

    @abstractmethod
    def take(self, rows: list[int], columns: list[str]) -> pa.Table:
        """Return rows by number."""

    @abstractmethod
    def first(self, columns: list[str]) -> pa.Table:
        """Return the first row."""

    @abstractmethod
    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""


class Lance(Format):
    """Pennon or pylance."""

    def __init__(self, module: str) -> None:
        self.lance = importlib.import_module(module)

    def write(self, table: pa.Table, uri: str, version: str) -> int:
        """Write with all options as they are unless told."""
        written = self.lance.write_dataset(table, uri, data_storage_version=version)
        return int(written.count_rows())

    def open(self, uri: str) -> LanceTable:
        """Open with a session of its own."""
        return LanceTable(self.lance.dataset(uri))


class LanceTable(Table):
    """A ``LanceDataset`` of either."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def width(self) -> int:
        """Return the number of columns."""
        return len(self.dataset.schema)

    def scan(self, columns: list[str], below: int | None = None) -> pa.Table:
        """Return a table."""
        where = None if below is None else f"{KEY} < {below}"
        return self.dataset.to_table(columns=columns, filter=where)

    def count(self, group: str) -> int:
        """Count with the SQL filter."""
        return int(self.dataset.count_rows(filter=GROUPS[group].filter))

    def take(self, rows: list[int], columns: list[str]) -> pa.Table:
        """Take by row number."""
        return self.dataset.take(rows, columns=columns)

    def first(self, columns: list[str]) -> pa.Table:
        """Scan with a limit."""
        return self.dataset.head(1, columns=columns)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Scan batch by batch."""
        yield from self.dataset.to_batches(columns=columns)


class Counted(Lance):
    """Pennon over the same files, asked as an object store is, every request counted."""

    def __init__(self) -> None:
        super().__init__("pennon")
        self.store: Any = None

    def open(self, uri: str) -> LanceTable:
        """Open through a store that behaves as a remote one, without its latency."""
        from pennon.dataset.lance_dataset import LanceDataset  # noqa: PLC0415
        from pennon.io import open_store  # noqa: PLC0415 - the other sides have no Pennon in them
        from pennon.scan.snapshot import Snapshot  # noqa: PLC0415
        from pennon.table.versions import read_manifest  # noqa: PLC0415
        from pennon.testing import CountingStore, LatencyStore  # noqa: PLC0415

        self.store = CountingStore(LatencyStore(open_store(uri), seconds=0))
        snapshot = Snapshot(self.store, read_manifest(self.store))
        return LanceTable(LanceDataset.of_snapshot(uri, snapshot))

    def reads(self) -> dict[str, int]:
        """Return rounds, requests and bytes, holes between ranges that lie close included."""
        if self.store is None:
            return {}
        counts = self.store.counts
        self.store.reset()
        names = ("rounds", "requests", "read_bytes")
        return {name: getattr(counts, name) for name in names}


class Parquet(Format):
    """Parquet by pyarrow: one file, all options as they are unless told (snappy, dictionaries)."""

    def write(self, table: pa.Table, uri: str, version: str) -> int:  # noqa: ARG002
        """Write one file into a folder, as a table of Lance is one."""
        path = parquet_file(uri)
        path.parent.mkdir(parents=True)
        pq.write_table(table, path)
        return int(pq.read_metadata(path).num_rows)

    def open(self, uri: str) -> Table:
        """Open the file, mapped into memory."""
        return ParquetTable(parquet_file(uri))


def parquet_file(uri: str) -> Path:
    """Return where the one file of a table lies."""
    return Path(uri) / "data" / "table.parquet"


class ParquetTable(Table):
    """A ``ParquetFile``; filters go through ``pyarrow.dataset``, which the file alone does not have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = pq.ParquetFile(path, memory_map=True)
        meta = self.file.metadata
        rows = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        self.starts = np.cumsum([0, *rows])

    def width(self) -> int:
        """Return the number of columns."""
        return len(self.file.schema_arrow)

    def scan(self, columns: list[str], below: int | None = None) -> pa.Table:
        """Read the file, or let the dataset push the filter down to its row groups."""
        if below is None:
            return self.file.read(columns)
        return self._filtered().to_table(columns=columns, filter=pc.field(KEY) < below)

    def count(self, group: str) -> int:
        """Count with the Arrow expression."""
        return int(self._filtered().count_rows(filter=GROUPS[group].expression))

    def take(self, rows: list[int], columns: list[str]) -> pa.Table:
        """Read the row groups that the rows lie in, each once, and take the rows from those."""
        wanted = np.asarray(rows)
        group_of = np.searchsorted(self.starts, wanted, side="right") - 1
        groups = np.unique(group_of)
        sizes = self.starts[groups + 1] - self.starts[groups]
        places = (np.cumsum(sizes) - sizes)[np.searchsorted(groups, group_of)]
        table = self.file.read_row_groups(groups.tolist(), columns)
        return table.take(pa.array(places + wanted - self.starts[group_of]))

    def first(self, columns: list[str]) -> pa.Table:
        """Read a batch of one row."""
        return pa.Table.from_batches([next(self.file.iter_batches(1, columns=columns))])

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Read batch by batch."""
        yield from self.file.iter_batches(columns=columns)

    def _filtered(self) -> ds.Dataset:
        if not hasattr(self, "_dataset"):
            self._dataset = ds.dataset(self.path)
        return self._dataset


MODULES = {"pennon": "pennon", "pylance": "lance"}
"""The sides that have the same names, and how they are imported."""


def format_of(name: str) -> Format:
    """Return a side by its name."""
    if name == "parquet":
        return Parquet()
    return Counted() if name == "counted" else Lance(MODULES[name])
