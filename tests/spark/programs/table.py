"""A table with nested columns beside its model in plain Python, for the steps of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

import lance
import pyarrow as pa
import pyspark.sql.types as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.errors import LanceError
from pennon.spark import LanceTable
from tests.spark.programs.shapes import (
    SCALARS,
    Field,
    Way,
    arrow_type,
    for_arrow,
    for_spark,
    is_strict,
    plain,
    quoted,
    random_shape,
    random_value,
    respelled,
    scalar,
    spark_type,
    spoiled,
    sql_of,
    value_at,
    ways,
    with_value,
)

Row = dict[str, Any]
ID: Final = Field("id", scalar("long"))
Condition = tuple[str, Callable[[Row], bool]]
"""Text of SQL, and the same in Python."""


class DifferenceError(AssertionError):
    """The table and the model differ."""


@dataclass(slots=True)
class Setting:
    """The session's settings, and the table's."""

    ansi: bool
    sensitive: bool
    strict: bool
    version: str
    stable: bool

    @classmethod
    def random(cls, rng: Random) -> Setting:
        """Draw them."""
        strict = rng.random() < 0.4
        return cls(
            ansi=rng.random() < 0.5,
            sensitive=rng.random() < 0.3,
            strict=strict,
            version="2.2" if strict else rng.choice(["2.1", "2.2"]),
            stable=rng.random() < 0.5,
        )


@dataclass(slots=True)
class ModelTable:
    """A table, and what it should hold."""

    spark: SparkSession
    uri: str
    seed: int
    log: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    fields: tuple[Field, ...] = ()
    rows: dict[int, Row] = field(default_factory=dict)
    rng: Random = field(init=False)
    setting: Setting = field(init=False)
    next_id: int = 0
    next_name: int = 0

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.setting = Setting.random(self.rng)

    @property
    def table(self) -> LanceTable:
        """Open the newest version."""
        return LanceTable.forPath(self.spark, self.uri)

    # --- what steps need --------------------------------------------------------------------------

    def name(self) -> str:
        """Return a name that no column had."""
        self.next_name += 1
        return f"c{self.next_name}"

    def new_row(self, key: int, fields: Sequence[Field]) -> Row:
        """Return random values for columns."""
        made = {f.name: random_value(self.rng, f.shape, required=f.required) for f in fields}
        return {**made, "id": key}

    def new_ids(self, count: int) -> list[int]:
        """Return ids that no row had."""
        first, self.next_id = self.next_id, self.next_id + count
        return list(range(first, first + count))

    def some_ids(self, most: int) -> list[int]:
        """Return ids of rows."""
        known = sorted(self.rows)
        return self.rng.sample(known, self.rng.randint(0, min(len(known), most)))

    def coin(self, share: float = 0.5) -> bool:
        """Return whether something happens."""
        return self.rng.random() < share

    def source_fields(self) -> list[Field]:
        """Return the table's columns as a source may have them."""
        case = not self.setting.sensitive
        found = [
            replace(f, shape=respelled(self.rng, f.shape, case=case)) if f.name != "id" else f
            for f in self.fields
        ]
        found = [
            replace(f, name=f.name.upper()) if case and f.name != "id" and self.coin(0.2) else f
            for f in found
        ]
        self.rng.shuffle(found)
        return found

    def frame(self, fields: Sequence[Field], rows: Iterable[Row]) -> DataFrame:
        """Return rows as a DataFrame; names of fields may differ from the rows' in case."""
        schema = st.StructType([st.StructField(f.name, spark_type(f.shape)) for f in fields])
        data = []
        for row in rows:
            by_name = row if self.setting.sensitive else {n.lower(): v for n, v in row.items()}
            names = [f.name if self.setting.sensitive else f.name.lower() for f in fields]
            data.append(
                tuple(
                    for_spark(f.shape, by_name[name]) for f, name in zip(fields, names, strict=True)
                )
            )
        return self.spark.createDataFrame(data, schema)

    def spoil(self, fields: Sequence[Field], rows: list[Row]) -> bool:
        """Put a number into a row that the table does not hold, now and then; tells whether it did."""
        if not self.coin(0.15):
            return False
        for own in self.fields:
            given = next((f for f in fields if f.name.lower() == own.name.lower()), None)
            if given is None or (self.setting.sensitive and given.name != own.name):
                continue
            for at, row in enumerate(rows):
                value, spoilt = spoiled(own.shape, given.shape, row[own.name])
                if spoilt:
                    rows[at] = {**row, own.name: value}
                    return True
        return False

    def condition(self, alias: str = "") -> Condition:
        """Return a condition on the table's rows."""
        by, rest = self.rng.randint(2, 4), self.rng.randint(0, 1)
        if self.coin():
            return f"{alias}id % {by} = {rest}", lambda row: row["id"] % by == rest
        way = self.rng.choice(list(ways(self.fields)))
        if self.coin():
            return f"{alias}{quoted(way)} IS NULL", lambda row: value_at(way, row) is None
        return f"{alias}{quoted(way)} IS NOT NULL", lambda row: value_at(way, row) is not None

    def attempt(self, what: str, do: Callable[[], Any], *, refused: bool = False) -> None:
        """Do a step and compare; a refused one must fail and leave all as it was."""
        self.log.append(what + ("  -- must be refused" if refused else ""))
        op = what.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]
        try:
            do()
        except (LanceError, PySparkException) as error:
            if not refused:
                message = f"{type(error).__name__}: {error}"
                raise DifferenceError(self.story(message)) from error
            self.done[f"{op} refused"] += 1
        else:
            if refused:
                raise DifferenceError(self.story("it was not refused"))
            self.done[op] += 1

    def story(self, message: str) -> str:
        """Return the program so far, and what is wrong."""
        return "\n".join([f"seed {self.seed}, {self.setting}", *self.log, message])

    def check(self) -> None:
        """Compare the table with the model, read by Spark and counted by pylance."""
        shown = self.table.toDF()
        types = {f.name: shape_text(f) for f in self.fields}
        there = {f.name: _sorted(f.dataType) for f in shown.schema}
        if there != types:
            raise DifferenceError(self.story(f"columns are {there}, should be {types}"))
        found = sorted(
            ({f.name: plain(f.shape, row[f.name]) for f in self.fields} for row in shown.collect()),
            key=lambda row: row["id"],
        )
        wanted = [
            {f.name: plain(f.shape, self.rows[key][f.name]) for f in self.fields}
            for key in sorted(self.rows)
        ]
        if found != wanted:
            raise DifferenceError(self.story(_difference(found, wanted)))
        dataset = lance.dataset(self.uri)
        dataset.validate()
        if dataset.count_rows() != len(self.rows):
            raise DifferenceError(self.story(f"pylance counts {dataset.count_rows()}"))

    # --- the table --------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the table: by Spark, or of Arrow with fields that may not be NULL."""
        strict = self.setting.strict
        count = self.rng.randint(1, 3)
        made = [
            Field(
                self.name(),
                random_shape(self.rng, 3, strict=strict, variants=not strict),
                required=strict and self.coin(0.2),
            )
            for _ in range(count)
        ]
        if self.setting.sensitive:
            made += [Field(name, scalar(self.rng.choice(["int", "string"]))) for name in "vV"]
        self.fields = (ID, *made)
        rows = [self.new_row(key, self.fields) for key in self.new_ids(self.rng.randint(1, 14))]
        self.rows = {row["id"]: row for row in rows}
        self.log.append(f"create {[(f.name, shape_text(f), f.required) for f in self.fields]}")
        options: dict[str, Any] = {
            "data_storage_version": self.setting.version,
            "enable_stable_row_ids": self.setting.stable,
        }
        if strict:
            pennon.write_dataset(self._arrow(rows), self.uri, max_rows_per_file=5, **options)
        else:
            frame = self.frame(self.fields, rows).repartition(2)
            pennon.spark.write(frame, self.uri, **options)
        self.check()

    def _arrow(self, rows: list[Row]) -> pa.Table:
        schema = pa.schema(
            [pa.field(f.name, arrow_type(f.shape), not f.required) for f in self.fields]
        )
        columns = [
            pa.array([for_arrow(f.shape, row[f.name]) for row in rows], schema.field(f.name).type)
            for f in self.fields
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def assignable(self) -> list[Way]:
        """Return the ways that a change may set; not into structs with fields that may not be NULL."""
        return [
            way
            for way in ways(self.fields)
            if way[0].name != "id" and not any(is_strict(f.shape) for f in way[:-1])
        ]

    def assignments(
        self, prefix: str = "", *, source: str | None = None
    ) -> list[tuple[Way, str, Callable[[Row, Row], Any]]]:
        """Return what is set to what: each value as SQL, and of a table's row and a source's."""
        able = self.assignable()
        self.rng.shuffle(able)
        chosen: list[Way] = []
        for way in able:
            if all(way[: len(o)] != o and o[: len(way)] != way for o in chosen):
                chosen.append(way)
        return [
            (way, *self._value(way, prefix, source)) for way in chosen[: self.rng.randint(1, 2)]
        ]

    def _value(
        self, way: Way, prefix: str, source: str | None
    ) -> tuple[str, Callable[[Row, Row], Any]]:
        last = way[-1]
        alike = [
            other
            for other in ways(self.fields)
            if other[-1].shape == last.shape and last.shape.kind in SCALARS
        ]
        if source is not None and not last.required and self.coin():
            return f"{source}{quoted(way)}", lambda _, given: value_at(way, given)
        if alike and not last.required and not source and self.coin(0.4):
            other = self.rng.choice(alike)
            return f"{prefix}{quoted(other)}", lambda row, _: value_at(other, row)
        value = random_value(self.rng, last.shape, required=last.required)
        return sql_of(self.rng, last.shape, value), lambda _row, _given: value


def shape_text(column: Field) -> str:
    """Return a column's type as text, fields of structs by their names."""
    return _sorted(spark_type(column.shape))


def _sorted(type_: st.DataType) -> str:
    if isinstance(type_, st.StructType):
        inner = sorted(f"{f.name}:{_sorted(f.dataType)}" for f in type_)
        return f"struct<{','.join(inner)}>"
    if isinstance(type_, st.ArrayType):
        return f"array<{_sorted(type_.elementType)}>"
    if isinstance(type_, st.MapType):
        return f"map<{_sorted(type_.keyType)},{_sorted(type_.valueType)}>"
    return type_.simpleString()


def _difference(found: list[Row], wanted: list[Row]) -> str:
    if [row["id"] for row in found] != [row["id"] for row in wanted]:
        return f"ids are {[row['id'] for row in found]}, should be {[row['id'] for row in wanted]}"
    pairs = zip(found, wanted, strict=True)
    one, other = next((a, b) for a, b in pairs if a != b)
    names = [name for name in other if one[name] != other[name]]
    return "\n".join(
        f"row {other['id']}, {name}: {one[name]}, should be {other[name]}" for name in names
    )


def named(fields: Sequence[Field]) -> str:
    return str([(f.name, spark_type(f.shape).simpleString()) for f in fields])


def assigned(row: Row, old: Row, given: Row, chosen: Any) -> Row:
    for way, _, value in chosen:
        row = with_value(way, row, value(old, given))
    return row
