"""Columns as statements define them: names, types, NOT NULL, comments, and the primary key."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as st

from pennon.catalog.base import TableName
from pennon.errors import (
    ArgumentError,
)
from pennon.ops.columns.settings import update_field_metadata
from pennon.schema.wire import PRIMARY_KEY, is_primary_key
from pennon.spark.names import quoted
from pennon.spark.statements.commands import (
    refused,
)
from pennon.spark.statements.words import Cursor, Word, dotted
from pennon.spark.table.builder import COMMENT, parse_type
from pennon.spark.table.lance_table import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RENAMED_PROPERTIES: Final = {"file_format_version": "data_storage_version"}
_AFTER_TYPE: Final = frozenset(
    {
        "NOT", "NULL", "COMMENT", "DEFAULT", "GENERATED", "PRIMARY", "UNIQUE", "CHECK", "MASK", "FIRST", "AFTER",
        "CONSTRAINT", ",", ")", "REFERENCES",
    }
)  # fmt: skip
_ANGLES: Final = re.compile(r"[<>]+")


@dataclass(frozen=True, slots=True)
class ColumnText:
    """A column as a statement defines it: the type is text."""

    name: str
    kind: str
    nullable: bool = True
    comment: str | None = None
    is_key: bool = False


def column_definitions(cursor: Cursor) -> tuple[list[ColumnText], list[str]]:
    """Read ``(name type [NOT NULL] [COMMENT 'text'], ...)``; return columns, and those of PRIMARY KEY."""
    cursor.needs("(")
    columns: list[ColumnText] = []
    key: list[str] = []
    while True:
        if cursor.takes("CONSTRAINT"):
            cursor.identifier()
        if cursor.takes("PRIMARY", "KEY"):
            key += cursor.names()
            cursor.takes("NOT", "ENFORCED")
        elif cursor.peek() in ("UNIQUE", "CHECK", "FOREIGN"):
            raise refused(
                cursor.statement, "a Lance table has no constraints but NOT NULL and PRIMARY KEY"
            )
        else:
            column = column_definition(cursor, (cursor.identifier(),))
            key += [column.name] if column.is_key else []
            columns.append(column)
        if not cursor.takes(","):
            break
    cursor.needs(")")
    return columns, key


def column_definition(cursor: Cursor, name: TableName) -> ColumnText:
    """Read the type of a column, and what follows it.

    Raises UnsupportedError for a default value, a generated column, and a place among the other columns.
    """
    cursor.takes(":")
    found = ColumnText(dotted(name) if len(name) > 1 else name[0], type_text(cursor))
    while True:
        if cursor.takes("NOT", "NULL"):
            found = replace(found, nullable=False)
        elif cursor.takes("PRIMARY", "KEY"):
            found = replace(found, nullable=False, is_key=True)
        elif cursor.takes("NULL"):
            pass
        elif cursor.takes("COMMENT"):
            found = replace(found, comment=cursor.text_literal())
        elif cursor.peek() in ("DEFAULT", "GENERATED"):
            raise refused(
                cursor.statement,
                f"column {found.name!r}: a Lance table has no default values, and no generated columns",
            )
        elif cursor.peek() in ("FIRST", "AFTER"):
            raise refused(
                cursor.statement,
                f"column {found.name!r}: new columns are the last ones of a Lance table",
            )
        else:
            return found


def type_text(cursor: Cursor) -> str:
    """Read a type, and return its text."""
    first, depth = cursor.at, 0
    while not cursor.is_done:
        word = cursor.peek()
        if depth == 0 and word in _AFTER_TYPE:
            break
        depth += _depth(cursor.words[cursor.at])
        cursor.at += 1
    if cursor.at == first:
        raise cursor.wrong("the type of a column")
    return cursor.statement.slice(first, cursor.at)


def _depth(word: Word) -> int:
    if word.is_text or word.is_quoted:
        return 0
    if _ANGLES.fullmatch(word.text):
        return word.text.count("<") - word.text.count(">")
    return (word.text == "(") - (word.text == ")")


def schema_of(spark: SparkSession, columns: list[ColumnText]) -> st.StructType:
    """Return Spark's schema of columns that a statement defines."""
    parts = ", ".join(f"{quoted(each.name)}: {each.kind}" for each in columns)
    kind = parse_type(spark, f"STRUCT<{parts}>")
    if not isinstance(kind, st.StructType) or len(kind.fields) != len(columns):
        message = f"the columns {parts} are no list of names and types"
        raise ArgumentError(message)
    pairs = zip(columns, kind.fields, strict=True)
    return st.StructType(
        [
            st.StructField(said.name, found.dataType, said.nullable, _comment(said))
            for said, found in pairs
        ]
    )


def _comment(said: ColumnText) -> dict[str, str]:
    return {} if said.comment is None else {COMMENT: said.comment}


def set_primary_key(table: LanceTable, names: list[str]) -> None:
    """Note down the columns of the primary key.  Raises ArgumentError for one that may be NULL or is nested."""
    snapshot = table.snapshot()
    fields = {each.name: each for each in snapshot.manifest.schema.fields}
    if any(map(is_primary_key, fields.values())):
        message = "the table has a primary key already, which cannot be changed"
        raise ArgumentError(message)
    if len({*names}) < len(names):
        message = f"a column of the primary key is named twice: {', '.join(names)}"
        raise ArgumentError(message)
    for name in names:
        found = fields.get(name)
        if found is None or found.nullable or found.children:
            message = f"a primary key has columns that are NOT NULL and no structs or lists; {name!r} is no such column"
            raise ArgumentError(message)
    values = {
        name: {PRIMARY_KEY: "true", f"{PRIMARY_KEY}:position": str(number)}
        for number, name in enumerate(names, start=1)
    }
    update_field_metadata(snapshot, values)
