"""The pipeline behind every search: filter, order, limit and columns of a source."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.scan.answer import Answer, Found
from pennon.scan.plan.query import ColumnOrdering, ScanOptions, parse_columns, parse_predicate
from pennon.scan.plan.row_search import AddedColumns
from pennon.scan.run.plan_steps import Plan
from pennon.scan.snapshot import Snapshot

ROWS = 12
LIKENESS = AddedColumns(
    {"part": pa.field("part", pa.int32()), "likeness": pa.field("likeness", pa.float32())},
    first=("part",),
    last=("likeness",),
)


@dataclass(frozen=True)
class Countdown:
    """A search of another kind: it finds rows 11, 8, 5 and 2, each less alike than the one before."""

    source: str = "a test gives it"
    prefilter: bool = False
    is_fast: bool = False
    added: AddedColumns = LIKENESS


class CountdownSource:
    """The whole of a new kind of search."""

    added = LIKENESS

    def __init__(self, snapshot: Snapshot, options: ScanOptions, *, cuts: bool = False) -> None:
        """Find rows of any version."""
        self.cuts = cuts

    def find(self, limit: int | None, offset: int) -> Found:
        """Return every third row, from the last one."""
        rows = np.array([11, 8, 5, 2], np.uint64)
        likeness = pa.array([1.0, 0.75, 0.5, 0.25], pa.float32())
        found = Found(rows, {"part": pa.array([0, 0, 1, 1], pa.int32()), "likeness": likeness})
        return (
            found.at(slice(offset, None if limit is None else offset + limit))
            if self.cuts
            else found
        )

    def steps(self, limit: int | None, offset: int) -> tuple[Plan, ...]:
        """Return one step, fed by two."""
        return (Plan(f"Countdown: limit={limit}", (Plan("Left"), Plan("Right"))),)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pennon.LanceDataset:
    """Rows with their numbers, each beside a letter."""
    rows = pa.table({"id": list(range(ROWS)), "letter": list("aabbccddeeff")})
    return pennon.write_dataset(rows, str(tmp_path_factory.mktemp("answer") / "t.lance"))


def answer(
    table: pennon.LanceDataset,
    columns: Any = None,
    condition: str | None = None,
    *,
    cuts: bool = False,
    **options: Any,
) -> Answer[CountdownSource]:
    """Return the answer to a search of the new kind."""
    snapshot, search = table.snapshot, Countdown()
    if isinstance(columns, dict):
        stored, expressions = parse_columns(snapshot, columns, search=search)
        options |= {"columns": stored, "expressions": expressions, "order": tuple(columns)}
    elif columns is not None:
        options["columns"] = columns
    if condition is not None:
        options["predicate"] = parse_predicate(snapshot, condition, search=search)
    given = ScanOptions(search=search, **options)
    return Answer(snapshot, given, partial(CountdownSource, cuts=cuts))


def test_answer_shows_rows_in_the_order_of_the_source_with_its_columns(
    table: pennon.LanceDataset,
) -> None:
    found = answer(table)
    assert found.read().to_pydict() == {
        "part": [0, 0, 1, 1],
        "id": [11, 8, 5, 2],
        "letter": ["f", "e", "c", "b"],
        "likeness": [1.0, 0.75, 0.5, 0.25],
    }
    assert found.read().schema == found.schema
    assert found.count() == 4
    assert [batch.num_rows for batch in answer(table, batch_size=3).batches()] == [3, 1]


def test_answer_columns_are_in_the_named_order(table: pennon.LanceDataset) -> None:
    names = ["part", "likeness", "id", "_rowid"]
    given = ("likeness", "id", "part")
    assert answer(table, given, with_row_id=True).schema.names == names
    assert answer(table, ("_rowaddr", "id"), with_row_id=True).schema.names == [
        "part",
        "_rowaddr",
        "id",
        "likeness",
        "_rowid",
    ]
    assert answer(table, ()).schema.names == ["part", "likeness"]
    with pytest.raises(ArgumentError, match="named twice"):
        answer(table, ("likeness", "likeness"))


def test_answer_evaluates_conditions_and_expressions_over_added_columns(
    table: pennon.LanceDataset,
) -> None:
    condition = "likeness < 1 AND letter <> 'b'"
    columns = {"twice": "likeness * 2 + id", "id": "id"}
    found = answer(table, columns, condition)
    assert found.read().select(["twice", "id"]).to_pydict() == {"twice": [9.5, 6.0], "id": [8, 5]}
    assert found.count() == 2
    assert answer(table, columns, "likeness > 1").read().num_rows == 0


@pytest.mark.parametrize("cuts", [False, True])
def test_answer_filters_and_orders_and_cuts(table: pennon.LanceDataset, *, cuts: bool) -> None:
    every = [(11, 1.0), (8, 0.75), (5, 0.5), (2, 0.25)]
    for offset, limit, passes, sorts in itertools.product(
        (0, 1, 9), (None, 0, 2, 9), (None, "id <> 8"), (False, True)
    ):
        cut = slice(offset, None if limit is None else offset + limit)
        rows = every[cut] if cuts else every
        rows = [row for row in rows if passes is None or row[0] != 8]
        rows = sorted(rows) if sorts else rows
        rows = rows if cuts else rows[cut]
        orderings = (ColumnOrdering("id"),) if sorts else ()
        options = {"offset": offset, "limit": limit, "orderings": orderings}
        found = answer(table, ("id",), passes, cuts=cuts, **options).read()
        assert found.select(["id", "likeness"]).to_pydict() == {
            "id": [number for number, _ in rows],
            "likeness": [likeness for _, likeness in rows],
        }


def test_plan_of_an_answer_has_the_steps_of_its_source_below_its_own(
    table: pennon.LanceDataset,
) -> None:
    given: dict[str, Any] = {"limit": 2, "orderings": (ColumnOrdering("id", ascending=False),)}
    found = answer(table, ("id",), "likeness > 0", **given)
    lines = [
        "Read: uri=t, projection=[part, id, likeness]",
        "  Limit: limit=2, offset=0",
        "    Sort: id DESC NULLS LAST",
        "      Filter: likeness > 0",
        "        Countdown: limit=2",
        "          Left",
        "          Right",
    ]
    assert found.explain("t", verbose=False).splitlines() == lines
    head, first, *rest = found.analyze("t", counts=False).splitlines()
    assert head.startswith("Scanned: rows=2, elapsed=")
    assert first.startswith(lines[0] + ", metrics=[files=1, ")
    assert rest[:-1] == lines[1:-1]
    assert rest[-1].startswith(lines[-1] + ", metrics=[indices_loaded=0, ")
