"""Making a full-text index: texts become partitions, one at a time, so that memory is bounded.

Words are split and numbered a batch at a time, and what becomes of a word is found out once.  Values of which
tokens are not just words (JSON, windows, names of programs, whole texts) are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.index.base import Values
from pennon.index.kernels.text.posting_lists import sort_places
from pennon.index.kernels.text.text_words import WordTable
from pennon.index.new_files import NewFiles
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Bytes, Words
from pennon.index.text.choices import TextChoices
from pennon.index.text.documents import Reader, is_json
from pennon.index.text.new_partition import (
    Documents,
    part_metadata,
    write_metadata,
    write_partition,
)
from pennon.index.text.parameters import METADATA
from pennon.index.text.postings import TokenLists
from pennon.index.text.tokenizer import Tokenizer

_PLACE_BYTES: Final = 28
"""What a place of a token takes while posting lists are made of it."""
_TOKEN_BYTES: Final = 400
"""What a token takes: in tables of words and of tokens, and while these are written."""
_AT_ONCE: Final = 1 << 21
"""About so many places of tokens are written at once."""
_SHARE: Final = 64
"""Of the bytes of a partition, values of one of so many are taken at once."""
_NONE: Final = np.empty(0, np.uint32)


def write_inverted(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write the index of values: of texts, lists of texts, or JSON."""
    choices = TextChoices.of(new.parameters)
    builder = _Builder(new, choices, new.first_partition or 0, is_json=is_json(kind))
    for part in parts:
        builder.add(part)
    builder.finish(in_parts=new.first_partition is not None)


class _Builder:
    """Makes a full-text index of values that come in batches."""

    def __init__(
        self, folder: NewFiles, choices: TextChoices, first: int, *, is_json: bool
    ) -> None:
        self._folder, self._choices = folder, choices
        self._reader = Reader(choices.parameters, is_json, choices.by_item)
        self._classes = None if is_json else self._reader.tokenizer.classes
        self._held = _Partition(self._reader.tokenizer)
        self._numbers = range(first, first)

    def add(self, values: Values) -> None:
        """Take the values of rows."""
        parts = -(-_SHARE * values.values.nbytes // self._choices.partition_bytes) or 1
        rows = -(-len(values.rows) // parts) or 1
        for start in range(0, len(values.rows), rows):
            some = slice(start, start + rows)
            self._add(Values(values.values[some], values.rows[some]))

    def _add(self, values: Values) -> None:
        if self._classes is None:
            self._held.add(_read(self._reader, self._held.numbers, values))
        else:
            texts = _Texts.of(values, by_item=self._choices.by_item)
            self._held.add(self._held.split(texts, self._classes))
        if self._held.size_bytes > self._choices.partition_bytes:
            self._write()

    def finish(self, *, in_parts: bool) -> None:
        """Write what is held, and which partitions there are: in one file, or of each partition in its own."""
        if self._held.places:
            self._write()
        choices, numbers = self._choices, self._numbers
        files = {METADATA: numbers}
        if in_parts:
            files = {part_metadata(each): range(each, each + 1) for each in numbers}
            files = files or {part_metadata(numbers.start): numbers}
        for name, partitions in files.items():
            write_metadata(
                self._folder,
                choices.format,
                choices.parameters,
                partitions,
                is_json=self._reader.is_json,
                name=name,
            )

    def _write(self) -> None:
        held, self._held = self._held, _Partition(self._reader.tokenizer)
        written = self._choices.format
        documents, lists = held.made(written.with_position, self._choices.by_item)
        number = self._numbers.stop
        write_partition(self._folder, number, written, documents, held.tokens(), lists)
        self._numbers = range(self._numbers.start, number + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Tokens of documents by their numbers, and their positions, one document after the other."""

    tokens: Words
    positions: Words
    rows: Numbers
    lengths: Words
    items: Words


@dataclass(frozen=True, slots=True, eq=False)
class _Texts:
    """Texts, those of one document after one another; ``firsts`` are the first of each, and the end."""

    texts: pa.Array[Any]
    firsts: Int64Array
    rows: Numbers
    items: Words

    @classmethod
    def of(cls, values: Values, *, by_item: bool) -> _Texts:
        """Return the texts of values, or of their items, that are not NULL."""
        texts, kind = values.values, values.values.type
        if not (t.is_list(kind) or t.is_large_list(kind)):
            valid = _valid(texts)
            items = np.zeros(len(valid), np.uint32)
            return cls(_large(texts), np.arange(len(valid) + 1), values.rows[valid], items)
        parents = np.asarray(pc.list_parent_indices(texts).to_numpy()).astype(np.int64)
        texts = texts.flatten()
        valid = _valid(texts)
        places = np.arange(len(parents)) - np.searchsorted(parents, parents)
        parents, items = parents[valid], places[valid].astype(np.uint32)
        firsts = np.arange(len(parents))
        if not by_item:
            firsts = np.flatnonzero(np.diff(parents, prepend=-1))
        rows = values.rows[parents[firsts]]
        return cls(_large(texts), np.append(firsts, len(parents)), rows, items[firsts])


class _Partition:
    """The documents of a partition that is not written yet."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.numbers: dict[str, int] = {}
        self.places = 0
        self._tokenizer = tokenizer
        self._words, self._token_of = WordTable(), np.empty(0, np.int64)
        self._batches: list[_Batch] = []
        self._documents = 0

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes while it is written."""
        documents = 24 * self._documents + self._words.size_bytes
        return _PLACE_BYTES * self.places + _TOKEN_BYTES * len(self.numbers) + documents

    def split(self, texts: _Texts, classes: Bytes) -> _Batch:
        """Return the tokens of texts."""
        _, ends, data = texts.texts.buffers()
        count = len(texts.texts)
        borders = np.zeros(1, np.int64)
        if count:
            borders = np.frombuffer(ends, np.int64, count + 1, 8 * texts.texts.offset)
        words = np.empty((int(borders[-1] - borders[0]) + 1) // 2 + count, np.uint32)
        counts = np.empty(count, np.uint32)
        letters = np.frombuffer(data or b"", np.uint8)
        words = words[: self._words.split(letters, borders, classes, words, counts)]
        self._find_tokens()
        numbers = self._token_of[words]
        is_kept = numbers >= 0
        ends_of_texts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        borders = ends_of_texts[texts.firsts]
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])
        lengths = np.diff(sums[borders])
        positions = np.arange(len(words)) - np.repeat(borders[:-1], np.diff(borders))
        filled = lengths > 0
        return _Batch(
            numbers[is_kept].astype(np.uint32),
            positions[is_kept].astype(np.uint32),
            texts.rows[filled],
            lengths[filled].astype(np.uint32),
            texts.items[filled],
        )

    def _find_tokens(self) -> None:
        """Find out what becomes of words that are new."""
        known, numbers, token_of = len(self._token_of), self.numbers, self._tokenizer.token
        found = []
        for number in range(known, len(self._words)):
            token = token_of(self._words.word(number).decode("utf-8", "surrogatepass"))
            found.append(numbers.setdefault(token, len(numbers)) if token else -1)
        if found:
            self._token_of = np.append(self._token_of, np.array(found, np.int64))

    def add(self, batch: _Batch) -> None:
        """Take documents."""
        self._batches.append(batch)
        self.places += len(batch.tokens)
        self._documents += len(batch.rows)

    def tokens(self) -> Mapping[bytes, int]:
        """Return the tokens by their bytes, and their numbers."""
        keys = sorted(
            (key.encode("utf-8", "surrogatepass"), at) for key, at in self.numbers.items()
        )
        return dict(keys)

    def made(self, with_position: bool, by_item: bool) -> tuple[Documents, Iterator[TokenLists]]:
        """Return documents and posting lists; nothing is held any more."""
        batches, self._batches = self._batches, []
        rows: Numbers = np.concatenate([each.rows for each in batches])
        lengths: Words = np.concatenate([each.lengths for each in batches])
        items: Words = np.concatenate([each.items for each in batches])
        tokens: Words = np.concatenate([each.tokens for each in batches])
        positions = np.concatenate([each.positions for each in batches]) if with_position else _NONE
        documents = Documents(rows, lengths, items if by_item else None)
        return documents, _lists(tokens, lengths, positions, len(self.numbers))


def _lists(
    tokens: Words, lengths: Words, positions: Words, token_count: int
) -> Iterator[TokenLists]:
    """Yield posting lists, some tokens at a time."""
    ends = np.zeros(token_count + 1, np.int64)
    docs, frequencies = np.empty_like(tokens), np.empty_like(tokens)
    placed = np.empty_like(positions)
    place_ends = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.bincount(tokens, minlength=token_count))]
    )
    sort_places(tokens, lengths, positions, ends, docs, frequencies, placed)
    cuts = np.flatnonzero(np.diff(place_ends[1:] // _AT_ONCE)) + 1
    for low, high in pairwise([0, *cuts.tolist(), token_count]):
        some = slice(int(ends[low]), int(ends[high]))
        places = placed[place_ends[low] : place_ends[high]] if len(positions) else _NONE
        yield TokenLists(ends[low : high + 1] - ends[low], docs[some], frequencies[some], places)


def _read(reader: Reader, numbers: dict[str, int], values: Values) -> _Batch:
    """Return the tokens of values, read one by one."""
    tokens, positions, rows, lengths, items = [], [], [], [], []
    for document in reader.documents(values.values):
        for token, position in document.tokens:
            tokens.append(numbers.setdefault(token, len(numbers)))
            positions.append(position)
        rows.append(document.row)
        lengths.append(len(document.tokens))
        items.append(document.item)
    return _Batch(
        np.array(tokens, np.uint32),
        np.array(positions, np.uint32),
        values.rows[np.array(rows, np.int64)],
        np.array(lengths, np.uint32),
        np.array(items, np.uint32),
    )


def _valid(texts: pa.Array[Any]) -> Int64Array:
    """Return the places of texts that are not NULL."""
    if not texts.null_count:
        return np.arange(len(texts))
    return np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))


def _large(texts: pa.Array[Any]) -> pa.Array[Any]:
    """Return texts without NULLs, as bytes behind one another."""
    return texts.drop_null().cast(pa.large_string())
