"""From the pages of leaves to arrays of a field.

A leaf knows all layers around it, so each page becomes an array of the whole field, as if the field
had no other leaf (`nest`).  Then the arrays of all leaves are put together (`merge`): the structs and
lists around them are the same, or the file is damaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pennon.core.memory import current_pool
from pennon.encoding.assemble import field_of, retype
from pennon.encoding.v2_1.layouts import Layer
from pennon.encoding.v2_1.leaf import leaf_array
from pennon.encoding.v2_1.page import Levels, PageValues
from pennon.encoding.v2_1.unravel import Unraveler
from pennon.errors import FormatError
from pennon.file.v2_1.tree import FIXED_SIZE_LIST, LISTS, Path, Tree, dimension, is_bare
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field

_PLAIN = (Layer.ALL_VALID_ITEM,)


def path_types(path: Path, tree: Tree) -> tuple[pa.DataType, ...]:
    """Return the type of the array around each field of ``path``, which begins at the tree's top.

    That is the type of the field itself where the tree has no other leaf, else one with nothing but
    the way down to this leaf.
    """
    if tree.leaves == 1:
        types = [tree.stored]
        while tree.children:
            (tree,) = tree.children
            types.append(tree.stored)
        return tuple(types)
    types = [storage_field(path[-1]).type]
    for field in reversed(path[:-1]):
        types.insert(0, _around_type(field, types[0]))
    return tuple(types)


def _around_type(field: Field, items: pa.DataType) -> pa.DataType:
    kind = field.logical_type
    if kind in LISTS:
        item = pa.field("item", items)
        return pa.large_list(item) if kind.startswith("large") else pa.list_(item)
    if kind.startswith(FIXED_SIZE_LIST):
        return pa.list_(pa.field("item", items), dimension(field))
    return pa.struct([pa.field(field.name, items)])


def nest(page: PageValues, path: Path, types: tuple[pa.DataType, ...], rows: int) -> pa.Array:
    """Return ``rows`` rows of the field at the top of ``path``, with the leaf at its end only.

    ``types`` are those of `path_types`.  Raises FormatError if the page's layers are not those of the
    path.
    """
    levels, is_plain = page.levels, page.levels.layers == _PLAIN and len(path) == 1
    if is_plain and levels.rep is levels.definition is None and page.values.rows == rows:
        return leaf_array(page, None, types[0])
    unraveler = Unraveler(_full_levels(page.levels, path))
    validity = unraveler.validity(page.values.rows)
    array = leaf_array(page, validity, types[-1])
    for number in range(len(path) - 2, -1, -1):
        array = _around(unraveler, path[number], types[number], array)
    unraveler.check_done()
    if len(array) != rows:
        message = f"a page with {len(array)} rows where {rows} were expected"
        raise FormatError(message)
    return array


def _full_levels(levels: Levels, path: Path) -> Levels:
    """Return levels with a layer for each field of the path.

    The page of a struct without fields has one layer and no levels, wherever the struct is: nothing
    around it is NULL, or pylance would not write it.
    """
    if not is_bare(path[-1]) or len(levels.layers) == len(path) or levels.rep is not None:
        return levels
    return Levels(None, levels.definition, (Layer.ALL_VALID_ITEM,) * len(path))


def _around(
    unraveler: Unraveler, field: Field, data_type: pa.DataType, items: pa.Array
) -> pa.Array:
    """Return the layer of ``field``, whose only part is ``items``."""
    kind = field.logical_type
    if kind in LISTS:
        offsets, validity = unraveler.offsets(len(items), wide=kind.startswith("large"))
        buffers = [validity, pa.py_buffer(offsets)]
        return pa.Array.from_buffers(data_type, len(offsets) - 1, buffers, children=[items])
    rows = len(items)
    if kind.startswith(FIXED_SIZE_LIST):
        size = dimension(field)
        unraveler.every_nth(size)
        rows //= size
    return pa.Array.from_buffers(data_type, rows, [unraveler.validity(rows)], children=[items])


# --- several leaves -------------------------------------------------------------------------------


def merge(tree: Tree, leaves: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    """Return the arrays of a field from the chunks of each of its leaves.

    Where the leaves have the same chunks, nothing is copied; else they become one.
    """
    if tree.leaves == 1:
        return list(leaves[0])
    lengths = {tuple(len(chunk) for chunk in chunks) for chunks in leaves}
    if len(lengths) == 1:
        return [_merge(tree, list(parts)) for parts in zip(*leaves, strict=True)]
    whole = [pa.concat_arrays(chunks, current_pool()) for chunks in leaves]
    if len({len(array) for array in whole}) != 1:
        message = "columns of one field with different numbers of rows"
        raise FormatError(message)
    return [_merge(tree, whole)]


def _merge(tree: Tree, arrays: list[pa.Array]) -> pa.Array:
    """Return one array of all leaves; none of ``arrays``, one for each leaf, has an offset."""
    first = arrays[tree.lead]
    if not tree.children:
        return first
    target = tree.stored
    if pa.types.is_struct(target):
        children, done = [], 0
        for child in tree.children:
            mine = arrays[done : done + child.leaves]
            children.append(_merge(child, [array.field(0) for array in mine]))
            done += child.leaves
        if any(len(child) != len(first) for child in children):
            message = f"columns of one field with {[len(child) for child in children]} values"
            raise FormatError(message)
        return _rebuilt(target, first, [first.buffers()[0]], children)
    (item,) = tree.children
    if not pa.types.is_fixed_size_list(target):
        _check_same_lists(first, arrays)
    below = _merge(item, [array.values for array in arrays])
    count = 1 if pa.types.is_fixed_size_list(target) else 2
    return _rebuilt(target, first, first.buffers()[:count], [below])


def _check_same_lists(first: pa.Array, arrays: list[pa.Array]) -> None:
    """Raise FormatError unless all leaves have lists of the same lengths."""
    width = "i8" if pa.types.is_large_list(first.type) else "i4"
    if all(len(array) == len(first) for array in arrays):
        offsets = [np.frombuffer(array.buffers()[1], width, len(first) + 1) for array in arrays]
        if all(np.array_equal(offsets[0], other) for other in offsets[1:]):
            return
    message = "the lists of columns of one field differ in length"
    raise FormatError(message)


def _rebuilt(
    data_type: pa.DataType,
    array: pa.Array,
    buffers: list[pa.Buffer | None],
    children: list[pa.Array],
) -> pa.Array:
    """Return ``array`` with other children.  Raises FormatError if they do not fit the type."""
    fields = [data_type.field(i).type for i in range(data_type.num_fields)]
    if pa.types.is_map(data_type):
        fields = [children[0].type]
    fits = len(fields) == len(children) and all(
        mine.type.equals(wanted) for mine, wanted in zip(children, fields, strict=True)
    )
    if not fits:
        message = f"columns of {[child.type for child in children]} in a field of type {data_type}"
        raise FormatError(message)
    return pa.Array.from_buffers(data_type, len(array), buffers, children=children)


def show(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return an array of storage types as the extension types that users see."""
    if array.type.equals(data_type):
        return array
    if array.type.id != data_type.id or data_type.num_fields == 0:
        return retype(array, data_type)
    if pa.types.is_struct(data_type):
        children = [show(field_of(array, i), f.type) for i, f in enumerate(data_type.fields)]
    else:
        items = data_type.field(0).type if pa.types.is_map(data_type) else data_type.value_type
        children = [show(array.values, items)]
    buffers = array.buffers()[: data_type.num_buffers]
    return pa.Array.from_buffers(data_type, len(array), buffers, children=children)
