"""A merge as it is said: the source, when its rows match, and what happens then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from pennon.errors import ArgumentError
from pennon.ops.rows.change_rows import Change
from pennon.spark.source.conditions import Condition, system_columns_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class When(Enum):
    """The rows that a clause is for."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN of a merge.  ``values`` None: each column that the source has takes the source's value."""

    when: When
    change: Change
    condition: Condition | None = None
    values: Mapping[str, Condition] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge: the source's rows, when they match, and what happens then."""

    source: DataFrame
    condition: Condition
    alias: str | None = None
    clauses: tuple[MergeClause, ...] = ()
    evolves: bool = False

    def check(self) -> None:
        """Raise ArgumentError for a merge without clauses, and for clauses that can never apply."""
        if not self.clauses:
            message = "a merge has at least one WHEN clause"
            raise ArgumentError(message)
        for when in When:
            mine = [each for each in self.clauses if each.when is when]
            if any(each.condition is None for each in mine[:-1]):
                message = (
                    f"of several WHEN clauses for rows that are {when.value} only the last may have no "
                    "condition"
                )
                raise ArgumentError(message)

    @property
    def join(self) -> str:
        """Return the join, the table at the left, that has all rows that a clause is for."""
        kinds = {each.when for each in self.clauses}
        if When.NOT_MATCHED_BY_SOURCE in kinds:
            return "full_outer" if When.NOT_MATCHED in kinds else "left"
        return "right" if When.NOT_MATCHED in kinds else "inner"

    @property
    def needs_others(self) -> bool:
        """Return whether a clause is for rows of the table that match nothing."""
        return any(each.when is When.NOT_MATCHED_BY_SOURCE for each in self.clauses)

    @property
    def conditions(self) -> Iterator[Condition]:
        """Yield all that is said of rows: conditions, values, and names of fields that are set."""
        yield self.condition
        for clause in self.clauses:
            if clause.condition is not None:
                yield clause.condition
            for name, value in (clause.values or {}).items():
                yield value
                if "." in name:
                    yield name

    def system_columns(self, names: Sequence[str]) -> list[str]:
        """Return which of ``_rowid`` and ``_rowaddr`` of the table are named; ``names`` are its columns.

        Without the table's alias they are the source's, where it has such columns.
        """
        return system_columns_named(list(self.conditions), names, self.alias, self.source.columns)

    @property
    def deletes_whatever_matches(self) -> bool:
        """Return whether it does not matter how many rows of the source match a row."""
        mine = [each for each in self.clauses if each.when is When.MATCHED]
        return len(mine) == 1 and mine[0].change is Change.DELETE and mine[0].condition is None
