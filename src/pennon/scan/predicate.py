"""Conditions on rows: SQL text, or expressions of pyarrow.

DuckDB and Polars hand their simple conditions over as `pyarrow.compute.Expression`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.expr.evaluate import passing
from pennon.expr.few_rows import NumberTest, TextTest
from pennon.expr.from_arrow import from_arrow
from pennon.expr.prune import Pruner
from pennon.expr.tree import Call, Expression, paths_of


@runtime_checkable
class Predicate(Protocol):
    """A condition that rows pass or not; it pickles, and its text is for people."""

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:
        """Return the columns of a schema that it needs, or fields inside them.

        Raises ArgumentError if it does not fit the schema.
        """

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return true for the rows that pass; false and NULL for the others."""


@dataclass(frozen=True, slots=True)
class ArrowPredicate:
    """A condition in pyarrow's own form."""

    expression: pc.Expression

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:
        """See `Predicate.paths`."""
        return [(name,) for name in columns_of(self.expression, schema)]

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `Predicate.test`."""
        # pandas takes a third of a second, and conditions in our own form need neither.
        from pyarrow import acero  # noqa: PLC0415 - saves pandas: Acero imports it

        source = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
        project = acero.ProjectNodeOptions([self.expression], ["passes"])
        plan = acero.Declaration.from_sequence(
            [acero.Declaration("table_source", source), acero.Declaration("project", project)]
        )
        return plan.to_table(use_threads=False).column(0).combine_chunks()

    def __str__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True)
class SqlPredicate:
    """A condition in our own form: SQL text, or an expression of pyarrow that was understood."""

    text: str
    condition: Expression

    def __reduce__(self) -> tuple[type[SqlPredicate], tuple[str, Expression]]:
        """Pickle without what is worked out of the condition."""
        return SqlPredicate, (self.text, self.condition)

    @classmethod
    def parse(cls, text: str, schema: pa.Schema) -> SqlPredicate:
        """Return the condition that a text is for a schema.  Raises ArgumentError if it is none."""
        # sqlglot takes half a second to import, and most programs have no filter.
        from pennon.expr.parse import parse_filter  # noqa: PLC0415 - saves sqlglot

        return cls(text, parse_filter(text, schema))

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:  # noqa: ARG002 - bound already
        """See `Predicate.paths`."""
        return self.columns

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """Return the paths of the columns that it needs, each once."""
        return paths_of(self.condition)

    @cached_property
    def pruner(self) -> Pruner:
        """Return what judges units of rows by their bounds."""
        return Pruner(self.condition)

    @cached_property
    def of_few(self) -> NumberTest | TextTest | None:
        """Return what tests a few rows, if the condition does no more than that can do."""
        return NumberTest.of(self.condition) or TextTest.of(self.condition)

    @cached_property
    def is_never_true(self) -> bool:
        """Return whether no row can pass, for every content."""
        return not self.pruner.can_match({})

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `Predicate.test`."""
        return passing(self.condition, batch)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class BothPredicates:
    """Two conditions, at least one in pyarrow's own form; a row passes if it passes both."""

    one: Predicate
    other: Predicate

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:
        """See `Predicate.paths`."""
        return list(dict.fromkeys([*self.one.paths(schema), *self.other.paths(schema)]))

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `Predicate.test`."""
        return pc.and_kleene(self.one.test(batch), self.other.test(batch))

    def __str__(self) -> str:
        return f"({self.one}) AND ({self.other})"


def arrow_predicate(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Return the condition that a pyarrow expression is; in our own form if that has its meaning."""
    condition = from_arrow(expression, schema)
    if condition is None:
        return ArrowPredicate(expression)
    return SqlPredicate(str(expression), condition)


def all_of(predicates: Sequence[Predicate]) -> Predicate:
    """Return the condition that a row passes if it passes all of several."""
    first, *others = predicates
    for other in others:
        first = _both(first, other)
    return first


def _both(one: Predicate, other: Predicate) -> Predicate:
    if isinstance(one, SqlPredicate) and isinstance(other, SqlPredicate):
        both = Call("AND", (one.condition, other.condition), pa.bool_())
        return SqlPredicate(f"({one}) AND ({other})", both)
    return BothPredicates(one, other)


def parse_expression(text: str, schema: pa.Schema) -> Expression:
    """Return what a text computes of the columns of a schema.  Raises ArgumentError if nothing."""
    from pennon.expr.parse import parse_column  # noqa: PLC0415 - as above: sqlglot

    return parse_column(text, schema)


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns of ``schema`` that an expression needs.

    pyarrow does not say which these are, so it is asked: a column is needed if the expression
    cannot be applied to an empty table without it.  Only names that occur in the expression's text
    are tried.

    Raises ArgumentError if the expression cannot be applied to the schema at all.
    """
    text = str(expression)
    likely = [name for name in schema.names if name in text]
    candidates = likely if _applies(expression, schema, likely) else list(schema.names)
    if not _applies(expression, schema, candidates):
        message = f"the filter {text} does not fit the columns {', '.join(schema.names)}"
        raise ArgumentError(message)
    return [
        name
        for name in candidates
        if not _applies(expression, schema, [other for other in candidates if other != name])
    ]


def _applies(expression: pc.Expression, schema: pa.Schema, names: Sequence[str]) -> bool:
    try:
        pa.schema([schema.field(name) for name in names]).empty_table().filter(expression)
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


def limit_batches(
    batches: Iterable[pa.RecordBatch], offset: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows after the first ``offset``, at most ``limit``; stops reading when full."""
    for batch in batches:
        if limit is not None and limit <= 0:
            return
        part = batch.slice(min(offset, batch.num_rows), limit)
        offset -= min(offset, batch.num_rows)
        limit = None if limit is None else limit - part.num_rows
        if part.num_rows:
            yield part
