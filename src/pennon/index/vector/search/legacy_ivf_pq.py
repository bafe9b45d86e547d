"""IVF_PQ of the first layout, which releases up to 0.20 wrote: one file ``index.idx``, which is no data file.

::

    partition 0     codes (by rows), then row ids (8 bytes each)
    partition 1 ...
    length (4), message Index: a stage ivf, a stage pq          <- position
    position (8), 0 (2), 1 (2), "LANC"

Offsets of partitions are positions in the file.  Of codes of 4 bits release 0.15 has one in each byte, 14.0.2 two: which,
the size of the file tells.  Source: reference index-vector, 3.2; measured.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from pennon.core.byte_ranges import ByteRange
from pennon.errors import FormatError
from pennon.index.files import IndexFiles
from pennon.index.vector.partition_reader import Partition, PartitionReader
from pennon.index.vector.quantizer import Bytes2D
from pennon.index.vector.quantizers.pq import ProductQuantizer
from pennon.index.vector.search.ivf import IvfIndex
from pennon.index.vector.search.legacy_row_groups import read_message
from pennon.index.vector.wire import OldIndex, parse_index
from pennon.io.store import ObjectReader

_FOOTER: Final = struct.Struct("<QHH4s")


def is_staged(source: ObjectReader) -> bool:
    """Return whether a file ends as one of the first layout does, or a data file of 0.1."""
    return source.size_bytes >= _FOOTER.size and _footer(source)[1:] == (0, 1, b"LANC")


def open_stages(files: IndexFiles, source: ObjectReader) -> IvfIndex:
    """Open an index.  Raises FormatError if it is damaged, UnsupportedError for stages that are not read."""
    index = parse_index(read_message(source, _footer(source)[0]))
    centroids, codebook = index.partitions.centroids, index.codebook
    if centroids is None or not index.dimension == centroids.shape[1] == codebook.dimension:
        message = f"{source.path} is of vectors of {index.dimension} values, and its codebook of {codebook.dimension}"
        raise FormatError(message)
    quantizer = ProductQuantizer(
        codebook.values,
        bits=codebook.bits,
        parts=codebook.parts,
        metric=index.metric,
        centroids=centroids,
        is_transposed=False,
    )
    reader = _StageReader(files, source, index, quantizer)
    return IvfIndex(index.metric, centroids, quantizer, reader)


def _footer(source: ObjectReader) -> tuple[int, int, int, bytes]:
    (last,) = source.read([ByteRange(source.size_bytes - _FOOTER.size, _FOOTER.size)])
    position, major, minor, magic = _FOOTER.unpack(last.to_pybytes())
    return position, major, minor, magic


class _StageReader(PartitionReader):
    def __init__(
        self, files: IndexFiles, source: ObjectReader, index: OldIndex, quantizer: ProductQuantizer
    ) -> None:
        """Check that all partitions lie in the file.  Raises FormatError."""
        partitions, parts = index.partitions, index.codebook.parts
        super().__init__(files, partitions.lengths, quantizer.row_bytes)
        is_loose = int(partitions.lengths.sum()) * (parts + 8) <= _footer(source)[0]
        self._width = parts if is_loose else quantizer.row_bytes
        sizes = partitions.lengths * (self._width + 8)
        ends = partitions.offsets + sizes
        if int(sizes.sum()) > source.size_bytes or (ends > source.size_bytes).any():
            message = f"{source.path} has {source.size_bytes} bytes, and its partitions {int(sizes.sum())}"
            raise FormatError(message)
        self._source, self._quantizer = source, quantizer
        self._offsets = partitions.offsets

    def _read(self, numbers: Sequence[int]) -> list[Partition]:
        width = self._width
        counts = [self.rows_of(number) for number in numbers]
        wanted = [
            ByteRange(int(self._offsets[number]), count * (width + 8))
            for number, count in zip(numbers, counts, strict=True)
        ]
        found = []
        for count, data in zip(counts, self._source.read(wanted), strict=True):
            codes: Bytes2D = np.frombuffer(data, np.uint8, count * width).reshape(count, width)
            if width != self._quantizer.row_bytes:
                codes = (codes[:, ::2] & np.uint8(15)) | (codes[:, 1::2] << np.uint8(4))
            rows = np.frombuffer(data, "<u8", count, count * width).astype(np.uint64)
            found.append(Partition(rows, self._quantizer.codes_of(codes, by_rows=False)))
        return found
