"""Columns of an index file that have codes, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.memory import kept
from pennon.errors import FormatError
from pennon.index.files import IndexFile
from pennon.index.vector.wire import Vectors


def list_type(file: IndexFile, name: str, width: int) -> pa.DataType:
    """Return the type of the items of a column of lists of ``width`` items.  Raises FormatError."""
    kind = file.type_of(name)
    if not pa.types.is_fixed_size_list(kind) or kind.list_size != width:
        message = f"{file.source.path}: {name} is {kind}, and no list of {width} items"
        raise FormatError(message)
    return kind.value_type


def check_bytes(file: IndexFile, name: str, width: int) -> None:
    """Raise FormatError unless a column has lists of ``width`` bytes."""
    if (kind := list_type(file, name, width)) != pa.uint8():
        message = f"{file.source.path}: {name} has codes that are {kind}, and no bytes"
        raise FormatError(message)


def matrix_of(column: pa.Array[Any]) -> Vectors:
    """Return the lists of a column row by row, not copied.  Raises FormatError if one is NULL."""
    width = column.type.list_size
    items = column.values.slice(column.offset * width, len(column) * width)
    if column.null_count or items.null_count:
        message = f"a column of codes has {column.null_count} NULLs"
        raise FormatError(message)
    values: Vectors = np.asarray(items.to_numpy(zero_copy_only=False))
    return values.reshape(len(column), width)


def values_of(column: pa.Array[Any]) -> Vectors:
    """Return a column of numbers, or of lists of them row by row, not copied.  Raises FormatError if one is NULL."""
    if pa.types.is_fixed_size_list(column.type):
        return matrix_of(column)
    if column.null_count:
        message = "codes of an index are NULL"
        raise FormatError(message)
    values: Vectors = np.asarray(column.to_numpy(zero_copy_only=False))
    return values


def kept_rows(rows: Vectors) -> Vectors:
    """Return rows of a column to be remembered: copied where they are a part of a larger one that was read."""
    whole = rows if rows.base is None else rows.base
    column = whole.base
    if not isinstance(column, pa.Array):
        return kept(rows, whole.nbytes)
    return kept(rows, sum(buffer.size for buffer in column.buffers() if buffer is not None))
