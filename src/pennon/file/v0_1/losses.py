"""What a file of version 0.1 does not hold of the rows that are written: counted, for a warning.

A page has no validity.  A NULL number becomes what lies under it (mostly 0), a NULL list an empty one
or what lies under it, a NULL struct one of such values.  NULL text and empty text are the same:
NULL, or empty where the field is never NULL.  A NULL in a dictionary column becomes its first value.

Only what a reader would see counts: nothing below a NULL struct or list does.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.errors import DataLossWarning
from pennon.file.container.arrays import child_array
from pennon.schema.field import Field

_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
NULLS = "NULLs"
EMPTY = "empty values"
_READ_BACK = {
    NULLS: "NULLs read back as zeros, empty lists, first values of dictionaries, or what lies under them",
    EMPTY: "empty values as NULL",
}


@dataclass(slots=True)
class Losses:
    """How often each path had something that is lost, by what it was."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def look(self, of: Field, path: str, array: pa.Array) -> None:
        """Count what the rows of a field lose."""
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        array = array.cast(_VIEWS[array.type]) if array.type in _VIEWS else array
        if of.logical_type in ("null", "json"):
            return
        if array.type in _BYTES:
            self._look_at_text(of, path, array)
        elif pa.types.is_dictionary(array.type):
            self._look_at_values(path, array)
        else:
            self._add(path, NULLS, array.null_count)
            self._look_below(of, path, array)

    def _look_below(self, of: Field, path: str, array: pa.Array) -> None:
        """Count what is lost in the rows of a struct or list that are not NULL."""
        if pa.types.is_fixed_size_list(array.type):  # the field says it all, it has no children
            items = array.flatten()
            self._add(path, NULLS, items.null_count)
            self._look_below(of, path, items)
        elif pa.types.is_struct(array.type):
            array = array.drop_null() if array.null_count else array
            for child in of.children:
                below = child_array(array, child.name, path)
                self.look(child, f"{path}.{child.name}", below)
        elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            (child,) = of.children
            self.look(child, f"{path}.{child.name}", array.flatten())

    def _look_at_text(self, of: Field, path: str, array: pa.Array) -> None:
        """Count empty text that becomes NULL, and NULLs that have bytes under them."""
        if not of.nullable:
            return
        is_empty = np.diff(arrow_offsets(array)) == 0
        if not array.null_count:
            self._add(path, EMPTY, int(is_empty.sum()))
            return
        is_valid = np.asarray(array.is_valid())
        self._add(path, EMPTY, int((is_empty & is_valid).sum()))
        self._add(path, NULLS, int((~is_empty & ~is_valid).sum()))

    def _look_at_values(self, path: str, array: pa.DictionaryArray) -> None:
        """Count NULL indices, and those of values that the file does not hold."""
        values = array.dictionary
        self._add(path, NULLS, array.indices.null_count)
        if values.type in _BYTES:
            lost, what = pc.equal(pc.binary_length(values), 0).fill_null(False), EMPTY  # noqa: FBT003
        else:
            lost, what = values.is_null(), NULLS
        if pc.any(lost).as_py():
            self._add(path, what, pc.sum(lost.take(array.indices)).as_py() or 0)

    def _add(self, path: str, what: str, count: int) -> None:
        if count:
            self.counts[path, what] = self.counts.get((path, what), 0) + count

    def add(self, other: Losses) -> None:
        """Count what others counted, in whatever thread."""
        with self._lock:
            for (path, what), count in other.counts.items():
                self._add(path, what, count)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Let what `warn` would tell in this thread be counted here, for one warning of all."""
        token = _gathering.set(self)
        try:
            yield
        finally:
            _gathering.reset(token)

    def warn(self) -> None:
        """Warn (DataLossWarning) if anything is lost, unless that is `gathered`."""
        whole = _gathering.get()
        if whole is not None:
            whole.add(self)
            return
        message = self.message()
        if message is not None:
            warnings.warn(message, DataLossWarning, stacklevel=3)

    def message(self) -> str | None:
        """Return the text of the warning, None if nothing is lost."""
        if not self.counts:
            return None
        each = (f"{path!r}: {count} {what}" for (path, what), count in self.counts.items())
        kinds = {what for _, what in self.counts}
        meaning = ", ".join(text for what, text in _READ_BACK.items() if what in kinds)
        return f"file version 0.1 does not hold all of these columns: {'; '.join(each)} ({meaning})"


_gathering: ContextVar[Losses | None] = ContextVar("gathering", default=None)
