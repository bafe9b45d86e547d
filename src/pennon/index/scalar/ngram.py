"""NGRAM: for each group of three letters or digits the rows whose text has it.

``ngram_postings.lance`` has the columns ``tokens``, ascending, and ``posting_list``, a treemap of rows.  A text is
put into small letters without accents, and every three characters of it that are letters or digits of ASCII
are a token: ``(v(a) * 37 + v(b)) * 37 + v(c)``, where v of 0 to 9 is 1 to 10, and of a to z 11 to 36.

Its answer is the rows that have all tokens of the text that is looked for, so each is tested.  A text that
has no token rules nothing out.  Source: reference index-scalar, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import run_starts
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.expr.functions.string_search import texts_like, texts_matching
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import VALUE, Question, Values
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.folding import fold
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_set import NONE, UNKNOWN, Numbers, Selection, ascending
from pennon.index.row_sets_wire import parse_treemap, serialize_treemaps

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_VALUES: Final = {each: at for at, each in enumerate(_DIGITS, 1)}
_FILE: Final = "ngram_postings.lance"
_SCHEMA: Final = pa.schema(
    [
        pa.field("tokens", pa.uint32()),
        pa.field("posting_list", pa.binary(), False, {"lance-encoding:compression": "none"}),  # noqa: FBT003
    ]
)
_NULLS: Final = np.uint16(0)
"""The token of the rows without a text."""
_TOKENS_AT_ONCE: Final = 4096
_WINDOW: Final = 3
_BASE: Final = np.uint16(37)
_TABLE: Final = np.array(
    [_VALUES.get(chr(byte).lower(), 0) if byte < 128 else 0 for byte in range(256)], np.uint16
)
_NO_TOKENS: Final = np.empty(0, np.uint16)
_NO_ROWS: Final = np.empty(0, np.uint64)


class NGram:
    """An open NGRAM index."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the tokens.  ``column``: the type of the table's column."""
        self._file = files.file(_FILE)
        (tokens,) = self._file.read(["tokens"])
        self._tokens = whole_numbers(tokens.fill_null(0), "tokens")
        if (self._tokens[1:] <= self._tokens[:-1]).any():
            message = f"{self._file.source.path}: the tokens do not ascend"
            raise FormatError(message)
        self.column = Column((VALUE,), column)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return self._tokens.nbytes

    @property
    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex.statistics`."""
        return {"num_ngrams": len(self._tokens)}

    def warm(self) -> None:
        """See `ScalarIndex.warm`."""

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        wanted = question.once(_wanted_tokens)
        if not len(wanted):
            return UNKNOWN
        at = np.searchsorted(self._tokens, wanted)
        if (at == len(self._tokens)).any() or (self._tokens[at] != wanted).any():
            return Selection.exact(NONE)
        (lists,) = self._file.read(["posting_list"], Rows.at(at.astype(np.int64)))
        found = [parse_treemap(each) for each in lists.to_pylist()]
        rows = found[0]
        for each in found[1:]:
            rows = rows.intersection(each)
        return Selection.superset(rows)


def tokens_of(text: str) -> set[int]:
    """Return those tokens of a text that any text has which contains it."""
    values = [_VALUES.get(each.lower(), 0) if each.isascii() else 0 for each in text]
    windows = zip(values, values[1:], values[2:], strict=False)
    return {(a * 37 + b) * 37 + c for a, b, c in windows if a and b and c}


def _wanted_tokens(condition: Expression) -> Numbers:
    """Return those tokens, in order, of texts that fulfil a condition."""
    found: set[int] = set().union(*map(tokens_of, texts_of(condition)))
    return np.array(sorted(found), np.uint64)


def answers(condition: Expression) -> bool:
    """Return whether texts that fulfil a condition are known to have some token."""
    return any(map(tokens_of, texts_of(condition)))


def texts_of(condition: Expression) -> list[str]:
    """Return what texts contain that fulfil a condition; nothing, if that is not known."""
    if isinstance(condition, Call) and condition.function == "IS TRUE":
        return texts_of(condition.arguments[0])
    if not isinstance(condition, Call) or len(condition.arguments) != 2:
        return []
    column, given = condition.arguments
    if not (isinstance(column, Column) and isinstance(given, Literal) and given.value.is_valid):
        return []
    find, text = _TEXTS.get(condition.function), given.value.as_py()
    return find(text) if find is not None and isinstance(text, str) else []


def _itself(text: str) -> list[str]:
    return [text]


_TEXTS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "contains": _itself,
    "starts_with": _itself,
    "ends_with": _itself,
    "like": texts_like,
    "regexp_like": texts_matching,
}
"""By the name of a function: what texts contain of which it is true, by its second argument."""


# --- making ---------------------------------------------------------------------------------------


def write_ngram(parts: Iterable[Values], new: NewFiles) -> None:
    """Write the rows of each token of texts."""
    found = [_tokens_of_rows(each) for each in parts]
    tokens = np.concatenate([_NO_TOKENS, *(each for each, _ in found)])
    rows = np.concatenate([_NO_ROWS, *(each for _, each in found)])
    order = np.argsort(tokens, kind="stable")
    tokens, rows = tokens[order], rows[order]
    starts = np.flatnonzero(np.diff(tokens.astype(np.int32), prepend=-1))
    _write_lists([_Lists(tokens[starts], rows, np.append(starts, len(tokens)))], new)


def rewrite_ngram(old: Sequence[OldIndex], new: NewFiles) -> None:
    """Write one index of several, of which some rows were moved or are gone."""
    by_token = merge(*map(_lists_of, old), key=itemgetter(0))
    united = (
        (token, np.concatenate([rows for _, rows in same]))
        for token, same in groupby(by_token, key=itemgetter(0))
    )
    _write_lists(_collected((token, rows) for token, rows in united if len(rows)), new)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Some tokens, ascending; the rows of token i lie between borders i and i + 1."""

    tokens: npt.NDArray[np.unsignedinteger[Any]]
    rows: Numbers
    borders: Int64Array


def _lists_of(old: OldIndex) -> Iterator[tuple[int, Numbers]]:
    """Yield the tokens of an old index, ascending, each with its rows as they are now."""
    file = old.files.file(_FILE)
    for start in range(0, file.rows, _TOKENS_AT_ONCE):
        some = Rows.between(start, min(start + _TOKENS_AT_ONCE, file.rows))
        tokens, lists = file.read(_SCHEMA.names, some)
        numbers = whole_numbers(tokens.fill_null(0), "tokens").tolist()
        for token, data in zip(numbers, lists.to_pylist(), strict=True):
            yield token, old.moves.rows(parse_treemap(data)).numbers()


def _collected(lists: Iterator[tuple[int, Numbers]]) -> Iterator[_Lists]:
    while some := list(islice(lists, _TOKENS_AT_ONCE)):
        borders = np.cumsum([0, *(len(rows) for _, rows in some)])
        tokens = np.array([token for token, _ in some], np.uint32)
        yield _Lists(tokens, np.concatenate([rows for _, rows in some]), borders)


def _write_lists(groups: Iterable[_Lists], new: NewFiles) -> None:
    with new.file(_FILE, *_SCHEMA) as file:
        for each in groups:
            lists = serialize_treemaps(*ascending(each.rows, each.borders))
            arrays = [pa.array(each.tokens, pa.uint32()), lists.cast(pa.binary())]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))


def _tokens_of_rows(part: Values) -> tuple[npt.NDArray[np.uint16], Numbers]:
    """Return all tokens of texts, ascending, each with its row, and the rows without a text."""
    texts = _folded(part.values)
    _, first, second = texts.buffers()
    offsets = np.frombuffer(first, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, np.uint8) if second is None else np.frombuffer(second, np.uint8)
    digits = _TABLE[data[offsets[0] : offsets[-1]]]
    owners = np.repeat(np.arange(len(texts), dtype=np.uint32), np.diff(offsets))
    if len(digits) < _WINDOW:
        tokens, places = _NO_TOKENS, np.empty(0, np.uint32)
    else:
        a, b, c = digits[:-2], digits[1:-1], digits[2:]
        is_token = (a > 0) & (b > 0) & (c > 0) & (owners[:-2] == owners[2:])
        at = np.flatnonzero(is_token)
        tokens, places = (a[at] * _BASE + b[at]) * _BASE + c[at], owners[at]
    nulls = np.flatnonzero(part.values.is_null().to_numpy(zero_copy_only=False))
    tokens = np.concatenate([np.full(len(nulls), _NULLS), tokens])
    places = np.concatenate([nulls.astype(np.uint32), places])
    order = np.argsort(tokens, kind="stable")
    tokens, places = tokens[order], places[order]
    is_new = run_starts(tokens, places)
    return tokens[is_new], part.rows[places[is_new]]


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
