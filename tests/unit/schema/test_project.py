"""Columns chosen by name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import ArgumentError
from pennon.schema import project, schema_from_arrow
from pennon.schema.project import find_path, parse_path, resolve, walk_paths

NAMES = st.text("a.`B", max_size=4)
INNER = pa.struct([("z", pa.int8()), ("w", pa.string()), ("a.b", pa.int8())])
OUTER = pa.struct([("x", pa.int8()), ("Y", INNER)])
SCHEMA = schema_from_arrow(
    pa.schema(
        [("s", OUTER), ("l", pa.list_(OUTER)), ("a b", pa.int8()), ("q", pa.int8())],
        metadata={"k": "v"},
    )
)


def _structs(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.dictionaries(NAMES, types, min_size=1, max_size=4).map(
        lambda fields: pa.struct(list(fields.items()))
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
def test_unknown_column_error_lists_columns(column: str) -> None:
    with pytest.raises(ArgumentError, match=r"the columns are: s, s\.x, s\.Y, s\.Y\.z") as caught:
        project(SCHEMA, [column])
    assert repr(column) in str(caught.value)


@pytest.mark.parametrize("column", ["`q", "`q`x", "s.", ".s", "s..x", "`", "`s`."])
def test_invalid_column_paths_are_refused(column: str) -> None:
    with pytest.raises(ArgumentError):
        resolve(SCHEMA, column)


def test_paths_with_back_ticks() -> None:
    assert parse_path("a.`b.c`.`d``e`") == ("a", "b.c", "d`e")


def test_project_prefers_the_top_level_name_over_a_path() -> None:
    schema = schema_from_arrow(pa.schema([("", pa.int8()), ("`q`", pa.int8())]))
    assert [f.name for f in project(schema, ["", "`q`"]).fields] == ["", "`q`"]


@given(st.recursive(st.just(pa.int8()), _structs, max_leaves=6))
def test_walked_paths_resolve_to_their_fields(kind: pa.DataType) -> None:
    schema = schema_from_arrow(pa.schema(kind if pa.types.is_struct(kind) else [("a", kind)]))
    for path, field in walk_paths(schema):
        assert resolve(schema, path)[-1].id == field.id


def test_walk_paths_quotes_names_with_dots() -> None:
    inner = pa.struct([("x", pa.int8())])
    schema = schema_from_arrow(pa.schema([("s", inner), ("s.x", pa.int8()), ("`s.x`", pa.int8())]))
    assert [path for path, _ in walk_paths(schema)] == ["s", "`s`.`x`", "s.x", "```s.x```"]
    assert [resolve(schema, path)[-1].id for path, _ in walk_paths(schema)] == [0, 1, 2, 3]


def test_paths_in_another_case() -> None:
    kind = pa.struct([("x", pa.int8()), ("X", pa.int8()), ("Yy", pa.int8())])
    schema = schema_from_arrow(pa.schema([("Id", pa.int8()), ("aB", kind), ("Ab", pa.int8())]))
    paths = {each.id: path for path, each in walk_paths(schema)}
    for given_path, path in {
        "ID": "Id",
        "AB.x": "aB.x",
        "aB.X": "aB.X",
        "ab.YY": "aB.Yy",
        "`AB`.yy": "aB.Yy",
        "Ab": "Ab",
    }.items():
        assert paths[find_path(schema, given_path)[-1].id] == path
    with pytest.raises(ArgumentError, match="several are named so in another case: aB, Ab"):
        find_path(schema, "ab")
    with pytest.raises(ArgumentError, match="the columns are: Id, aB"):
        find_path(schema, "idd")


def test_unknown_column_error_of_wide_schema_is_short() -> None:
    wide = schema_from_arrow(pa.schema([(f"c{i}", pa.int8()) for i in range(10_000)]))
    with pytest.raises(ArgumentError) as caught:
        project(wide, ["nope"])
    assert len(str(caught.value)) < 400
