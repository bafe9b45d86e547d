"""Random Arrow types that file version 2.0 holds, and which of them the old oracle cannot take."""

from __future__ import annotations

from random import Random

import pyarrow as pa

INTEGERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TIMES = [
    *(pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp("us", zone) for zone in ("UTC", "America/New_York", "+01:00")),
]
WIDE = [
    pa.decimal128(9, 2),
    pa.decimal128(38, -4),
    pa.decimal256(60, 3),
    pa.binary(3),
    pa.binary(16),
]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
FIXED = [pa.bool_(), *INTEGERS, *FLOATS, *TIMES, *WIDE]
VIEWS = [pa.string_view(), pa.binary_view()]
EXTENSIONS = [pa.uuid(), pa.bool8(), pa.fixed_shape_tensor(pa.float32(), (2, 2))]
DICTIONARY_VALUES = [*TEXTS, *INTEGERS, pa.float32(), pa.float64(), pa.bool_()]
MAX_DEPTH = 3


def random_type(rng: Random, depth: int = 0) -> pa.DataType:
    """Return a random type, nested at most `MAX_DEPTH` levels."""
    kinds = ["fixed"] * 4 + ["text"] * 3 + ["null", "dictionary", "fixed_size_list"]
    if depth == 0:
        kinds += ["extension", "view"]
    if depth < MAX_DEPTH:
        kinds += ["list", "list", "large_list", "struct", "struct"]
    kind = rng.choice(kinds)
    if kind in ("list", "large_list", "struct"):
        return _random_nested(rng, kind, depth)
    if kind == "fixed_size_list":
        return _random_fixed_size_list(rng)
    if kind == "dictionary":
        return pa.dictionary(rng.choice(INTEGERS), rng.choice(DICTIONARY_VALUES))
    choices = {"fixed": FIXED, "text": TEXTS, "null": [pa.null()]}
    return rng.choice({**choices, "extension": EXTENSIONS, "view": VIEWS}[kind])


def _random_nested(rng: Random, kind: str, depth: int) -> pa.DataType:
    if kind == "struct":
        count = rng.choice([0, 1, 2, 2, 3])
        return pa.struct([(f"f{i}", random_type(rng, depth + 1)) for i in range(count)])
    item = pa.field(rng.choice(["item", "element"]), random_type(rng, depth + 1))
    return pa.list_(item) if kind == "list" else pa.large_list(item)


def _random_fixed_size_list(rng: Random) -> pa.DataType:
    t = pa.list_(rng.choice(FIXED), rng.choice([1, 2, 3, 4, 7, 8, 9, 16, 65]))
    return pa.list_(t, rng.choice([1, 2, 3])) if rng.random() < 0.2 else t


def packable_type(rng: Random, *, lists: bool = True) -> pa.DataType:
    """Return a random struct whose fields have a fixed width in whole bytes.

    ``lists``: some may be fixed-size lists, which file version 2.1 does not pack.
    """
    widths = [*INTEGERS, *FLOATS, pa.timestamp("us"), pa.binary(3)]
    widths += [pa.list_(pa.float32(), 3)] * lists
    return pa.struct([(f"p{i}", rng.choice(widths)) for i in range(rng.randint(1, 4))])


def refused_by_oldest(t: pa.DataType) -> str | None:
    """Return why pylance 0.19.2 cannot write or read the type in file version 2.0, or None.

    All found by trying.  What the old oracle does not do is no fault of ours, so the tests leave
    such columns out when they compare with it.
    """
    if isinstance(t, pa.BaseExtensionType):
        return refused_by_oldest(t.storage_type)
    if t in VIEWS:
        return "its Arrow does not import views"
    if pa.types.is_timestamp(t) and ":" in (t.tz or ""):
        return "its logical types are split at every colon, those of the zone too"
    if pa.types.is_struct(t) and t.num_fields == 0:
        return "reading a struct without fields panics"
    if pa.types.is_dictionary(t):
        return _dictionary_refused_by_oldest(t)
    if pa.types.is_fixed_size_list(t):
        return _item_refused_by_oldest(t.value_type)
    children = [t.field(i).type for i in range(t.num_fields)]
    return next(filter(None, map(refused_by_oldest, children)), None)


def _dictionary_refused_by_oldest(t: pa.DictionaryType) -> str | None:
    if t.value_type in (pa.large_string(), pa.large_binary()):
        return "reading a dictionary of large values panics"
    if t.value_type in (*FLOATS, pa.bool_(), pa.null()):
        return "a dictionary has strings, binaries or integers as values"
    if t.index_type.bit_width == 8:
        return "the dictionaries of several pages are put in a row, which 8 bits do not number"
    return None


def has_dictionary(t: pa.DataType) -> bool:
    """Say whether a type is a dictionary or has one in it."""
    if isinstance(t, pa.BaseExtensionType):
        return False
    return pa.types.is_dictionary(t) or any(
        has_dictionary(t.field(i).type) for i in range(t.num_fields)
    )


def _item_refused_by_oldest(item: pa.DataType) -> str | None:
    if item not in (*INTEGERS, *FLOATS, pa.bool_(), pa.null()):
        return "the logical type of the item has a colon"
    return None
