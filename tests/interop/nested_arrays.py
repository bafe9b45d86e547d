"""Random nested types and arrays for file versions 2.1 and 2.2.

Each level has patterns of its own: no, some or only NULLs, no, some or only empty lists, and what lies
under a NULL is sometimes not nothing.  The items of a list are often cut to the number of a border.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa

from tests.interop.random_arrays import NULLS, Rng, random_array
from tests.interop.random_types import EXTENSIONS, INTEGERS, MAX_DEPTH, TEXTS, VIEWS, random_type

DEEPEST = 4
BORDERS = (1023, 1024, 1025, 2048, 4095, 4096, 4097)
MOST_ITEMS = 20_000
NESTED_2_1 = ("list", "list", "large_list", "struct", "struct")
NESTED_2_2 = (
    *(*NESTED_2_1, "map", "map", "map", "keyed", "fixed_size_list"),
    *("packed", "json", "uuid"),
)
"""Also maps, some by nested keys, fixed-size lists of structs, packed structs with text, JSON."""

PACKED = {"packed": "true"}
_EXTENSIONS = {"json": pa.json_(), "uuid": pa.uuid()}
_KEYS = [
    pa.struct([("a", pa.int16()), ("b", pa.string())]),
    pa.list_(pa.int8()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.bool_(),
]
_PATTERN_CHANCES = (0.45, 0.45, 0.1)


def nested_type(
    rng: Random, kinds: Sequence[str] = NESTED_2_1, depth: int = 0, *, in_list: bool = False
) -> pa.DataType:
    """Return a random type that is nested at most `DEEPEST` levels; most are."""
    if depth == DEEPEST or rng.random() < 0.2 + 0.1 * depth:
        if depth == 0 and rng.random() < 0.2:
            return rng.choice([*EXTENSIONS, *VIEWS])
        return random_type(rng, depth=MAX_DEPTH)
    kind = rng.choice(kinds)
    if kind in _EXTENSIONS:
        return _EXTENSIONS[kind]
    if kind == "packed":
        return _packed_type(rng)
    if kind in ("map", "keyed"):
        values = nested_type(rng, kinds, depth + 1, in_list=True)
        keys = [*INTEGERS, *TEXTS] if kind == "map" else _KEYS
        return pa.map_(rng.choice(keys), field_of("value", values))
    if kind == "fixed_size_list" and in_list:
        kind = "struct"  # the oracle panics, or writes what it cannot read
    if kind in ("struct", "fixed_size_list"):
        count = rng.choice([1, 2, 2, 3])
        children = [nested_type(rng, kinds, depth + 1, in_list=in_list) for _ in range(count)]
        struct = pa.struct([field_of(f"f{i}", t) for i, t in enumerate(children)])
        return struct if kind == "struct" else pa.list_(struct, rng.choice([1, 2, 3]))
    items = nested_type(rng, kinds, depth + 1, in_list=True)
    item = field_of(rng.choice(["item", "element"]), items)
    return pa.list_(item) if kind == "list" else pa.large_list(item)


def _packed_type(rng: Random) -> pa.DataType:
    """Return a random struct that 2.2 packs: text, JSON and values of whole bytes."""
    widths = [pa.int8(), pa.float64(), pa.binary(3), pa.list_(pa.int16(), 2), pa.decimal128(9, 2)]
    kinds = [rng.choice([*TEXTS, *TEXTS, pa.json_(), *widths]) for _ in range(rng.randint(0, 3))]
    kinds.insert(rng.randint(0, len(kinds)), rng.choice(TEXTS))
    return pa.struct([(f"p{i}", t) for i, t in enumerate(kinds)])


def is_packed(t: pa.DataType) -> bool:
    """Say whether a type is a struct to be packed, which is known by the names of its fields."""
    return pa.types.is_struct(t) and t.num_fields > 0 and t.field(0).name == "p0"


def field_of(name: str, t: pa.DataType) -> pa.Field:
    """Return a field, with the metadata that ask for packed structs."""
    return pa.field(name, t, metadata=PACKED if is_packed(t) else None)


def nested_array(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return a random array of a type by `nested_type`."""
    is_struct_list = pa.types.is_fixed_size_list(t) and pa.types.is_struct(t.value_type)
    if t == pa.json_():
        texts = random_array(rng, pa.int16(), rows, _pattern(rng)).cast(pa.string())
        return pa.ExtensionArray.from_storage(t, texts)
    if is_packed(t):
        children = [_filled_array(rng, f.type, rows) for f in t.fields]
        return pa.Array.from_buffers(t, rows, [_validity(_mask(rng, rows))], children=children)
    if pa.types.is_struct(t) and t.num_fields:
        children = [nested_array(rng, f.type, rows) for f in t.fields]
        return pa.Array.from_buffers(t, rows, [_validity(_mask(rng, rows))], children=children)
    if is_struct_list:
        items = nested_array(rng, t.value_type, rows * t.list_size)
        return pa.Array.from_buffers(t, rows, [_validity(_mask(rng, rows))], children=[items])
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t):
        return _lists(rng, t, rows)
    return random_array(rng, t, rows, _pattern(rng))


def _filled_array(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return a random array without NULLs, as the fields of a packed struct must be."""
    if t == pa.json_():
        numbers = random_array(rng, pa.int32(), rows, "none").cast(pa.string())
        return pa.ExtensionArray.from_storage(t, numbers)
    return random_array(rng, t, rows, "none")


def _pattern(rng: Rng) -> str:
    return str(rng.choice(NULLS, p=_PATTERN_CHANCES))


def _mask(rng: Rng, rows: int) -> np.ndarray:
    """Return where the NULLs of a level are."""
    chances = {"none": 0.0, "all": 1.0, "some": rng.choice([0.02, 0.3, 0.9])}
    return rng.random(rows) < chances[_pattern(rng)]


def _validity(mask: np.ndarray) -> pa.Buffer | None:
    return pa.array(~mask).buffers()[1] if mask.any() else None


def _lists(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return lists or maps."""
    mask = _mask(rng, rows)
    offsets = _offsets(rng, mask)
    if pa.types.is_map(t):
        items = _entries(rng, t, int(offsets[-1]))
    else:
        items = nested_array(rng, t.value_type, int(offsets[-1]))
    width = np.int64 if pa.types.is_large_list(t) else np.int32
    buffers = [_validity(mask), pa.py_buffer(offsets.astype(width))]
    return pa.Array.from_buffers(t, rows, buffers, children=[items])


def _entries(rng: Rng, t: pa.MapType, count: int) -> pa.Array:
    """Return the entries of maps; neither they nor their keys are ever NULL."""
    keys = random_array(rng, t.key_type, count, "none")
    struct = pa.struct([t.key_field, t.item_field])
    return pa.StructArray.from_buffers(
        struct, count, [None], children=[keys, nested_array(rng, t.item_type, count)]
    )


def _offsets(rng: Rng, mask: np.ndarray) -> np.ndarray:
    """Return where lists begin, NULL ones too: without items, except sometimes."""
    rows = len(mask)
    most = max(1, min(int(rng.choice([1, 2, 4, 10])), MOST_ITEMS // max(rows, 1)))
    least = {"none": 1, "some": 0, "all": 0}[empties := _pattern(rng)]
    lengths = rng.integers(least, 0 if empties == "all" else most, rows, endpoint=True)
    if rows and empties != "all" and rng.random() < 0.1:
        lengths[rng.integers(rows)] += 1500
    if rng.random() < 0.8:
        lengths[mask] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    below = [border for border in BORDERS if border <= offsets[-1]]
    if below and rng.random() < 0.4:
        offsets = np.minimum(offsets, below[-1])
    return offsets
