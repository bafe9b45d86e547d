"""From a text to its tokens, in the order of pylance 14.

::

    The Quick-Foxes  →  The Quick Foxes     base tokenizer: 0, 1, 2 are their positions
                        The Quick Foxes     without those of max_token_length bytes of UTF-8, or more
                        the quick foxes     lower_case
                        the quick fox       stem
                            quick fox       remove_stop_words
                            quick fox       ascii_folding: last, so that 'à' is not the stop word 'a'

What becomes of a word is remembered: a language has few.  Source: reference index-scalar, 14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from itertools import count
from threading import Lock
from typing import Final, TypeAlias

from pennon.core.word_characters import words
from pennon.errors import NoTokenizerError, UnsupportedError
from pennon.index.folding import fold
from pennon.index.text.arrays import Bytes
from pennon.index.text.characters import languages, lower, stop_words, token_bits, white_bits
from pennon.index.text.code_words import code_words, parts_of
from pennon.index.text.parameters import TextParameters

Placed: TypeAlias = tuple[str, int]
"""A token, and its position among the words of its text."""

_WHITE: Final = re.compile(r"[^\t\n\x0c\r ]+")
_KNOWN: Final = 1 << 16
"""So many words are remembered."""
_CLASSES: Final[Mapping[str, Callable[[], Bytes]]] = {
    "simple": token_bits,
    "whitespace": white_bits,
}
"""Tokenizers of which a word is nothing but characters of a kind."""
_LEFT_OUT: Final = ("icu", "jieba", "lindera")
_OVER_ITEMS: Final = frozenset({"raw", "ngram"})
BASES: Final = ("simple", "whitespace", "raw", "ngram", "code")
"""The tokenizers that need no model."""


class Tokenizer:
    """Makes tokens of texts.  Threads may share it."""

    def __init__(self, parameters: TextParameters) -> None:
        """Raise NoTokenizerError for a tokenizer that needs a model, UnsupportedError for a language that is not known."""
        self.parameters = parameters
        self._split = _base(parameters)
        self._token = _pipeline(parameters)
        self._known: dict[str, str] = {}

    @property
    def classes(self) -> Bytes | None:
        """Return the characters of words, a bit for each, if words are as many as follow one another."""
        found = _CLASSES.get(self.parameters.base_tokenizer)
        return None if found is None else found()

    @property
    def joins_items(self) -> bool:
        """Return whether a token may be of more than one item of a list."""
        return self.parameters.base_tokenizer in _OVER_ITEMS

    def token(self, word: str) -> str:
        """Return what becomes of a word; nothing if it is dropped."""
        return self._token(word)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text, in order."""
        return [token for token, _ in self.placed(text)]

    def placed(self, text: str) -> list[Placed]:
        """Return the tokens of a text and their positions; those of words that were dropped are left out."""
        found, _ = self._placed(text, 0)
        return found

    def placed_items(self, texts: Iterable[str]) -> list[Placed]:
        """Return the tokens of several texts that are one document: positions go on.

        Tokens of "raw" and "ngram" may reach over items: pylance joins these by spaces.  Source: ledger F-762.
        """
        if self.joins_items:
            return self.placed(_joined(texts))
        found: list[Placed] = []
        start = 0
        for text in texts:
            more, start = self._placed(text, start)
            found += more
        return found

    def _placed(self, text: str, start: int) -> tuple[list[Placed], int]:
        get, found = self._known.get, []
        position = start - 1
        for word, position in self._split(text, start):
            token = get(word)
            if token is None:
                token = self._remember(word)
            if token or not word:  # an empty text is a word of "raw"
                found.append((token, position))
        return found, position + 1

    def _remember(self, word: str) -> str:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        token = self._known[word] = self._token(word)
        return token


@lru_cache(maxsize=16)
def tokenizer_of(parameters: TextParameters) -> Tokenizer:
    """Return the tokenizer of some settings, made now or before."""
    return Tokenizer(parameters)


# --- words ----------------------------------------------------------------------------------------

_Split: TypeAlias = Callable[[str, int], Iterable[Placed]]


def _base(parameters: TextParameters) -> _Split:
    name = parameters.base_tokenizer
    if name == "simple":
        find = words().findall
        return lambda text, start: _numbered(find(text), start)
    if name == "whitespace":
        return lambda text, start: _numbered(_WHITE.findall(text), start)
    if name == "raw":
        return lambda text, start: _numbered([text], start)
    if name == "ngram":
        return lambda text, start: ((each, start) for each in _ngrams(text, parameters))
    if name == "code":
        return lambda text, start: _code(text, start, parameters)
    kind = "needs a model or tables of its own" if has_model(name) else "is not known"
    message = (
        f"the tokenizer {name!r} {kind}: make the index (anew, with replace=True) with base_tokenizer as one of "
        f"{', '.join(BASES)}; what has this one is for pylance to search"
    )
    raise NoTokenizerError(message)


def has_model(name: str) -> bool:
    """Return whether a tokenizer is one of those that need a model or tables of their own."""
    return name.startswith(_LEFT_OUT)


def _joined(texts: Iterable[str]) -> str:
    """Return texts with a space before each but those that only empty ones come before."""
    found = ""
    for text in texts:
        found += f" {text}" if found else text
    return found


def _numbered(found: Iterable[str], start: int) -> Iterable[Placed]:
    return zip(found, count(start), strict=False)


def _ngrams(text: str, parameters: TextParameters) -> Iterable[str]:
    low, high = parameters.min_ngram_length, parameters.max_ngram_length
    for start in range(1 if parameters.prefix_only else len(text)):
        for length in range(low, min(high, len(text) - start) + 1):
            yield text[start : start + length]


def _code(text: str, start: int, parameters: TextParameters) -> Iterable[Placed]:
    position = start
    for word, operator in code_words().findall(text):
        if operator:
            if parameters.index_operators:
                yield operator, position
                position += 1
            continue
        parts: list[str] = []
        if parameters.split_identifiers:
            parts = parts_of(word, by_digits=parameters.split_on_numerics)
        if len(parts) < 2:
            parts = [word]
        elif parameters.preserve_original:
            yield word, position
        for part in parts:
            yield part, position
            position += 1


# --- what becomes of a word -----------------------------------------------------------------------


def _pipeline(parameters: TextParameters) -> Callable[[str], str]:
    """Return the function that makes a token from a word, or drops it."""
    longest = parameters.max_token_length
    stem = _stemmer(parameters.language) if parameters.stem else None
    stopped: frozenset[str] = frozenset()
    if parameters.remove_stop_words:
        custom = parameters.custom_stop_words
        stopped = stop_words(parameters.language) if custom is None else frozenset(custom)

    def token(word: str) -> str:
        if longest is not None and len(word.encode("utf-8", "surrogatepass")) >= longest:
            return ""
        if parameters.lower_case:
            word = lower(word)
        if stem is not None:
            word = stem(word)
        if word in stopped:
            return ""
        return fold(word) if parameters.ascii_folding else word

    return token


def _stemmer(language: str) -> Callable[[str], str]:
    if language not in languages():
        message = (
            f"there is no stemmer of the language {language!r}; there are {', '.join(languages())}"
        )
        raise UnsupportedError(message)
    snowballstemmer = import_module("snowballstemmer")  # of use to few tables
    stem: Callable[[str], str] = snowballstemmer.stemmer(language.lower()).stemWord
    lock = Lock()  # a stemmer works on a word of its own

    def stemmed(word: str) -> str:
        with lock:
            return stem(word)

    return stemmed
