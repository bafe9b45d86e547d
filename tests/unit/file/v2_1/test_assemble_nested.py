"""Trees of fields that are none, and leaves that contradict each other about the lists around them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pennon.core.units import FieldId
from pennon.errors import FormatError
from pennon.file.v2_1.assemble_nested import merge
from pennon.file.v2_1.tree import Tree
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Field

LEAF = Field("leaf", FieldId(1), "string")
FIELDS = {"n": pa.int8(), "t": pa.string()}
NUMBERS: list[Any] = [[[{"n": 1}]], [[{"n": 2}], [{"n": 3}, None]]]
AS_MANY: list[Any] = [[[{"t": "a"}]], [[{"t": "b"}], [{"t": "c"}, None]]]
OTHERS: dict[str, list[Any]] = {
    "items": [[[{"t": "a"}]], [[{"t": "b"}], [{"t": "c"}]]],
    "lists": [[[{"t": "a"}], [{"t": "b"}]], [[{"t": "c"}, None]]],
    "fewer lists": [[[{"t": "a"}]], [[{"t": "b"}, {"t": "c"}, None]]],
    "more lists": [[[{"t": "a"}]], [[{"t": "b"}], [{"t": "c"}], [None]]],
}


def lists(items: pa.DataType) -> pa.DataType:
    return pa.list_(pa.list_(items))


def merged(names: list[str], leaves: list[list[Any]]) -> pa.Array:
    """Put together what each leaf alone knows of the field."""
    whole = lists(pa.struct([(name, FIELDS[name]) for name in names]))
    (field,) = schema_from_arrow(pa.schema([("c", whole)])).fields
    arrays = [
        pa.array(rows, lists(pa.struct([(name, FIELDS[name])])))
        for name, rows in zip(names, leaves, strict=True)
    ]
    (made,) = merge(Tree.of(field), [[array] for array in arrays])
    return made


@pytest.mark.parametrize("name", OTHERS)
def test_nested_leaves_with_different_list_lengths_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="columns of one field differ in length"):
        merged(["n", "t"], [NUMBERS, OTHERS[name]])
    with pytest.raises(FormatError, match="columns of one field differ in length"):
        merged(["t", "n"], [OTHERS[name], NUMBERS])


def test_nested_leaves_with_equal_lists_are_merged() -> None:
    made = merged(["n", "t"], [NUMBERS, AS_MANY])
    made.validate(full=True)
    rows = [[{"n": 2, "t": "b"}], [{"n": 3, "t": "c"}, None]]
    assert made.to_pylist() == [[[{"n": 1, "t": "a"}]], rows]


@pytest.mark.parametrize("kind", ["int64", "string", "timestamp:us:-"])
def test_leaf_type_with_child_fields_is_refused(kind: str) -> None:
    """Fields that repeat an id make such a tree: a child belongs to the last that has it."""
    field = Field("a", FieldId(0), kind, children=(LEAF,))
    with pytest.raises(FormatError, match=f"'{kind}' with fields below it"):
        Tree.of(field)
