"""The dictionaries of a file of version 0.1 while it is written: one for each field, for all rows.

An Arrow column may come with another dictionary in each batch.  The first one is taken as it is; what
later ones have beyond it is put behind it, and their indices are changed.  A file for a table that
has a dictionary already must do with that one, for readers know no other (`fixed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, Breadcrumb
from pennon.schema.field import Field


@dataclass(slots=True)
class Dictionaries:
    """The values of each dictionary so far, by field id."""

    fixed: Mapping[FieldId, pa.Array] = field(default_factory=dict)
    values: dict[FieldId, pa.Array] = field(default_factory=dict)

    def indices(self, of: Field, array: pa.DictionaryArray, path: str) -> pa.Array:
        """Return the indices of an array in the file's dictionary, which learns its values.

        Raises ArgumentError if the dictionary is fixed and lacks a value, or there are more values
        than the type of the indices can count.
        """
        known = self.values.get(of.id)
        if known is None:
            known = self.values[of.id] = self.fixed.get(of.id, array.dictionary)
        if array.dictionary.equals(known):
            return array.indices
        places = pc.index_in(array.dictionary, known)
        if places.null_count:
            known = self._learn(of, array, known, places, path)
            places = pc.index_in(array.dictionary, known)
        self._check_count(len(known), array.type.index_type, path)
        return places.cast(array.type.index_type).take(array.indices)

    def _learn(
        self, of: Field, array: pa.DictionaryArray, known: pa.Array, places: pa.Array, path: str
    ) -> pa.Array:
        new = array.dictionary.filter(places.is_null())
        if of.id in self.fixed:
            message = (
                f"column {path!r}: the value {new[0].as_py()!r} is not in the dictionary of the "
                "table, and at file version 0.1 a table has one dictionary for all its rows; "
                "write plain values, or a table of a newer version"
            )
            raise ArgumentError(message, where=Breadcrumb(column=path))
        self.values[of.id] = grown = pa.concat_arrays([known, new.unique()])
        return grown

    def _check_count(self, count: int, index_type: pa.DataType, path: str) -> None:
        most = np.iinfo(index_type.to_pandas_dtype()).max
        if count - 1 > most:
            message = (
                f"column {path!r}: {count} values of a dictionary, {index_type} counts to {most}"
            )
            raise ArgumentError(message, where=Breadcrumb(column=path))
