"""The settings of a full-text index: as JSON in its files, as a message in the manifest.

A setting that is missing is one of an old release: then it was on where it is on by default today.
Source: reference index-scalar, 13.1 and 13.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, FormatError

METADATA: Final = "metadata.lance"
"""The file with the settings of an index."""
BLOCK_SIZES: Final = (128, 256)
"""So many documents may a block of a posting list have."""


@dataclass(frozen=True, slots=True)
class TextParameters:
    """Settings of tokenizers and of the stored parts; pylance's names and defaults."""

    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    block_size: int = 128
    split_identifiers: bool = False
    split_on_numerics: bool = False
    preserve_original: bool = False
    index_operators: bool = False
    lance_tokenizer: str | None = None

    @classmethod
    def parse(cls, text: bytes) -> TextParameters:
        """Return what the JSON of an index's files says.  Raises FormatError."""
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            message = (
                f"the parameters of a full-text index must be a JSON object, and are {text[:80]!r}"
            )
            raise FormatError(message)
        return cls(**{name: _checked(found, name) for name in SETTINGS if name in found})

    @classmethod
    def of(cls, chosen: Mapping[str, Any]) -> TextParameters:
        """Return settings that a user chose, by their names.  Raises TypeError, ArgumentError for other values."""
        return cls(**{name: _chosen(name, value) for name, value in chosen.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by their names, as pylance shows them."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """Return the JSON of an index's files."""
        names = ["lance_tokenizer", *(name for name in SETTINGS if name != "lance_tokenizer")]
        values = {name: getattr(self, name) for name in names}
        values["lance_tokenizer"] = self.lance_tokenizer or "text"
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


WITHOUT_INDEX: Final = TextParameters(with_position=True, stem=False, remove_stop_words=False)
"""How texts of a column without an index are read: every word counts, small letters like large ones."""

SETTINGS: Final[Mapping[str, type]] = {
    "base_tokenizer": str,
    "language": str,
    "with_position": bool,
    "max_token_length": int,
    "lower_case": bool,
    "stem": bool,
    "remove_stop_words": bool,
    "custom_stop_words": list,
    "ascii_folding": bool,
    "min_ngram_length": int,
    "max_ngram_length": int,
    "prefix_only": bool,
    "block_size": int,
    "split_identifiers": bool,
    "split_on_numerics": bool,
    "preserve_original": bool,
    "index_operators": bool,
    "lance_tokenizer": str,
}
"""The settings, by their names, and of what type each is."""
_OPTIONAL: Final = frozenset({"max_token_length", "custom_stop_words", "lance_tokenizer"})


def _checked(found: Mapping[str, Any], name: str) -> Any:
    value = found[name]
    if value is None and name in _OPTIONAL:
        return None
    is_right = type(value) is SETTINGS[name]
    if is_right and name == "custom_stop_words":
        is_right = all(isinstance(word, str) for word in value)
        value = tuple(value)
    if is_right and type(value) is int:
        is_right = 0 <= value < 1 << 32
    if not is_right:
        message = f"the parameters of a full-text index say {name} = {str(value)[:80]!r}"
        raise FormatError(message)
    return value


def _chosen(name: str, value: Any) -> Any:
    if value is None and name in _OPTIONAL:
        return None
    kind = SETTINGS[name]
    if kind is list and isinstance(value, (list, tuple)) and all(type(w) is str for w in value):
        return tuple(value)
    if type(value) is not kind or kind is list:
        message = f"the parameter {name} of a full-text index is a {kind.__name__}, got {value!r}"
        raise TypeError(message)
    if isinstance(value, int) and not 0 <= value < 1 << 32:
        message = f"the parameter {name} of a full-text index is a number from 0 on, got {value}"
        raise ArgumentError(message)
    return value
