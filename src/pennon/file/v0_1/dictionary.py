"""Dictionaries of version 0.1: the values once a file, the indices as plain pages.

The values stand behind the pages.  The field's entry in the manifest that the file holds says where,
and how many.  A table's manifest repeats them: the same entry there is a place in the manifest's own
file.

Source: seeds 000 and 002, "Dictionary Encoding"; measured (pylance 14.0.2).
"""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a dictionary, NULLs left out, because Arrow cannot join dictionaries with NULLs.

    ``places`` are the new indices of the old ones, NULL for a NULL; None if there are no NULLs.
    """

    values: pa.Array
    places: pa.Array | None
    count: int

    @classmethod
    def of(cls, stored: pa.Array, index_type: pa.DataType) -> Self:
        """Return the values as they are stored, or without NULLs.

        A dictionary without any values has a NULL, for the index of a NULL row is 0.
        """
        if len(stored) == 0:
            return cls(stored, pa.nulls(1, index_type), 1)
        if not stored.null_count:
            return cls(stored, None, len(stored))
        held = np.asarray(stored.is_valid())
        places = pa.array(np.cumsum(held) - 1, mask=~held).cast(index_type)
        return cls(stored.drop_null(), places, len(stored))

    def array(self, indices: pa.Array, data_type: pa.DictionaryType) -> pa.Array:
        """Return the dictionary array of indices.  Raises FormatError for one that has no value."""
        if len(indices):
            held = np.asarray(indices)
            wrong = held.min() if held.min() < 0 else held.max()
            if not 0 <= wrong < self.count:
                message = f"dictionary index {wrong} of {self.count} values"
                raise FormatError(message)
        if self.places is not None:
            indices = self.places.take(indices)
        return pa.DictionaryArray.from_arrays(
            indices, self.values, ordered=data_type.ordered, safe=False
        )
