"""Putting fields together from parts, away from any file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pennon.errors import FormatError
from pennon.scan.join import held_part, join, splits_a_list
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Field
from pennon.units import FieldId

POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
STRUCT, LIST = schema_from_arrow(pa.schema([("s", POINT), ("l", pa.list_(POINT))])).fields
X, Y, LIST_X, LIST_Y = (FieldId(number) for number in (1, 2, 5, 6))


def _held(field: Field, *columns: FieldId) -> Field:
    held = held_part(field, columns)
    assert held is not None
    return held


def test_what_a_file_has_of_a_field() -> None:
    assert held_part(STRUCT, {X, Y}) is STRUCT
    assert _held(STRUCT, X).children == STRUCT.children[:1]
    assert _held(LIST, LIST_Y).children[0].children == LIST.children[0].children[1:]
    assert held_part(STRUCT, {FieldId(0), LIST_X}) is None
    packed = replace(STRUCT, metadata={"packed": b"true"})
    assert held_part(packed, {STRUCT.id}) is packed
    assert held_part(packed, {X, Y}) is None


def test_lists_are_not_split() -> None:
    assert splits_a_list([_held(LIST, LIST_X), _held(LIST, LIST_Y)])
    assert not splits_a_list([_held(STRUCT, X), _held(STRUCT, Y)])
    assert not splits_a_list([_held(LIST, LIST_X)])
    around = Field("a", FieldId(9), "struct", children=(STRUCT, LIST))
    assert not splits_a_list([_held(around, X), _held(around, Y, LIST_X)])
    assert splits_a_list([_held(around, X, LIST_X), _held(around, Y, LIST_Y)])


def test_structs() -> None:
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


def test_lists() -> None:
    rows = [[{"x": 1}], None, [], [None, {"x": 2}]]
    values = pa.array(rows, pa.list_(pa.struct([("x", pa.int64())])))
    for part in (values, values[1:], values[2:3]):
        joined = join(LIST, [(_held(LIST, LIST_X), part)])
        joined.validate(full=True)
        wanted = [
            row and [item and {**item, "y": None} for item in row] for row in part.to_pylist()
        ]
        assert joined.equals(pa.array(wanted, pa.list_(POINT)))
