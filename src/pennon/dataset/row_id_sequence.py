"""The stable row ids of a fragment, as users give them to the fragments of a `LanceOperation.Update`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.compat.arguments import row_ids as parse_row_ids
from pennon.dataset.metadata import RowIdMeta
from pennon.errors import ArgumentError, UnsupportedError
from pennon.table.row_ids.decode_wire import count_row_ids, decode_row_ids
from pennon.table.row_ids.encode_wire import encode_row_ids


class RowIdSequence:
    """The ids of a fragment's rows, in the order of the rows; none stands twice."""

    def __init__(self, row_ids: Iterable[int] | pa.Array[Any]) -> None:
        """Take integers, or an Arrow array of them.

        Raises TypeError for anything else, OverflowError below 0, ArgumentError for an id that
        stands twice.
        """
        self._ids = parse_row_ids(row_ids)
        if len(np.unique(self._ids)) != len(self._ids):
            message = f"some of the {len(self._ids)} row ids are given twice; give each once"
            raise ArgumentError(message)

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """Return the ids that a fragment's metadata holds.

        Raises UnsupportedError if they lie in a file, FormatError if they are damaged.
        """
        data = metadata.sequence
        if not isinstance(data, bytes):
            message = f"the row ids lie in {data.path}, not in the metadata"
            raise UnsupportedError(message)
        return RowIdSequence(decode_row_ids(data, count_row_ids(data)))

    def to_inline_metadata(self) -> RowIdMeta:
        """Return the ids as a fragment's metadata has them."""
        return RowIdMeta(encode_row_ids(self._ids))

    def to_pyarrow(self) -> pa.Array[Any]:
        """Return the ids as uint64."""
        return pa.array(self._ids, pa.uint64())

    def __iter__(self) -> Iterator[int]:
        """Yield the ids."""
        return iter(self._ids.tolist())

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        """Compare id by id, in their order."""
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        return bool(np.array_equal(self._ids, other._ids))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the ids as a list shows them."""
        return f"RowIdSequence({self._ids.tolist()})"
