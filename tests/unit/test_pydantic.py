"""Models of pydantic: their Arrow schemas, and lists of them as rows."""

from __future__ import annotations

import datetime as dt
import enum
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Optional, Tuple  # noqa: UP035 - old spellings are known, too

import pyarrow as pa
import pydantic
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.pydantic import MultiVector, Vector, pydantic_to_schema


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Number(enum.IntEnum):
    ONE = 1


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Inner(pydantic.BaseModel):
    a: int
    b: str | None = None


class Page(pydantic.BaseModel):
    title: str
    tags: list[str] | None = None
    colour: Colour = Colour.RED
    inner: Inner
    embedding: Vector(2)  # type: ignore[valid-type]


PAGES = [
    Page(title="a", tags=["x"], inner=Inner(a=1), embedding=[1, 2]),
    Page(title="b", colour=Colour.BLUE, inner=Inner(a=2, b="q"), embedding=[3, 4]),
]


@pytest.mark.parametrize(
    ("annotation", "kind", "nullable"),
    [
        (int, pa.int64(), False),
        (float, pa.float64(), False),
        (str, pa.string(), False),
        (bool, pa.bool_(), False),
        (bytes, pa.binary(), False),
        (dt.date, pa.date32(), False),
        (dt.datetime, pa.timestamp("us"), False),
        (Optional[int], pa.int64(), True),  # noqa: UP045
        (int | None, pa.int64(), True),
        (List[int], pa.list_(pa.int64()), False),  # noqa: UP006
        (list[list[float]] | None, pa.list_(pa.list_(pa.float64())), True),
        (list[str | None], pa.list_(pa.string()), False),
        (Tuple[int, ...], pa.list_(pa.int64()), False),  # noqa: UP006
        (
            list[Inner],
            pa.list_(pa.struct([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])),
            False,
        ),
        (Colour, pa.dictionary(pa.int32(), pa.string()), False),
        (Number, pa.int64(), False),
        (Mixed, pa.string(), False),
        (Vector(3), pa.list_(pa.float32(), 3), True),
        (Vector(3, pa.float16(), nullable=False), pa.list_(pa.float16(), 3), False),
        (MultiVector(2), pa.list_(pa.list_(pa.float32(), 2)), True),
        (Vector(3) | None, pa.list_(pa.float32(), 3), True),
    ],
)
def test_pydantic_field_becomes_an_arrow_field(
    annotation: Any, kind: pa.DataType, nullable: bool
) -> None:
    model = pydantic.create_model("Model", x=(annotation, ...))
    assert pydantic_to_schema(model) == pa.schema([pa.field("x", kind, nullable)])


def test_pydantic_times_have_the_zone_of_the_field() -> None:
    field = pydantic.Field(json_schema_extra={"tz": "UTC"})
    model = pydantic.create_model("Model", x=(dt.datetime, field))
    assert pydantic_to_schema(model).field("x").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("annotation", [list, dict, set[int], int | str, Any])
def test_pydantic_type_without_column_is_named_with_its_field(annotation: Any) -> None:
    model = pydantic.create_model("Model", wrong=(annotation, ...))
    with pytest.raises(TypeError, match="the field 'wrong'"):
        pydantic_to_schema(model)


def test_pydantic_vectors_have_the_length_of_their_type() -> None:
    model = pydantic.create_model("Model", v=(Vector(2), ...), m=(MultiVector(1), ...))
    made: Any = model(v=[1, 2], m=[[3]])
    assert (made.v, made.m) == ([1.0, 2.0], [[3.0]])
    for wrong in ({"v": [1], "m": []}, {"v": [1, 2], "m": [[1, 2]]}, {"v": "ab", "m": []}):
        with pytest.raises(pydantic.ValidationError):
            model(**wrong)


def test_pydantic_models_are_written_as_rows(tmp_path: Path) -> None:
    table = pennon.write_dataset(PAGES, tmp_path / "t.lance")
    assert table.schema == pydantic_to_schema(Page)
    assert table.to_table().to_pylist() == [
        {
            "title": "a",
            "tags": ["x"],
            "colour": "r",
            "inner": {"a": 1, "b": None},
            "embedding": [1.0, 2.0],
        },
        {
            "title": "b",
            "tags": None,
            "colour": "b",
            "inner": {"a": 2, "b": "q"},
            "embedding": [3.0, 4.0],
        },
    ]


def test_pydantic_models_of_two_classes_are_refused() -> None:
    class Longer(Page):
        more: int = 0

    longer = Longer(title="c", inner=Inner(a=1), embedding=[1, 2])
    with pytest.raises(TypeError, match="row 1 is a Longer, not a Page"):
        pennon.write_dataset([PAGES[0], longer], "memory://pydantic-two/t.lance")


def test_from_pydantic_model_names_the_table_after_the_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = pydantic.create_model("PageView", n=(int, ...))
    pennon.LanceDataset.from_pydantic_model(model, [model(n=1)])
    more = pennon.LanceDataset.from_pydantic_model(
        model, [model(n=2)], tmp_path / "page_view", mode="append"
    )
    assert more.to_table()["n"].to_pylist() == [1, 2]
    with pytest.raises(TypeError, match=r"subclass of pydantic\.BaseModel"):
        pennon.LanceDataset.from_pydantic_model(dict, [])
    with pytest.raises(TypeError, match="written as a list"):
        pennon.LanceDataset.from_pydantic_model(model, iter([model(n=1)]))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="an empty list"):
        pennon.LanceDataset.from_pydantic_model(model, [])


def test_pydantic_is_imported_for_models_only() -> None:
    program = """
import sys, pennon
pennon.write_dataset([{"id": 1}], "memory://no-pydantic/t.lance")
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
