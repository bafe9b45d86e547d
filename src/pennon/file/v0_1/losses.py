"""What a file of version 0.1 does not hold of the rows that are written: counted, for a warning.

A page has no validity.  A NULL number becomes the bytes that lie under it (mostly 0), a NULL list an
empty one, a NULL struct one of such values, and NULL text and empty text are the same: NULL, or
empty where the field is never NULL.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pennon.encoding.v2_0.binary import arrow_offsets
from pennon.errors import DataLossWarning
from pennon.ranges import Int64Array
from pennon.schema.field import Field

_BYTES = frozenset(("string", "binary", "large_string", "large_binary", "json"))
NULLS = "NULL"
EMPTY = "empty"


@dataclass(slots=True)
class Losses:
    """How often each path had something that is lost, by what it was."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def look(self, of: Field, path: str, array: pa.Array, borders: Int64Array) -> None:
        """Count what the rows of a field lose."""
        if of.logical_type == "null":
            return
        start, end = int(borders[0]), int(borders[-1])
        if of.logical_type in _BYTES:
            self._add(path, EMPTY, _empty_text(array.slice(start, end - start), of))
            return
        if pa.types.is_fixed_size_list(array.type):
            self._look_into(path, array.slice(start, end - start))
        elif array.null_count:
            self._add(path, NULLS, array.slice(start, end - start).null_count)

    def _look_into(self, path: str, array: pa.Array) -> None:
        """Count NULL fixed-size lists and NULL items of the others."""
        self._add(path, NULLS, array.null_count)
        items = array.flatten()
        if pa.types.is_fixed_size_list(items.type):
            self._look_into(path, items)
        else:
            self._add(path, NULLS, items.null_count)

    def _add(self, path: str, what: str, count: int) -> None:
        if count:
            self.counts[path, what] = self.counts.get((path, what), 0) + count

    def warn(self) -> None:
        """Warn (DataLossWarning) if anything is lost."""
        message = self.message()
        if message is not None:
            warnings.warn(message, DataLossWarning, stacklevel=3)

    def message(self) -> str | None:
        """Return the text of the warning, None if nothing is lost."""
        if not self.counts:
            return None
        names = {
            NULLS: "NULLs, read back as zeros or empty lists",
            EMPTY: "empty values, read back as NULL",
        }
        each = (f"{path!r}: {count} {names[what]}" for (path, what), count in self.counts.items())
        return f"file version 0.1 does not hold all of these columns: {'; '.join(each)}"


def _empty_text(array: pa.Array, of: Field) -> int:
    """Return how many values of no bytes are read back as NULL, though they are not."""
    if not of.nullable:
        return 0
    lengths = np.diff(arrow_offsets(array))
    empty = int((lengths == 0).sum()) - int(array.null_count)
    return max(empty, 0)
