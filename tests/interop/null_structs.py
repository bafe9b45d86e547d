"""NULL structs, which file version 2.0 cannot hold and the random arrays therefore do not have."""

from __future__ import annotations

import pyarrow as pa

from tests.interop.random_arrays import Rng


def with_null_structs(rng: Rng, array: pa.Array) -> pa.Array:
    """Return an array without offset like ``array``, but some of its structs are NULL."""
    t = array.type
    if pa.types.is_struct(t) and t.num_fields:
        children = [with_null_structs(rng, array.field(i)) for i in range(t.num_fields)]
        mask = rng.random(len(array)) < rng.choice([0.0, 0.1, 0.8])
        validity = pa.array(~mask).buffers()[1] if mask.any() else array.buffers()[0]
        return pa.Array.from_buffers(t, len(array), [validity], children=children)
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t):
        buffers = array.buffers()[:2]
        if pa.types.is_map(t):
            return array
        items = with_null_structs(rng, array.values)
        return pa.Array.from_buffers(t, len(array), buffers, children=[items])
    if pa.types.is_fixed_size_list(t) and pa.types.is_struct(t.value_type):
        items = with_null_structs(rng, array.values)
        return pa.Array.from_buffers(t, len(array), [array.buffers()[0]], children=[items])
    return array


def random_maps(rng: Rng, rows: int) -> pa.Array:
    """Return maps of text to numbers, some NULL, some empty, some with NULL values."""
    lengths = rng.integers(0, 4, rows)
    missing = rng.random(rows) < 0.2
    keys = [[f"k{k}" for k in range(n)] for n in lengths.tolist()]
    maps = [
        None if gone else [(key, None if i % 3 == 1 else i * 7) for i, key in enumerate(row)]
        for row, gone in zip(keys, missing.tolist(), strict=True)
    ]
    return pa.array(maps, pa.map_(pa.string(), pa.int32()))


def random_struct_lists(rng: Rng, rows: int) -> pa.Array:
    """Return fixed-size lists of structs; lists, structs and their fields may be NULL."""
    struct = pa.struct([("a", pa.int32()), ("b", pa.string())])
    items = pa.array(
        [
            None if number % 5 == 0 else {"a": number, "b": None if number % 3 else f"s{number}"}
            for number in rng.integers(0, 1000, 3 * rows).tolist()
        ],
        struct,
    )
    mask = pa.array(rng.random(rows) < 0.2)
    return pa.FixedSizeListArray.from_arrays(items, type=pa.list_(struct, 3), mask=mask)
