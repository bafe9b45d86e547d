"""Assigned values, by the names of columns and of fields in structs.

A field of a struct that is set makes the struct anew, with its other fields as they were.  A struct that is NULL
becomes one whose other fields are NULL, as in Delta; in a new row there is no struct before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.schema.project import parse_path
from pennon.spark.names import find_name
from pennon.spark.source.conditions import Condition, as_column

if TYPE_CHECKING:
    from pyspark.sql import Column

OldColumn: TypeAlias = "Callable[[str], Column | None]"
"""Returns a column of the table in the rows that change; None where rows are new."""
Values: TypeAlias = "Condition | dict[str, Values]"
"""The new value of a column, or the new values of some fields of a struct."""


@dataclass(frozen=True, slots=True)
class TableNames:
    """The columns of a table by which values are assigned: their types, the table's alias, and how names compare.

    ``before`` are the columns as they are in the rows that are read; ``now`` may have more of them, and more fields.
    """

    before: st.StructType
    now: st.StructType
    alias: str | None
    case_sensitive: bool

    def path(self, said: str) -> tuple[str, ...]:
        """Return the column, and the fields inside it, that a name means, as the table calls them.

        The table's alias may stand before it.  Raises ArgumentError if there is no such column or field.
        """
        for names in possible_paths(
            said, self.now.names, self.alias, case_sensitive=self.case_sensitive
        ):
            top = self._name(names[0], self.now)
            if top is not None:
                return (top, *self._fields(said, top, names[1:]))
        message = f"the table has no column {said!r}; it has {', '.join(self.now.names)}"
        raise ArgumentError(message)

    def _fields(self, said: str, top: str, names: Sequence[str]) -> Iterator[str]:
        kind = self.now[top].dataType
        for name in names:
            if not isinstance(kind, st.StructType):
                message = (
                    f"{said!r} is no field of a struct: {top!r} is {self.now[top].dataType.simpleString()}; "
                    "set the whole column"
                )
                raise ArgumentError(message)
            found = self._name(name, kind)
            if found is None:
                message = f"column {top!r} has no field {name!r} for {said!r}; it has {', '.join(kind.names)}"
                raise ArgumentError(message)
            yield found
            kind = kind[found].dataType

    def _name(self, name: str, kind: st.StructType) -> str | None:
        return find_name(name, kind.names, case_sensitive=self.case_sensitive)


def possible_paths(
    said: str, names: Sequence[str], alias: str | None, *, case_sensitive: bool
) -> list[tuple[str, ...]]:
    """Return the paths that a name may mean: without the table's alias, as it is, and as one column's name."""
    found: list[tuple[str, ...]] = []
    try:
        path = parse_path(said)
    except ArgumentError:
        path = (said,)
    if alias is not None and len(path) > 1:
        aliases = [alias]
        if find_name(path[0], aliases, case_sensitive=case_sensitive) is not None:
            found.append(path[1:])
    whole = find_name(said, names, case_sensitive=case_sensitive)
    return [*([] if whole is None else [(whole,)]), *found, path]


def assigned_values(values: Mapping[str, Condition], table: TableNames) -> dict[str, Values]:
    """Return values by the table's columns, those of fields below the columns that have them.

    Raises ArgumentError for a column that is not there, or gets two values.
    """
    found: dict[str, Values] = {}
    for said, value in values.items():
        *above, last = path = table.path(said)
        here = found
        for name in above:
            inner = here.setdefault(name, {})
            if not isinstance(inner, dict):
                raise _given_twice(path)
            here = inner
        if last in here:
            raise _given_twice(path)
        here[last] = value
    return found


def _given_twice(path: Sequence[str]) -> ArgumentError:
    message = f"column {'.'.join(path)!r} gets two values"
    return ArgumentError(message)


def assigned_columns(
    values: Mapping[str, Values], table: TableNames, old: OldColumn
) -> dict[str, Column]:
    """Return the new values of columns; a struct with set fields is built from its fields."""
    return {
        name: _value(value, table.now[name].dataType, _type_before(table.before, name), old(name))
        if isinstance(value, dict)
        else as_column(value)
        for name, value in values.items()
    }


def _value(
    value: Values, kind: st.DataType, before: st.DataType | None, old: Column | None
) -> Column:
    if not isinstance(value, dict) or not isinstance(kind, st.StructType):
        return as_column(value)  # type: ignore[arg-type]  # a field's value, not the values of its fields
    parts = []
    for field in kind.fields:
        inner = _type_before(before, field.name)
        part = None if old is None or inner is None else old.getField(field.name)
        if field.name in value:
            made = _value(value[field.name], field.dataType, inner, part)
        else:
            made = sf.lit(None).cast(field.dataType) if part is None else part
        parts.append(made.alias(field.name))
    return sf.struct(*parts)


def _type_before(before: st.DataType | None, name: str) -> st.DataType | None:
    """Return the type of a field of a struct; None where it has no such field, or is no struct."""
    if not isinstance(before, st.StructType) or name not in before.names:
        return None
    return before[name].dataType
