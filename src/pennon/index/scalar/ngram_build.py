"""Making an NGRAM index: the tokens of texts are sorted in runs, and these merged into lists of rows.

::

    texts -> runs of at most 65,536 rows      the tokens of a run ascend, and the 16 bit places of each one's rows
          -> lists of all runs, some tokens at a time -> ngram_postings.lance

A row of a token takes 2 bytes in a run, so a text of 60 letters takes about 100.  Runs that reach `HELD_PAIRS` are
written to a file of their own beside the index, and all such files are merged in the end as segments are: a few
tokens at a time.  Source: reference index-scalar, 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import run_starts
from pennon.core.units import MIB
from pennon.encoding.rows import Rows
from pennon.file.open import open_container_file
from pennon.index.base import Values
from pennon.index.files import IndexFile, whole_numbers
from pennon.index.folding import fold
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import ALL, Numbers, ascending
from pennon.index.row_sets_wire import parse_treemap, serialize_treemaps
from pennon.index.scalar.ngram import DIGITS, FILE, SCHEMA

HELD_PAIRS: Final = 1 << 26
"""Pairs of a token and a row that are held in runs: 128 MB."""
RUN_PAIRS: Final = 1 << 21
"""Pairs that are sorted at once."""
RUN_ROWS: Final = 1 << 16
"""Rows whose places have 16 bits."""
TEXT_BYTES: Final = 1 << 20
"""Bytes of text whose tokens are worked out at once."""
LIST_ROWS: Final = 1 << 19
"""Rows of lists that are written at once, unless one list has more."""
_READ_BYTES: Final = MIB
"""About so many bytes of lists are read of a file at once."""
READ_TOKENS: Final = 32
"""Tokens whose lists are read at once at least, and at most 128 times as many."""
_BASE: Final = len(DIGITS) + 1
_TOKENS: Final = _BASE**3
_NULLS: Final = 0
"""The token of the rows without a text."""
_WINDOW: Final = 3
_PLACE_BITS: Final = np.uint32(16)
_TABLE: Final = np.array(
    [DIGITS.find(chr(byte).lower()) + 1 if byte < 128 else 0 for byte in range(256)], np.uint16
)
"""The value of each letter and digit by its byte."""
_NO_KEYS: Final = np.empty(0, np.uint32)

Keys: TypeAlias = npt.NDArray[np.uint32]
"""A token in the upper half, the place of a row in its run in the lower half."""


def write_ngram(parts: Iterable[Values], _kind: pa.DataType, new: NewFiles) -> None:
    """Write the rows of each token of texts."""
    runs, files = _Runs(), list[str]()
    for part in parts:
        runs.add(part)
        if runs.pairs >= HELD_PAIRS:
            files.append(f"runs_{len(files)}.lance")
            _write_lists(files[-1], runs.lists(), new)
            runs = _Runs()
    if not files:
        _write_lists(FILE, runs.lists(), new)
        return
    files.append(f"runs_{len(files)}.lance")
    _write_lists(files[-1], runs.lists(), new)
    del runs
    keeps = RowMap.keeping(ALL)
    opened = (new.store.open(f"{new.folder}/{name}") for name in files)
    sources = [_lists_in(IndexFile(open_container_file(each), each), keeps) for each in opened]
    _write_lists(FILE, _united(sources), new)
    for name in files:
        new.remove(name)


def rewrite_ngram(old: Sequence[OldIndex], _kind: pa.DataType, new: NewFiles) -> None:
    """Merge NGRAM segments into one, and remap or drop rows."""
    sources = [_lists_in(each.files.file(FILE), each.moves) for each in old]
    _write_lists(FILE, _united(sources), new)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Some tokens, ascending; the rows of token i lie between borders i and i + 1."""

    tokens: npt.NDArray[np.unsignedinteger[Any]]
    rows: Numbers
    borders: Int64Array


def _write_lists(name: str, groups: Iterable[_Lists], new: NewFiles) -> None:
    with new.file(name, *SCHEMA) as file:
        for each in groups:
            lists = serialize_treemaps(*ascending(each.rows, each.borders))
            arrays = [pa.array(each.tokens, pa.uint32()), lists.cast(pa.binary())]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Some rows by their tokens, which ascend: the places in ``rows`` of token i lie between borders i and i + 1."""

    rows: Numbers
    tokens: npt.NDArray[np.uint16]
    places: npt.NDArray[np.uint16]
    borders: Int64Array

    @classmethod
    def of(cls, rows: Numbers, keys: Keys) -> _Run:
        """Sort the keys of some rows, each once."""
        keys.sort()
        keys = keys[run_starts(keys)]
        tokens = (keys >> _PLACE_BITS).astype(np.uint16)
        starts = np.flatnonzero(run_starts(tokens))
        return cls(rows, tokens[starts], keys.astype(np.uint16), np.append(starts, len(keys)))

    def between(self, first: int, end: int) -> tuple[npt.NDArray[np.uint16], Numbers]:
        """Return the tokens in a range, one for each of their rows, and these."""
        low, high = np.searchsorted(self.tokens, np.array([first, end], np.uint16))
        borders = self.borders[low : high + 1]
        tokens = np.repeat(self.tokens[low:high], np.diff(borders))
        return tokens, self.rows[self.places[borders[0] : borders[-1]]]


class _Runs:
    """Runs of rows, and the rows of the next one."""

    def __init__(self) -> None:
        self.pairs = 0
        self._runs: list[_Run] = []
        self._rows: list[Numbers] = []
        self._keys: list[Keys] = []
        self._held = self._waiting = 0

    def add(self, part: Values) -> None:
        """Take texts and the numbers of their rows."""
        texts, start = _folded(part.values), 0
        offsets = _offsets_of(texts)
        is_null = np.asarray(part.values.is_null().to_numpy(zero_copy_only=False))
        while start < len(texts):
            end = int(np.searchsorted(offsets, offsets[start] + RUN_PAIRS, side="right")) - 1
            end = min(max(end, start + 1), start + RUN_ROWS - self._held)
            nulls = np.flatnonzero(is_null[start:end]) + self._held
            self._keep(nulls.astype(np.uint32))
            for keys in _keys_of(texts.slice(start, end - start), self._held):
                self._keep(keys)
            self._rows.append(part.rows[start:end])
            self._held += end - start
            if self._held == RUN_ROWS or self._waiting >= RUN_PAIRS:
                self._end_run()
            start = end

    def lists(self) -> Iterator[_Lists]:
        """Yield the rows of all tokens, some tokens at a time."""
        self._end_run()
        counts = np.zeros(_TOKENS + 1, np.int64)
        for run in self._runs:
            counts[run.tokens] += np.diff(run.borders)
        pairs = np.cumsum(counts)
        first = 0
        while first < _TOKENS:
            before = int(pairs[first - 1]) if first else 0
            end = max(int(np.searchsorted(pairs, before + LIST_ROWS, side="right")), first + 1)
            found = [run.between(first, min(end, _TOKENS)) for run in self._runs]
            first = end
            tokens = np.concatenate([np.empty(0, np.uint16), *(each for each, _ in found)])
            if not len(tokens):
                continue
            rows = np.concatenate([each for _, each in found])
            order = np.argsort(tokens, kind="stable")
            tokens = tokens[order]
            starts = np.flatnonzero(run_starts(tokens))
            yield _Lists(tokens[starts], rows[order], np.append(starts, len(tokens)))

    def _keep(self, keys: Keys) -> None:
        self._keys.append(keys)
        self._waiting += len(keys)
        if self._waiting > 2 * RUN_PAIRS:  # a text of many MB has most tokens many times
            self._keys = [np.unique(np.concatenate(self._keys))]
            self._waiting = len(self._keys[0])

    def _end_run(self) -> None:
        keys = np.concatenate([_NO_KEYS, *self._keys])
        self._keys = []
        if len(keys):
            run = _Run.of(np.concatenate(self._rows), keys)
            self._runs.append(run)
            self.pairs += len(run.places)
        self._rows, self._held, self._waiting = [], 0, 0


def _keys_of(texts: pa.Array[Any], first_place: int) -> Iterator[Keys]:
    """Yield the keys of texts in ASCII, whose places begin at one; a key may come more than once."""
    offsets, second = _offsets_of(texts), texts.buffers()[2]
    data = np.empty(0, np.uint8) if second is None else np.frombuffer(second, np.uint8)
    for start in range(int(offsets[0]), int(offsets[-1]), TEXT_BYTES):
        end = min(start + TEXT_BYTES + _WINDOW - 1, int(offsets[-1]))
        if end - start < _WINDOW:
            continue
        low = int(np.searchsorted(offsets, start, side="right")) - 1
        high = int(np.searchsorted(offsets, end))
        lengths: Int64Array = np.diff(offsets[low : high + 1].clip(start, end))
        owners = np.repeat(np.arange(low, high, dtype=np.uint32), lengths)
        digits = _TABLE[data[start:end]]
        a, b, c = digits[:-2], digits[1:-1], digits[2:]
        at = np.flatnonzero((a > 0) & (b > 0) & (c > 0) & (owners[:-2] == owners[2:]))
        tokens = (a[at] * np.uint16(_BASE) + b[at]) * np.uint16(_BASE) + c[at]
        yield tokens.astype(np.uint32) << _PLACE_BITS | (owners[at] + np.uint32(first_place))


def _offsets_of(texts: pa.Array[Any]) -> Int64Array:
    first = texts.buffers()[1]
    if first is None:
        return np.zeros(1, np.int64)
    return np.frombuffer(first, np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _folded(texts: pa.Array[Any]) -> pa.Array[Any]:
    """Return texts in ASCII: letters without accents, and a zero for what is none; NULLs are empty."""
    texts = texts.cast(pa.large_string()).fill_null("")
    others = pc.invert(pc.string_is_ascii(texts))
    if not others.true_count:
        return texts
    plain = [_plain(each) for each in texts.filter(others).to_pylist()]
    return pc.replace_with_mask(texts, others, pa.array(plain, pa.large_string()))


def _plain(text: str) -> str:
    return "".join(_plain_letters(each) for each in text.lower())


@cache
def _plain_letters(letter: str) -> str:
    if letter.isascii():
        return letter
    found = fold(letter)
    return found if found.isascii() else "\0"


# --- merging --------------------------------------------------------------------------------------


def _lists_in(file: IndexFile, moves: RowMap) -> Iterator[tuple[int, Numbers]]:
    """Yield the tokens of a file, ascending, each with its rows as they are now."""
    each = max(file.source.size_bytes // max(file.rows, 1), 1)
    some = min(max(_READ_BYTES // each, READ_TOKENS), 128 * READ_TOKENS)
    for start in range(0, file.rows, some):
        tokens, lists = file.read(SCHEMA.names, Rows.between(start, min(start + some, file.rows)))
        numbers = whole_numbers(tokens.fill_null(_NULLS), "tokens").tolist()
        for token, data in zip(numbers, lists, strict=True):
            yield token, moves.rows(parse_treemap(data.as_py())).numbers()


def _united(sources: Sequence[Iterator[tuple[int, Numbers]]]) -> Iterator[_Lists]:
    """Yield the lists of several files as one, some tokens at a time."""
    tokens, lists, held = list[int](), list[Numbers](), 0
    for token, same in groupby(merge(*sources, key=itemgetter(0)), key=itemgetter(0)):
        found = [rows for _, rows in same]
        rows = found[0] if len(found) == 1 else np.concatenate(found)
        if not len(rows):
            continue
        tokens.append(token)
        lists.append(rows)
        held += len(rows)
        if held >= LIST_ROWS:
            yield _as_lists(tokens, lists)
            tokens, lists, held = [], [], 0
    if tokens:
        yield _as_lists(tokens, lists)


def _as_lists(tokens: Sequence[int], lists: Sequence[Numbers]) -> _Lists:
    borders = np.cumsum([0, *map(len, lists)])
    rows = lists[0] if len(lists) == 1 else np.concatenate(lists)
    return _Lists(np.array(tokens, np.uint32), rows, borders)
