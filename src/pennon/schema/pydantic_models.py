"""Arrow schemas of pydantic models: what `pennon.pydantic` offers.

| in a model | in Arrow |
|---|---|
| `int`, `float`, `str`, `bool`, `bytes` | int64, double, string, bool, binary |
| `datetime.date`, `datetime.datetime` | date32, timestamp in microseconds; `Field(json_schema_extra={"tz": "UTC"})` gives it a zone |
| `list[...]`, `tuple[..., ...]` | list |
| another model | struct |
| an `Enum` of texts; of other values of one type | dictionary of strings; their type |
| `Vector(8)`, `MultiVector(8)` | list of 8 floats; list of such lists |
| `... or None` (`Optional`) | the same, and may be NULL |
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from inspect import isclass
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import pyarrow as pa
import pydantic

from pennon.errors import ColumnTypeError

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "pydantic_to_schema"]

_PLAIN: Mapping[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
}
_UNIONS = (Union, types.UnionType)


class FixedSizeListMixin:
    """The base of the classes that `Vector` and `MultiVector` return: lists of a fixed size."""

    _dim: ClassVar[int]
    _value_type: ClassVar[pa.DataType]
    _nullable: ClassVar[bool]
    _nested: ClassVar[bool]

    @classmethod
    def dim(cls) -> int:
        """Return the number of values of a vector."""
        return cls._dim

    @classmethod
    def value_arrow_type(cls) -> pa.DataType:
        """Return the type of a value."""
        return cls._value_type

    @classmethod
    def nullable(cls) -> bool:
        """Say whether a vector may be NULL."""
        return cls._nullable

    @classmethod
    def is_multi_vector(cls) -> bool:
        """Say whether it is a list of vectors."""
        return cls._nested

    @classmethod
    def arrow_type(cls) -> pa.DataType:
        """Return the Arrow type of a column."""
        vector = pa.list_(cls._value_type, cls._dim)
        return pa.list_(vector) if cls._nested else vector

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return how pydantic checks values: so many numbers, in each vector."""
        del source
        size = pydantic.Field(min_length=cls._dim, max_length=cls._dim)
        vector: Any = Annotated[list[float], size]
        inner = handler.generate_schema(list[vector] if cls._nested else vector)
        return {
            "type": "function-after",
            "function": {"type": "no-info", "function": cls},
            "schema": inner,
        }

    @classmethod
    def __get_validators__(cls) -> Iterator[Callable[[Any], Any]]:
        """Yield how pydantic 1 checks values."""
        yield cls._validate

    @classmethod
    def _validate(cls, value: Any) -> Any:
        for vector in value if cls._nested else [value]:
            if not hasattr(vector, "__len__") or len(vector) != cls._dim:
                message = f"a vector has {cls._dim} numbers"
                raise TypeError(message)
        return cls(value)  # type: ignore[call-arg]


def Vector(  # noqa: N802 - pylance's name
    dim: int, value_type: pa.DataType | None = None, nullable: bool = True
) -> Any:
    """Return a type for fields of a model that are vectors of ``dim`` numbers, float32 by default.

    >>> import pydantic
    >>> from pennon.pydantic import Vector, pydantic_to_schema
    >>> class Page(pydantic.BaseModel):
    ...     title: str
    ...     embedding: Vector(2)
    >>> pydantic_to_schema(Page).field("embedding").type
    FixedSizeListType(fixed_size_list<item: float>[2])
    >>> Page(title="a", embedding=[1, 2]).embedding
    [1.0, 2.0]
    """
    return _list_class("FixedSizeList", dim, value_type, nullable=nullable, nested=False)


def MultiVector(  # noqa: N802 - pylance's name
    dim: int, value_type: pa.DataType | None = None, nullable: bool = True
) -> Any:
    """Return a type for fields of a model that are lists of vectors of ``dim`` numbers, float32 by default.

    >>> from pennon.pydantic import MultiVector
    >>> MultiVector(2).arrow_type()
    ListType(list<item: fixed_size_list<item: float>[2]>)
    """
    return _list_class("MultiVectorList", dim, value_type, nullable=nullable, nested=True)


def _list_class(
    name: str, dim: int, value_type: pa.DataType | None, *, nullable: bool, nested: bool
) -> type:
    members = {
        "_dim": dim,
        "_value_type": pa.float32() if value_type is None else value_type,
        "_nullable": nullable,
        "_nested": nested,
    }
    return type(name, (list, FixedSizeListMixin), members)


def pydantic_to_schema(model: type[pydantic.BaseModel]) -> pa.Schema:
    """Return the Arrow schema of a model, of pydantic 2 or 1: its fields, and those of models in it.

    Raises ColumnTypeError (a TypeError), which names the field, for a type that Arrow has no column for.

    >>> import pydantic
    >>> from pennon.pydantic import pydantic_to_schema
    >>> class Row(pydantic.BaseModel):
    ...     id: int
    ...     tags: list[str] | None = None
    >>> print(pydantic_to_schema(Row))
    id: int64 not null
    tags: list<item: string>
      child 0, item: string
    """
    return pa.schema(_fields(model))


def check_model(model: Any) -> Any:
    """Return a class of pydantic models; raises ColumnTypeError (a TypeError) for anything else."""
    if not (isclass(model) and issubclass(model, pydantic.BaseModel)):
        message = f"a model is a subclass of pydantic.BaseModel, got {model!r}"
        raise ColumnTypeError(message)
    return model


def snake_case(name: str) -> str:
    """Return the name of a class in snake case: ``page_view`` for ``PageView``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def rows_of_models(data: Any, model: type[pydantic.BaseModel]) -> list[dict[str, Any]]:
    """Return the values of models as dicts; those of enums as their values.

    Raises ColumnTypeError (a TypeError) if one is not exactly of the class: its fields may be others.
    """
    if not isinstance(data, list):
        message = f"models are written as a list, got {type(data).__name__}"
        raise ColumnTypeError(message)
    for number, item in enumerate(data):
        if type(item) is not model:
            message = (
                f"row {number} is a {type(item).__name__}, not a {model.__name__}: "
                "write models of one class at a time"
            )
            raise ColumnTypeError(message)
    return [
        _plain(item.model_dump() if hasattr(item, "model_dump") else item.dict()) for item in data
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _fields(model: type[pydantic.BaseModel]) -> list[pa.Field[Any]]:
    found: Any = getattr(model, "model_fields", None) or getattr(model, "__fields__", {})
    return [_field(name, field) for name, field in found.items()]


def _field(name: str, field: Any) -> pa.Field[Any]:
    if hasattr(field, "annotation"):  # of pydantic 2
        annotation, allows_none = field.annotation, False
        extra = field.json_schema_extra
    else:
        annotation, allows_none = field.outer_type_, field.allow_none
        extra = (field.field_info.extra or {}).get("json_schema_extra")
    zone = extra.get("tz") if isinstance(extra, Mapping) else None
    plain, is_optional = _without_none(annotation)
    try:
        kind = _type(plain, zone)
    except ColumnTypeError as error:
        message = f"the field {name!r}: {error.message}"
        raise ColumnTypeError(message) from None
    is_vector = isclass(plain) and issubclass(plain, FixedSizeListMixin)
    nullable = is_optional or allows_none or (is_vector and plain.nullable())
    return pa.field(name, kind, nullable)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was one of its types."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) not in _UNIONS:
        return annotation, False
    others = [each for each in get_args(annotation) if each is not type(None)]
    is_optional = len(others) < len(get_args(annotation))
    return (others[0] if len(others) == 1 else annotation), is_optional


def _type(annotation: Any, zone: str | None) -> pa.DataType:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is datetime:
        return pa.timestamp("us", zone)
    if get_origin(annotation) in (list, tuple) and get_args(annotation):
        item, is_optional = _without_none(get_args(annotation)[0])
        kind = _type(item, zone)
        return pa.list_(pa.field("item", kind, nullable=True) if is_optional else kind)
    if isclass(annotation) and issubclass(annotation, FixedSizeListMixin):
        return annotation.arrow_type()
    if isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
        return pa.struct(_fields(annotation))
    if isclass(annotation) and issubclass(annotation, Enum):
        return _enum_type(annotation, zone)
    shown = getattr(annotation, "__name__", annotation)
    message = f"{shown} has no Arrow type; lists need the type of their items, as list[int] has"
    raise ColumnTypeError(message)


def _enum_type(enum: type[Enum], zone: str | None) -> pa.DataType:
    """Return the type of an enum's values: a dictionary of strings, or their own; string if there are several."""
    kinds = {type(member.value) for member in enum}
    if kinds == {str}:
        return pa.dictionary(pa.int32(), pa.string())
    return _type(kinds.pop(), zone) if len(kinds) == 1 else pa.string()
