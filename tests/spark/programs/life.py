"""A table with nested columns through a random program of `LanceTable`, beside a model in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pennon
import pennon.spark
from tests.spark.programs.clauses import Clauses
from tests.spark.programs.shapes import (
    Field,
    Way,
    fitted,
    grown,
    quoted,
    random_shape,
    scalar,
    ways,
)
from tests.spark.programs.table import (
    ModelTable,
    Row,
    assigned,
    named,
)

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


@dataclass(slots=True)
class Life(ModelTable):
    """One program."""

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
        text = f"append {named(kept)}{' mergeSchema' if merges else ''} {rows}"
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
                self.rows[key] = assigned(row, row, {}, chosen)
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
        clauses = Clauses(self, None if evolves else "s.")
        clauses.draw(all_columns=wide)
        refused = not evolves and clauses.writes_all(rows) and self.spoil(fields, rows)
        frame = self.frame(fields, rows)

        def do() -> None:
            builder = self.table.alias("t").merge(frame.alias("s"), "t.id = s.id")
            if evolves:
                builder = builder.withSchemaEvolution()
            clauses.put(builder).execute()

        text = f"merge {named(fields)}{' evolves' if evolves else ''} {clauses.text} {rows}"
        self.attempt(text, do, refused=refused)
        if not refused:
            self.rows = clauses.applied(self.rows, {row["id"]: row for row in rows})
            if evolves and clauses.takes_all:
                self._grow_to(target)
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
            f"replace_part({text!r}) {named(fields)} {rows}",
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


# --- parts ---


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
