"""Levels of the format's own examples, layer by layer."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.v2_1.layouts import Layer, max_repetition, max_visible
from pennon.encoding.v2_1.page import Levels
from pennon.encoding.v2_1.unravel import Unraveler
from pennon.errors import FormatError

ITEM, LIST = Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST
NULLABLE, EMPTYABLE = Layer.NULLABLE_ITEM, Layer.EMPTYABLE_LIST
BOTH = Layer.NULL_AND_EMPTY_LIST


def levels(rep: list[int] | None, definition: list[int] | None, *layers: Layer) -> Levels:
    arrays = [None if each is None else np.array(each, np.uint16) for each in (rep, definition)]
    return Levels(arrays[0], arrays[1], layers)


def bits(buffer: object, count: int) -> list[int]:
    data = np.frombuffer(buffer, np.uint8)  # type: ignore[call-overload]
    return np.unpackbits(data, count=count, bitorder="little").tolist()


def test_structs_in_structs() -> None:
    """[{middle: {inner: 1}}, NULL, {middle: NULL}, {middle: {inner: NULL}}] (seed 001)."""
    unraveler = Unraveler(levels(None, [0, 3, 2, 1], NULLABLE, NULLABLE, NULLABLE))
    assert bits(unraveler.validity(4), 4) == [1, 0, 0, 0]
    assert bits(unraveler.validity(4), 4) == [1, 0, 0, 1]
    assert bits(unraveler.validity(4), 4) == [1, 0, 1, 1]
    unraveler.check_done()


def test_lists_of_lists_of_lists() -> None:
    """[{<0, 1>, <>, <2>}, {<3>}, {}], [], [{<4>}]: the document's table, its last row a 3.

    Definition levels: 1 an empty innermost list, 2 an empty middle one, 3 an empty row.
    """
    rep = [3, 0, 1, 1, 2, 2, 3, 3]
    definition = [0, 0, 1, 0, 0, 2, 3, 0]
    unraveler = Unraveler(levels(rep, definition, ITEM, EMPTYABLE, EMPTYABLE, EMPTYABLE))
    assert unraveler.validity(5) is None
    for items, offsets in (
        (5, [0, 2, 2, 3, 4, 5]),
        (5, [0, 3, 4, 4, 5]),
        (4, [0, 3, 3, 4]),
    ):
        found, validity = unraveler.offsets(items, wide=True)
        assert (found.tolist(), validity) == (offsets, None)
    unraveler.check_done()


def test_a_list_in_a_null_struct_is_null() -> None:
    """{l: [1]}, {l: NULL}, NULL, {l: []}: levels 1 NULL list, 2 empty list, 3 NULL struct."""
    unraveler = Unraveler(levels([1, 1, 1, 1], [0, 1, 3, 2], ITEM, BOTH, NULLABLE))
    assert unraveler.validity(1) is None
    offsets, validity = unraveler.offsets(1, wide=False)
    assert offsets.tolist() == [0, 1, 1, 1, 1]
    assert bits(validity, 4) == [1, 0, 0, 1]
    assert bits(unraveler.validity(4), 4) == [1, 1, 0, 1]


def test_null_items_of_lists_without_nulls() -> None:
    """[NULL, 1], [NULL]: the lists have no level of their own."""
    unraveler = Unraveler(levels([1, 0, 1], [1, 0, 1], NULLABLE, LIST))
    assert bits(unraveler.validity(3), 3) == [0, 1, 0]
    offsets, validity = unraveler.offsets(3, wide=False)
    assert (offsets.tolist(), validity) == ([0, 2, 3], None)


def test_fixed_size_lists_of_structs() -> None:
    """[{a: 1}, NULL], NULL: levels 1 NULL a, 2 NULL struct, 3 NULL list."""
    unraveler = Unraveler(levels(None, [0, 2, 3, 3], NULLABLE, NULLABLE, NULLABLE))
    assert bits(unraveler.validity(4), 4) == [1, 0, 0, 0]
    assert bits(unraveler.validity(4), 4) == [1, 0, 0, 0]
    unraveler.every_nth(2)
    assert bits(unraveler.validity(2), 2) == [1, 0]


def test_layers_and_schema_must_agree() -> None:
    with pytest.raises(FormatError, match="2 layers in a column of 1"):
        _after_one_layer(ITEM, ITEM).check_done()
    with pytest.raises(FormatError, match="a column of more"):
        _after_one_layer(ITEM).validity(1)
    with pytest.raises(FormatError, match=r"lists .* where the schema has none"):
        _after_one_layer(ITEM, LIST).validity(1)
    with pytest.raises(FormatError, match="without repetition"):
        _after_one_layer(ITEM, LIST).offsets(1, wide=False)
    with pytest.raises(FormatError, match="levels of 2 values where there are 3"):
        Unraveler(levels(None, [0, 1], NULLABLE)).validity(3)
    unraveler = Unraveler(levels([1, 0], None, ITEM, LIST))
    unraveler.validity(3)
    with pytest.raises(FormatError, match="lists of 2 items where there are 3"):
        unraveler.offsets(3, wide=False)


def _after_one_layer(*layers: Layer) -> Unraveler:
    unraveler = Unraveler(levels(None, None, *layers))
    assert unraveler.validity(1) is None
    return unraveler


def test_levels_of_layers() -> None:
    layers = (NULLABLE, NULLABLE, BOTH, NULLABLE, LIST)
    assert max_visible(layers) == 2
    assert max_repetition(layers) == 2
    assert [layer.levels for layer in layers] == [1, 1, 2, 1, 0]
