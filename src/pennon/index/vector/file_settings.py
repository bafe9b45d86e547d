"""The JSON settings in files of vector indices."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.index.files import IndexFile
from pennon.index.vector.metric import Metric, metric_named

_MOST_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Settings:
    """A JSON object of a file."""

    values: Mapping[str, Any]
    path: str

    def number(self, *keys: str, least: int = 0, default: int | None = None) -> int:
        """Return the whole number under the first of some keys that is there.  Raises FormatError."""
        found = next((self.values[key] for key in keys if key in self.values), default)
        if type(found) is not int or not least <= found < 1 << 32:
            message = f"{self.path}: {keys[0]} is {found!r}, and no number from {least} on"
            raise FormatError(message)
        return found

    def value(self, key: str) -> float:
        """Return a finite number.  Raises FormatError."""
        found = self.values.get(key)
        if not isinstance(found, int | float) or not math.isfinite(found):
            message = f"{self.path}: {key} is {found!r}, and no number"
            raise FormatError(message)
        return float(found)

    def bytes_of(self, key: str) -> bytes | None:
        """Return a list of bytes, None if it is not there or empty.  Raises FormatError."""
        found = self.values.get(key)
        if not found:
            return None
        if not isinstance(found, list):
            _refused(self.path, key)
        try:
            return bytes(found)
        except (TypeError, ValueError) as error:
            message = f"{self.path}: {key} is no list of bytes"
            raise FormatError(message) from error

    def below(self, key: str) -> Settings:
        """Return an object within.  Raises FormatError."""
        found = self.values.get(key)
        return settings(found, self.path, key)


def _refused(path: str, key: str) -> NoReturn:
    message = f"{path} says nothing of {key}, as a file of a vector index does"
    raise FormatError(message)


def text_of(file: IndexFile, key: str) -> str:
    """Return a text of the metadata.  Raises FormatError if it is not there."""
    found = file.data.schema_metadata.get(key)
    if found is None:
        _refused(file.source.path, key)
    try:
        return found.decode()
    except UnicodeDecodeError as error:
        message = f"{file.source.path}: {key} is no text"
        raise FormatError(message) from error


def json_of(file: IndexFile, key: str) -> Any:
    """Return what a text of the metadata says.  Raises FormatError."""
    return parsed(text_of(file, key), f"{file.source.path}: {key}")


def parsed(text: str, what: str) -> Any:
    """Return what a JSON text says.  Raises FormatError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{what} is not JSON: {text[:_MOST_SHOWN]!r}"
        raise FormatError(message) from error


def json_text(value: object) -> str:
    """Write a JSON text without spaces, as pylance does: its compaction compares such texts (F-720)."""
    return json.dumps(value, separators=(",", ":"))


def settings_of(file: IndexFile, key: str) -> Settings:
    """Return an object of the metadata.  Raises FormatError."""
    return settings(json_of(file, key), file.source.path, key)


def settings(value: object, path: str, key: str) -> Settings:
    """Return a JSON value as settings.  Raises FormatError if it is no object."""
    if not isinstance(value, dict):
        _refused(path, key)
    return Settings(value, path)


def metric_of(name: object, path: str) -> Metric:
    """Return a metric by one of its names.  Raises FormatError."""
    found = metric_named(name)
    if found is None:
        message = f"{path}: {name!r} is no metric that is known"
        raise FormatError(message)
    return found
