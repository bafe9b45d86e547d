"""A partition of a full-text index: documents, tokens, and the posting lists of these.

===============================  ================================================================
``part_<p>_docs.lance``          ``_rowid``, ``_num_tokens``: document i is row i; ``_doc_index_0`` of items
``part_<p>_tokens.lance``        ``_token_fst_bytes``, or a table of ``_token`` and ``_token_id``
``part_<p>_invert.lance``        row t is the posting list of token t
===============================  ================================================================

Documents and tokens are read when it is opened, posting lists when a query names their tokens: those that are
not remembered in one round.  Source: reference index-scalar, 13.3 to 13.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.kernels.text.posting_lists import decode_lists
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.parameters import BLOCK_SIZES
from pennon.index.text.postings import (
    NO_MEMBERS,
    Blobs,
    BlockPostings,
    Members,
    Places,
    PositionLists,
    PositionStreams,
    Postings,
    Scored,
    TokenLists,
)
from pennon.index.text.token_set import FstTokens, TableTokens, TokenSet

_TAILS: Final = {b"fixed32_v1": False, b"varint_delta_v1": True}
_POSITIONS: Final = ("_position", "_compressed_position", "_position_block_offset")


class Partition(Protocol):
    """Documents and the tokens they have."""

    @property
    def row_ids(self) -> Numbers:
        """Return the address or id of each document's row."""

    @property
    def lengths(self) -> Words:
        """Return how many tokens each document has."""

    @property
    def items(self) -> Words | None:
        """Return the place of each document in its row's list; None if documents are rows."""

    @property
    def tokens(self) -> TokenSet:
        """Return the tokens."""

    @property
    def token_count(self) -> int:
        """Return how many tokens all documents have together."""

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""

    def postings(self, numbers: Sequence[int], *, places: bool) -> list[Postings]:
        """Return the posting lists of tokens, with positions if ``places``."""

    def scored(self, number: int, postings: Postings, average: float) -> Scored:
        """Return what a token contributes to documents of so many tokens on the average."""

    def members(self, number: int, docs: Words) -> Members:
        """Return which documents have a token, which are those of its posting list."""

    def placed(self, number: int, postings: Postings) -> Places | None:
        """Return where documents have a token; None if that is not stored."""


class StoredPartition(Partition, Protocol):
    """A partition in files; the files stay open for reading."""

    @property
    def exact_lengths(self) -> Words:
        """Return how many tokens each document has, which is not always what it is scored by."""

    @property
    def list_count(self) -> int:
        """Return how many posting lists there are."""

    def list_lengths(self) -> Words:
        """Return how many documents each posting list has."""

    def lists(self, low: int, high: int, *, places: bool) -> TokenLists:
        """Return the posting lists of tokens ``low`` to ``high``, with positions if ``places``."""


class WholeLists(ABC):
    """The common part of partitions that read posting lists whole."""

    @abstractmethod
    def _one(self, number: int, places: bool) -> Postings:
        """Return the postings of a token."""

    def postings(self, numbers: Sequence[int], *, places: bool) -> list[Postings]:
        """See `Partition.postings`."""
        return [self._one(number, places) for number in numbers]

    def members(self, number: int, docs: Words) -> Members:  # noqa: ARG002 - of the protocol
        """See `Partition.members`: to find them out each time would cost more than it saves."""
        return NO_MEMBERS

    def placed(self, number: int, postings: Postings) -> Places | None:  # noqa: ARG002 - of the protocol
        """See `Partition.placed`."""
        return postings.places()


class BlockPartition:
    """A partition as releases from 0.30 on write it."""

    def __init__(self, files: IndexFiles, prefix: str) -> None:
        """Read documents and tokens.  Raises FormatError if they do not fit one another."""
        self._files, self._prefix = files, prefix
        self.invert = files.file(f"{prefix}invert.lance")
        docs = files.file(f"{prefix}docs.lance")
        self.row_ids, self.lengths, self.items = read_documents(docs)
        self.token_file = files.file(f"{prefix}tokens.lance")
        self.tokens = _read_tokens(self.token_file, self.invert.rows)
        self._size, self._is_varint = _coding(self.invert)
        self.token_count = int(self.lengths.sum(dtype=np.uint64))
        self.exact_lengths = self.lengths
        if self._size == 256:
            self.lengths = rounded(self.lengths)

    @property
    def size_bytes(self) -> int:
        """See `Partition.size_bytes`."""
        items = 0 if self.items is None else self.items.nbytes
        return self.row_ids.nbytes + self.lengths.nbytes + items + self.tokens.size_bytes

    @property
    def list_count(self) -> int:
        """See `StoredPartition.list_count`."""
        return self.invert.rows

    def list_lengths(self) -> Words:
        """See `StoredPartition.list_lengths`."""
        (found,) = self.invert.read(["_length"])
        return whole_numbers(found, "lengths of posting lists").astype(np.uint32)

    def lists(self, low: int, high: int, *, places: bool) -> TokenLists:
        """See `StoredPartition.lists`."""
        columns = self._columns(Rows.between(low, high), places=places)
        counts = whole_numbers(columns["_length"], "lengths of posting lists").astype(np.int64)
        if int(counts.max(initial=0)) > len(self.row_ids):
            message = f"{self.invert.source.path}: a posting list has more documents than there are"
            raise FormatError(message)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        docs, frequencies = np.empty(ends[-1], np.uint32), np.empty(ends[-1], np.uint32)
        blobs = columns["_posting"].flatten()
        held, blocks = Blobs.of(blobs), _list_ends(columns["_posting"])
        limit = len(self.row_ids)
        decode_lists(
            held.data,
            held.ends,
            blocks,
            counts,
            self._size,
            self._is_varint,
            limit,
            docs,
            frequencies,
        )
        positions = np.empty(0, np.uint32)
        if places:
            positions = self._positions(columns, counts, np.diff(blocks), frequencies)
        return TokenLists(ends, docs, frequencies, positions)

    def _positions(
        self,
        columns: dict[str, pa.Array[Any]],
        counts: Int64Array,
        blocks: Int64Array,
        frequencies: Words,
    ) -> Words:
        """Return the positions of all documents of posting lists."""
        if "_position" in columns:
            documents = columns["_position"].flatten()
            lists = PositionLists(Blobs.of(documents.flatten()), _list_ends(documents))
            return lists.decode(counts, frequencies)
        if "_compressed_position" not in columns or "_position_block_offset" not in columns:
            message = f"{self.invert.source.path} has no positions"
            raise FormatError(message)
        streams = Blobs.of(columns["_compressed_position"])
        starts = whole_numbers(columns["_position_block_offset"].flatten(), "places of positions")
        if len(starts) != int(blocks.sum()):
            message = f"{self.invert.source.path}: {len(starts)} streams of positions are not those of the blocks"
            raise FormatError(message)
        places = starts.astype(np.int64) + np.repeat(streams.ends[:-1], blocks)
        held = Blobs(streams.data, np.append(places, streams.ends[-1]))
        # the last block of each list has what is left of it
        sizes = np.full(len(places), self._size, np.int64)
        filled = blocks > 0
        sizes[np.cumsum(blocks)[filled] - 1] = (counts - (blocks - 1) * self._size)[filled]
        return PositionStreams(held).decode(sizes, frequencies)

    def postings(self, numbers: Sequence[int], *, places: bool) -> list[Postings]:
        """See `Partition.postings`."""
        found: dict[int, Postings] = {}
        missing = []
        for number in numbers:
            known = self._files.known(self._key(number, places))
            if known is None:
                missing.append(number)
            else:
                found[number] = known
        if missing:
            read = self._read(sorted(set(missing)), places=places)
            for number, made in read.items():
                found[number] = self._remember(number, places, lambda made=made: made)  # type: ignore[misc]
        return [found[number] for number in numbers]

    def scored(self, number: int, postings: Postings, average: float) -> Scored:
        """See `Partition.scored`."""
        key = "scored", self._files.folder, self._prefix, number, average

        def make() -> Scored:
            return Scored.of(postings, self.lengths, average)

        return self._files.remember(key, make, lambda made: made.size_bytes)

    def members(self, number: int, docs: Words) -> Members:
        """See `Partition.members`."""
        key = "members", self._files.folder, self._prefix, number

        def make() -> Members:
            return Members.of(docs, len(self.lengths))

        return self._files.remember(key, make, lambda made: made.size_bytes)

    def placed(self, number: int, postings: Postings) -> Places | None:
        """See `Partition.placed`."""
        key = "placed", self._files.folder, self._prefix, number
        return self._files.remember(key, postings.places, lambda it: it.size_bytes if it else 0)

    def _remember(self, number: int, places: bool, make: Callable[[], Postings]) -> Postings:
        key = self._key(number, places)
        return self._files.remember(key, make, lambda made: made.size_bytes)

    def _key(self, number: int, places: bool) -> Hashable:
        return "postings", self._files.folder, self._prefix, number, places

    def _read(self, numbers: list[int], *, places: bool) -> dict[int, Postings]:
        if numbers[-1] >= self.invert.rows:
            message = (
                f"{self.invert.source.path} has {self.invert.rows} posting lists, but a token's "
                f"number is {numbers[-1]}"
            )
            raise FormatError(message)
        rows = Rows.at(np.array(numbers, np.int64))
        columns = self._columns(rows, places=places)
        lengths = whole_numbers(columns["_length"], "lengths of posting lists")
        made: dict[int, Postings] = {}
        for at, number in enumerate(numbers):
            postings = BlockPostings(
                Blobs.of(_items(columns["_posting"], at)),
                int(lengths[at]),
                self._size,
                self._is_varint,
                len(self.row_ids),
                _positions(columns, at),
            )
            postings.check()
            made[number] = postings
        return made

    def _columns(self, rows: Rows, *, places: bool) -> dict[str, pa.Array[Any]]:
        """Return the columns of posting lists, and of positions if ``places``."""
        names = ["_posting", "_length"]
        names += [name for name in _POSITIONS if places and name in self.invert.names]
        return dict(zip(names, self.invert.read(names, rows), strict=True))


def read_documents(docs: IndexFile) -> tuple[Numbers, Words, Words | None]:
    """Return rows, numbers of tokens, and places in lists of the documents."""
    names = ["_rowid", "_num_tokens"]
    names += [name for name in docs.names if name.startswith("_doc_index_")][:1]
    row_ids, lengths, *items = (
        whole_numbers(each, "documents of an index") for each in docs.read(names)
    )
    if len(row_ids) > 1 << 32:
        message = f"{docs.source.path} has {len(row_ids)} documents"
        raise FormatError(message)
    return row_ids, lengths.astype(np.uint32), items[0].astype(np.uint32) if items else None


def read_token_table(tokens: IndexFile, count: int) -> TableTokens:
    """Return the tokens of a table; there are ``count`` posting lists.  Raises FormatError."""
    texts, numbers = tokens.read(["_token", "_token_id"])
    known = whole_numbers(numbers, "numbers of tokens")
    if texts.null_count or (len(known) and int(known.max()) >= count):
        message = f"{tokens.source.path}: {len(known)} tokens do not fit {count} posting lists"
        raise FormatError(message)
    return TableTokens(texts.cast(pa.large_string()), known)


def _read_tokens(tokens: IndexFile, count: int) -> TokenSet:
    if "_token_fst_bytes" not in tokens.names:
        return read_token_table(tokens, count)
    (data,) = tokens.read(["_token_fst_bytes"])
    if len(data) != 1 or not data[0].is_valid:
        message = f"{tokens.source.path} has {len(data)} rows, and not one with the tokens"
        raise FormatError(message)
    return FstTokens(data[0].as_py())


def _coding(invert: IndexFile) -> tuple[int, bool]:
    """Return how many documents a block has, and whether the last one is varints."""
    size = invert.number("posting_block_size", 128)
    tail = invert.data.schema_metadata.get("posting_tail_codec", b"fixed32_v1")
    if size not in BLOCK_SIZES or tail not in _TAILS:
        message = f"{invert.source.path}: blocks of {size} documents and {tail!r} are not known"
        raise FormatError(message)
    return size, _TAILS[tail]


def _list_ends(lists: pa.Array[Any]) -> Int64Array:
    """Return where each of some lists ends among the items of all.  Raises FormatError for what is no list."""
    if not pa.types.is_list(lists.type) or lists.null_count:
        message = f"a column of posting lists is {lists.type} with {lists.null_count} NULLs"
        raise FormatError(message)
    ends = np.asarray(lists.offsets.to_numpy()).astype(np.int64)
    found: Int64Array = ends - ends[0]
    return found


def _items(column: pa.Array[Any], at: int) -> pa.Array[Any]:
    """Return the items of one list.  Raises FormatError if it is NULL, or of something else."""
    found = column[at].values if pa.types.is_list(column.type) else None
    if found is None:
        message = f"a column of posting lists is {column.type}, or NULL"
        raise FormatError(message)
    return found


def _positions(
    columns: dict[str, pa.Array[Any]], at: int
) -> PositionLists | PositionStreams | None:
    if "_position" in columns:
        lists = _items(columns["_position"], at)
        if not pa.types.is_list(lists.type):
            message = f"positions of a posting list are {lists.type}"
            raise FormatError(message)
        ends = np.asarray(lists.offsets.to_numpy()).astype(np.int64)
        return PositionLists(Blobs.of(lists.values), ends)
    if "_compressed_position" not in columns or "_position_block_offset" not in columns:
        return None
    stream = columns["_compressed_position"][at].as_py()
    starts = _items(columns["_position_block_offset"], at)
    ends = np.append(whole_numbers(starts, "places of positions"), len(stream or b""))
    return PositionStreams(Blobs(np.frombuffer(stream or b"", np.uint8), ends.astype(np.int64)))


def rounded(lengths: Words) -> Words:
    """Return lengths by which documents of blocks of 256 are scored: their four highest bits."""
    bits = np.frexp(lengths.astype(np.float64))[1]
    spare = np.maximum(bits - 4, 0).astype(np.uint32)
    found: Words = (lengths >> spare) << spare
    return found


def document_numbers(row_ids: Numbers, documents: Numbers) -> npt.NDArray[np.uint32]:
    """Return the place of each of some rows among those of all documents, which ascend."""
    places = np.searchsorted(documents, row_ids)
    if len(places) and (
        places.max() >= len(documents)
        or (documents[np.minimum(places, len(documents) - 1)] != row_ids).any()
    ):
        message = "a posting list names rows outside the documents of its partition"
        raise FormatError(message)
    return places.astype(np.uint32)
