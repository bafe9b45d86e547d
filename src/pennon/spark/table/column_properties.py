"""Properties of a new table that say how a column is stored; lance-spark has the same.

==================================  ===========================================================================
``vec.arrow.fixed-size-list.size``  an array column holds vectors of so many numbers
``vec.arrow.float16``               ... of two bytes each
``text.arrow.large_var_char``       texts have offsets of 64 bits
``data.lance.encoding`` = blob      a binary column holds blobs
``c.lance.compression``             zstd, lz4, fsst or none; also ``compression-level``, ``structural-encoding``,
                                    ``rle-threshold`` and ``bss``
==================================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from pennon.errors import ArgumentError, InvalidSchemaError
from pennon.schema.check import BLOB

_SIZE: Final = "arrow.fixed-size-list.size"
_HALF: Final = "arrow.float16"
_LARGE: Final = "arrow.large_var_char"
_ENCODING: Final = "lance.encoding"
_HINTS: Final = ("compression", "compression-level", "structural-encoding", "rle-threshold", "bss")
_KEYS: Final = (_SIZE, _HALF, _LARGE, _ENCODING, *(f"lance.{hint}" for hint in _HINTS))


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """The properties of new columns, which say how they are stored, and ``others``, which are the table's own."""

    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str], names: Sequence[str]) -> ColumnShape:
        """Tell the properties of columns from those of the table."""
        columns: dict[str, dict[str, str]] = {}
        others: dict[str, str] = {}
        for key, value in properties.items():
            found = [(name, own) for own in _KEYS for name in names if key == f"{name}.{own}"]
            if found:
                name, own = found[0]
                columns.setdefault(name, {})[own] = value
            else:
                others[key] = value
        return cls(columns, others)

    @property
    def is_only_sizes(self) -> bool:
        """Return whether a DataFrame's writer can give the columns these types: vectors, and nothing else."""
        return all(set(own) <= {_SIZE} for own in self.columns.values())

    @property
    def dimensions(self) -> dict[str, int]:
        """Return the lengths of vectors by column.  Raises ArgumentError for one that is no number."""
        sizes = {name: own[_SIZE] for name, own in self.columns.items() if _SIZE in own}
        for name, size in sizes.items():
            if not size.isdecimal() or int(size) == 0:
                message = f"property {name}.{_SIZE} is a positive whole number, not {size!r}"
                raise ArgumentError(message)
        return {name: int(size) for name, size in sizes.items()}

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema with the columns as they are stored.

        Raises InvalidSchemaError for a property that a column of its type cannot have.
        """
        return pa.schema([self._field(each) for each in schema], schema.metadata)

    def _field(self, given: pa.Field) -> pa.Field:
        own = self.columns.get(given.name, {})
        kind, metadata = given.type, dict(given.metadata or {})
        if _is_true(own, _HALF):
            if not pat.is_fixed_size_list(kind) or not pat.is_float32(kind.value_type):
                raise _wrong(given, _HALF, f"needs {_SIZE}, and an array of float")
            kind = pa.list_(kind.value_field.with_type(pa.float16()), kind.list_size)
        if _is_true(own, _LARGE):
            if not pat.is_string(kind):
                raise _wrong(given, _LARGE, "is for columns of strings")
            kind = pa.large_string()
        if own.get(_ENCODING, "").lower() == "blob":
            if not pat.is_binary(kind):
                raise _wrong(given, _ENCODING, "is for columns of type binary")
            kind = pa.large_binary()
            metadata[BLOB.encode()] = b"true"
        elif _ENCODING in own:
            raise _wrong(given, _ENCODING, f"is blob, not {own[_ENCODING]!r}")
        for hint in _HINTS:
            if f"lance.{hint}" in own:
                metadata[f"lance-encoding:{hint}".encode()] = own[f"lance.{hint}"].encode()
        return given.with_type(kind).with_metadata(metadata or None)


def _is_true(own: Mapping[str, str], key: str) -> bool:
    return own.get(key, "false").lower() == "true"


def _wrong(given: pa.Field, key: str, reason: str) -> InvalidSchemaError:
    return InvalidSchemaError(f"property {given.name}.{key} {reason}; the column is {given.type}")
