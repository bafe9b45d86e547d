"""Hashes of columns that do not depend on how rows are cut into batches, nor on the bytes under NULLs.

`pennon.cli.verify` runs this file in another Python, too, which has pylance and maybe not Pennon: it imports only
pyarrow and the standard library.
"""

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import types as t


class ColumnHash:
    """The hash of a column whose arrays are added one after the other."""

    def __init__(self) -> None:
        self.rows = 0
        self._parts: dict[str, Any] = {}

    def add(self, array: Any) -> None:
        """Add the next rows."""
        self.rows += len(array)
        self._add("", array)

    def digest(self) -> str:
        """Return the hash of all rows so far, 32 digits."""
        whole = blake2b(str(self.rows).encode(), digest_size=16)
        for name in sorted(self._parts):
            whole.update(name.encode() + self._parts[name].digest())
        return whole.hexdigest()

    def _add(self, path: str, array: Any) -> None:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        kind = array.type
        self._update(f"{path}?", array.is_valid().cast(pa.uint8()))
        if t.is_struct(kind):
            for number, child in enumerate(array.flatten()):
                self._add(f"{path}.{kind.field(number).name}", child)
        elif not t.is_null(kind):
            self._add_values(path, array.drop_null())

    def _add_values(self, path: str, array: Any) -> None:
        """Add values without NULLs."""
        kind = array.type
        if t.is_list(kind) or t.is_large_list(kind):
            self._add_lengths(path, array)
            self._add(f"{path}[]", array.flatten())
        elif t.is_fixed_size_list(kind):
            self._add(f"{path}[]", array.flatten())
        elif _is_bytes(kind):
            self._add_bytes(path, array)
        elif t.is_boolean(kind):
            self._update(path, array.cast(pa.uint8()))
        elif _has_width(kind):
            self._update(path, array.view(getattr(pa, f"uint{kind.bit_width}")()))
        else:
            for value in array:
                self._hash(path).update(f"{value.as_py()!r};".encode())

    def _add_lengths(self, path: str, array: Any) -> None:
        lengths = [end - start for start, end in _bounds(array)]
        self._update(f"{path}#", pa.array(lengths, pa.int64()))

    def _add_bytes(self, path: str, array: Any) -> None:
        self._add_lengths(path, array)
        data, bounds = array.buffers()[2], _bounds(array)
        if data is not None and bounds:
            self._hash(path).update(memoryview(data)[bounds[0][0] : bounds[-1][1]])

    def _update(self, path: str, numbers: Any) -> None:
        self._hash(path).update(numbers.to_numpy(zero_copy_only=False).tobytes())

    def _hash(self, path: str) -> Any:
        return self._parts.setdefault(path, blake2b(digest_size=16))


def _is_bytes(kind: Any) -> bool:
    """Return whether values of a type are texts or bytes, each with offsets."""
    is_text = t.is_string(kind) or t.is_large_string(kind)
    return bool(is_text or t.is_binary(kind) or t.is_large_binary(kind))


def _has_width(kind: Any) -> bool:
    """Return whether values of a type are numbers of a fixed width; of others the text is hashed."""
    is_number = t.is_integer(kind) or t.is_floating(kind)
    return bool(is_number or (t.is_temporal(kind) and not t.is_interval(kind)))


def _bounds(array: Any) -> list[tuple[int, int]]:
    """Return where the values of each list, text or bytes of an array begin and end."""
    is_large = (
        t.is_large_list(array.type)
        or t.is_large_string(array.type)
        or t.is_large_binary(array.type)
    )
    width = 8 if is_large else 4
    offsets = array.buffers()[1]
    if offsets is None or not len(array):
        return []
    view = memoryview(offsets)[array.offset * width : (array.offset + len(array) + 1) * width]
    numbers = view.cast("q" if is_large else "i").tolist()
    return list(pairwise(numbers))


def hash_columns(open_batches: Any, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return rows and hash of each column, or the error that reading it gave."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        column = ColumnHash()
        try:
            for batch in open_batches(name):
                column.add(batch.column(0))
            found[name] = {"rows": column.rows, "hash": column.digest()}
        except Exception as error:  # noqa: BLE001 - a reader may raise anything
            found[name] = {
                "error": f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"
            }
    return found
