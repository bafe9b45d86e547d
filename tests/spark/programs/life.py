"""A table with nested columns through a random program of `LanceTable`, beside a model in plain Python."""

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
    fitted,
    for_arrow,
    for_spark,
    grown,
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
WEIGHTS: Final = {
    "append": 4,
    "update": 6,
    "merge": 8,
    "delete": 2,
    "drop": 1,
    "rename": 1,
    "widen": 1,
    "add": 1,
    "compact": 1,
    "replace_part": 1,
}


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
class Life:
    """One program."""

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

    def run(self) -> None:
        """Run the whole program; raises DifferenceError."""
        conf = self.spark.conf
        names = {
            "spark.sql.ansi.enabled": self.setting.ansi,
            "spark.sql.caseSensitive": self.setting.sensitive,
        }
        before = {name: str(conf.get(name)) for name in names}
        for name, value in names.items():
            conf.set(name, str(value).lower())
        try:
            self.create()
            for _ in range(self.rng.randint(3, 8)):
                (op,) = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
                getattr(self, op)()
        finally:
            for name, old in before.items():
                conf.set(name, old)

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
        """Tell whether something happens."""
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
        from tests.spark.programs.shapes import arrow_type

        schema = pa.schema(
            [pa.field(f.name, arrow_type(f.shape), not f.required) for f in self.fields]
        )
        columns = [
            pa.array([for_arrow(f.shape, row[f.name]) for row in rows], schema.field(f.name).type)
            for f in self.fields
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    # --- rows -------------------------------------------------------------------------------------

    def append(self) -> None:
        """Append rows: other order, other case, fewer columns; with `mergeSchema` also more."""
        fields = self.source_fields()
        merges = self.coin(0.4)
        kept = [f for f in fields if f.name == "id" or f.required or self.coin(0.9)]
        target = self.fields
        if merges:
            kept, target = self._grown(kept)
        rows = [self.new_row(key, target) for key in self.new_ids(self.rng.randint(1, 4))]
        given = {f.name if self.setting.sensitive else f.name.lower() for f in kept}
        lacks = {
            f.name
            for f in target
            if (f.name if self.setting.sensitive else f.name.lower()) not in given
        }
        for row in rows:
            row.update(dict.fromkeys(lacks))
        refused = not merges and self.spoil(kept, rows)
        frame = self.frame(kept, rows)
        text = f"append {_named(kept)}{' mergeSchema' if merges else ''} {rows}"
        if self.setting.sensitive or self.coin():
            self.attempt(
                text,
                lambda: pennon.spark.write(frame, self.uri, "append", merge_schema=merges),
                refused=refused,
            )
        else:
            writer = frame.write.format("lance").mode("append").option("mergeSchema", merges)
            self.attempt(text + " by format", lambda: writer.save(self.uri), refused=refused)
        if not refused:
            self._grow_to(target)
            self.rows |= {row["id"]: row for row in rows}
        self.check()

    def _grown(self, given: list[Field]) -> tuple[list[Field], tuple[Field, ...]]:
        """Return what a source has, and the table's columns afterwards; numbers keep the table's types."""
        case = self.setting.sensitive
        own = {f.name if case else f.name.lower(): f for f in self.fields}
        plain_given = [replace(own[f.name if case else f.name.lower()]) for f in given]
        at = self.rng.randrange(len(plain_given))
        chosen = plain_given[at]
        name = f"n{self.name()}"
        larger = replace(chosen, shape=grown(self.rng, chosen.shape, name))
        if (larger != chosen and self.setting.version == "2.2") or (
            larger != chosen and self.coin()
        ):
            plain_given[at] = larger
            target = tuple(larger if f.name == chosen.name else f for f in self.fields)
            return plain_given, target
        new = Field(name, random_shape(self.rng, 2, strict=False, variants=False))
        return [*plain_given, new], (*self.fields, new)

    def _grow_to(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.rows = {
            key: {f.name: fitted(f.shape, row.get(f.name)) for f in fields}
            for key, row in self.rows.items()
        }

    def delete(self) -> None:
        """Delete rows."""
        text, holds = self.condition()
        self.attempt(f"delete {text}", lambda: self.table.delete(text))
        self.rows = {key: row for key, row in self.rows.items() if not holds(row)}
        self.check()

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

    def update(self) -> None:
        """Set columns and fields, in some rows or all."""
        found = self.condition() if self.coin(0.8) else None
        chosen = self.assignments()
        if not chosen:
            return
        values = {quoted(way): text for way, text, _ in chosen}
        condition = None if found is None else found[0]
        self.attempt(
            f"update({condition!r}, {values!r})", lambda: self.table.update(condition, values)
        )
        for key, row in self.rows.items():
            if found is None or found[1](row):
                self.rows[key] = _assigned(row, row, {}, chosen)
        self.check()

    def merge(self) -> None:
        """Merge with some of all clauses; with evolution also more columns and fields."""
        evolves = self.coin(0.3)
        fields, target = self.source_fields(), self.fields
        if evolves:
            fields, target = self._grown(fields)
        ids = [*self.some_ids(6), *self.new_ids(self.rng.randint(0, 3))]
        rows = [self.new_row(key, target) for key in ids]
        wide = evolves or self.coin()
        clauses = _Clauses(self, target if wide else self.fields)
        clauses.draw(all_columns=wide)
        refused = not evolves and clauses.writes_all(rows) and self.spoil(fields, rows)
        frame = self.frame(fields, rows)

        def do() -> None:
            builder = self.table.alias("t").merge(frame.alias("s"), "t.id = s.id")
            if evolves:
                builder = builder.withSchemaEvolution()
            clauses.put(builder).execute()

        text = f"merge {_named(fields)}{' evolves' if evolves else ''} {clauses.text} {rows}"
        self.attempt(text, do, refused=refused)
        if not refused:
            if evolves and clauses.takes_all:
                self._grow_to(target)
            self.rows = clauses.applied(self.rows, {row["id"]: row for row in rows})
        self.check()

    def replace_part(self) -> None:
        """Overwrite the rows for which a condition is true."""
        by, rest = self.rng.randint(2, 4), self.rng.randint(0, 1)
        old = [key for key in self.some_ids(4) if key % by == rest]
        ids = [*old, *(key for key in self.new_ids(4) if key % by == rest)]
        fields = self.source_fields()
        rows = [self.new_row(key, self.fields) for key in ids]
        refused = self.spoil(fields, rows)
        frame, text = self.frame(fields, rows), f"id % {by} = {rest}"
        self.attempt(
            f"replace_part({text!r}) {_named(fields)} {rows}",
            lambda: pennon.spark.write(frame, self.uri, "overwrite", where=text),
            refused=refused,
        )
        if not refused:
            self.rows = {key: row for key, row in self.rows.items() if key % by != rest}
            self.rows |= {row["id"]: row for row in rows}
        self.check()

    # --- columns ----------------------------------------------------------------------------------

    def drop(self) -> None:
        """Drop a column, or a field of a struct that has others."""
        able = [way for way in self.assignable() if len(way) == 1 or len(way[-2].shape.fields) > 1]
        if not able:
            return
        way = self.rng.choice(able)
        self.attempt(f"drop {quoted(way)}", lambda: self.table.dropColumns(quoted(way)))
        self._grow_to(_without(self.fields, way))
        self.check()

    def rename(self) -> None:
        """Rename a column or a field."""
        able = [way for way in ways(self.fields) if way[0].name != "id"]
        if not able:
            return
        way, new = self.rng.choice(able), f"r{self.name()}"
        self.attempt(
            f"rename {quoted(way)} {new}", lambda: self.table.renameColumn(quoted(way), new)
        )
        self.rows = {key: _renamed(row, way, new) for key, row in self.rows.items()}
        self.fields = _changed(self.fields, way, lambda f: replace(f, name=new))
        self.check()

    def widen(self) -> None:
        """Make whole numbers wider."""
        able = [f for f in self.fields if f.shape.kind == "int"]
        if not able:
            return
        chosen = self.rng.choice(able)
        self.attempt(
            f"widen {chosen.name}", lambda: self.table.alterColumn(chosen.name, dataType="bigint")
        )
        self.fields = _changed(self.fields, (chosen,), lambda f: replace(f, shape=scalar("long")))
        self.check()

    def add(self) -> None:
        """Compute a column."""
        name = self.name()
        self.attempt(f"add {name}", lambda: self.table.addColumns({name: "id * 2"}))
        self.fields = (*self.fields, Field(name, scalar("long")))
        for row in self.rows.values():
            row[name] = row["id"] * 2
        self.check()

    def compact(self) -> None:
        """Compact files."""
        self.attempt("compact", lambda: self.table.optimize().executeCompaction())
        self.check()


class _Clauses:
    """The clauses of a merge, and what they do to rows."""

    def __init__(self, life: Life, fields: tuple[Field, ...]) -> None:
        self.life, self.fields = life, fields
        self.matched: list[tuple[str, Condition | None, Any]] = []
        self.new: list[tuple[str, Condition | None, Any]] = []
        self.old: list[tuple[str, Condition | None, Any]] = []

    def draw(self, *, all_columns: bool) -> None:
        """Draw some clauses; only the last of a kind may have no condition."""
        life, rng = self.life, self.life.rng
        for _ in range(rng.randint(0, 2)):
            kind = rng.choice(["delete", "set", *(["all"] * 3 if all_columns else [])])
            values = life.assignments("t.", source="s.") if kind == "set" else None
            if kind != "set" or values:
                condition = life.condition("t.") if life.coin(0.6) else None
                self.matched.append((kind, condition, values))
        if life.coin(0.7):
            self.new.append(("all", None, None))
        if life.coin(0.4):
            kind = rng.choice(["delete", "set"])
            values = life.assignments("t.") if kind == "set" else None
            if kind != "set" or values:
                self.old.append((kind, life.condition("t.") if life.coin(0.8) else None, values))
        if not (self.matched or self.new or self.old):
            self.new.append(("all", None, None))
        self.matched = _only_last_without(self.matched)

    @property
    def text(self) -> str:
        """Return the clauses as text."""
        return repr(
            {
                name: [
                    (kind, c and c[0], v and {quoted(w): t for w, t, _ in v})
                    for kind, c, v in clauses
                ]
                for name, clauses in (
                    ("matched", self.matched),
                    ("new", self.new),
                    ("old", self.old),
                )
            }
        )

    @property
    def takes_all(self) -> bool:
        """Tell whether a clause takes all columns of the source."""
        return any(kind == "all" for kind, _, _ in (*self.matched, *self.new))

    def writes_all(self, rows: list[Row]) -> bool:
        """Tell whether every row of a source is written whole."""
        known = self.life.rows
        updates = bool(self.matched) and self.matched[0][:2] == ("all", None)
        return all(updates if row["id"] in known else bool(self.new) for row in rows) and bool(rows)

    def put(self, builder: Any) -> Any:
        """Give the clauses to a builder."""
        for kind, condition, values in self.matched:
            text = condition and condition[0]
            if kind == "all":
                builder = builder.whenMatchedUpdateAll(text)
            elif kind == "delete":
                builder = builder.whenMatchedDelete(text)
            else:
                builder = builder.whenMatchedUpdate(text, {quoted(w): t for w, t, _ in values})
        if self.new:
            builder = builder.whenNotMatchedInsertAll()
        for kind, condition, values in self.old:
            text = condition and condition[0]
            if kind == "delete":
                builder = builder.whenNotMatchedBySourceDelete(text)
            else:
                builder = builder.whenNotMatchedBySourceUpdate(
                    text, {quoted(w): t for w, t, _ in values}
                )
        return builder

    def applied(self, rows: dict[int, Row], given: dict[int, Row]) -> dict[int, Row]:
        """Return the rows afterwards."""
        found: dict[int, Row] = {}
        for key, row in rows.items():
            clauses = self.matched if key in given else self.old
            clause = next((c for c in clauses if c[1] is None or c[1][1](row)), None)
            if clause is None:
                found[key] = row
            elif clause[0] == "all":
                found[key] = given[key]
            elif clause[0] == "set":
                found[key] = _assigned(row, row, given.get(key, {}), clause[2])
        if self.new:
            found |= {key: row for key, row in given.items() if key not in rows}
        return found


# --- parts ----------------------------------------------------------------------------------------


def _only_last_without(
    clauses: list[tuple[str, Condition | None, Any]],
) -> list[tuple[str, Condition | None, Any]]:
    without = [clause for clause in clauses if clause[1] is None]
    return [clause for clause in clauses if clause[1] is not None] + without[:1]


def _assigned(row: Row, old: Row, given: Row, chosen: Any) -> Row:
    for way, _, value in chosen:
        row = with_value(way, row, value(old, given))
    return row


def _named(fields: Sequence[Field]) -> str:
    return str([(f.name, spark_type(f.shape).simpleString()) for f in fields])


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


def _changed(
    fields: tuple[Field, ...], way: Way, change: Callable[[Field], Field | None]
) -> tuple[Field, ...]:
    first, *rest = way
    found: list[Field] = []
    for each in fields:
        made: Field | None = each
        if each.name == first.name:
            if rest:
                inner = _changed(each.shape.fields, tuple(rest), change)
                made = replace(each, shape=replace(each.shape, fields=inner))
            else:
                made = change(each)
        if made is not None:
            found.append(made)
    return tuple(found)


def _without(fields: tuple[Field, ...], way: Way) -> tuple[Field, ...]:
    return _changed(fields, way, lambda _: None)


def _renamed(row: Row, way: Way, new: str) -> Row:
    first, *rest = way
    value = row[first.name]
    if rest:
        inner = value and _renamed(value, tuple(rest), new)
        return {**row, first.name: inner}
    return {new if name == first.name else name: part for name, part in row.items()}
