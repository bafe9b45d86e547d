"""Writing a full-text index: texts become partitions, one at a time, so that memory is bounded.

Format version 2: blocks of 128 with tails of varints, tokens as a transducer, positions as streams, bounds of
blocks.  Of a block's bounds just one pair is written, the most of the token in the least text: no document
does better, and readers leave out no block that they should not.
Source: reference index-scalar, 13 and 21.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import MIB
from pennon.encoding.kernels.postings_write import (
    encode_impacts,
    encode_positions,
    encode_postings,
)
from pennon.errors import UnsupportedError
from pennon.file.container.writer import DataFileWriter
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Bytes, Floats, Words
from pennon.index.text.bm25 import Statistics, share
from pennon.index.text.documents import Reader
from pennon.index.text.memory_partition import MemoryPartition
from pennon.index.text.parameters import TextParameters
from pennon.index.text.token_fst import write_fst

PARTITION_BYTES: Final = 512 * MIB
"""So much memory a partition takes, about, while it is written."""
_PLACE_BYTES: Final = 56
"""What a place of a token takes beside itself while posting lists are sorted and coded.  Measured."""
_BLOCK: Final = 128
_GROUP: Final = 32 * _BLOCK
_FULL_BYTES: Final = 1034
_NO_DELETIONS: Final = bytes.fromhex("3a30000000000000")
_CODING: Final = {
    "format_version": "2",
    "posting_tail_codec": "varint_delta_v1",
    "posting_block_size": "128",
}
_TOKENS: Final = {"token_set_format": "fst"}
_POSITIONS: Final = {
    "positions_layout": "shared_stream_v2",
    "positions_codec": "packed_delta_v1",
}


class NewFolder(Protocol):
    """The folder of an index that is being made."""

    def file(self, name: str, /, *columns: pa.Field[Any]) -> AbstractContextManager[DataFileWriter]:
        """Give a file to write to, which is finished at the end of the block, or given up."""
        ...


class TextBuilder:
    """Makes a full-text index of texts that come in batches."""

    def __init__(
        self,
        folder: NewFolder,
        reader: Reader,
        *,
        partition_bytes: int = PARTITION_BYTES,
        first_partition: int = 0,
    ) -> None:
        """Write to a folder.  Raises UnsupportedError for blocks of 256, which are read alone."""
        if reader.parameters.block_size != _BLOCK:
            message = f"full-text indices are written in blocks of 128, and not of {reader.parameters.block_size}"
            raise UnsupportedError(message)
        self._folder, self._reader = folder, reader
        self._most_bytes = partition_bytes
        self._next = first_partition
        self._held = MemoryPartition()
        self.partitions: list[int] = []

    def add(self, values: pa.Array[Any], row_ids: Numbers) -> None:
        """Take the values of rows."""
        for document in self._reader.documents(values):
            self._held.add(int(row_ids[document.row]), document)
            held = self._held
            if held.size_bytes + _PLACE_BYTES * held.places > self._most_bytes:
                self._write()

    def finish(self) -> None:
        """Write what is held, and which partitions there are."""
        if len(self._held):
            self._write()
        write_metadata(self._folder, self._reader, self.partitions)

    def _write(self) -> None:
        write_partition(self._folder, self._next, self._held, self._reader)
        self.partitions.append(self._next)
        self._next += 1
        self._held = MemoryPartition()


def write_metadata(folder: NewFolder, reader: Reader, partitions: list[int]) -> None:
    """Write the settings of an index, and the numbers of its partitions."""
    kind = "json" if reader.is_json else "text"
    parameters: TextParameters = replace(reader.parameters, lance_tokenizer=kind)
    entries = _CODING | _TOKENS | (_POSITIONS if parameters.with_position else {})
    entries |= {"params": parameters.to_json(), "partitions": json.dumps(partitions)}
    deleted = pa.field("deleted_fragments", pa.binary(), nullable=False)
    with folder.file("metadata.lance", deleted) as file:
        file.add_schema_metadata(entries)
        _write(file, [(deleted, pa.array([_NO_DELETIONS], pa.binary()))])


def write_partition(
    folder: NewFolder, number: int, partition: MemoryPartition, reader: Reader
) -> None:
    """Write the files of a partition."""
    _write_documents(folder, f"part_{number}_docs.lance", partition, by_item=reader.by_item)
    _write_tokens(folder, f"part_{number}_tokens.lance", partition)
    with_position = reader.parameters.with_position
    _write_postings(folder, f"part_{number}_invert.lance", partition, with_position=with_position)


def _write_documents(
    folder: NewFolder, name: str, partition: MemoryPartition, *, by_item: bool
) -> None:
    columns = [
        (pa.field("_rowid", pa.uint64(), nullable=False), pa.array(partition.row_ids)),
        (pa.field("_num_tokens", pa.uint32(), nullable=False), pa.array(partition.lengths)),
    ]
    if by_item:
        items = pa.field("_doc_index_0", pa.uint32(), nullable=False)
        columns.append((items, pa.array(partition.items)))
    with folder.file(name, *(field for field, _ in columns)) as file:
        file.add_schema_metadata({"total_tokens": str(partition.token_count)})
        _write(file, columns)


def _write_tokens(folder: NewFolder, name: str, partition: MemoryPartition) -> None:
    tokens = partition.tokens
    keys = [(each.encode("utf-8", "surrogatepass"), each) for each in tokens.in_order()]
    data = write_fst((key, tokens.numbers[each]) for key, each in keys)
    columns = [
        (pa.field("_token_fst_bytes", pa.large_binary(), nullable=False), [data]),
        (pa.field("_token_next_id", pa.uint32(), nullable=False), [len(keys)]),
        (
            pa.field("_token_total_length", pa.uint64(), nullable=False),
            [sum(len(key) for key, _ in keys)],
        ),
    ]
    with folder.file(name, *(field for field, _ in columns)) as file:
        _write(file, [(field, pa.array(value, field.type)) for field, value in columns])


def _write_postings(
    folder: NewFolder, name: str, partition: MemoryPartition, *, with_position: bool
) -> None:
    ends, docs, frequencies, positions = partition.lists()
    lengths = partition.lengths[docs]
    scores = _scores(partition, ends, frequencies, lengths)
    counts = np.diff(ends)
    blocks, groups = -(-counts // _BLOCK), -(-counts // _GROUP)
    full = int((counts // _BLOCK).sum())
    room = _FULL_BYTES * full + 4 * len(counts) + 10 * int((counts % _BLOCK).sum())
    listed = pa.list_(pa.large_binary())
    columns: list[tuple[pa.Field[Any], pa.Array[Any]]] = [
        (
            pa.field("_posting", listed, nullable=False),
            _blob_lists(
                blocks,
                room,
                lambda target, blobs: encode_postings(
                    ends, docs, frequencies, scores, target, blobs
                ),
            ),
        ),
        (pa.field("_max_score", pa.float32(), nullable=False), pa.array(_greatest(scores, ends))),
        (pa.field("_length", pa.uint32(), nullable=False), pa.array(counts.astype(np.uint32))),
        (
            pa.field("_impacts", listed, nullable=False),
            _blob_lists(
                blocks + groups,
                16 * int((blocks + groups).sum()),
                lambda target, blobs: encode_impacts(
                    ends, docs, frequencies, lengths, target, blobs
                ),
            ),
        ),
    ]
    if with_position:
        columns += _streams(ends, frequencies, positions, blocks)
    with folder.file(name, *(field for field, _ in columns)) as file:
        file.add_schema_metadata(_CODING | (_POSITIONS if with_position else {}))
        _write(file, columns)


def _scores(
    partition: MemoryPartition, ends: Int64Array, frequencies: Words, lengths: Words
) -> Floats:
    """Return how well each document fits each of its tokens, by the statistics of the partition."""
    statistics = Statistics(len(partition), partition.token_count, {})
    counts = np.diff(ends).astype(np.float32)
    weights = np.log(
        (np.float32(len(partition)) - counts + np.float32(0.5)) / (counts + np.float32(0.5)) + 1
    )
    shares = share(frequencies.astype(np.float32), lengths.astype(np.float32), statistics.average)
    return (np.repeat(weights, np.diff(ends)) * shares).astype(np.float32)


def _greatest(scores: Floats, ends: Int64Array) -> Floats:
    return np.maximum.reduceat(scores, ends[:-1]) if len(scores) else scores


def _blob_lists(
    counts: Int64Array, room: int, encode: Callable[[Bytes, Int64Array], int]
) -> pa.Array[Any]:
    """Return a list of byte strings for each token."""
    ends = np.zeros(int(counts.sum()) + 1, np.int64)
    target = np.empty(room, np.uint8)
    used = encode(target, ends)
    blobs = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(target[:used])]
    )
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), blobs)


def _streams(
    ends: Int64Array, frequencies: Words, positions: Words, blocks: Int64Array
) -> list[tuple[pa.Field[Any], pa.Array[Any]]]:
    target = np.empty(5 * len(positions) + 128, np.uint8)
    stream_ends = np.zeros(len(ends), np.int64)
    starts = np.empty(int(blocks.sum()), np.uint32)
    used = encode_positions(ends, frequencies, positions, target, stream_ends, starts)
    streams = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(ends) - 1,
        [None, pa.py_buffer(stream_ends), pa.py_buffer(target[:used])],
    )
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(blocks)]).astype(np.int32)
    listed = pa.list_(pa.uint32())
    return [
        (pa.field("_compressed_position", pa.large_binary(), nullable=False), streams),
        (
            pa.field("_position_block_offset", listed, nullable=False),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(starts)),
        ),
    ]


def _write(file: DataFileWriter, columns: list[tuple[pa.Field[Any], pa.Array[Any]]]) -> None:
    fields, arrays = zip(*columns, strict=True)
    file.write(pa.RecordBatch.from_arrays(list(arrays), schema=pa.schema(fields)))
