"""A user's life with one table: random changes through `LanceTable`, beside a model of plain dicts.

``python -m tests.spark.long_program MODE FOLDER SEED STEPS`` runs it in a mode of its own process.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

import lance
from pyspark.sql import DataFrame, SparkSession

import pennon.spark
from pennon.errors import MatchError
from pennon.spark import LanceTable
from tests.spark.modes import start

Row = dict[str, Any]
Rows = dict[int, Row]
NAMES: Final = ("a", "b", "c", None)
TYPES: Final = {"id": "bigint", "name": "string", "n": "int", "v": "double"}


class Life:
    """A table, what it should hold, and what it held in each version."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.spark, self.folder, self.random = spark, folder, Random(seed)
        self.uri = str(folder / "life.lance")
        self.types = dict(TYPES)
        self.rows: Rows = {}
        self.next_id = 0
        self.past: dict[int, tuple[dict[str, str], Rows]] = {}
        self.tags: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        self.clones = 0
        rows = self.new_rows(60)
        pennon.spark.write(
            self.frame(rows).repartition(4), self.uri, enable_stable_row_ids=seed % 2 == 0
        )
        self.rows = {row["id"]: row for row in rows}
        self.table = LanceTable.forPath(spark, self.uri)
        self.check()

    # --- what steps need --------------------------------------------------------------------------

    def new_row(self, key: int) -> Row:
        """A row of this id with random values, in all columns that there are."""
        drawn = {
            "name": self.random.choice(NAMES),
            "n": self.random.choice([None, *range(9)]),
            "v": self.random.choice([None, 0.5, -2.0, 1e9]),
        }
        return {"id": key, **{name: drawn.get(name) for name in self.types if name != "id"}}

    def new_rows(self, count: int) -> list[Row]:
        """Rows whose ids nobody had."""
        first, self.next_id = self.next_id, self.next_id + count
        return [self.new_row(key) for key in range(first, first + count)]

    def some_ids(self, share: float) -> list[int]:
        """Ids of about this share of the rows."""
        return [key for key in self.rows if self.random.random() < share]

    def frame(self, rows: Iterable[Row]) -> DataFrame:
        """Rows as a DataFrame of the table's columns."""
        schema = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        return self.spark.createDataFrame([tuple(r[n] for n in self.types) for r in rows], schema)

    def copied(self) -> tuple[dict[str, str], Rows]:
        """The model as it is now."""
        return dict(self.types), {key: dict(row) for key, row in self.rows.items()}

    def check(self) -> None:
        """Compare table and model, and put the version down."""
        shown = self.table.toDF()
        assert {f.name: f.dataType.simpleString() for f in shown.schema} == self.types
        found = [row.asDict() for row in shown.collect()]
        assert len(found) == len(self.rows) == self.table.count()
        assert {row["id"]: row for row in found} == self.rows
        self.past[lance.dataset(self.uri).version] = self.copied()

    # --- steps ------------------------------------------------------------------------------------

    def append(self) -> None:
        """Some rows come."""
        rows = self.new_rows(self.random.randint(1, 12))
        pennon.spark.write(self.frame(rows), self.uri, "append")
        self.rows |= {row["id"]: row for row in rows}

    def delete(self) -> None:
        """Rows that a comparison finds, or an expression of Spark's."""
        number = self.random.randrange(9)
        if self.random.random() < 0.5:
            condition, goes = f"n = {number} AND id % 3 = 0", lambda r: r["id"] % 3 == 0
        else:
            condition, goes = f"n = {number}", lambda _: True
        gone = [k for k, r in self.rows.items() if r["n"] == number and goes(r)]
        told = self.table.delete(condition).first()
        assert told is not None
        assert told.num_affected_rows == len(gone)
        for key in gone:
            del self.rows[key]

    def update(self) -> None:
        """Literals, and expressions."""
        if self.random.random() < 0.5:
            self.table.update("name IS NULL", {"name": "'none'"})
            hit = [row for row in self.rows.values() if row["name"] is None]
            for row in hit:
                row["name"] = "none"
            return
        self.table.update("name = 'none' OR id % 7 = 0", {"name": "NULL", "v": "id + 0.25D"})
        for key, row in self.rows.items():
            if row["name"] == "none" or key % 7 == 0:
                row.update(name=None, v=key + 0.25)

    def update_all(self) -> None:
        """One column of all rows."""
        self.table.update(set={"v": "n * 2D"})
        for row in self.rows.values():
            row["v"] = None if row["n"] is None else row["n"] * 2.0

    def upsert(self) -> None:
        """Old rows change, new ones come."""
        rows = [self.new_row(key) for key in self.some_ids(0.2)] + self.new_rows(4)
        merge = self.table.alias("t").merge(self.frame(rows).alias("s"), "t.id = s.id")
        told = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()
        assert told is not None
        assert (told.num_updated_rows, told.num_inserted_rows) == (len(rows) - 4, 4)
        self.rows |= {row["id"]: row for row in rows}

    def merge(self) -> None:
        """Every kind of clause."""
        rows = [self.new_row(key) for key in self.some_ids(0.3)] + self.new_rows(3)
        merge = self.table.alias("t").merge(self.frame(rows).alias("s"), "t.id = s.id")
        merge = merge.whenMatchedDelete("s.n = 1").whenMatchedUpdate("s.n > 4", {"v": "s.v"})
        merge = merge.whenNotMatchedInsert("s.n IS NULL", {"id": "s.id", "name": "'new'"})
        merge = merge.whenNotMatchedBySourceUpdate("t.n = 2", {"n": "t.n + 1"})
        merge.whenNotMatchedBySourceDelete("t.n = 5").execute()
        given = {row["id"]: row for row in rows}
        for key, row in list(self.rows.items()):
            said = given.pop(key, None)
            if said is None and row["n"] == 2:
                row["n"] = 3
            elif (said is None and row["n"] == 5) or (said is not None and said["n"] == 1):
                del self.rows[key]
            elif said is not None and said["n"] is not None and said["n"] > 4:
                row["v"] = said["v"]
        for key, said in given.items():
            if said["n"] is None:
                self.rows[key] = {**dict.fromkeys(self.types), "id": key, "name": "new"}

    def refused_merge(self) -> None:
        """Two rows for one: nothing changes."""
        key = self.random.choice(list(self.rows))
        twice = self.frame([self.new_row(key), self.new_row(key)]).alias("s")
        merge = self.table.alias("t").merge(twice, "t.id = s.id")
        try:
            merge.whenMatchedUpdateAll().execute()
        except MatchError:
            return
        text = "two rows of the source changed one row"
        raise AssertionError(text)

    def overwrite_part(self) -> None:
        """A part by a condition, and by keys."""
        rows = self.new_rows(3)
        if self.random.random() < 0.5:
            for row in rows:
                row["n"] = 4
            pennon.spark.write(self.frame(rows), self.uri, "overwrite", where="n = 4")
            kept = {k: r for k, r in self.rows.items() if r["n"] != 4}
        else:
            pennon.spark.write(self.frame(rows), self.uri, "overwrite", overwrite_by=["name"])
            names = {row["name"] for row in rows}
            kept = {k: r for k, r in self.rows.items() if r["name"] not in names}
        self.rows = kept | {row["id"]: row for row in rows}

    def compact(self) -> None:
        """Small files become large ones."""
        self.table.optimize().executeCompaction()

    def put_in_order(self) -> None:
        """By a curve, and by columns."""
        columns = self.random.sample(["id", "n", "v"], 2)
        optimize = self.table.optimize()
        way = self.random.choice([optimize.executeZOrderBy, optimize.executeSortBy])
        way(*columns)

    def add_column(self) -> None:
        """By SQL; at most two beside the first ones."""
        if len(self.types) > len(TYPES) + 1:
            return self.drop_column()
        name = f"c{len(self.past)}"
        self.table.addColumns({name: "id * 10"})
        self.types[name] = "bigint"
        for key, row in self.rows.items():
            row[name] = key * 10
        return None

    def drop_column(self) -> None:
        """One that came later."""
        later = [name for name in self.types if name not in TYPES]
        if not later:
            return self.add_column()
        self.table.dropColumns(later[0])
        del self.types[later[0]]
        for row in self.rows.values():
            del row[later[0]]
        return None

    def restore(self) -> None:
        """An old version is the newest again; ids stay used."""
        version = self.random.choice(list(self.past)[-12:])
        self.table.restoreToVersion(version)
        self.types, self.rows = (
            dict(self.past[version][0]),
            {key: dict(row) for key, row in self.past[version][1].items()},
        )

    def look_back(self) -> None:
        """A version, by its number and by a tag."""
        version = self.random.choice(list(self.past))
        name = f"t{len(self.tags)}"
        self.table.tags.create(name, version)
        self.tags[name] = version
        tag = self.random.choice(list(self.tags))
        for rows, number in (
            (self.table.read(version=version), version),
            (self.table.read(tag=tag), self.tags[tag]),
        ):
            found = {row["id"]: row.asDict() for row in rows.collect()}
            assert found == self.past[number][1]

    def ask(self) -> None:
        """Counts, aggregates, first rows."""
        least = self.random.randrange(9)
        mine = [row["n"] for row in self.rows.values() if row["n"] is not None]
        assert self.table.count(f"n >= {least}") == sum(n >= least for n in mine)
        told = self.table.read(aggregate={"n": ["sum", "max"], "*": "count"}).first()
        assert told is not None
        assert tuple(told) == (sum(mine) if mine else None, max(mine, default=None), len(self.rows))
        assert len(self.table.read(limit=5).collect()) == min(5, len(self.rows))

    def clone(self) -> None:
        """Somewhere else, again and again; the table itself stays as it is."""
        target = str(self.folder / "clone.lance")
        is_shallow = self.clones % 2 == 0
        made = self.table.clone(target, is_shallow, replace=True)
        self.clones += 1
        found = {row["id"]: row.asDict() for row in made.toDF().collect()}
        assert found == self.rows

    def steps(self) -> dict[str, tuple[Callable[[], None], int]]:
        """All steps, each with how often it comes beside the others."""
        return {
            "append": (self.append, 4),
            "delete": (self.delete, 2),
            "update": (self.update, 3),
            "update all": (self.update_all, 1),
            "upsert": (self.upsert, 4),
            "merge": (self.merge, 3),
            "refused merge": (self.refused_merge, 1),
            "overwrite": (self.overwrite_part, 2),
            "compact": (self.compact, 2),
            "order": (self.put_in_order, 1),
            "add column": (self.add_column, 1),
            "drop column": (self.drop_column, 1),
            "restore": (self.restore, 1),
            "look back": (self.look_back, 1),
            "ask": (self.ask, 2),
            "clone": (self.clone, 1),
        }


def live(spark: SparkSession, folder: Path, seed: int, steps: int) -> dict[str, int]:
    """Do so many steps, and return how many of each kind; the last versions are all looked at again."""
    life = Life(spark, folder, seed)
    known = life.steps()
    first = life.random.sample(list(known), len(known))
    weights = [weight for _, weight in known.values()]
    drawn = first + life.random.choices(list(known), weights, k=steps - len(first))
    for number, name in enumerate(drawn):
        try:
            known[name][0]()
            life.check()
        except Exception as error:
            error.add_note(f"seed {seed}, step {number}: {name}, after {drawn[:number]}")
            raise
        life.done[name] += 1
    for version in list(life.past)[-20:]:
        table = lance.dataset(life.uri, version=version)
        found = {row["id"]: row for row in table.to_table().to_pylist()}
        assert found == life.past[version][1], version
    lance.dataset(life.uri).validate()
    return dict(life.done)


def main() -> None:
    """Run it in a mode."""
    mode, folder, seed, steps = sys.argv[1:]
    spark = start(mode)
    print(json.dumps(live(spark, Path(folder), int(seed), int(steps))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
