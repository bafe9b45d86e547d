"""From the values of a column to documents: texts, lists of texts, JSON.

::

    text              one document
    list of texts     one document, whose positions go on from item to item; or one for each item
    JSON              a token for each leaf, of strings one for each of their words:
                      {"b": {"c": "two words", "n": [1]}}  →  b.c,str,two  b.c,str,words  b.n,number,1

A query of JSON is a leaf, too: ``b.c,str,two words``.  NULL is no document.
Source: reference index-scalar, 14.5 and 14.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError
from pennon.index.text.parameters import TextParameters
from pennon.index.text.tokenizer import Placed, Tokenizer, tokenizer_of

_LEAF: Final = re.compile(r"(.*?),(str|number|bool|null),(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """The tokens of a row, or of one item of it."""

    row: int
    item: int
    tokens: list[Placed]


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes documents of the values of a column; ``by_item``: of each item of a list by itself."""

    parameters: TextParameters
    is_json: bool = False
    by_item: bool = False

    @property
    def tokenizer(self) -> Tokenizer:
        """Return what makes tokens of texts."""
        return tokenizer_of(self.parameters)

    def asked(self, query: str) -> list[Placed]:
        """Return the tokens of a query, each once at a position: the windows of a text all have one.

        Raises ArgumentError for a query of JSON that is no leaf.
        """
        return list(dict.fromkeys(self._asked(query)))

    def _asked(self, query: str) -> list[Placed]:
        if not self.is_json:
            return self.tokenizer.placed(query)
        found = _LEAF.fullmatch(query)
        if found is None:
            message = f"Invalid triple format: {query}: a query of JSON is path,type,value, of the types str, number, bool, null"
            raise ArgumentError(message)
        path, kind, value = found.groups()
        if kind != "str":
            return [(query, 0)]
        return [(f"{path},str,{token}", at) for token, at in self.tokenizer.placed(value)]

    def documents(self, values: pa.Array[Any]) -> Iterator[Document]:
        """Yield the documents of values that have a token; ``row`` is the place among the values."""
        read = self._reader(values.type)
        is_list = t.is_list(values.type) or t.is_large_list(values.type)
        nothing: list[str] | None = [] if is_list and self.tokenizer.joins_items else None
        for row, found in enumerate(_stored(values).to_pylist()):
            value = nothing if found is None else found  # to pylance, a list that is NULL is empty
            if value is None:
                continue
            for item, tokens in read(value):
                if tokens:
                    yield Document(row, item, tokens)

    def _reader(self, kind: pa.DataType) -> Callable[[Any], Iterator[tuple[int, list[Placed]]]]:
        tokenizer = self.tokenizer
        if self.is_json:
            return lambda value: iter([(0, _leaves(value, tokenizer))])
        if not (t.is_list(kind) or t.is_large_list(kind)):
            return lambda value: iter([(0, tokenizer.placed(value))])
        if not self.by_item:
            return lambda value: iter(
                [(0, tokenizer.placed_items(each for each in value if each is not None))]
            )
        return lambda value: (
            (item, tokenizer.placed(each)) for item, each in enumerate(value) if each is not None
        )


def is_json(kind: pa.DataType) -> bool:
    """Return whether a column is JSON, as scans show it."""
    return getattr(kind, "extension_name", "") in {"arrow.json", "lance.json"}


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column has texts that can be searched."""
    if is_json(kind):
        return True
    if t.is_list(kind) or t.is_large_list(kind):
        kind = kind.value_type
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _stored(values: pa.Array[Any]) -> pa.Array[Any]:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


class _Number(str):
    """A number of a JSON text, as it stands there."""

    __slots__ = ()


def _leaves(text: str, tokenizer: Tokenizer) -> list[Placed]:
    found: list[Placed] = []
    position = 0
    for path, value in _walk(_parsed(text)):
        if isinstance(value, str) and not isinstance(value, _Number):
            tokens = tokenizer.placed(value)
            found += [(f"{path},str,{token}", position + at) for token, at in tokens]
            position += len(tokens)
            continue
        found.append((f"{path},{_leaf(value)}", position))
        position += 1
    return found


def _parsed(text: str) -> Any:
    """Return a JSON value, with numbers as they stand there.  Raises FormatError for what is none."""
    try:
        return json.loads(text, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError) as error:
        message = f"a row of a JSON column is no JSON: {error}"
        raise FormatError(message) from None


def _leaf(value: Any) -> str:
    if value is None:
        return "null,null"
    if isinstance(value, bool):
        return f"bool,{str(value).lower()}"
    return f"number,{value}"


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a JSON value, behind their paths; of objects by their keys in order."""
    waiting = [("", value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, dict):
            below = (
                (f"{path}.{name}" if path else name, each[name])
                for name in sorted(each, reverse=True)
            )
            waiting.extend(below)
        elif isinstance(each, list):
            waiting.extend((path, item) for item in reversed(each))
        else:
            yield path, each
