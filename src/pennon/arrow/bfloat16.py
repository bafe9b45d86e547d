"""The type bfloat16: the upper 16 bits of a float32, stored as 2 bytes, little endian."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import total_ordering
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import ArgumentError, UnsupportedError

Bits = npt.NDArray[np.uint16]


def bits_of(values: npt.NDArray[np.floating[Any]]) -> Bits:
    """Return the nearest bfloat16 of numbers as their bits; of two that are as near, the even one.

    NaN stays NaN, and numbers beyond the largest become infinite.
    """
    with np.errstate(over="ignore"):
        wide = values.astype(np.float32).view(np.uint32)
    rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16
    quiet = (wide >> 16) | 0x40
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def floats_of(bits: Bits) -> npt.NDArray[np.float32]:
    """Return the float32 numbers that bits of bfloat16 are, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def ml_dtype() -> Any:
    """Return numpy's dtype for bfloat16, of the package ``ml_dtypes``; raises UnsupportedError without it."""
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError as error:
        message = "numpy has no bfloat16 without the package ml_dtypes: pip install ml_dtypes"
        raise UnsupportedError(message) from error


@total_ordering
class BFloat16:
    """A number of type bfloat16.

    >>> from pennon.arrow import BFloat16
    >>> BFloat16(1.1), BFloat16(1.1) > BFloat16(1), float(BFloat16(1.1))
    (1.1015625, True, 1.1015625)
    """

    __slots__ = ("_bits",)

    def __init__(self, value: float) -> None:
        self._bits = int(bits_of(np.array([value], np.float64))[0])

    @classmethod
    def from_bytes(cls, bytes: bytes) -> BFloat16:
        """Return the number of two bytes, little endian; raises ArgumentError for another length.

        >>> from pennon.arrow import BFloat16
        >>> BFloat16.from_bytes(bytes([0x80, 0x3F]))
        1
        """
        if len(bytes) != 2:
            message = f"a bfloat16 has 2 bytes, not {len(bytes)}"
            raise ArgumentError(message)
        made = cls.__new__(cls)
        made._bits = int.from_bytes(bytes, "little")  # noqa: SLF001 - of its own class
        return made

    def as_float(self) -> float:
        """Return the number as a float, exactly.

        >>> from pennon.arrow import BFloat16
        >>> BFloat16(0.5).as_float()
        0.5
        """
        return float(floats_of(np.array([self._bits], np.uint16))[0])

    __float__ = as_float

    def __repr__(self) -> str:
        value = self.as_float()
        if np.isnan(value):
            return "NaN"
        return np.format_float_positional(np.float32(value), trim="-")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat16) and self.as_float() == other.as_float()

    def __lt__(self, other: BFloat16) -> bool:
        if not isinstance(other, BFloat16):
            return NotImplemented
        return self.as_float() < other.as_float()

    def __hash__(self) -> int:
        return hash(self.as_float())


class BFloat16Scalar(pa.ExtensionScalar):  # type: ignore[misc]
    """A value of an Arrow array of bfloat16."""

    def as_py(self, **kwargs: Any) -> BFloat16 | None:
        """Return the number; None for NULL.

        >>> from pennon.arrow import bfloat16_array
        >>> bfloat16_array([1.5])[0].as_py()
        1.5
        """
        value = self.value
        return None if value is None else BFloat16.from_bytes(value.as_py(**kwargs))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BFloat16Scalar):
            return self.as_py() == other.as_py()
        if type(other).__name__ == "bfloat16":  # of ml_dtypes
            return self.as_py() == BFloat16(float(other))  # type: ignore[arg-type]
        return self.as_py() == other

    def __hash__(self) -> int:
        return hash(self.as_py())


class BFloat16Array(pa.ExtensionArray):  # type: ignore[misc]
    """An Arrow array of bfloat16."""

    def __repr__(self) -> str:
        return f"<lance.arrow.BFloat16Array object at 0x{id(self):016x}>\n{self}"

    def __str__(self) -> str:
        values = self.to_pylist()
        lines = [f"  {value}" for value in values]
        if len(lines) > 21:
            lines = [*lines[:10], "...", *lines[-10:]]
        return "[\n" + ",\n".join(lines) + "\n]"

    def to_numpy(self, zero_copy_only: bool = False) -> npt.NDArray[Any]:
        """Return the values as an array of ``ml_dtypes.bfloat16``, without a copy.

        Raises ArgumentError if there are NULLs, UnsupportedError without the package ``ml_dtypes``.
        """
        del zero_copy_only
        if self.null_count:
            message = "numpy has no NULL: fill them, or take valid values, before to_numpy()"
            raise ArgumentError(message)
        return bits_of_array(self).view(ml_dtype())

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any]) -> BFloat16Array:
        """Return an array with the values of one of ``ml_dtypes.bfloat16``, which has one dimension.

        Raises ArgumentError for another dtype or number of dimensions.
        """
        if array.dtype != ml_dtype():
            message = f"BFloat16Array takes an array of bfloat16, not of {array.dtype}"
            raise ArgumentError(message)
        if array.ndim != 1:
            message = f"BFloat16Array takes an array of one dimension, not {array.ndim}"
            raise ArgumentError(message)
        return array_of(np.ascontiguousarray(array).view(np.uint16))


class BFloat16Type(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of bfloat16 numbers: an extension type ``lance.bfloat16`` of 2 bytes.

    >>> from pennon.arrow import BFloat16Type
    >>> BFloat16Type().storage_type
    FixedSizeBinaryType(fixed_size_binary[2])
    """

    def __init__(self) -> None:
        super().__init__(pa.binary(2), "lance.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> BFloat16Type:
        del storage_type, serialized
        return BFloat16Type()

    def __arrow_ext_class__(self) -> type[BFloat16Array]:
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type[BFloat16Scalar]:
        return BFloat16Scalar

    def to_pandas_dtype(self) -> Any:
        """Return the dtype of such columns in pandas."""
        return import_module("pennon.arrow.bfloat16_pandas").PandasBFloat16Type()


def bfloat16_array(values: Sequence[float | None]) -> BFloat16Array:
    """Return an Arrow array of the nearest bfloat16 of each number; None becomes NULL.

    >>> from pennon.arrow import bfloat16_array
    >>> bfloat16_array([1.1, None]).to_pylist()
    [1.1015625, None]
    """
    numbers = [None if value is None else float(value) for value in values]
    missing = np.array([value is None for value in numbers], bool)
    known = np.array([0.0 if value is None else value for value in numbers], np.float64)
    return array_of(bits_of(known), missing)


def array_of(bits: Bits, missing: npt.NDArray[np.bool_] | None = None) -> BFloat16Array:
    """Return an Arrow array of bits, without a copy; ``missing`` are the rows that are NULL."""
    validity = None
    if missing is not None and missing.any():
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    little = bits if sys.byteorder == "little" else bits.byteswap()
    storage = pa.Array.from_buffers(pa.binary(2), len(bits), [validity, pa.py_buffer(little)])
    made: BFloat16Array = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    return made


def bits_of_array(array: pa.Array[Any]) -> Bits:
    """Return the bits of an Arrow array of bfloat16, without a copy; NULLs have any bits."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    data = storage.buffers()[1]
    if data is None:
        return np.empty(0, np.uint16)
    return np.frombuffer(data, "<u2", count=len(storage), offset=2 * storage.offset)


def _register() -> None:
    try:
        pa.register_extension_type(BFloat16Type())
    except pa.ArrowKeyError:  # another library's class has the name; its arrays are the same bytes
        return


_register()
