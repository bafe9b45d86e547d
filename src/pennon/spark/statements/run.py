"""`pennon.spark.sql`: which function reads a statement, by its first words; what none reads is Spark's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import ArgumentError
from pennon.spark.statements import inserts, namespace_statements, shown_statements
from pennon.spark.statements import row_statements as rows
from pennon.spark.statements import table_statements as tables
from pennon.spark.statements import upkeep_statements as upkeep
from pennon.spark.statements import view_statements as views
from pennon.spark.statements.alterations import alter_table
from pennon.spark.statements.commands import Command, Parse, refused, text_frame
from pennon.spark.statements.copy_into import copy_into
from pennon.spark.statements.queries import PreparedQuery, prepare_query
from pennon.spark.statements.ref_statements import create_index, create_ref, drop_index, drop_ref
from pennon.spark.statements.references import names_of_catalogs
from pennon.spark.statements.session import catalogs_of, find_place, is_path
from pennon.spark.statements.values import bound, markers
from pennon.spark.statements.words import Statement, chains, split_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATEMENTS: Final[Mapping[tuple[str, ...], Parse]] = {
    ("INSERT",): inserts.insert,
    ("DELETE", "FROM"): rows.delete,
    ("UPDATE",): rows.update,
    ("MERGE",): rows.merge,
    ("TRUNCATE", "TABLE"): rows.truncate,
    ("COPY", "INTO"): copy_into,
    ("REPLACE", "TABLE"): tables.create_table,
    ("REPLACE",): inserts.replace_where,
    ("CREATE", "TABLE"): tables.create_table,
    ("CREATE", "OR", "REPLACE", "TABLE"): tables.create_table,
    ("CREATE", "VIEW"): views.create_view,
    ("CREATE", "TEMPORARY", "VIEW"): views.create_view,
    ("CREATE", "TEMP", "VIEW"): views.create_view,
    ("CREATE", "GLOBAL", "TEMPORARY", "VIEW"): views.create_view,
    ("CREATE", "GLOBAL", "TEMP", "VIEW"): views.create_view,
    ("CREATE", "OR", "REPLACE", "VIEW"): views.create_view,
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "VIEW"): views.create_view,
    ("CREATE", "OR", "REPLACE", "TEMP", "VIEW"): views.create_view,
    ("CREATE", "OR", "REPLACE", "GLOBAL"): views.create_view,
    ("CACHE",): views.cache_table,
    ("CREATE", "FUNCTION"): views.keeps_text,
    ("CREATE", "OR", "REPLACE", "FUNCTION"): views.keeps_text,
    ("CREATE", "TEMPORARY", "FUNCTION"): views.keeps_text,
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "FUNCTION"): views.keeps_text,
    ("DECLARE",): views.keeps_text,
    ("EXECUTE", "IMMEDIATE"): views.keeps_text,
    ("BEGIN",): views.keeps_text,
    ("CREATE", "NAMESPACE"): namespace_statements.create_namespace,
    ("CREATE", "SCHEMA"): namespace_statements.create_namespace,
    ("CREATE", "DATABASE"): namespace_statements.create_namespace,
    ("CREATE", "INDEX"): create_index,
    ("CREATE", "TAG"): create_ref,
    ("CREATE", "BRANCH"): create_ref,
    ("DROP", "TABLE"): tables.drop_table,
    ("DROP", "NAMESPACE"): namespace_statements.drop_namespace,
    ("DROP", "SCHEMA"): namespace_statements.drop_namespace,
    ("DROP", "DATABASE"): namespace_statements.drop_namespace,
    ("DROP", "INDEX"): drop_index,
    ("DROP", "TAG"): drop_ref,
    ("DROP", "BRANCH"): drop_ref,
    ("ALTER", "TABLE"): alter_table,
    ("OPTIMIZE",): upkeep.optimize,
    ("VACUUM",): upkeep.vacuum,
    ("RESTORE",): upkeep.restore,
    ("DESCRIBE",): shown_statements.describe,
    ("DESC",): shown_statements.describe,
    ("SHOW",): shown_statements.show,
    ("USE",): namespace_statements.use,
}
"""The first words of a statement, and the function that reads it; the longest ones that fit count."""
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
_WITH_QUERIES: Final = frozenset(
    {"INSERT", "CREATE", "EXPLAIN", "DESCRIBE", "DESC", "REPLACE", "MERGE", "SET"}
)
"""Statements of Spark's own in which queries may stand."""
_AFTER_WITH: Final = ("INSERT", "MERGE", "UPDATE", "DELETE", "SELECT")


def sql(
    spark: SparkSession,
    text: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    explain: bool = False,
    many: bool = False,
    **parameters: Any,
) -> DataFrame:
    """Run a statement of Spark's SQL in which Lance tables stand by name: queries, changes, and what keeps tables in shape.

    Names are those of the catalogs that `attach` gave the session, ``lance.`/path/to/table.lance``` is a path; what
    is none of these goes to Spark unchanged.  A query reads only the columns and rows that it uses.  docs/sql-on-spark.md
    has all statements.  What a command returns is what Delta's does: ``num_affected_rows`` and the like.

    ``args`` or ``parameters`` are values for ``:name``, a list those for ``?``: each becomes a literal of its type.
    ``explain``: nothing is run, and a DataFrame says which part goes where.  ``many``: semicolons divide several
    statements, and the result is that of the last one.

    Raises ArgumentError for a statement about a Lance table that is none, UnsupportedError for one that cannot be done.

    >>> _ = pennon.spark.attach(spark, {"small": path})
    >>> pennon.spark.sql(spark, "SELECT key FROM small WHERE value > :least", least=2).collect()
    [Row(key='c')]
    >>> pennon.spark.sql(spark, "UPDATE small SET value = 10 * value WHERE key = ?", ["a"]).first()
    Row(num_affected_rows=1)
    """
    if args is not None and parameters:
        message = f"give args, or {', '.join(sorted(parameters))} by name, not both"
        raise ArgumentError(message)
    given = parameters or args
    statements = _statements(spark, text)
    if statements is None:
        return _run_in_spark(spark, text, given)
    if not statements:
        raise ArgumentError("there is no statement")
    if len(statements) > 1 and not many:
        message = f"there are {len(statements)} statements: run them one by one, or say many=True"
        raise ArgumentError(message)
    if given is not None and len(statements) > 1 and not isinstance(given, Mapping):
        message = "several statements take parameters by name, :name"
        raise ArgumentError(message)
    result: DataFrame | None = None
    for number, statement in enumerate(statements):
        own = _own(statement, given) if len(statements) > 1 else given
        run = _explained if explain and number == len(statements) - 1 else _run
        result = run(spark, statement, own)
    assert result is not None
    return result


def _statements(spark: SparkSession, text: str) -> list[Statement] | None:
    """Return the statements of a text; None if it cannot be cut into words, and no catalog is there to look for."""
    try:
        return split_statements(text)
    except ArgumentError:
        if catalogs_of(spark).attached:
            raise
        return None


def _own(
    statement: Statement, given: Mapping[str, Any] | Sequence[Any] | None
) -> Mapping[str, Any] | None:
    """Return the values of the parameters that a statement has, of several statements."""
    if not isinstance(given, Mapping):
        return None
    names = {name for name, _ in markers(statement)}
    return {key: value for key, value in given.items() if key in names}


# --- one statement -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """A statement that is read: a command, or a query of Spark's over views; neither: it is Spark's alone."""

    command: Command | None = None
    query: PreparedQuery | None = None


def _plan(spark: SparkSession, statement: Statement) -> _Plan:
    read = parser_of(statement)
    if read is not None:
        command = read(spark, statement)
        if command is not None:
            return _Plan(command)
    first = statement.words[0].upper
    if first in _QUERIES or first in _WITH_QUERIES:
        query = prepare_query(spark, statement)
        if query.frames or query.answer is not None:
            return _Plan(query=query)
    for name in names_of_catalogs(spark, statement):
        if find_place(spark, name) is not None or is_path(name.parts):
            raise refused(
                statement, f"{name} is a Lance table, of which this statement knows nothing"
            )
    return _Plan()


def parser_of(statement: Statement) -> Parse | None:
    """Return the function that reads a statement; None if it is a query, or one of Spark's own."""
    words = [word.upper for word in statement.words[:6]]
    if words[0] == "WITH":
        words = [_first_after_common_tables(statement)]
        if words[0] in ("UPDATE", "DELETE"):
            return _refused_with
    if words[0] == "FROM" and any(word.upper == "INSERT" for word in statement.words):
        return inserts.multi_insert
    if words[0] == "EXPLAIN":
        return _explain_of
    for length in range(len(words), 0, -1):
        found = STATEMENTS.get(tuple(words[:length]))
        if found is not None:
            return found
    return None


def _first_after_common_tables(statement: Statement) -> str:
    depth = 0
    for word in statement.words:
        depth += (word.upper == "(") - (word.upper == ")")
        if depth == 0 and word.upper in _AFTER_WITH:
            return word.upper
    return "SELECT"


def _refused_with(spark: SparkSession, statement: Statement) -> Command | None:
    for name in chains(statement):
        if find_place(spark, name) is not None and len(name.parts) > 1:
            raise refused(
                statement,
                "common table expressions stand in subqueries of an UPDATE or DELETE, not before it",
            )
    return None


def _explain_of(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``EXPLAIN [EXTENDED | ...] statement``: of a command it says what is called, of a query it is Spark's."""
    at = 1
    while statement.words[at : at + 1] and statement.words[at].upper in (
        "EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL",
    ):  # fmt: skip
        at += 1
    inner = (
        Statement.of(statement.text[statement.words[at].start :])
        if at < len(statement.words)
        else None
    )
    read = None if inner is None else parser_of(inner)
    command = None if read is None or inner is None else read(spark, inner)
    if command is None:
        return None
    found = command
    return Command("EXPLAIN", found.title, found.kind, lambda: _notes(spark, _lines(_Plan(found))))


def _run(
    spark: SparkSession, statement: Statement, args: Mapping[str, Any] | Sequence[Any] | None
) -> DataFrame:
    if not _is_for_lance(spark, statement):
        return _run_in_spark(spark, statement.text, args)
    plan = _bound_plan(spark, statement, args)
    if plan.command is not None:
        return plan.command.run()
    if plan.query is not None:
        return plan.query.run(spark)
    return _run_in_spark(spark, statement.text, args)


def _bound_plan(
    spark: SparkSession, statement: Statement, args: Mapping[str, Any] | Sequence[Any] | None
) -> _Plan:
    """Return the plan of a statement with its parameters.

    Values that are no literals are Spark's to judge where no Lance table stands in the statement.
    """
    try:
        literals = bound(statement, args)
    except ArgumentError:
        plan = _plan(spark, statement)
        if plan.command is None and plan.query is None:
            return plan
        raise
    return _plan(spark, literals)


def _is_for_lance(spark: SparkSession, statement: Statement) -> bool:
    """Return whether a statement may be about a Lance table at all: if so its parameters become literals."""
    catalogs = catalogs_of(spark)
    if any(is_path(name.parts) for name in chains(statement)):
        return True
    return bool(catalogs.attached)


def _run_in_spark(
    spark: SparkSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None
) -> DataFrame:
    if args is None:
        return spark.sql(text)
    return spark.sql(text, dict(args) if isinstance(args, Mapping) else list(args))


def _explained(
    spark: SparkSession, statement: Statement, args: Mapping[str, Any] | Sequence[Any] | None
) -> DataFrame:
    return _notes(spark, _lines(_bound_plan(spark, statement, args)))


def _lines(plan: _Plan) -> list[tuple[str, str, str]]:
    if plan.command is not None:
        command = plan.command
        return [(command.kind, command.title, command.detail)]
    if plan.query is not None:
        return [(note.part, note.where, note.detail) for note in plan.query.notes]
    return [("statement", "Spark", "no Lance table stands in it")]


def _notes(spark: SparkSession, lines: list[tuple[str, str, str]]) -> DataFrame:
    return text_frame(spark, ["part", "where", "detail"], lines)
