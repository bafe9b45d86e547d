"""Columns of bfloat16 in pandas: the dtype ``lance.bfloat16``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype

from pennon.arrow.bfloat16 import BFloat16, BFloat16Array, BFloat16Type, bfloat16_array


@register_extension_dtype
class PandasBFloat16Type(ExtensionDtype):
    """The dtype ``lance.bfloat16``.

    >>> import pandas as pd
    >>> import pennon.arrow
    >>> pd.Series([1.1, None], dtype="lance.bfloat16").tolist()
    [1.1015625, None]
    """

    kind = "f"
    na_value = None
    name = "lance.bfloat16"
    type = BFloat16
    _is_numeric = True

    def __from_arrow__(self, array: pa.Array[Any] | pa.ChunkedArray[Any]) -> PandasBFloat16Array:
        return PandasBFloat16Array(array)

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the class of arrays."""
        return PandasBFloat16Array

    @classmethod
    def construct_from_string(cls, string: str) -> PandasBFloat16Type:
        """Return the dtype of a name; raises TypeError for another name."""
        if string != cls.name:
            message = f"no dtype {cls.name} is named {string!r}"
            raise TypeError(message)
        return cls()


class PandasBFloat16Array(ExtensionArray):
    """A column of bfloat16 in pandas: it holds the Arrow array, and cannot be changed in place."""

    def __init__(self, data: pa.Array[Any] | pa.ChunkedArray[Any]) -> None:
        self.data: Any = pa.concat_arrays(data.chunks) if _is_chunked(data) else data
        if isinstance(data, pa.ChunkedArray) and not data.num_chunks:
            self.data = bfloat16_array([])

    @property
    def dtype(self) -> PandasBFloat16Type:
        """Return the dtype."""
        return PandasBFloat16Type()

    @classmethod
    def _from_sequence(
        cls, scalars: Sequence[Any], *, dtype: Any = None, copy: bool = False
    ) -> PandasBFloat16Array:
        del dtype, copy
        return cls(bfloat16_array([None if _is_missing(each) else each for each in scalars]))

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any]) -> PandasBFloat16Array:
        """Return a column with the values of an array of ``ml_dtypes.bfloat16``."""
        return cls(BFloat16Array.from_numpy(array))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, (int, np.integer)):
            return self.data[int(item)].as_py()
        if isinstance(item, slice):
            rows = np.arange(len(self))[item]
        else:
            rows = np.asarray(pd.api.indexers.check_array_indexer(self, item))
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return self.take(rows)

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> Any:
        values = np.array(self.data.to_pylist(), object)
        if isinstance(other, PandasBFloat16Array):
            return values == np.array(other.data.to_pylist(), object)
        return values == other

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """Return the size of the data, in bytes."""
        return int(self.data.nbytes)

    def isna(self) -> Any:
        """Return which values are NULL."""
        return self.data.is_null().to_numpy(zero_copy_only=False)

    def take(
        self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None
    ) -> PandasBFloat16Array:
        """Return some values; with ``allow_fill``, NULL at each -1."""
        del fill_value
        rows = np.asarray(indices, np.int64)
        if allow_fill:
            if (rows < -1).any():
                message = "with allow_fill, -1 is the only negative row"
                raise ValueError(message)
            return PandasBFloat16Array(self._at(pa.array(rows, mask=rows == -1)))
        return PandasBFloat16Array(self._at(pa.array(np.where(rows < 0, rows + len(self), rows))))

    def _at(self, rows: pa.Array[Any]) -> pa.Array[Any]:
        storage = self.data.storage.take(rows)
        return pa.ExtensionArray.from_storage(BFloat16Type(), storage)

    def copy(self) -> PandasBFloat16Array:
        """Return a column of the same values."""
        return PandasBFloat16Array(self.data)

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> Any:
        """Return the values as an array of ``ml_dtypes.bfloat16``; of objects if there are NULLs.

        ``dtype``: another one; ``na_value`` is then in the place of NULLs.
        """
        del copy
        if dtype is None and not self.data.null_count:
            return self.data.to_numpy()
        values = [na_value if value is None else value for value in self.data.to_pylist()]
        return np.array(values, object).astype(object if dtype is None else dtype)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[PandasBFloat16Array]) -> PandasBFloat16Array:
        return cls(pa.concat_arrays([each.data for each in to_concat]))

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array[Any]:
        del type
        return self.data


def _is_chunked(data: object) -> bool:
    return isinstance(data, pa.ChunkedArray) and data.num_chunks > 0


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA
