"""NGRAM: for each group of three letters or digits the rows whose text has it.

``ngram_postings.lance`` has the columns ``tokens``, ascending, and ``posting_list``, a treemap of rows.  A text is
put into small letters without accents, and every three characters of it that are letters or digits of ASCII
are a token: ``(v(a) * 37 + v(b)) * 37 + v(c)``, where v of 0 to 9 is 1 to 10, and of a to z 11 to 36.

Its answer is the rows that have all tokens of the text that is looked for, so each is tested.  A text that
has no token rules nothing out.  `pennon.index.scalar.ngram_build` makes it.  Source: reference index-scalar, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.expr.functions.string_search import texts_like, texts_matching
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import VALUE, Question
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.kind import Kind, RowNames, is_text, lazy
from pennon.index.row_set import NONE, UNKNOWN, Numbers, RowSet, Selection
from pennon.index.row_sets_wire import parse_treemap

DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_VALUES: Final = {each: at for at, each in enumerate(DIGITS, 1)}
FILE: Final = "ngram_postings.lance"
SCHEMA: Final = pa.schema(
    [
        pa.field("tokens", pa.uint32()),
        pa.field("posting_list", pa.binary(), False, {"lance-encoding:compression": "none"}),  # noqa: FBT003
    ]
)
_TOKENS_AT_ONCE: Final = 4096
"""How many lists of rows are read at a time."""
_ROW_BYTES: Final = 256
"""About how much memory the tokens of a short text take while an index is made."""


class NGram:
    """An open NGRAM index."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the tokens.  ``column``: the type of the table's column."""
        self._file = files.file(FILE)
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


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows that an index names: those whose text has a token, or is NULL."""
    file = files.file(FILE)
    found = NONE
    for start in range(0, file.rows, _TOKENS_AT_ONCE):
        some = Rows.between(start, min(start + _TOKENS_AT_ONCE, file.rows))
        (lists,) = file.read(["posting_list"], some)
        found = found.union(*(parse_treemap(each) for each in lists.to_pylist()))
    return found


KIND: Final = Kind(
    name="NGram",
    details="NGramIndexDetails",
    user_names=("NGRAM",),
    names_rows_by=RowNames.ROW_IDS,
    reads=0,
    open=NGram,
    answers=lambda condition, _: answers(condition),
    rows_named=rows_named,
    takes=is_text,
    types="a string",
    build=lazy("scalar.ngram_build", "write_ngram"),
    merge=lazy("scalar.ngram_build", "rewrite_ngram"),
    row_bytes=_ROW_BYTES,
    may_be_json_target=True,
)
