"""The array of a field, taken apart into one array for each leaf.

A *spine* is the array of the field as if it had that one leaf only: every struct in it has one
field.  Nothing is copied for that, and spines of many batches join like other arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pennon.file.container.arrays import check_array, child_array
from pennon.file.v2_1.tree import Tree


def spines(
    array: pa.Array, tree: Tree, path: str, *, within_null: bool = False
) -> Iterator[pa.Array]:
    """Yield the spine of each leaf, in the order of the columns.

    Raises ArgumentError if the array does not fit the field.  Below structs that are NULL,
    anything may be NULL.
    """
    field = replace(tree.field, nullable=True) if within_null else tree.field
    array = check_array(array, field, path)
    if not tree.children:
        yield array
        return
    within_null = within_null or array.null_count > 0
    for child in tree.children:
        below = f"{path}.{child.field.name}"
        if pa.types.is_struct(array.type):
            part = child_array(array, child.field.name, path)
        else:
            part = array.values
        for spine in spines(part, child, below, within_null=within_null):
            yield _wrapped(array, spine, child.field.name)


def _wrapped(array: pa.Array, spine: pa.Array, name: str) -> pa.Array:
    """Return the array with ``spine`` in the place of its fields or items."""
    inner = pa.field(name, spine.type)
    if pa.types.is_struct(array.type):
        validity = array.is_valid().buffers()[1] if array.null_count else None
        kind: pa.DataType = pa.struct([inner])
        return pa.Array.from_buffers(kind, len(array), [validity], children=[spine])
    large = pa.types.is_large_list(array.type)
    kind = pa.large_list(inner) if large else pa.list_(inner)
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[spine])


def replaced_leaf(spine: pa.Array, depth: int, leaf: pa.Array) -> pa.Array:
    """Return a spine with another leaf, which has as many values, ``depth`` layers down."""
    if depth == 0:
        return leaf
    inner = spine.field(0) if pa.types.is_struct(spine.type) else spine.values
    name = spine.type.field(0).name
    return _wrapped(spine, replaced_leaf(inner, depth - 1, leaf), name)


def leaf_of(spine: pa.Array, depth: int) -> pa.Array:
    """Return the values of a spine, ``depth`` layers down, those under NULLs too."""
    for _ in range(depth):
        spine = spine.field(0) if pa.types.is_struct(spine.type) else spine.values
    return spine
