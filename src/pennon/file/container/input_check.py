"""Validation of Arrow data before it is written.

Arrow arrays are made by many programs, and nobody checks them on the way: offsets may fall, text may be
no UTF-8, an index may point past its dictionary.  Written unread, one such row makes a table that
nobody can read.  The cost is that of reading the offsets and the bytes once; text that is ASCII, as
most is, is told by its highest bits, without a look at each value.

Numbers cannot be wrong, and are not looked at.  Neither is what lies outside of a slice, nor a
dictionary that came with the batch before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from pennon.errors import ArgumentError, Breadcrumb

_ASCII_PROBE_BYTES: Final = 4096
"""So many bytes are looked at before all of them are."""

_INT32: Final = (pa.string(), pa.binary())


class InputCheck:
    """Checks batches of one stream; remembers the dictionaries that it has seen."""

    def __init__(self) -> None:
        self._dictionaries: dict[str, pa.Array[Any]] = {}

    def checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches that are valid; see `check`."""
        for batch in batches:
            self.check(batch)
            yield batch

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise ArgumentError, which names the column, unless the batch is valid Arrow data."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            path = field.name
            try:
                column.validate()
                self._check(column, path)
            except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
                raise _invalid(path, error) from error

    def _check(self, array: pa.Array[Any], path: str) -> None:
        """Look at what buffers say of one another, for one array and those in it."""
        kind = array.type
        if _is_plain(kind):
            return
        if isinstance(array, pa.ExtensionArray):
            self._check(array.storage, path)
        elif pat.is_string(kind) or pat.is_large_string(kind):
            _check_text(array)
        elif pat.is_binary(kind) or pat.is_large_binary(kind):
            _check_binary(array)
        elif isinstance(array, pa.StructArray):
            for number, field in enumerate(kind):
                self._check(array.field(number), f"{path}.{field.name}")
        elif isinstance(array, pa.FixedSizeListArray):
            width = kind.list_size
            self._check(array.values.slice(array.offset * width, len(array) * width), path)
        elif isinstance(array, (pa.ListArray, pa.LargeListArray)):
            first, end = _check_offsets(array, len(array.values))
            self._check(array.values.slice(first, end - first), path)
        elif isinstance(array, pa.DictionaryArray):
            self._check_dictionary(array, path)
        else:
            array.validate(full=True)

    def _check_dictionary(self, array: pa.DictionaryArray[Any, Any], path: str) -> None:
        values = array.dictionary
        known = self._dictionaries.get(path)
        if known is None or _addresses(known) != _addresses(values):
            self._check(values, path)
            # held, so that no other array takes its place in memory
            self._dictionaries[path] = values
        pa.DictionaryArray.from_arrays(array.indices, pa.nulls(len(values)))


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether every bit pattern is a value."""
    return bool(
        pat.is_primitive(kind)
        or pat.is_null(kind)
        or pat.is_decimal(kind)
        or pat.is_fixed_size_binary(kind)
    )


def _invalid(path: str, error: Exception) -> ArgumentError:
    message = (
        f"the data is not valid Arrow data, and would make a table that cannot be read: {error}; "
        "`validate(full=True)` of its array tells the same"
    )
    return ArgumentError(message, where=Breadcrumb(column=path))


def _addresses(array: pa.Array[Any]) -> tuple[object, ...]:
    buffers = (None if each is None else (each.address, each.size) for each in array.buffers())
    return (len(array), array.offset, *buffers)


def _check_offsets(array: pa.Array[Any], limit: int) -> tuple[int, int]:
    """Return where the values of a list or text begin and end; raises ArrowInvalid."""
    if not len(array):
        return 0, 0
    buffer = array.buffers()[1]
    width = np.int32 if isinstance(array, pa.ListArray) or array.type in _INT32 else np.int64
    begin = array.offset * np.dtype(width).itemsize
    offsets: npt.NDArray[np.int32 | np.int64]
    offsets = np.frombuffer(buffer, width, len(array) + 1, begin)
    first, end = int(offsets[0]), int(offsets[-1])
    if first < 0 or end > limit:
        message = f"offsets {first} to {end} lie outside of {limit} values"
        raise pa.ArrowInvalid(message)
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        row = int(falls.argmax())
        message = f"the offset of row {row} is {offsets[row]}, and the next one {offsets[row + 1]}"
        raise pa.ArrowInvalid(message)
    return first, end


def _check_binary(array: pa.Array[Any]) -> tuple[int, int]:
    """Return where the bytes of an array begin and end; raises ArrowInvalid."""
    data = array.buffers()[2]
    return _check_offsets(array, 0 if data is None else data.size)


def _check_text(array: pa.Array[Any]) -> None:
    """Check offsets and UTF-8; raises ArrowInvalid."""
    first, end = _check_binary(array)
    if first == end:
        return
    text = np.frombuffer(array.buffers()[2], np.int8)[first:end]
    if text[:_ASCII_PROBE_BYTES].min() < 0 or text.min() < 0:
        array.validate(full=True)
