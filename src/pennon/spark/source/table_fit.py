"""Fit values to the columns of a table: the one rule of appends, overwrites, merges and updates.

A table keeps its types.  Values take the type of the column, or of the field inside it, that has their name, and
`pennon.spark.arrow_convert` checks each value.  ``mergeSchema`` and ``withSchemaEvolution`` let the table grow: by
columns and fields of structs that it lacks, by numbers that are wider, and by the type of the first values of a
column that is void.  Nothing is ever made narrower, and nothing goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as st

from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.schema.maps import map_entries
from pennon.schema.version import FileVersion
from pennon.spark.names import find_name
from pennon.spark.types import INTEGERS, arrow_schema, is_assignable, lance_schema, spark_type

_FLOATS: Final = (st.FloatType, st.DoubleType)
_WHOLE_DIGITS: Final = (3, 5, 10, 19)
"""How many digits the numbers of `INTEGERS` have."""


@dataclass(frozen=True, slots=True)
class FitRule:
    """The allowed differences of columns: the case of their names, and the growth of the table.

    ``version`` is that of the data files, ``fixed_size_lists`` are those of new columns.  ``assigns``: values are
    those of a merge or an update, not the columns of a DataFrame, which errors then say.
    """

    version: FileVersion
    merges: bool = False
    case_sensitive: bool = False
    fixed_size_lists: Mapping[str, int] | None = None
    assigns: bool = False

    @property
    def growth(self) -> str:
        """Return what lets a table grow."""
        return "withSchemaEvolution() of a merge" if self.assigns else "option mergeSchema"

    @property
    def source(self) -> str:
        """Return where values come from."""
        return "the value" if self.assigns else "the DataFrame"

    def differs(self, given: st.DataType) -> str:
        """Return the words for a type that is another than the table's."""
        name = given.simpleString()
        return f"would get {name}" if self.assigns else f"{name} in the DataFrame"


@dataclass(frozen=True, slots=True)
class Fit:
    """The form in which a DataFrame is written.

    ``rows`` has its columns in its order, as the table calls and stores them; ``table`` all columns of the
    table as they are then, old ones first.
    """

    rows: pa.Schema
    table: pa.Schema


def fit_columns(table: pa.Schema, schema: st.StructType, rule: FitRule) -> Fit:
    """Fit a DataFrame's columns to a table; columns that it lacks read as NULL.

    Raises SchemaMismatchError for a column that the table lacks, or whose values it cannot take.
    """
    names = [_named(table, field.name, rule) for field in schema.fields]
    known = [name for name in names if name is not None]
    missing = [f.name for f in table if not f.nullable and f.name not in known]
    if missing:
        message = f"the DataFrame lacks {', '.join(missing)}, which the table requires"
        raise SchemaMismatchError(message)
    merged = {field.name: field for field in table}
    rows = []
    for given, name in zip(schema.fields, names, strict=True):
        fitted = (
            _new_field(given, rule)
            if name is None
            else _fitted(merged[name], given.dataType, name, rule)
        )
        merged[fitted.name] = fitted
        rows.append(fitted)
    return Fit(pa.schema(rows, table.metadata), pa.schema(merged.values(), table.metadata))


def fit_value(field: pa.Field, given: st.DataType, rule: FitRule) -> pa.Field:
    """Return a column as it is when it holds values of a type; the same one where it does not grow.

    Raises SchemaMismatchError for values that it cannot take.
    """
    return _fitted(field, given, field.name, rule)


def grown_columns(table: pa.Schema, schema: st.StructType, rule: FitRule) -> pa.Schema:
    """Return a table's columns, grown by those of a schema; one that does not fit stays as it is."""
    merged = {field.name: field for field in table}
    for given in schema.fields:
        name = find_name(given.name, table.names, case_sensitive=rule.case_sensitive)
        if name is None:
            merged[given.name] = _new_field(given, rule)
            continue
        with suppress(SchemaMismatchError):
            merged[name] = _fitted(merged[name], given.dataType, name, rule)
    return pa.schema(merged.values(), table.metadata)


def _named(table: pa.Schema, name: str, rule: FitRule) -> str | None:
    """Return the table's column that a column is written to; None: it is new, and may be."""
    found = find_name(name, table.names, case_sensitive=rule.case_sensitive)
    if found is None and not rule.merges:
        message = (
            f"the table has no column {name!r}; it has {', '.join(table.names)} "
            f"({rule.growth} adds columns)"
        )
        raise SchemaMismatchError(message)
    return found


def _new_field(given: st.StructField, rule: FitRule) -> pa.Field:
    sizes = {
        name: size
        for name, size in (rule.fixed_size_lists or {}).items()
        if name.split(".")[0] == given.name
    }
    return lance_schema(st.StructType([given]), sizes, rule.version).field(0)


def _fitted(field: pa.Field, given: st.DataType, path: str, rule: FitRule) -> pa.Field:
    """Return the table's field as it is after the write; the same one where it does not grow."""
    wanted = spark_type(field, path)
    if isinstance(field.type, pa.BaseExtensionType):
        return _checked(field, given, wanted, path, rule)
    if isinstance(wanted, st.NullType) and not isinstance(given, st.NullType):
        return _first_type(field, given, path, rule)
    if isinstance(wanted, st.StructType) and isinstance(given, st.StructType):
        return _fitted_struct(field, given, path, rule)
    if isinstance(wanted, st.ArrayType) and isinstance(given, st.ArrayType):
        item = field.type.value_field
        inside = replace(rule, merges=False) if rule.assigns and _is_vector(field.type) else rule
        fitted = _fitted(item, given.elementType, f"{path}.{item.name}", inside)
        return field if fitted is item else field.with_type(_list_of(field.type, fitted))
    if isinstance(wanted, st.MapType) and isinstance(given, st.MapType):
        return _fitted_map(field, given, path, rule)
    is_number = not isinstance(wanted, st.DecimalType) or pat.is_decimal(field.type)
    if rule.merges and is_number and _is_wider(given, wanted):
        arrow = arrow_schema(st.StructType([st.StructField(field.name, given)]))
        return field.with_type(arrow.field(0).type)
    return _checked(field, given, wanted, path, rule)


def _first_type(field: pa.Field, given: st.DataType, path: str, rule: FitRule) -> pa.Field:
    """Return a void column, or a void field inside one, with the type of its first values."""
    if not rule.merges:
        message = (
            f"column {path!r} is void in the table and {rule.differs(given)} ({rule.growth} gives it that "
            "type, and so does alterColumn)"
        )
        raise SchemaMismatchError(message)
    sized = rule if path == field.name else FitRule(rule.version)
    new = _new_field(st.StructField(field.name, given), sized)
    metadata = {**(field.metadata or {}), **(new.metadata or {})}
    return field.with_type(new.type).with_metadata(metadata or None)


def _checked(
    field: pa.Field, given: st.DataType, wanted: st.DataType, path: str, rule: FitRule
) -> pa.Field:
    if not is_assignable(given, wanted):
        message = (
            f"column {path!r} is {wanted.simpleString()} in the table and {rule.differs(given)}; "
            "cast it first"
        )
        raise SchemaMismatchError(message)
    return field


def _fitted_map(field: pa.Field, given: st.MapType, path: str, rule: FitRule) -> pa.Field:
    """Return a map whose values may have grown; keys stay what they are, for they are what is looked up."""
    entries = map_entries(field)
    if entries is None:
        return field
    key, value = entries
    inside = rule if pat.is_null(key.type) else replace(rule, merges=False)
    parts = [
        _fitted(key, given.keyType, f"{path}.key", inside),
        _fitted(value, given.valueType, f"{path}.value", rule),
    ]
    if parts[0] is key and parts[1] is value:
        return field
    if pat.is_map(field.type):
        return field.with_type(pa.map_(*parts))
    pair = field.type.value_field
    return field.with_type(_list_of(field.type, pair.with_type(pa.struct(parts))))


def _fitted_struct(field: pa.Field, given: st.StructType, path: str, rule: FitRule) -> pa.Field:
    parts = {part.name: part for part in _parts(field.type)}
    before, known = dict(parts), set()
    for each in given.fields:
        name = find_name(each.name, before, case_sensitive=rule.case_sensitive)
        inner = f"{path}.{each.name}"
        if name in known:
            message = f"column {path!r} of {rule.source} has two fields for {name!r}; drop one"
            raise SchemaMismatchError(message)
        if name is not None:
            parts[name] = _fitted(before[name], each.dataType, inner, rule)
            known.add(name)
        elif rule.merges:
            parts[each.name] = _new_field(each, FitRule(rule.version))
        else:
            message = (
                f"column {path!r} has no field {each.name!r}; it has {', '.join(before)} "
                f"({rule.growth} adds fields)"
            )
            raise SchemaMismatchError(message)
    missing = [name for name, part in before.items() if not part.nullable and name not in known]
    if missing:
        message = (
            f"column {path!r} of {rule.source} lacks {', '.join(missing)}, which the table requires"
        )
        raise SchemaMismatchError(message)
    is_same = len(parts) == len(before) and all(parts[name] is before[name] for name in before)
    return field if is_same else field.with_type(pa.struct(list(parts.values())))


def _is_vector(kind: pa.DataType) -> bool:
    """Return whether values are vectors: a merge rounds doubles to them, and does not write all of them anew."""
    return bool(pat.is_fixed_size_list(kind) and pat.is_floating(kind.value_type))


def _parts(struct: pa.DataType) -> Iterator[pa.Field]:
    return (struct.field(i) for i in range(struct.num_fields))


def _list_of(kind: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the same kind of list of other items."""
    if pat.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.large_list(item) if pat.is_large_list(kind) else pa.list_(item)


def _is_wider(given: st.DataType, wanted: st.DataType) -> bool:
    """Return whether values of one type are all of another, and more; the types are those that Delta widens."""
    for kinds in (INTEGERS, _FLOATS):
        if isinstance(given, kinds) and isinstance(wanted, kinds):
            return _rank(given, kinds) > _rank(wanted, kinds)
    if isinstance(given, st.DecimalType) and isinstance(wanted, (st.DecimalType, *INTEGERS)):
        whole, scale = _digits(wanted)
        grows = given.precision - given.scale >= whole and given.scale >= scale
        return grows and given != wanted
    if isinstance(given, st.DoubleType):
        return isinstance(wanted, INTEGERS) and not isinstance(wanted, st.LongType)
    return isinstance(given, st.TimestampNTZType) and isinstance(wanted, st.DateType)


def _digits(kind: st.DataType) -> tuple[int, int]:
    """Return how many digits before and after the point the numbers of a type have."""
    if isinstance(kind, st.DecimalType):
        return kind.precision - kind.scale, kind.scale
    return _WHOLE_DIGITS[_rank(kind, INTEGERS)], 0


def _rank(kind: st.DataType, kinds: Sequence[type[st.DataType]]) -> int:
    return next(at for at, each in enumerate(kinds) if isinstance(kind, each))


def check_sizes(sizes: Mapping[str, int], fit: Fit, before: pa.Schema) -> None:
    """Raise ArgumentError for dimensions of columns that the table has otherwise.

    They count for new columns; what is there keeps its type.
    """
    for name, size in sizes.items():
        top = name.split(".")[0]
        if top in before.names and "." not in name:
            kind = fit.table.field(top).type
            if not (pat.is_fixed_size_list(kind) and kind.list_size == size):
                message = (
                    f"fixed_size_list asks for {name}:{size}, but the table's column is {kind}; an "
                    "overwrite keeps the table's types unless overwriteSchema is true"
                )
                raise ArgumentError(message)
