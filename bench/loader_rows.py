"""The rows of ``make bench-loader``: texts, vectors and images, the same in a Lance table and in Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pennon

TEXT_BYTES: Final = 1024
DIMENSION: Final = 768
IMAGE_BYTES: Final = 100 * 1024
SLICE_BYTES: Final = 16 << 20
"""So much is made at once: the memory of a run does not grow with its rows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One kind of rows: a column ``value`` beside the row's number, and how it is read."""

    name: str
    rows: int
    batch_size: int
    row_bytes: int
    make: Callable[[np.random.Generator, int], pa.Array]
    mds: str
    """The column's encoding in MosaicML's MDS."""

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""
        value = self.make(np.random.default_rng(0), 1).type
        return pa.schema([("id", pa.int64()), ("value", value)])

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, the same at each call."""
        random = np.random.default_rng(43)
        step = max(SLICE_BYTES // self.row_bytes, 1)
        for begin in range(0, rows, step):
            count = min(step, rows - begin)
            ids = pa.array(np.arange(begin, begin + count))
            yield pa.record_batch([ids, self.make(random, count)], schema=self.schema)


def _texts(random: np.random.Generator, rows: int) -> pa.Array:
    """Return texts of 1 KB of letters and spaces."""
    letters = np.frombuffer(b"etaoin shrdlu cmfwyp vbgkqj xz   ", np.uint8)
    return _binary(pa.string(), letters[random.integers(0, 32, rows * TEXT_BYTES)], TEXT_BYTES)


def _vectors(random: np.random.Generator, rows: int) -> pa.Array:
    """Return vectors of 768 floats."""
    values = pa.array(random.random(rows * DIMENSION, np.float32))
    return pa.FixedSizeListArray.from_arrays(values, DIMENSION)


def _images(random: np.random.Generator, rows: int) -> pa.Array:
    """Return 100 KB a row that no compression makes smaller, as a JPEG file's."""
    return _binary(pa.binary(), random.integers(0, 256, rows * IMAGE_BYTES, np.uint8), IMAGE_BYTES)


def _binary(
    kind: pa.DataType, data: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], size: int
) -> pa.Array:
    rows = len(data) // size
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * size)
    return pa.Array.from_buffers(kind, rows, [None, offsets.buffers()[1], pa.py_buffer(data)])


ROWS: Final[Mapping[str, Rows]] = {
    each.name: each
    for each in (
        Rows("text", 400_000, 256, TEXT_BYTES, _texts, "str"),
        Rows("vectors", 120_000, 256, 4 * DIMENSION, _vectors, f"ndarray:float32:{DIMENSION}"),
        Rows("images", 5_000, 64, IMAGE_BYTES, _images, "bytes"),
    )
}
FRAGMENTS: Final = 8
PARQUET_FILES: Final = 8
"""Hugging Face's workers share whole files."""


def write_rows(kind: Rows, rows: int, folder: Path) -> None:
    """Write ``{folder}/table.lance`` and ``{folder}/parquet/*.parquet`` with the same rows."""
    reader = pa.RecordBatchReader.from_batches(kind.schema, kind.batches(rows))
    pennon.write_dataset(
        reader, str(folder / "table.lance"), max_rows_per_file=-(-rows // FRAGMENTS)
    )
    (folder / "parquet").mkdir()
    table = pa.Table.from_batches(kind.batches(rows), kind.schema)
    step = -(-rows // PARQUET_FILES)
    for number, begin in enumerate(range(0, rows, step)):
        part = folder / "parquet" / f"{number}.parquet"
        pq.write_table(table.slice(begin, step), part, row_group_size=max(step // 4, 1))
