"""Searches that a scan is asked for, and the columns that they add to the rows found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pennon.index.text.queries import FullTextQuery

Added: TypeAlias = "Mapping[str, pa.Field[Any]]"
NONE_ADDED: Final[Added] = {}


@dataclass(frozen=True, slots=True, eq=False)
class AddedColumns:
    """The columns that a search adds to the rows that it finds.

    ``fields`` are all of them: expressions and conditions behind the search may name them.  Even if they are not
    named, ``first`` come out before the table's columns, and ``last`` behind them.
    """

    fields: Added
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


class RowSearch(Protocol):
    """A search that a scan is asked for; `pennon.scan.answer` runs its source of rows."""

    @property
    def source(self) -> str:
        """Return what binds the search, below `pennon.scan.search`: ``nearest:NearestSource``."""

    @property
    def prefilter(self) -> bool:
        """Return whether the condition limits what the search may find; else it is for the rows found."""

    @property
    def is_fast(self) -> bool:
        """Return whether rows that no index covers are left out."""

    @property
    def added(self) -> AddedColumns:
        """Return the columns that come with the rows found."""


SCORE: Final = "_score"
_SCORE: Final = {SCORE: pa.field(SCORE, pa.float32())}
_SCORED: Final = AddedColumns(_SCORE, last=(SCORE,))
_NOT_SCORED: Final = AddedColumns(_SCORE)


@dataclass(frozen=True, slots=True)
class TextSearch:
    """A full-text search; `pennon.scan.search.full_text` runs it.

    ``columns``: where to look for a ``query`` that is text; by default all that have an index.  ``prefilter``: the condition comes before the search.  ``is_fast``: rows that no index covers are left out.
    ``is_scored``: scores are shown, even if they are not named among the columns.
    """

    query: str | FullTextQuery
    columns: tuple[str, ...] | None = None
    prefilter: bool = False
    is_fast: bool = False
    is_scored: bool = True

    @property
    def source(self) -> str:
        """See `pennon.scan.plan.row_search.RowSearch`."""
        return "full_text:TextSource.of"

    @property
    def added(self) -> AddedColumns:
        """See `RowSearch.added`."""
        return _SCORED if self.is_scored else _NOT_SCORED
