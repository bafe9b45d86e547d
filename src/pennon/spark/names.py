"""Names of columns: as Spark compares them, and those that no table gets from Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyspark.sql import types as st

from pennon.errors import InvalidSchemaError

_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def find_name(name: str, known: Iterable[str], *, case_sensitive: bool) -> str | None:
    """Return the one of some names that a name means: the same, else one of another case, else None."""
    names = list(known)
    if name in names or case_sensitive:
        return name if name in names else None
    lower = name.lower()
    return next((each for each in names if each.lower() == lower), None)


def name_parts(said: str) -> tuple[str, ...]:
    """Split a name of SQL at its dots, and take the quotes off: ``t.`a b` `` has the parts t and ``a b``.

    A text that is no such name is one part.
    """
    parts: list[str] = []
    at = 0
    while found := _PART.match(said, at):
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if at == len(said):
            return tuple(parts)
        if said[at] != ".":
            break
        at += 1
    return (said,)


def quoted(name: str) -> str:
    """Return a column's name with backticks, as SQL and Columns take it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def check_new_names(schema: st.StructType, *, case_sensitive: bool) -> None:
    """Raise InvalidSchemaError for a schema without columns, and for names that Spark cannot tell apart.

    Or that nobody can say, as an empty one.  Fields of structs are looked at, too.
    """
    if not schema.fields:
        message = "the DataFrame has no columns, and a table needs one"
        raise InvalidSchemaError(message)
    _check_struct(schema, "", case_sensitive=case_sensitive)


def _check_struct(struct: st.StructType, path: str, *, case_sensitive: bool) -> None:
    where = f"column {path!r}" if path else "the DataFrame"
    seen: dict[str, str] = {}
    for field in struct.fields:
        key = field.name if case_sensitive else field.name.lower()
        if not field.name:
            message = f"{where} has a field without a name; no reader could ask for it"
            raise InvalidSchemaError(message)
        if key in seen:
            message = (
                f"{where} has the fields {seen[key]!r} and {field.name!r}, which Spark does not tell apart; "
                "rename one (or set spark.sql.caseSensitive, and write with pennon.spark.write)"
            )
            raise InvalidSchemaError(message)
        seen[key] = field.name
        inner = f"{path}.{field.name}" if path else field.name
        _check_type(field.dataType, inner, case_sensitive=case_sensitive)


def _check_type(kind: st.DataType, path: str, *, case_sensitive: bool) -> None:
    if isinstance(kind, st.StructType):
        _check_struct(kind, path, case_sensitive=case_sensitive)
    elif isinstance(kind, st.ArrayType):
        _check_type(kind.elementType, path, case_sensitive=case_sensitive)
    elif isinstance(kind, st.MapType):
        _check_type(kind.keyType, path, case_sensitive=case_sensitive)
        _check_type(kind.valueType, path, case_sensitive=case_sensitive)
