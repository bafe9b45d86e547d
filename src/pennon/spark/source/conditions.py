"""Conditions and values as Spark's users say them, SQL text or a Column, and what can be told of them.

Spark evaluates them.  Of text that compares columns with literals, and nothing more, our own scan gives the
same answer without Spark, page statistics first: `predicate_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.spark.names import name_parts
from pennon.spark.source.scan_task import pushed_predicate
from pennon.spark.types import SYSTEM_COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pennon.scan.predicate import Predicate
    from pennon.spark.source.translation import Translation

Condition: TypeAlias = str | Column

_STAR = re.compile(r"(?:^|[(,.])\s*\*(?!\()")
"""All columns; a Column shows a product as ``*(a, b)``."""
_NAME = r"`(?:[^`]|``)*`|\w+"
_LEFT_TO_SPARK: Final = ("\\", "--", "/*", '"')
"""Settings of the session say what these mean: double quotes may stand around a text or a column's name."""
_LOOKS_ASIDE = re.compile(r"\bover\b|window", re.IGNORECASE)


def as_column(value: Condition) -> Column:
    """Return SQL text as a Column, and a Column as it is."""
    return sf.expr(value) if isinstance(value, str) else value


def check_kind(value: object, kind: type, message: str) -> None:
    """Raise TypeError with a message, which ends in what was given, for another kind of value."""
    if isinstance(value, bool) or not isinstance(value, kind):
        message = f"{message} '{type(value)}'"
        raise TypeError(message)


def check_flag(value: object, message: str) -> None:
    """Raise TypeError with a message for what is neither True nor False."""
    if not isinstance(value, bool):
        message = f"{message} '{type(value)}'"
        raise TypeError(message)


def check_text(value: object, what: str) -> None:
    """Raise TypeError for what is no text."""
    check_kind(value, str, f"{what} must be str, got")


def check_properties(values: object) -> dict[str, str]:
    """Return properties, or None; raises TypeError for a value that is no mapping of texts."""
    if values is None:
        return {}
    check_kind(values, Mapping, "properties needs to be a dict but got")
    found = dict(cast("Mapping[object, object]", values))
    for name, value in found.items():
        check_kind(name, str, f"All property names including {name} needs to be a str but got")
        check_kind(value, str, f"All property values including {value} needs to be a str but got")
    return {str(name): str(value) for name, value in found.items()}


def column_names(cols: Sequence[object], what: str) -> list[str]:
    """Return names that were given one by one, or as a list."""
    names: list[str] = []
    for each in cols:
        for name in each if isinstance(each, (list, tuple)) else [each]:
            check_text(name, f"{what} column")
            names.append(str(name))
    return names


def check_condition(value: object, what: str = "condition") -> None:
    """Raise TypeError for what is neither text nor a Column."""
    if not isinstance(value, (str, Column)):
        message = f"{what} must be a Spark SQL Column or a string, got {type(value).__name__}"
        raise TypeError(message)


def check_values(values: object, what: str) -> dict[str, Condition]:
    """Return a mapping of columns to what they become; raises TypeError for anything else."""
    if not isinstance(values, Mapping):
        message = f"{what} must be a dict, got {type(values).__name__}"
        raise TypeError(message)
    for name, value in values.items():
        if not isinstance(name, str):
            message = f"Keys of dict in {what} must contain only strings, got {name!r}"
            raise TypeError(message)
        if not isinstance(value, (str, Column)):
            message = f"Values of dict in {what} must contain only Spark SQL Columns or strings, got {value!r}"
            raise TypeError(message)
    return dict(values)


def columns_named(
    said: Iterable[Condition], columns: Sequence[str], alias: str | None
) -> list[str]:
    """Return the columns of a table that conditions may name; one too many costs time, no rows.

    A name behind that of something else (``s.id`` where the table is ``t``) is not the table's.  One
    that is missed makes the query fail when Spark analyses it, and it is asked again with all columns.
    """
    texts = [each if isinstance(each, str) else str(each) for each in said]
    if any(_STAR.search(text) for text in texts):
        return list(columns)
    return [name for name in columns if any(_may_name(text, name, alias) for text in texts)]


def system_columns_named(
    said: Iterable[Condition], columns: Sequence[str], alias: str | None, given: Iterable[str] = ()
) -> list[str]:
    """Return which of ``_rowid`` and ``_rowaddr`` conditions may name, where they are those of a table's rows.

    They are not where a column has that name.  Where ``given``, the columns of a merge's source, have it, they are
    with the table's alias alone.
    """
    texts = [each if isinstance(each, str) else str(each) for each in said]
    others = {name.lower() for name in given}
    names = [name for name in SYSTEM_COLUMNS if name not in columns]
    return [
        name
        for name in names
        if any(_may_name(text, name, alias, is_alone=name not in others) for text in texts)
    ]


def look_aside(said: Iterable[Condition]) -> bool:
    """Return whether some value may need rows of other fragments, or these in another order."""
    return any(_LOOKS_ASIDE.search(str(each)) for each in said)


def _may_name(text: str, name: str, alias: str | None, *, is_alone: bool = True) -> bool:
    """Return whether a text may name a column of a table; ``is_alone``: also without the table's alias."""
    pattern = rf"(?:({_NAME})\s*\.\s*)?`?(?<!\w){re.escape(name.replace('`', '``'))}(?!\w)"
    for found in re.finditer(pattern, text, re.IGNORECASE):
        before = found.group(1)
        if alias is not None and before is not None:
            if name_parts(before)[0].lower() == alias.lower():
                return True
        elif is_alone:
            return True
    return False


# --- conditions that need no Spark -----------------------------------------------------------------


def predicate_of(
    text: Condition, schema: st.StructType, stored: pa.Schema, alias: str | None = None
) -> Predicate | None:
    """Return a condition as one of our scans, if it has Spark's answer for every row; else None."""
    if not isinstance(text, str) or any(sign in text for sign in _LEFT_TO_SPARK):
        return None
    found = _translation(schema, alias).condition(text)
    return None if found is None else pushed_predicate([found], arrow_schema(schema), stored)


def literals_of(
    values: Mapping[str, Condition], schema: st.StructType, stored: pa.Schema
) -> dict[str, pa.Scalar] | None:
    """Return literals as the columns of a table hold them, if all values are such; else None."""
    translation = _translation(schema, None)
    found: dict[str, pa.Scalar] = {}
    for name, text in values.items():
        if (
            name not in schema.names
            or not isinstance(text, str)
            or any(sign in text for sign in _LEFT_TO_SPARK)
        ):
            return None
        scalar = translation.scalar(text, name, stored.field(name).type)
        if scalar is None:
            return None
        found[name] = scalar
    return found


def _translation(schema: st.StructType, alias: str | None) -> Translation:
    from pennon.spark.source.translation import (
        Translation,
    )  # saves sqlglot: half a second, for few who need it

    return Translation(schema, alias)
