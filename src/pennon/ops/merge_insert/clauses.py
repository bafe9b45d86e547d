"""Clauses of a merge: for matched rows, for new rows, and for rows left over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Matched(Enum):
    """The action for a row of the table that a row of the source matches."""

    KEEP = "DoNothing"
    UPDATE = "UpdateAll"
    DELETE = "Delete"
    FAIL = "Fail"


class WriteMode(Enum):
    """The way of writing updated rows: whole rows in new fragments, or columns of fragments anew."""

    AUTO = "auto"
    ROWS = "rewrite_rows"
    COLUMNS = "rewrite_columns"


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a merge.

    ``condition`` (SQL over ``source.…`` and ``target.…``) tells which matched rows are updated.
    ``deletes``: rows of the table without a match go, if ``delete_if`` (SQL) is true or absent.
    """

    matched: Matched = Matched.KEEP
    condition: str | None = None
    inserts: bool = False
    deletes: bool = False
    delete_if: str | None = None

    @property
    def changes_nothing(self) -> bool:
        """Tell whether no row could change."""
        return self.matched is Matched.KEEP and not (self.inserts or self.deletes)

    def __str__(self) -> str:
        matched = self.matched.value
        if self.condition is not None:
            matched = f"UpdateIf({self.condition})"
        new = "InsertAll" if self.inserts else "DoNothing"
        rest = "Keep"
        if self.deletes:
            rest = "Delete" if self.delete_if is None else f"DeleteIf({self.delete_if})"
        return f"when_matched={matched}, when_not_matched={new}, when_not_matched_by_source={rest}"
