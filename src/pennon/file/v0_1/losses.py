"""Values of written rows that a file of version 0.1 cannot hold.

A page has no validity.  A NULL number becomes what lies under it (mostly 0), a NULL list an empty one
or what lies under it, a NULL struct one of such values.  NULL text and empty text are the same:
NULL, or empty where the field is never NULL.  A NULL in a dictionary column becomes its first value.

Only what a reader would see counts: nothing below a NULL struct or list does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.file.container.arrays import child_array
from pennon.file.container.losses import EMPTY, NULLS, Losses
from pennon.schema.field import Field

_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def count_losses(losses: Losses, of: Field, path: str, array: pa.Array) -> None:
    """Count what the rows of a field lose."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    array = array.cast(_VIEWS[array.type]) if array.type in _VIEWS else array
    if of.logical_type in ("null", "json"):
        return
    if array.type in _BYTES:
        _count_in_text(losses, of, path, array)
    elif pa.types.is_dictionary(array.type):
        _count_in_dictionary(losses, path, array)
    else:
        losses.count(path, NULLS, array.null_count)
        _count_below(losses, of, path, array)


def _count_below(losses: Losses, of: Field, path: str, array: pa.Array) -> None:
    """Count what is lost in the rows of a struct or list that are not NULL."""
    if pa.types.is_fixed_size_list(array.type):  # the field says it all, it has no children
        items = array.flatten()
        losses.count(path, NULLS, items.null_count)
        _count_below(losses, of, path, items)
    elif pa.types.is_struct(array.type):
        array = array.drop_null() if array.null_count else array
        for child in of.children:
            below = child_array(array, child.name, path)
            count_losses(losses, child, f"{path}.{child.name}", below)
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        (child,) = of.children
        count_losses(losses, child, f"{path}.{child.name}", array.flatten())


def _count_in_text(losses: Losses, of: Field, path: str, array: pa.Array) -> None:
    """Count empty text that becomes NULL, and NULLs that have bytes under them."""
    if not of.nullable:
        return
    is_empty = np.diff(arrow_offsets(array)) == 0
    if not array.null_count:
        losses.count(path, EMPTY, int(is_empty.sum()))
        return
    is_valid = np.asarray(array.is_valid())
    losses.count(path, EMPTY, int((is_empty & is_valid).sum()))
    losses.count(path, NULLS, int((~is_empty & ~is_valid).sum()))


def _count_in_dictionary(losses: Losses, path: str, array: pa.DictionaryArray) -> None:
    """Count NULL indices, and those of values that the file does not hold."""
    values = array.dictionary
    losses.count(path, NULLS, array.indices.null_count)
    if values.type in _BYTES:
        lost, what = pc.equal(pc.binary_length(values), 0).fill_null(False), EMPTY  # noqa: FBT003
    else:
        lost, what = values.is_null(), NULLS
    if pc.any(lost).as_py():
        losses.count(path, what, pc.sum(lost.take(array.indices)).as_py() or 0)
