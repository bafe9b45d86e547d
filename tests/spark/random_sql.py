"""Random queries over two tables, for `tests.spark.test_sql_queries`: each is a text with {t} and {u} for the tables.

{t_} and {u_} stand where an alias follows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 60
_WORDS = ["ab", "abc", "b", "Ca", "it's", "", "ö", None]
_KINDS = {
    "id": "number",
    "n": "number",
    "x": "number",
    "price": "number",
    "name": "text",
    "w": "text",
    "day": "date",
    "at": "moment",
    "flag": "flag",
    "`odd name`": "number",
    "s": "struct",
    "tags": "list",
}
T = ("id", "n", "x", "price", "name", "day", "at", "flag", "`odd name`", "s", "tags")
U = ("id", "n", "w", "day", "flag")


def table_t(seed: int) -> pa.Table:
    """Return the first table, with values of all kinds and NULLs among them."""
    pick = random.Random(seed)

    def values(make: Any) -> list[Any]:
        return [None if pick.random() < 0.15 else make(pick) for _ in range(ROWS)]

    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "n": pa.array(values(lambda p: p.randrange(-3, 8)), pa.int32()),
            "x": pa.array(values(lambda p: p.choice([0.0, -0.0, 1.5, 2.25, float("nan"), 1e9]))),
            "price": pa.array(values(lambda p: Decimal(p.randrange(500)) / 100), pa.decimal128(10, 2)),
            "name": pa.array(values(lambda p: p.choice(_WORDS)), pa.string()),
            "day": pa.array(values(lambda p: date(2026, 1, p.randrange(1, 9)))),
            "at": pa.array(values(lambda p: datetime(2026, 1, p.randrange(1, 5), 12)), pa.timestamp("us", "UTC")),
            "flag": pa.array(values(lambda p: p.random() < 0.5)),
            "odd name": pa.array(values(lambda p: p.randrange(5)), pa.int64()),
            "s": pa.array(values(lambda p: {"a": p.randrange(4), "b": p.choice(_WORDS)}),
                          pa.struct([("a", pa.int32()), ("b", pa.string())])),
            "tags": pa.array(values(lambda p: p.sample(["r", "g", "b"], p.randrange(3))), pa.list_(pa.string())),
        }
    )  # fmt: skip


def table_u(seed: int) -> pa.Table:
    """Return the second table, which shares the names of some columns."""
    pick = random.Random(seed + 1)
    count = ROWS // 2
    return pa.table(
        {
            "id": pa.array([pick.randrange(ROWS) for _ in range(count)], pa.int64()),
            "n": pa.array([pick.choice([None, 0, 1, 2, 5]) for _ in range(count)], pa.int64()),
            "w": pa.array([pick.choice(_WORDS) for _ in range(count)], pa.string()),
            "day": pa.array([pick.choice([None, date(2026, 1, 2), date(2026, 1, 5)]) for _ in range(count)]),
            "flag": pa.array([pick.choice([None, True, False]) for _ in range(count)]),
        }
    )  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A table in a FROM clause: what stands there, and the name before its columns."""

    text: str
    qualifier: str
    columns: tuple[str, ...]

    def column(self, pick: random.Random, name: str, *, alone: bool) -> str:
        """Return a column as a query says it: alone, qualified, in another case."""
        shown = name if "`" in name or pick.random() < 0.8 else name.upper()
        return shown if alone and pick.random() < 0.6 else f"{self.qualifier}.{shown}"


@dataclass
class RandomQuery:
    """A query of a seed: ``text`` has {t} and {u} in the places of the tables, ``values`` are its parameters.

    ``limit``: the query has no order, and any rows of so many may come out.
    """

    seed: int
    values: dict[str, Any] = field(default_factory=dict)
    limit: int | None = None

    def __post_init__(self) -> None:
        self.pick = random.Random(self.seed)
        self.text = self._query()

    def _query(self) -> str:
        pick = self.pick
        kind = pick.randrange(10)
        if kind < 6:
            return self._select(may_limit=True)
        if kind == 6:
            return f"WITH c AS ({self._plain('id, n, day')}), t AS (SELECT * FROM c WHERE n > 0) SELECT id, day FROM t"
        if kind == 7:
            operator = pick.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            return f"{self._plain('id, n')} {operator} {self._plain('id, n')}"
        if kind == 8:
            return f"SELECT q.id, count(*) AS many FROM ({self._plain('id, n, flag')}) q GROUP BY q.id HAVING count(*) >= 1"
        return f"SELECT d.* EXCEPT (n) FROM ({self._plain('id, n, flag')}) d WHERE d.n IS NOT NULL"

    def _plain(self, columns: str) -> str:
        """Return a SELECT of columns that both tables have."""
        pick = self.pick
        name, known = pick.choice([("{t}", T), ("{u}", U)])
        source = Source(name, name.strip("{}"), known)
        where = f" WHERE {self._condition([source])}" if pick.random() < 0.8 else ""
        return f"SELECT {columns} FROM {name}{where}"

    # --- one SELECT -------------------------------------------------------------------------------

    def _select(self, *, may_limit: bool = False) -> str:
        pick = self.pick
        sources, joined = self._from()
        where = f" WHERE {self._condition(sources)}" if pick.random() < 0.85 else ""
        if pick.random() < 0.25:
            return self._aggregate(sources, joined, where)
        shown = self._shown(sources)
        tail = ""
        if pick.random() < 0.15:
            column = self._number(sources)
            shown = f"{shown}, row_number() OVER (PARTITION BY {column} ORDER BY {self._keys(sources)}) AS rank"
            tail = " QUALIFY rank < 3" if pick.random() < 0.5 else ""
        elif may_limit and pick.random() < 0.25:
            self.limit = pick.randrange(1, 12)
        distinct = "DISTINCT " if pick.random() < 0.1 and not tail and self.limit is None else ""
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return f"SELECT {distinct}{shown} FROM {joined}{where}{tail}{limit}"

    def _from(self) -> tuple[list[Source], str]:
        pick = self.pick
        alias = pick.choice(["", " a", " AS a", " A"])
        name = "{t_}" if alias else "{t}"
        first = Source(name + alias, alias.split()[-1].lower() if alias else "t", T)
        if pick.random() < 0.1:
            first = Source(name + " VERSION AS OF 1" + alias, first.qualifier, T)
        if pick.random() < 0.45:
            if pick.random() < 0.15:
                view = f"{first.text} LATERAL VIEW explode(tags) e AS tag"
                return [first], view
            return [first], first.text
        second = Source("{u_} b", "b", U)
        kind = pick.choice(
            [
                "JOIN",
                "INNER JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL OUTER JOIN",
                "LEFT SEMI JOIN",
                "LEFT ANTI JOIN",
                ",",
                "CROSS JOIN",
            ]
        )
        if kind == ",":
            return [first, second], f"{first.text}, {second.text}"
        if kind == "CROSS JOIN":
            return [first, second], f"{first.text} CROSS JOIN {second.text}"
        own = (
            f" AND {self._comparison([pick.choice([first, second])])}"
            if pick.random() < 0.5
            else ""
        )
        on = f"{first.qualifier}.id = b.id{own}"
        joined = f"{first.text} {kind} {second.text} ON {on}"
        return ([first] if "SEMI" in kind or "ANTI" in kind else [first, second]), joined

    def _shown(self, sources: list[Source]) -> str:
        pick = self.pick
        star = pick.random()
        if star < 0.1 and len(sources) == 1:
            return "*"
        if star < 0.2:
            return f"{sources[0].qualifier}.*"
        found = []
        for number in range(pick.randrange(1, 5)):
            source = pick.choice(sources)
            name = pick.choice(source.columns)
            column = source.column(pick, name, alone=len(sources) == 1)
            if _KINDS[name] == "struct" and pick.random() < 0.5:
                column = f"{column}.{pick.choice(['a', 'b', 'A'])}"
            elif _KINDS[name] == "number" and pick.random() < 0.3:
                column = f"{column} + 1"
            elif _KINDS[name] == "text" and pick.random() < 0.3:
                column = f"upper({column})"
            found.append(f"{column} AS c{number}")
        return ", ".join(found)

    def _aggregate(self, sources: list[Source], joined: str, where: str) -> str:
        pick = self.pick
        measures = []
        for number in range(pick.randrange(1, 4)):
            function = pick.choice(["count(*)", "count", "min", "max", "sum", "count(DISTINCT"])
            column = self._number(sources)
            if function == "count(DISTINCT":
                measures.append(f"count(DISTINCT {column}) AS m{number}")
            else:
                shown = function if function == "count(*)" else f"{function}({column})"
                measures.append(
                    f"{shown} AS m{number}" if pick.random() < 0.7 or len(sources) > 1 else shown
                )
        if pick.random() < 0.4:
            return f"SELECT {', '.join(measures)} FROM {joined}{where}"
        key = sources[0].column(
            pick, pick.choice(["name", "flag", "day", "n"]), alone=len(sources) == 1
        )
        return f"SELECT {key} AS k, {', '.join(measures)} FROM {joined}{where} GROUP BY {key}"

    def _number(self, sources: list[Source]) -> str:
        source = self.pick.choice(sources)
        name = self.pick.choice(
            [each for each in source.columns if _KINDS[each] == "number" and each != "x"]
        )
        return source.column(self.pick, name, alone=len(sources) == 1)

    @staticmethod
    def _keys(sources: list[Source]) -> str:
        return ", ".join(
            f"{each.qualifier}.{name}"
            for each in sources
            for name in each.columns
            if _KINDS[name] != "list"
        )

    # --- conditions ---------------------------------------------------------------------------------

    def _condition(self, sources: list[Source], depth: int = 0) -> str:
        pick = self.pick
        kind = pick.random()
        if depth < 3 and kind < 0.35:
            return (
                f"{self._condition(sources, depth + 1)} AND {self._condition(sources, depth + 1)}"
            )
        if depth < 3 and kind < 0.5:
            return (
                f"({self._condition(sources, depth + 1)} OR {self._condition(sources, depth + 1)})"
            )
        if depth < 3 and kind < 0.57:
            return f"NOT ({self._condition(sources, depth + 1)})"
        if kind < 0.64:
            return self._subquery(sources)
        return self._comparison(sources)

    def _subquery(self, sources: list[Source]) -> str:
        pick = self.pick
        outer = sources[0]
        inner = Source("{u_} i", "i", U)
        condition = self._comparison([inner])
        if pick.random() < 0.5:
            return f"{outer.qualifier}.id IN (SELECT i.id FROM {{u_}} i WHERE {condition})"
        return f"EXISTS (SELECT 1 FROM {{u_}} i WHERE i.id = {outer.qualifier}.id AND {condition})"

    def _comparison(self, sources: list[Source]) -> str:
        pick = self.pick
        source = pick.choice(sources)
        name = pick.choice(
            [each for each in source.columns if _KINDS[each] not in ("list", "struct")]
        )
        column = source.column(pick, name, alone=len(sources) == 1 and source.qualifier != "i")
        kind = _KINDS[name]
        if pick.random() < 0.12:
            return f"{column} IS {pick.choice(['', 'NOT '])}NULL"
        if kind == "flag":
            return pick.choice([column, f"{column} = true", f"NOT {column}", f"{column} <=> false"])
        if kind == "text" and pick.random() < 0.3:
            return f"{column} LIKE '{pick.choice(['a%', '%b', '%a%', 'ab', 'a_c', '%'])}'"
        if pick.random() < 0.15:
            listed = ", ".join(self._literal(kind, name) for _ in range(pick.randrange(1, 4)))
            return f"{column} {pick.choice(['', 'NOT '])}IN ({listed})"
        if kind != "text" and pick.random() < 0.15:
            return f"{column} BETWEEN {self._literal(kind, name)} AND {self._literal(kind, name)}"
        operator = pick.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        sides = [column, self._literal(kind, name)]
        if pick.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {operator} {sides[1]}"

    def _literal(self, kind: str, name: str) -> str:
        pick = self.pick
        if kind == "text":
            value: Any = pick.choice([each for each in _WORDS if each is not None])
            return self._parameter(value) if "'" in value or pick.random() < 0.3 else f"'{value}'"
        if kind == "date":
            day = date(2026, 1, pick.randrange(1, 9))
            form = pick.randrange(3)
            return (
                self._parameter(day) if form == 0 else f"DATE '{day}'" if form == 1 else f"'{day}'"
            )
        if kind == "moment":
            return f"TIMESTAMP '2026-01-0{pick.randrange(1, 5)} 12:00:00'"
        number = pick.randrange(-4, 10)
        if name in ("x", "price") and pick.random() < 0.5:
            return pick.choice(["1.5", "2.25", "1.5D", "0.0", "-1.0"])
        return (
            self._parameter(number)
            if pick.random() < 0.2
            else pick.choice([str(number), f"{number}L"])
        )

    def _parameter(self, value: Any) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f":{name}"
