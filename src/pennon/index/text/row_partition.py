"""The one partition of a full-text index of releases up to 0.25.2: a row for each posting.

===================  ==============================================================================
``tokens.lance``     ``_token``, ``_token_id``; metadata ``tokenizer``: the parameters as JSON
``docs.lance``       ``_rowid``, ``_num_tokens``, in any order
``invert.lance``     ``_rowid``, ``_frequency`` (a float), ``_position``; metadata ``offsets``: a JSON list of
                     the first row of each token
===================  ==============================================================================

Source: reference index-scalar, 13.6.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.partition import (
    WholeLists,
    document_numbers,
    read_documents,
    read_token_table,
)
from pennon.index.text.postings import Places, Postings, RowPostings, Scored, TokenLists


class RowPartition(WholeLists):
    """Documents and tokens as old releases write them."""

    items = None

    def __init__(self, files: IndexFiles) -> None:
        """Read documents and tokens.  Raises FormatError if they do not fit one another."""
        self._files = files
        self._invert = files.file("invert.lance")
        row_ids, lengths, _ = read_documents(files.file("docs.lance"))
        order = np.argsort(row_ids, kind="stable")
        self.row_ids: Numbers = row_ids[order]
        self.lengths: Words = lengths[order]
        self.token_count = int(lengths.sum(dtype=np.uint64))
        self._starts = _offsets(self._invert)
        self.tokens = read_token_table(files.file("tokens.lance"), len(self._starts) - 1)

    @property
    def has_positions(self) -> bool:
        """Return whether it says where in a document a token is."""
        return "_position" in self._invert.names

    @property
    def size_bytes(self) -> int:
        """See `Partition.size_bytes`."""
        arrays = self.row_ids.nbytes + self.lengths.nbytes + self._starts.nbytes
        tokens: int = self.tokens.size_bytes
        return int(arrays) + tokens

    @property
    def exact_lengths(self) -> Words:
        """See `StoredPartition.exact_lengths`."""
        return self.lengths

    @property
    def list_count(self) -> int:
        """See `StoredPartition.list_count`."""
        return len(self._starts) - 1

    def list_lengths(self) -> Words:
        """See `StoredPartition.list_lengths`."""
        return np.diff(self._starts).astype(np.uint32)

    def lists(self, low: int, high: int, *, places: bool) -> TokenLists:
        """See `StoredPartition.lists`."""
        found = [self._read(number, places) for number in range(low, high)]
        none = [np.empty(0, np.uint32)]
        counts = self._starts[low : high + 1]
        return TokenLists(
            counts - counts[0],
            np.concatenate([*none, *(each.docs for each in found)]),
            np.concatenate([*none, *(each.frequencies for each in found)]),
            np.concatenate([*none, *(each.found.values for each in found if each.found)]),
        )

    def scored(self, number: int, postings: Postings, average: float) -> Scored:  # noqa: ARG002 - of the protocol
        """See `Partition.scored`."""
        return Scored.of(postings, self.lengths, average)

    def _one(self, number: int, places: bool) -> Postings:
        def read() -> Postings:
            return self._read(number, places)

        key = "postings", self._files.folder, number, places
        return self._files.remember(key, read, lambda made: made.size_bytes)

    def _read(self, number: int, places: bool) -> RowPostings:
        wanted = ["_rowid", "_frequency"]
        wanted += ["_position"] if places and self.has_positions else []
        rows = Rows.between(int(self._starts[number]), int(self._starts[number + 1]))
        row_ids, frequencies, *lists = self._invert.read(wanted, rows)
        documents = document_numbers(whole_numbers(row_ids, "rows of a posting list"), self.row_ids)
        order = np.argsort(documents, kind="stable")
        docs = documents[order]
        counts = np.asarray(frequencies.to_numpy(zero_copy_only=False))[order]
        if (docs[1:] == docs[:-1]).any() or not (counts >= 1).all() or (counts > 1 << 31).any():
            message = f"{self._invert.source.path}: the posting list of token {number} is damaged"
            raise FormatError(message)
        found = _places(lists[0].take(pa.array(order))) if lists else None
        return RowPostings(docs, counts.astype(np.uint32), found)


def _places(lists: pa.Array) -> Places:
    values = np.asarray(lists.flatten().to_numpy(zero_copy_only=False))
    ends = np.zeros(len(lists) + 1, np.int64)
    lengths = np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    np.cumsum(lengths, out=ends[1:])
    return Places(ends, values.astype(np.uint32))


def _offsets(invert: IndexFile) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return where the rows of each token begin, and where the last ones end.  Raises FormatError."""
    text = invert.data.schema_metadata.get("offsets", b"")
    try:
        found = np.array([*json.loads(text), invert.rows], np.int64)
    except (ValueError, TypeError, OverflowError):
        found = np.empty(0, np.int64)
    if not len(found) or found.ndim != 1 or found[0] < 0 or (np.diff(found) < 0).any():
        message = f"{invert.source.path} does not say where the posting lists of tokens begin"
        raise FormatError(message)
    return found
