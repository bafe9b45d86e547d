"""Putting fields together from parts, away from any file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pennon.core.units import FieldId
from pennon.errors import FormatError
from pennon.scan.read.join_columns import is_split_within, join
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Field
from pennon.schema.project import held_part

POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
STRUCT, LIST = schema_from_arrow(pa.schema([("s", POINT), ("l", pa.list_(POINT))])).fields
X, Y, LIST_X, LIST_Y = (FieldId(number) for number in (1, 2, 5, 6))


def _held(field: Field, *columns: FieldId) -> Field:
    held = held_part(field, columns)
    assert held is not None
    return held


def test_join_columns_finds_held_part_of_field() -> None:
    assert held_part(STRUCT, {X, Y}) is STRUCT
    assert _held(STRUCT, X).children == STRUCT.children[:1]
    assert _held(LIST, LIST_Y).children[0].children == LIST.children[0].children[1:]
    assert held_part(STRUCT, {FieldId(0), LIST_X}) is None
    packed = replace(STRUCT, metadata={"packed": b"true"})
    assert held_part(packed, {STRUCT.id}) is packed
    assert held_part(packed, {X, Y}) is None


def test_maps_are_not_joined() -> None:
    assert not is_split_within([_held(LIST, LIST_X), _held(LIST, LIST_Y)])
    assert not is_split_within([_held(STRUCT, X), _held(STRUCT, Y)])
    assert not is_split_within([_held(LIST, LIST_X)])
    entries = replace(LIST, logical_type="map")
    assert is_split_within([_held(entries, LIST_X), _held(entries, LIST_Y)])
    around = Field("a", FieldId(9), "struct", children=(STRUCT, entries))
    assert not is_split_within([_held(around, X), _held(around, Y, LIST_X)])
    assert is_split_within([_held(around, X, LIST_X), _held(around, Y, LIST_Y)])


def test_join_columns_of_structs() -> None:
    xs = pa.array([{"x": 1}, None, {"x": None}, {"x": 4}], pa.struct([("x", pa.int64())]))[1:]
    ys = pa.array([None, {"y": "b"}, {"y": "c"}], pa.struct([("y", pa.string())]))
    pieces = [(_held(STRUCT, X), xs), (_held(STRUCT, Y), ys)]
    wanted = [None, {"x": None, "y": "b"}, {"x": 4, "y": "c"}]
    assert join(STRUCT, pieces).equals(pa.array(wanted, POINT))
    assert join(STRUCT, pieces[:1]).to_pylist() == [
        None,
        {"x": None, "y": None},
        {"x": 4, "y": None},
    ]
    with pytest.raises(FormatError, match="not the same number of rows"):
        join(STRUCT, [pieces[0], (pieces[1][0], ys[1:])])


def test_join_columns_of_lists() -> None:
    rows = [[{"x": 1}], None, [], [None, {"x": 2}]]
    values = pa.array(rows, pa.list_(pa.struct([("x", pa.int64())])))
    for part in (values, values[1:], values[2:3]):
        joined = join(LIST, [(_held(LIST, LIST_X), part)])
        joined.validate(full=True)
        wanted = [
            row and [item and {**item, "y": None} for item in row] for row in part.to_pylist()
        ]
        assert joined.equals(pa.array(wanted, pa.list_(POINT)))


def test_join_columns_of_list_item_fields() -> None:
    rows = [[{"x": 1, "y": "a"}], None, [], [None, {"x": 2, "y": None}], [{"x": 3, "y": "c"}]]
    xs, ys = (
        pa.array(
            [row and [item and {name: item[name]} for item in row] for row in rows],
            pa.list_(pa.struct([(name, POINT.field(name).type)])),
        )
        for name in "xy"
    )
    deleted = pa.array([True, False, False, False, True])
    gone = pc.if_else(deleted, pa.scalar(None, ys.type), ys)
    for part in (slice(None), slice(1, None), slice(2, 3), slice(0, 0)):
        x, y, none = (
            (held, each[part]) for held, each in ((LIST_X, xs), (LIST_Y, ys), (LIST_Y, gone))
        )
        joined = join(LIST, [(_held(LIST, held), each) for held, each in (x, y)])
        joined.validate(full=True)
        assert joined.to_pylist() == rows[part]
        joined = join(LIST, [(_held(LIST, held), each) for held, each in (x, none)])
        alive = pc.invert(deleted[part])
        assert joined.filter(alive).to_pylist() == pa.array(rows[part]).filter(alive).to_pylist()
        joined = join(LIST, [(_held(LIST, held), each) for held, each in (none, x)])
        assert joined.filter(alive).to_pylist() == pa.array(rows[part]).filter(alive).to_pylist()


def test_join_columns_of_lists_with_different_lengths_is_refused() -> None:
    x = pa.array([[{"x": 1}], [{"x": 2}]], pa.list_(pa.struct([("x", pa.int64())])))
    for other in ([[{"y": "a"}], []], [[{"y": "a"}, {"y": "b"}], [{"y": "c"}]]):
        y = pa.array(other, pa.list_(pa.struct([("y", pa.string())])))
        with pytest.raises(FormatError, match="'l' have lists of different lengths"):
            join(LIST, [(_held(LIST, LIST_X), x), (_held(LIST, LIST_Y), y)])
