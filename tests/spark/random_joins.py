"""Random joins and subqueries over three tables, for `tests.spark.test_sql_queries`: few rows of some pass, so keys limit others.

A query is a text with {p}, {o} and {l} for the tables, and an alias behind each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

TABLES = {"p": 400, "o": 1500, "l": 2500}
"""The tables and their numbers of rows."""
_KEYS = ("k", "m", "t", "d", "price", "x", "i")
_WORDS = ["aa", "Aa", "ab", "", "ö"]
_LINKS = ("k", "k", "k", "m", "m", "t", "d", "price", "x", "i")
"""The columns that are compared, the likely ones more than once."""


def table_of(name: str) -> pa.Table:
    """Return the rows of a table: keys of all kinds, with NULLs, duplicates, and values that others lack."""
    rows = TABLES[name]
    pick = random.Random(name)

    def values(make: Any) -> list[Any]:
        return [None if pick.random() < 0.04 else make() for _ in range(rows)]

    return pa.table(
        {
            f"{name}_row": pa.array(range(rows), pa.int64()),
            "k": pa.array(values(lambda: pick.randrange(1200)), pa.int64()),
            "m": pa.array(values(lambda: pick.randrange(-400, 400) * 10**12), pa.int64()),
            "i": pa.array(values(lambda: pick.randrange(900)), pa.int32()),
            "t": pa.array(
                values(lambda: pick.choice(_WORDS) + str(pick.randrange(300))), pa.string()
            ),
            "d": pa.array(values(lambda: date.fromordinal(739000 + pick.randrange(800)))),
            "price": pa.array(
                values(lambda: Decimal(pick.randrange(90000)) / 100), pa.decimal128(10, 2)
            ),
            "x": pa.array(
                values(
                    lambda: pick.choice([0.0, -0.0, float("nan")] + 17 * [pick.randrange(900) / 2])
                )
            ),
            f"{name}_only": pa.array(values(lambda: pick.randrange(900)), pa.int64()),
        }
    )


@dataclass(frozen=True)
class _Source:
    table: str
    alias: str

    @property
    def text(self) -> str:
        return f"{{{self.table}}} {self.alias}"


class RandomJoin:
    """A query of a seed: joins, and subqueries in its WHERE."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self._aliases = 0
        sources, joined = self._from()
        where = [self._narrow(pick) for pick in sources if self.pick.random() < 0.6]
        where += self._pairs(sources)
        where += [self._subquery(sources, 0) for _ in range(self.pick.choice([0, 1, 1, 2]))]
        self.pick.shuffle(where)
        shown = ["count(*) AS n"]
        shown += [
            f"sum({each.alias}.{each.table}_row) AS s{number}"
            for number, each in enumerate(sources)
        ]
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        common = ""
        if self.pick.random() < 0.15:
            name = f"c{self._aliases}"
            first = sources[0]
            text = f"SELECT {first.alias}.k AS k, count(*) AS n FROM {joined}{condition} GROUP BY {first.alias}.k"
            common = f"WITH {name} AS ({text}) "
            self.text = f"{common}SELECT count(*), sum(a.n), sum(b.k) FROM {name} a JOIN {name} b ON a.k = b.k"
        else:
            self.text = f"SELECT {', '.join(shown)} FROM {joined}{condition}"

    def _new(self) -> _Source:
        self._aliases += 1
        table = self.pick.choice(["p", "o", "l"])
        return _Source(table, self.pick.choice(["a", "B", table]) + str(self._aliases))

    def _from(self) -> tuple[list[_Source], str]:
        """Return the tables that WHERE may name, and the text of FROM."""
        pick = self.pick
        sources = [self._new()]
        text = sources[0].text
        for _ in range(pick.choice([0, 1, 1, 2, 2])):
            new = self._new()
            kind = pick.choice(
                ["JOIN"] * 5 + ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
                + ["LEFT SEMI JOIN", "SEMI JOIN", "LEFT ANTI JOIN", "ANTI JOIN"]
            )  # fmt: skip
            other = pick.choice(sources)
            on = [self._equality(other, new)]
            if pick.random() < 0.3:
                on.append(self._narrow(pick.choice([new, other])))
            text += f" {kind} {new.text} ON {' AND '.join(on)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                sources.append(new)
        return sources, text

    def _pairs(self, sources: list[_Source]) -> list[str]:
        """Return conditions of WHERE that compare two tables of FROM."""
        if len(sources) < 2 or self.pick.random() < 0.7:
            return []
        one, other = self.pick.sample(sources, 2)
        return [self._equality(one, other)]

    def _equality(self, one: _Source, other: _Source) -> str:
        pick = self.pick
        column = pick.choice(_LINKS)
        right = column
        if column == "k" and pick.random() < 0.3:
            right = pick.choice(["i", f"{other.table}_only"])
        if right.endswith("_only") and pick.random() < 0.5:
            sides = [f"{one.alias}.{column}", right]  # a name that only one table may mean
        else:
            sides = [
                f"{one.alias}.{column}",
                f"{other.alias}.{right.upper() if pick.random() < 0.2 else right}",
            ]
        pick.shuffle(sides)
        return " = ".join(sides)

    def _narrow(self, source: _Source) -> str:
        """Return a condition that few rows of a table pass."""
        pick = self.pick
        name = pick.choice(_KEYS)
        column = f"{source.alias}.{name}"
        return {
            "k": f"{column} < {pick.choice([5, 60, 300])}",
            "m": f"{column} BETWEEN 0 AND {pick.randrange(2, 90)}000000000000",
            "i": f"{column} IN ({', '.join(str(pick.randrange(900)) for _ in range(30))})",
            "t": f"{column} LIKE '{pick.choice(['a', 'A', 'b'])}%'",
            "d": f"{column} < DATE '2024-06-{pick.randrange(1, 29):02}'",
            "price": f"{column} < {pick.choice(['10', '99.5'])}",
            "x": f"{column} < {pick.choice(['20', '0.5'])}",
        }[name]

    # --- subqueries -------------------------------------------------------------------------------

    def _subquery(self, around: list[_Source], depth: int) -> str:
        pick = self.pick
        outer = pick.choice(around)
        sources, joined = self._from()
        inner = sources[0]
        where = [self._narrow(each) for each in sources if pick.random() < 0.5]
        where += self._pairs(sources)
        if depth < 1 and pick.random() < 0.35:
            where.append(self._subquery(sources, depth + 1))
        kind = pick.choice(
            ["exists", "exists", "not exists", "in", "in", "not in", "value", "either"]
        )
        link = pick.choice(_LINKS)
        if kind in ("in", "not in"):
            if pick.random() < 0.2:
                where.append(self._equality(outer, inner))
            text = f"SELECT {inner.alias}.{link} FROM {joined}{_where(where)}"
            if pick.random() < 0.3:
                text += f" GROUP BY {inner.alias}.{link}"
                text += pick.choice(["", " HAVING count(*) > 1"])
            return f"{outer.alias}.{link} {kind.upper()} ({text})"
        where.append(self._equality(outer, inner))
        pick.shuffle(where)
        if kind == "value":
            value = pick.choice(["count(*)", "max", "sum"])
            value = value if value == "count(*)" else f"{value}({inner.alias}.k)"
            return f"{pick.choice([1, 500])} >= (SELECT {value} FROM {joined}{_where(where)})"
        shown = pick.choice(["1", "*", f"{inner.alias}.k", "1", "count(*)"])
        text = f"EXISTS (SELECT {shown} FROM {joined}{_where(where)})"
        if kind == "either":
            return f"({text} OR {self._narrow(outer)})"
        return f"NOT {text}" if kind == "not exists" else text


def _where(parts: list[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""
