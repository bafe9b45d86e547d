"""The rows that both libraries read of a table, compared with the model."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from tests.property.programs import steps
from tests.property.programs.filters import holds, random_filter
from tests.property.programs.kinds import KINDS
from tests.property.programs.model import State, text_of


def random_queries(
    rng: Random, state: State, rows: pa.Table, version: str
) -> list[tuple[Any, Any]]:
    """Return queries, each with its answer."""
    names = [column.name for column in state.columns]
    some = rng.sample(names, rng.randint(1, len(names)))
    values = [state.named(row) for row in state.rows.values()]
    trees = [random_filter(rng, state.names(), version) for _ in range(2)]
    found = [[i for i, row in enumerate(values) if holds(t, row)] for t in trees]
    size = rows.num_rows
    chosen = rng.sample(range(size), rng.randint(0, min(size, 5)))
    ids = [rows.column("_rowid")[i].as_py() for i in chosen]
    start, limit = rng.randint(0, size), rng.randint(1, 9)
    queries: list[tuple[Any, Any]] = [
        (("filter", trees[0], some), _taken(rows, found[0], some)),
        (("count", trees[1]), len(found[1])),
        (("take", list(chosen), some), _taken(rows, chosen, some)),
        (("take ids", ids, some), _taken(rows, chosen, some)),
        (("page", start, limit, some), rows.slice(start, limit).select(some)),
        (
            ("filtered page", trees[1], 1, limit, some),
            _taken(rows, found[1][1 : 1 + limit], some),
        ),
    ]
    return rng.sample(queries, 3)


def _taken(rows: pa.Table, chosen: list[int], names: list[str]) -> pa.Table:
    return rows.select(names).take(pa.array(chosen, pa.int64()))


def is_same(mine: Any, other: Any) -> bool:
    """Tell whether two answers are equal; dictionaries may have their values in another order."""
    if not isinstance(mine, pa.Table) or not isinstance(other, pa.Table):
        return bool(mine == other)
    if mine.schema != other.schema or mine.num_rows != other.num_rows:
        return False
    return bool(mine.equals(other)) or mine.to_pylist() == other.to_pylist()


def show(value: Any) -> str:
    """Return an answer as text."""
    if isinstance(value, pa.Table):
        rows = "\n".join(f"  {row}" for row in value.to_pylist())
        return f"{value.schema.to_string()}\n{rows}"
    return str(value)


def fit(state: State, seen: dict[str, Any], *, stable: bool) -> State | str:
    """Return the state with what was seen beside (order, ids, what may be NULL), or the difference."""
    schema: pa.Schema = seen["schema"]
    wanted = [(column.name, KINDS[column.kind].type) for column in state.columns]
    if [(f.name, f.type) for f in schema] != wanted:
        return f"columns are {[(f.name, str(f.type)) for f in schema]}, should be {wanted}"
    extra = ["_rowid", *steps.VERSIONS_OF_ROWS] if stable else ["_rowid"]
    table: pa.Table = seen["rows"]
    ids = table.column("_rowid").to_pylist()
    if len(set(ids)) < len(ids) or seen["count"] != table.num_rows:
        return f"row ids are {ids}, count_rows is {seen['count']}"
    expected = state.seen()
    order: list[int] = []
    for row in table.drop_columns(extra).to_pylist():
        places = expected.get(row["k"], [])
        match = next((at for at, (text, _) in enumerate(places) if text == text_of(row)), None)
        if match is None:
            return f"there is {row}, should be {places}"
        order.append(places.pop(match)[1])
    missing = [text for places in expected.values() for text, _ in places]
    if missing:
        return f"there is no {missing}"
    if state.ordered and order != list(state.rows):
        return f"rows come in the order {order}, should be {list(state.rows)}"
    known = dict(zip(order, ids, strict=True))
    if stable:
        moved = {n: (i, known[n]) for n, i in state.ids.items() if known.get(n, i) != i}
        if moved:
            return f"row ids changed, (old, new): {moved}"
    columns = [
        replace(column, nullable=field_.nullable)
        for column, field_ in zip(state.columns, schema, strict=True)
    ]
    rows = {number: state.rows[number] for number in order}
    return replace(state, columns=tuple(columns), rows=rows, ordered=True, ids=known)
