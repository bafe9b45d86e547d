"""The plan of a scan as a value: steps, each above those that feed it; ``explain_plan`` prints it.

::

    Plan(Limit(10, None), (              Limit: limit=10
        Plan(ScanPages("t.lance", …)),))   LanceRead: uri=t.lance, projection=[price], fragments=2 of 2, rows=40 of 1000
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pennon.errors import printable

if TYPE_CHECKING:
    from pennon.scan.plan.index_lookup import IndexLookup
    from pennon.scan.plan.query import ColumnOrdering
    from pennon.scan.predicate import Predicate

_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Plan:
    """A step, the plans that feed it, and its metrics if it ran; the text of ``step`` is its line."""

    step: object
    inputs: tuple[Plan, ...] = ()
    metrics: str = ""

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield a line for each step, from the top down; control characters in names are escaped."""
        yield _INDENT * depth + printable(f"{self.step}{self.metrics}")
        for each in self.inputs:
            yield from each.lines(depth + 1)

    def with_last_metrics(self, metrics: str) -> Plan:
        """Return the plan with metrics of its last step."""
        if not self.inputs:
            return replace(self, metrics=self.metrics + metrics)
        *others, last = self.inputs
        return replace(self, inputs=(*others, last.with_last_metrics(metrics)))

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self.lines())


def chained(steps: Sequence[Plan], inputs: Sequence[Plan] = ()) -> tuple[Plan, ...]:
    """Return a chain of steps: each is fed by the next one, and the last one by ``inputs``."""
    plans = tuple(inputs)
    for step in reversed(steps):
        plans = (replace(step, inputs=plans),)
    return plans


def fed_by(plans: Sequence[Plan], inputs: Sequence[Plan]) -> tuple[Plan, ...]:
    """Return plans; ``inputs`` feed the last one, too."""
    if not plans or not inputs:
        return (*plans, *inputs)
    *others, last = plans
    return (*others, replace(last, inputs=(*last.inputs, *inputs)))


# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """Rows are cut: ``limit`` of them, behind the first ``offset``."""

    limit: int | None
    offset: int | None

    def __str__(self) -> str:
        parts = [] if self.limit is None else [f"limit={self.limit}"]
        parts += [] if self.offset is None else [f"offset={self.offset}"]
        return f"Limit: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Sort:
    """Rows are sorted; with ``most`` the first ones of the order are kept."""

    orderings: tuple[ColumnOrdering, ...]
    most: int | None = None

    def __str__(self) -> str:
        kept = [] if self.most is None else [f"TopK(fetch={self.most})"]
        return "Sort: " + ", ".join([*map(str, self.orderings), *kept])


@dataclass(frozen=True, slots=True)
class Compute:
    """Expressions are evaluated, and become columns of these names."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"Compute: {', '.join(self.names)}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows that do not pass a condition are left out."""

    predicate: Predicate

    def __str__(self) -> str:
        return f"Filter: {self.predicate}"


@dataclass(frozen=True, slots=True)
class Prefilter:
    """A condition that limits which rows a search may find."""

    predicate: Predicate

    def __str__(self) -> str:
        return f"Prefilter: {self.predicate}"


@dataclass(frozen=True, slots=True)
class QueryScalarIndices:
    """Scalar indices are asked which rows may pass the condition."""

    lookup: IndexLookup

    def __str__(self) -> str:
        return f"ScalarIndexQuery: query={self.lookup}"


@dataclass(frozen=True, slots=True)
class ReadKept:
    """Columns are read for rows that the condition kept."""

    columns: tuple[str, ...]
    how: str

    def __str__(self) -> str:
        return f"Read: projection=[{', '.join(self.columns)}], {self.how}"


@dataclass(frozen=True, slots=True)
class ReadFound:
    """Columns are read for rows that a search found."""

    uri: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"Read: uri={self.uri}, projection=[{', '.join(self.columns)}]"


@dataclass(frozen=True, slots=True)
class ScanPages:
    """Columns are read from pages, of ``fragments`` out of all, and of ``rows`` out of all; rows must pass ``condition``.

    The words are those of pylance's plans.
    """

    uri: str
    columns: tuple[str, ...]
    fragments: int
    all_fragments: int
    rows: int
    all_rows: int
    condition: Predicate | None = None

    def __str__(self) -> str:
        tested = "" if self.condition is None else f", full_filter={self.condition}"
        return (
            f"LanceRead: uri={self.uri}, projection=[{', '.join(self.columns)}], fragments={self.fragments} of "
            f"{self.all_fragments}, rows={self.rows} of {self.all_rows}{tested}"
        )
