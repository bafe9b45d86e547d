"""Columns chosen by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.schema import project, schema_from_arrow
from pennon.schema.project import parse_path, resolve

INNER = pa.struct([("z", pa.int8()), ("w", pa.string()), ("a.b", pa.int8())])
OUTER = pa.struct([("x", pa.int8()), ("Y", INNER)])
SCHEMA = schema_from_arrow(
    pa.schema(
        [("s", OUTER), ("l", pa.list_(OUTER)), ("a b", pa.int8()), ("q", pa.int8())],
        metadata={"k": "v"},
    )
)


def _tree(columns: list[str]) -> list[str]:
    return [f.name for f in project(SCHEMA, columns).walk()]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ([], []),
        (["q", "s.x"], ["q", "s", "x"]),
        (["s.Y.w", "q", "s.x"], ["s", "x", "Y", "w", "q"]),
        (["s.Y.w", "s.Y"], ["s", "Y", "z", "w", "a.b"]),
        (["s", "s.x"], ["s", "x", "Y", "z", "w", "a.b"]),
        (["q", "q"], ["q"]),
        (["l.item.Y.z"], ["l", "item", "Y", "z"]),
        (["a b"], ["a b"]),
        (["`s`.`x`"], ["s", "x"]),
        (["s.Y.`a.b`"], ["s", "Y", "a.b"]),
    ],
)
def test_projection_keeps_ancestors_and_the_order_of_the_first_mention(
    columns: list[str], names: list[str]
) -> None:
    assert _tree(columns) == names


def test_projection_keeps_ids_and_metadata() -> None:
    chosen = project(SCHEMA, ["s.Y.w", "q"])
    assert chosen.metadata == {"k": b"v"}
    assert all(SCHEMA.field(f.id).name == f.name for f in chosen.walk())


@pytest.mark.parametrize("column", ["Q", "S.x", "s.y.z", "s.nope", "q.k", "l.x", "nope"])
def test_an_unknown_name_lists_what_exists(column: str) -> None:
    with pytest.raises(ArgumentError, match=r"the columns are: s, s\.x, s\.Y, s\.Y\.z") as caught:
        project(SCHEMA, [column])
    assert repr(column) in str(caught.value)


@pytest.mark.parametrize("column", ["`q", "`q`x", "s.", ".s", "s..x", "`", "`s`."])
def test_paths_that_do_not_parse(column: str) -> None:
    with pytest.raises(ArgumentError):
        resolve(SCHEMA, column)


def test_paths_with_back_ticks() -> None:
    assert parse_path("a.`b.c`.`d``e`") == ("a", "b.c", "d`e")


def test_a_top_level_name_wins_over_the_path_it_looks_like() -> None:
    schema = schema_from_arrow(pa.schema([("", pa.int8()), ("`q`", pa.int8())]))
    assert [f.name for f in project(schema, ["", "`q`"]).fields] == ["", "`q`"]


def test_many_columns_are_not_all_listed() -> None:
    wide = schema_from_arrow(pa.schema([(f"c{i}", pa.int8()) for i in range(10_000)]))
    with pytest.raises(ArgumentError) as caught:
        project(wide, ["nope"])
    assert len(str(caught.value)) < 400
