"""The clauses of a random merge, and their effect on rows."""

from __future__ import annotations

from typing import Any

from tests.spark.programs.shapes import (
    quoted,
)
from tests.spark.programs.table import Condition, ModelTable, Row, assigned


class Clauses:
    """The clauses of a merge, and what they do to rows."""

    def __init__(self, life: ModelTable, source: str | None) -> None:
        self.life, self.source = life, source
        self.matched: list[tuple[str, Condition | None, Any]] = []
        self.new: list[tuple[str, Condition | None, Any]] = []
        self.old: list[tuple[str, Condition | None, Any]] = []

    def draw(self, *, all_columns: bool) -> None:
        """Draw some clauses; only the last of a kind may have no condition."""
        life, rng = self.life, self.life.rng
        for _ in range(rng.randint(0, 2)):
            kind = rng.choice(["delete", "set", *(["all"] * 3 if all_columns else [])])
            values = life.assignments("t.", source=self.source) if kind == "set" else None
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
        """Return whether a clause takes all columns of the source."""
        return any(kind == "all" for kind, _, _ in (*self.matched, *self.new))

    def writes_all(self, rows: list[Row]) -> bool:
        """Return whether every row of a source is written whole."""
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
                found[key] = assigned(row, row, given.get(key, {}), clause[2])
        if self.new:
            found |= {key: row for key, row in given.items() if key not in rows}
        return found


def _only_last_without(
    clauses: list[tuple[str, Condition | None, Any]],
) -> list[tuple[str, Condition | None, Any]]:
    without = [clause for clause in clauses if clause[1] is None]
    return [clause for clause in clauses if clause[1] is not None] + without[:1]
