"""Levels made by the kernels against a twin that walks Python values."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.kernels.shred import (
    add_items,
    add_lists,
    count_levels,
    index_rows,
    number_levels,
)
from pennon.encoding.v2_1.layouts import Layer
from pennon.encoding.v2_1.shred import shred

Entry = tuple[int, str | None]
"""The number of lists that begin here, and why there is no value (None if there is)."""


def slow_entries(value: Any, kind: pa.DataType, depth: int, lists: int) -> list[Entry]:
    """Return the entries of one value; reasons are named after their layer."""
    if depth == 0:
        return [(0, "item" if value is None else None)]
    name = f"{'struct' if pa.types.is_struct(kind) else 'list'} {depth}"
    if value is None:
        return [(lists, f"{name} NULL")]
    inner = kind.field(0)
    if pa.types.is_struct(kind):
        return slow_entries(value[inner.name], inner.type, depth - 1, lists)
    if not value:
        return [(lists, f"{name} empty")]
    found = [e for item in value for e in slow_entries(item, inner.type, depth - 1, lists - 1)]
    return [(lists, found[0][1]), *found[1:]]


def random_value(chance: random.Random, kind: pa.DataType) -> Any:
    if chance.random() < 0.2:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(0).name: random_value(chance, kind.field(0).type)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        count = chance.choice([0, 1, 2, 5])
        return [random_value(chance, kind.field(0).type) for _ in range(count)]
    return chance.randrange(100)


def kinds() -> list[pa.DataType]:
    made: list[pa.DataType] = [pa.int32()]
    for _ in range(3):
        made += [
            wrap(kind)
            for kind in made
            for wrap in (pa.list_, pa.large_list, lambda t: pa.struct([("x", t)]))
        ]
    return list(dict.fromkeys(made))


def depth_of(kind: pa.DataType) -> int:
    return 0 if kind == pa.int32() else 1 + depth_of(kind.field(0).type)


def lists_of(kind: pa.DataType) -> int:
    if kind == pa.int32():
        return 0
    return (not pa.types.is_struct(kind)) + lists_of(kind.field(0).type)


def meanings(layers: tuple[Layer, ...], kind: pa.DataType) -> dict[int, str | None]:
    """Return what each definition level stands for, in the words of `slow_entries`."""
    found: dict[int, str | None] = {0: None}
    for number, layer in enumerate(layers):
        outer = kind
        for _ in range(len(layers) - 1 - number):
            outer = outer.field(0).type
        what = "struct" if pa.types.is_struct(outer) else "list"
        if layer.has_nulls:
            found[len(found)] = "item" if number == 0 else f"{what} {number} NULL"
        if layer.has_empty:
            found[len(found)] = f"{what} {number} empty"
    return found


@pytest.mark.parametrize("kind", kinds(), ids=str)
@pytest.mark.parametrize("start", [0, 3])
def test_shredded_levels_equal_the_twin(kind: pa.DataType, start: int) -> None:
    chance = random.Random(str(kind))
    values = [random_value(chance, kind) for _ in range(60)]
    array = pa.array(values, kind).slice(start)
    depth, lists = depth_of(kind), lists_of(kind)
    shredded = shred(array, depth)
    wanted = [entry for value in values[start:] for entry in slow_row(value, kind, depth, lists)]
    levels = shredded.levels
    count = len(wanted)
    rep = np.zeros(count, int) if levels.rep is None else levels.rep
    definition = np.zeros(count, int) if levels.definition is None else levels.definition
    words = meanings(levels.layers, kind)
    got = [(int(r), words[int(d)]) for r, d in zip(rep, definition, strict=True)]
    assert got == wanted
    shown = [v for v in shredded.values.to_pylist() if v is not None]
    assert len(shown) == sum(reason is None for _, reason in wanted)


def slow_row(value: Any, kind: pa.DataType, depth: int, lists: int) -> list[Entry]:
    """Return the entries of a row; one that is NULL outside all lists begins them all."""
    first, *rest = slow_entries(value, kind, depth, lists)
    return [(lists, first[1]), *rest]


def test_shred_skips_items_of_null_lists() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 5, 7]), pa.array(range(7)), mask=pa.array([False, True, False])
    )
    assert shred(lists, 1).values.to_pylist() == [0, 1, 5, 6]
    inside = pa.StructArray.from_arrays(
        [pa.array([[1, 2], [3], [4, 5]])], names=["l"], mask=pa.array([False, True, False])
    )
    shredded = shred(inside, 2)
    assert shredded.values.to_pylist() == [1, 2, 4, 5]
    assert shredded.levels.layers == (
        Layer.ALL_VALID_ITEM,
        Layer.NULLABLE_LIST,
        Layer.NULLABLE_ITEM,
    )


def test_shred_skips_fixed_size_lists_of_null_lists() -> None:
    """Arrow's `filter` gives wrong items for slices of fixed-size lists of such lists."""
    numbers = pa.array(range(8 * 6), pa.int16())
    pairs = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(numbers, 2), 3)[1:]
    structs = pa.StructArray.from_arrays([pairs], names=["x"])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 5, 7]), structs, mask=pa.array([False, True, False])
    )
    wanted = [pairs[number].as_py() for number in (0, 1, 5, 6)]
    assert shred(lists, 2).values.to_pylist() == wanted


def test_shred_counts_values_in_null_struct_as_null() -> None:
    """The oracle reads one field of a struct without the struct's own NULLs."""
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], names=["x"], mask=pa.array([False, True, False])
    )
    shredded = shred(structs, 1)
    assert shredded.levels.layers == (Layer.NULLABLE_ITEM, Layer.NULLABLE_ITEM)
    assert shredded.levels.definition is not None
    assert shredded.levels.definition.tolist() == [0, 2, 0]


_PAIRS = pa.list_(pa.list_(pa.int16(), 2), 2)
_PACKED = pa.struct([("a", pa.int8()), ("b", pa.binary(2))])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([Decimal(10_000), None, Decimal(-20_000), Decimal(0)], pa.decimal128(38, -4)),
        ([[[1, 2], [3, 4]], [[5, 6], [7, 8]], None, [[0, 0], [9, None]]], _PAIRS),
        ([{"a": 1, "b": b"xy"}, {"a": 2, "b": b"yz"}, None, {"a": 3, "b": b"zz"}], _PACKED),
        (["a", "b", None, "a"], pa.dictionary(pa.int8(), pa.string())),
        ([True, False, None, True], pa.bool_()),
        (["a", "", None, "ccc"], pa.large_string()),
    ],
    ids=str,
)
@pytest.mark.parametrize("start", [0, 1])
def test_values_in_a_null_struct_are_null(values: list[Any], kind: pa.DataType, start: int) -> None:
    """Arrow's `if_else` would widen such decimals."""
    mask = np.array([False, True, False, False])
    array = pa.array(values, kind)[start:]
    structs = pa.StructArray.from_arrays([array], names=["x"], mask=pa.array(mask[start:]))
    found = shred(structs, 1).values
    assert found.type == kind
    found.validate(full=True)
    wanted = [None if gone else v for v, gone in zip(values, mask, strict=True)]
    assert found.to_pylist() == wanted[start:]


def test_lists_have_a_level_if_any_layer_has() -> None:
    """Old readers lose rows where lists are never NULL nor empty, and their items are NULL."""
    shredded = shred(pa.array([[1, None], [2]]), 1)
    assert shredded.levels.layers == (Layer.NULLABLE_ITEM, Layer.EMPTYABLE_LIST)
    assert shredded.levels.definition is not None
    assert shredded.levels.definition.tolist() == [0, 1, 0]
    assert shred(pa.array([[1], [2]]), 1).levels.definition is None


def test_fixed_size_lists_of_structs_have_levels_for_all_layers() -> None:
    """Pylance 14 counts items wrongly where only some pages of a column have them."""
    kind = pa.list_(pa.struct([("x", pa.int8())]), 2)
    shredded = shred(pa.array([[{"x": 1}, {"x": 2}], [{"x": 3}, {"x": 4}]], kind), 2)
    assert shredded.levels.layers == (Layer.NULLABLE_ITEM,) * 3
    assert shredded.levels.definition is not None
    assert shredded.levels.definition.tolist() == [0] * 4
    rows = [None, [None, {"x": None}], [{"x": 5}, None]]
    shredded = shred(pa.array(rows, kind).slice(1), 2)
    assert shredded.levels.definition is not None
    assert shredded.levels.definition.tolist() == [2, 1, 0, 2]
    assert shredded.values.to_pylist() == [None, None, 5, None]
    shredded = shred(pa.array(rows, kind), 2)
    assert shredded.levels.definition is not None
    assert shredded.levels.definition.tolist() == [3, 3, 2, 1, 0, 2]


def test_invisible_levels_join_the_chunk_of_the_next_value() -> None:
    definition = np.array([2, 0, 1, 2, 2, 0, 2], np.uint16)
    assert count_levels(definition, np.array([2, 1]), 1).tolist() == [3, 4]
    assert count_levels(definition, np.array([1, 2]), 1).tolist() == [2, 5]
    with pytest.raises(ValueError, match="fewer"):
        count_levels(definition, np.array([4]), 1)


def test_row_index_counts_rows_that_end_in_a_chunk() -> None:
    rep = np.array([1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0], np.uint16)
    assert index_rows(rep, np.array([4, 4, 4]), 1).tolist() == [[1, 0], [1, 2], [1, 0]]
    assert index_rows(rep, np.array([12]), 1).tolist() == [[3, 0]]
    assert index_rows(rep, np.array([8, 4]), 1).tolist() == [[2, 2], [1, 0]]
    with pytest.raises(ValueError, match="divide"):
        index_rows(rep, np.array([4, 4]), 1)


def test_shred_refuses_levels_and_offsets_that_do_not_fit() -> None:
    levels = np.zeros(3, np.uint16)
    with pytest.raises(ValueError, match="bitmap"):
        add_items(levels, np.zeros(0, np.uint8), 0, 1)
    with pytest.raises(ValueError, match="number"):
        add_lists(levels, levels, np.array([0, 1, 2], np.int32), None, 0, 1, 2, 1)
    with pytest.raises(ValueError, match="fall"):
        add_lists(levels, levels, np.array([0, 2, 1, 3], np.int64), None, 0, 1, 2, 1)


def test_number_levels_replaces_marks() -> None:
    marks = np.array([0, 1, 0x8002, 2, 0x8000], np.uint16)
    number_levels(marks, np.array([0, 7, 5], np.uint16))
    assert marks.tolist() == [0, 7, 5, 5, 0]
    with pytest.raises(ValueError, match="number"):
        number_levels(marks, np.array([0, 7, 5], np.uint16))
    assert marks.tolist() == [0, 7, 5, 5, 0]


@pytest.mark.parametrize("offset", [0, 5])
def test_add_items_keeps_slots_of_outer_nulls(offset: int) -> None:
    valid = np.array([1, 0, 0, 1, 0, 1, 1, 1, 0], bool)
    bits = np.packbits(np.concatenate([np.ones(offset, bool), valid]), bitorder="little")
    definition = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0], np.uint16)
    assert add_items(definition, bits, offset, 2) == 3
    assert definition.tolist() == [0, 2, 1, 1, 2, 0, 0, 0, 2]
