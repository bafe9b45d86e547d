"""Writing a partition of a full-text index: posting lists some tokens at a time, documents, tokens.

Blocks have 128 documents, or 256; tokens are a transducer.  Version 1 has tails of plain words and a list of positions for
each document; later ones have tails of varints and positions as streams.  Of a block's bounds just one pair
is written, the most of the token in the least text: no document does better, and readers leave out no block
that they should not.  Source: reference index-scalar, 13 and 21.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.file.container.writer import DataFileWriter
from pennon.index.kernels.text.postings_write import (
    encode_impacts,
    encode_position_lists,
    encode_positions,
    encode_postings,
)
from pennon.index.new_files import NewFiles
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Bytes, Floats, Words
from pennon.index.text.bm25 import Statistics, share
from pennon.index.text.parameters import METADATA, TextParameters
from pennon.index.text.partition import rounded
from pennon.index.text.postings import TokenLists
from pennon.index.text.token_fst import write_fst

_GROUP: Final = 32
"""So many blocks have bounds together, behind those of each."""
_PACKED: Final = 128
"""So many positions are packed together."""
_NO_DELETIONS: Final = bytes.fromhex("3a30000000000000")
_TOKENS: Final = {"token_set_format": "fst"}
_POSITIONS: Final = {"positions_layout": "shared_stream_v2", "positions_codec": "packed_delta_v1"}


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of the posting lists of an index."""

    version: int
    with_position: bool
    block_size: int = 128

    @property
    def metadata(self) -> dict[str, str]:
        """Return what the files with posting lists say of it."""
        tail = "fixed32_v1" if self.version == 1 else "varint_delta_v1"
        found = {
            "format_version": str(self.version),
            "posting_tail_codec": tail,
            "posting_block_size": str(self.block_size),
        }
        return found | (_POSITIONS if self.with_position and self.version > 1 else {})


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a partition: their rows, how many tokens each has, its place in a list if it is an item."""

    row_ids: Numbers
    lengths: Words
    items: Words | None = None

    @property
    def token_count(self) -> int:
        """Return how many tokens all of them have."""
        return int(self.lengths.sum(dtype=np.uint64))


def part_metadata(number: int) -> str:
    """Return the name of the file with the settings of a partition that will be merged with others."""
    return f"part_{number}_{METADATA}"


def write_metadata(
    folder: NewFiles,
    written: TextFormat,
    parameters: TextParameters,
    partitions: Sequence[int],
    *,
    is_json: bool,
    name: str = METADATA,
) -> None:
    """Write the settings of an index, and the numbers of its partitions, to a file of that name."""
    settings = replace(parameters, lance_tokenizer="json" if is_json else "text")
    entries = written.metadata | _TOKENS
    entries |= {"params": settings.to_json(), "partitions": json.dumps(list(partitions))}
    deleted = pa.field("deleted_fragments", pa.binary(), nullable=False)
    with folder.file(name, deleted) as file:
        file.add_schema_metadata(entries)
        _write(file, [(deleted, pa.array([_NO_DELETIONS], pa.binary()))])


def write_documents(folder: NewFiles, number: int, documents: Documents) -> None:
    """Write the documents of a partition."""
    columns = [
        (pa.field("_rowid", pa.uint64(), nullable=False), pa.array(documents.row_ids)),
        (pa.field("_num_tokens", pa.uint32(), nullable=False), pa.array(documents.lengths)),
    ]
    if documents.items is not None:
        items = pa.field("_doc_index_0", pa.uint32(), nullable=False)
        columns.append((items, pa.array(documents.items)))
    with folder.file(f"part_{number}_docs.lance", *(field for field, _ in columns)) as file:
        file.add_schema_metadata({"total_tokens": str(documents.token_count)})
        _write(file, columns)


def write_tokens(folder: NewFiles, number: int, tokens: Mapping[bytes, int]) -> None:
    """Write the tokens of a partition, which ascend, and their numbers."""
    columns = [
        (
            pa.field("_token_fst_bytes", pa.large_binary(), nullable=False),
            write_fst(tokens.items()),
        ),
        (pa.field("_token_next_id", pa.uint32(), nullable=False), len(tokens)),
        (pa.field("_token_total_length", pa.uint64(), nullable=False), sum(map(len, tokens))),
    ]
    with folder.file(f"part_{number}_tokens.lance", *(field for field, _ in columns)) as file:
        _write(file, [(field, pa.array([value], field.type)) for field, value in columns])


@contextmanager
def posting_file(
    folder: NewFiles, number: int, written: TextFormat, documents: Documents
) -> Iterator[Callable[[TokenLists], None]]:
    """Give what writes posting lists, token after token."""
    fields = _fields(written)
    statistics = Statistics(len(documents.row_ids), documents.token_count, {})
    with folder.file(f"part_{number}_invert.lance", *fields) as file:
        file.add_schema_metadata(written.metadata)

        def write(lists: TokenLists) -> None:
            arrays = _encoded(lists, written, documents.lengths, statistics)
            file.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))

        yield write


def write_partition(
    folder: NewFiles,
    number: int,
    written: TextFormat,
    documents: Documents,
    tokens: Mapping[bytes, int],
    lists: Iterable[TokenLists],
) -> None:
    """Write the files of a partition whose tokens are known before its posting lists."""
    write_documents(folder, number, documents)
    write_tokens(folder, number, tokens)
    with posting_file(folder, number, written, documents) as write:
        for each in lists:
            write(each)


# --- posting lists --------------------------------------------------------------------------------


def _fields(written: TextFormat) -> list[pa.Field[Any]]:
    blobs = pa.list_(pa.large_binary())
    found = [
        pa.field("_posting", blobs, nullable=False),
        pa.field("_max_score", pa.float32(), nullable=False),
        pa.field("_length", pa.uint32(), nullable=False),
        pa.field("_impacts", blobs, nullable=False),
    ]
    if written.with_position and written.version == 1:
        found.append(pa.field("_position", pa.list_(blobs), nullable=False))
    elif written.with_position:
        found.append(pa.field("_compressed_position", pa.large_binary(), nullable=False))
        found.append(pa.field("_position_block_offset", pa.list_(pa.uint32()), nullable=False))
    return found


def _encoded(
    lists: TokenLists, written: TextFormat, all_lengths: Words, statistics: Statistics
) -> list[pa.Array[Any]]:
    ends, docs, frequencies = lists.ends, lists.docs, lists.frequencies
    size, is_varint = written.block_size, written.version > 1
    lengths = all_lengths[docs] if size == 128 else rounded(all_lengths)[docs]
    scores = _scores(statistics, ends, frequencies, lengths)
    counts = np.diff(ends)
    blocks, groups = -(-counts // size), -(-counts // (_GROUP * size))
    room = (8 * size + 10) * int((counts // size).sum()) + 4 * len(counts)
    room += 10 * int((counts % size).sum())
    found = [
        _blob_lists(
            blocks,
            room,
            lambda target, blobs: encode_postings(
                ends, docs, frequencies, scores, size, is_varint, target, blobs
            ),
        ),
        pa.array(_greatest(scores, ends)),
        pa.array(counts.astype(np.uint32)),
        _blob_lists(
            blocks + groups,
            16 * int((blocks + groups).sum()),
            lambda target, blobs: encode_impacts(
                ends, docs, frequencies, lengths, size, target, blobs
            ),
        ),
    ]
    if written.with_position and written.version == 1:
        found.append(_position_lists(lists))
    elif written.with_position:
        found += _streams(lists, blocks, size)
    return found


def _scores(statistics: Statistics, ends: Int64Array, frequencies: Words, lengths: Words) -> Floats:
    """Return how well each document fits each of its tokens, by the statistics of the partition."""
    documents, counts = np.float32(statistics.documents), np.diff(ends).astype(np.float32)
    half = np.float32(0.5)
    weights = np.log((documents - counts + half) / (counts + half) + 1)
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
    return pa.ListArray.from_arrays(_offsets(counts), _blobs(ends, target[:used]))


def _blobs(ends: Int64Array, data: Bytes) -> pa.Array[Any]:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )


def _offsets(counts: Int64Array) -> pa.Array[Any]:
    return pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32))


def _streams(lists: TokenLists, blocks: Int64Array, size: int) -> list[pa.Array[Any]]:
    target = np.empty(5 * len(lists.positions) + 128, np.uint8)
    stream_ends = np.zeros(len(lists.ends), np.int64)
    starts = np.empty(int(blocks.sum()), np.uint32)
    used = encode_positions(
        lists.ends, lists.frequencies, lists.positions, size, target, stream_ends, starts
    )
    offsets = pa.ListArray.from_arrays(_offsets(blocks), pa.array(starts))
    return [_blobs(stream_ends, target[:used]), offsets]


def _position_lists(lists: TokenLists) -> pa.Array[Any]:
    frequencies = lists.frequencies.astype(np.int64)
    blobs = 1 + -(-frequencies // _PACKED)
    ends = np.zeros(int(blobs.sum()) + 1, np.int64)
    target = np.empty(8 * len(blobs) + 5 * len(lists.positions) + 128, np.uint8)
    used = encode_position_lists(lists.frequencies, lists.positions, target, ends)
    inner = pa.ListArray.from_arrays(_offsets(blobs), _blobs(ends, target[:used]))
    return pa.ListArray.from_arrays(pa.array(lists.ends.astype(np.int32)), inner)


def _write(file: DataFileWriter, columns: list[tuple[pa.Field[Any], pa.Array[Any]]]) -> None:
    fields, arrays = zip(*columns, strict=True)
    file.write(pa.RecordBatch.from_arrays(list(arrays), schema=pa.schema(fields)))
