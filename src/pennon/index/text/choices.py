"""The settings of a new full-text index, by pylance's names: tokenizer, documents, format of the files.

======================================  ==================================================================
``analyzer="code"``                     the tokenizer ``code``, without stems and stop words
``base_tokenizer="ngram"``              without stems and stop words, unless they are asked for
``document_granularity``                an item of a list is a document, and not the row
``format_version``                      1 is read by releases from 0.38 on, 2 by those from 7 on
``memory_limit`` (MiB)                  so large a partition becomes; ``num_workers`` is not needed here
======================================  ==================================================================

Source: reference index-scalar, 13.2, 14.1 and 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.fast_dataclass import dataclass
from pennon.core.near_names import did_you_mean
from pennon.core.units import MIB
from pennon.errors import ArgumentError, UnknownOptionError
from pennon.index.text.characters import languages
from pennon.index.text.new_partition import TextFormat
from pennon.index.text.parameters import BLOCK_SIZES, SETTINGS, TextParameters
from pennon.index.text.queries import DocumentGranularity
from pennon.index.text.tokenizer import BASES, has_model, tokenizer_of

PARTITION_BYTES: Final = 512 * MIB
"""So much memory a partition takes, about, while it is written."""
_CODE: Final = {
    "stem": False,
    "remove_stop_words": False,
    "split_on_numerics": True,
    "preserve_original": True,
}
_FLAGS: Final = frozenset(
    {"split_identifiers", "split_on_numerics", "preserve_original", "index_operators"}
)
_WINDOWS: Final = {"stem": False, "remove_stop_words": False}
_OTHERS: Final = frozenset(
    {"analyzer", "document_granularity", "format_version", "memory_limit", "num_workers"}
)
KNOWN: Final = (frozenset(SETTINGS) - {"lance_tokenizer"}) | _OTHERS
"""The names of all that can be chosen."""


@dataclass(frozen=True, slots=True)
class TextChoices:
    """The settings of an index that is made; ``by_item``: of each item of a list by itself."""

    parameters: TextParameters
    by_item: bool = False
    format_version: int = 2
    partition_bytes: int = PARTITION_BYTES

    @classmethod
    def of(cls, chosen: Mapping[str, Any]) -> TextChoices:
        """Return the settings of what was chosen.

        Raises ArgumentError or TypeError for what is none, UnsupportedError for tokenizers that Pennon lacks.
        """
        unknown = sorted(chosen.keys() - KNOWN)
        if unknown:
            message = (
                f"unknown FTS index parameter {unknown[0]!r}; there are {', '.join(sorted(KNOWN))}"
                f"{did_you_mean(unknown[0], [*KNOWN, 'replace', 'train'])}"
            )
            raise UnknownOptionError(message)
        analyzer = chosen.get("analyzer", "text")
        if analyzer not in {"text", "code"}:
            message = f"unknown analyzer {analyzer!r}, expected 'text' or 'code'"
            raise ArgumentError(message)
        base = "code" if analyzer == "code" else chosen.get("base_tokenizer", "simple")
        if base != "code" and _FLAGS & {name for name in chosen if chosen[name] is True}:
            message = "code analyzer flags require analyzer='code'"
            raise ArgumentError(message)
        usual = _CODE if base == "code" else _WINDOWS if base == "ngram" else {}
        given = {name: value for name, value in chosen.items() if name not in _OTHERS}
        parameters = TextParameters.of({**usual, **given, "base_tokenizer": base})
        _check(parameters)
        by_item = _by_item(chosen.get("document_granularity"))
        usual_version = 3 if by_item or base == "code" or parameters.block_size == 256 else 2
        version = _format_version(chosen.get("format_version"), usual_version)
        if parameters.block_size == 256 and version != 3:
            message = f"FTS format_version={version} is incompatible with block_size=256; use format_version=3"
            raise ArgumentError(message)
        return cls(parameters, by_item, version, _partition_bytes(chosen.get("memory_limit")))

    @property
    def format(self) -> TextFormat:
        """Return how posting lists are written."""
        parameters = self.parameters
        return TextFormat(self.format_version, parameters.with_position, parameters.block_size)

    def check_column(self, column: str, kind: pa.DataType) -> None:
        """Raise ArgumentError if documents cannot be items of the values of a column."""
        if self.by_item and not (t.is_list(kind) or t.is_large_list(kind)):
            message = (
                f"FTS field path '{column}' has no List layer and cannot use ListElement document "
                f"granularity: it is {kind}"
            )
            raise ArgumentError(message)

    def to_chosen(self) -> dict[str, Any]:
        """Return what has to be chosen to get these settings."""
        settings = {name: getattr(self.parameters, name) for name in SETTINGS}
        del settings["lance_tokenizer"]
        if self.parameters.base_tokenizer != "code":
            settings = {name: value for name, value in settings.items() if name not in _FLAGS}
        return settings | {
            "document_granularity": DocumentGranularity.LIST_ELEMENT
            if self.by_item
            else DocumentGranularity.ROW,
            "format_version": self.format_version,
        }


def _check(parameters: TextParameters) -> None:
    if parameters.block_size not in BLOCK_SIZES:
        message = (
            f"FTS inverted index block_size must be one of 128 or 256, got {parameters.block_size}"
        )
        raise ArgumentError(message)
    base = parameters.base_tokenizer
    if base not in BASES and not has_model(base):
        message = f"unknown base tokenizer {base}; there are {', '.join(BASES)}"
        raise ArgumentError(message)
    if parameters.language not in languages():
        message = (
            f"can't set tokenizer language to {parameters.language}: expected one of "
            f"{', '.join(languages())}"
        )
        raise ArgumentError(message)
    if base == "ngram":
        low, high = parameters.min_ngram_length, parameters.max_ngram_length
        if not 0 < low <= high:
            message = f"min_gram must be greater than 0 and not greater than max_gram, got {low} and {high}"
            raise ArgumentError(message)
    tokenizer_of(parameters)


def _by_item(granularity: Any) -> bool:
    if granularity is not None and not isinstance(granularity, DocumentGranularity):
        message = (
            f"document_granularity must be a pennon.query.DocumentGranularity, got {granularity!r}"
        )
        raise TypeError(message)
    return granularity is DocumentGranularity.LIST_ELEMENT


def _format_version(given: Any, usual: int) -> int:
    if given is None:
        return usual
    text = str(given).lower().removeprefix("v")
    if text not in {"1", "2", "3"}:
        message = f"unsupported FTS format version {given}, expected 1, 2, or 3"
        raise ArgumentError(message)
    return int(text)


def _partition_bytes(limit: Any) -> int:
    if limit is None:
        return PARTITION_BYTES
    if isinstance(limit, bool) or not isinstance(limit, int):
        message = f"memory_limit is a number of MiB, got {limit!r}"
        raise TypeError(message)
    if limit < 1:
        message = f"memory_limit is at least 1 MiB, got {limit}"
        raise ArgumentError(message)
    return limit * MIB
