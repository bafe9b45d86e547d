"""The columns of a table that a query uses; one too many costs time, one too few is impossible.

A column is used if its name stands anywhere in the statement: alone, behind a name of the table, or before a field.
``*`` uses all columns of the tables that it is for.  Which those are the tree says; without a tree it is all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import types as st
from sqlglot import exp

from pennon.spark.names import quoted
from pennon.spark.statements.references import ParsedQuery, Reference
from pennon.spark.statements.words import Name, Splice, Statement, chains
from pennon.spark.types import ROW_ADDRESS, ROW_ID

FRAGMENT_ID: Final = "_fragid"
"""lance-spark's name for the number of a row's fragment."""
_SYSTEM: Final = (ROW_ID, ROW_ADDRESS, FRAGMENT_ID)
_PATTERN: Final = re.compile(r"[()\[\]*+?|^$\\]")
"""Signs of a name in backticks that may be a pattern of names (spark.sql.parser.quotedRegexColumnNames)."""
_NARROW: Final = (
    st.BooleanType,
    st.ByteType,
    st.ShortType,
    st.IntegerType,
    st.DateType,
    st.LongType,
)


@dataclass(frozen=True, slots=True)
class UsedColumns:
    """The columns that a query uses of a table: stored ones, with dots for fields inside, and columns of rows such as ``_rowid``."""

    columns: tuple[str, ...]
    system: tuple[str, ...]
    is_all: bool


def used_columns(query: ParsedQuery, reference: Reference, schema: st.StructType) -> UsedColumns:
    """Return what a query uses of a table with some columns."""
    names = {field.name.lower(): field for field in schema.fields}
    paths: dict[str, set[tuple[str, ...]]] = {}
    system: set[str] = set()
    for path in _paths_used(query.statement, reference):
        top = path[0].lower()
        if top in names:
            paths.setdefault(names[top].name, set()).add(path[1:])
        elif top in _SYSTEM:
            system.add(top)
    known = tuple(name for name in _SYSTEM if name in system)
    is_all = len(names) != len(schema.fields) or _takes_all(query, reference)
    if is_all:
        return UsedColumns(tuple(schema.names), known, is_all=True)
    columns = [
        path
        for field in schema.fields
        if field.name in paths
        for path in _narrowed(field, paths[field.name])
    ]
    if not columns and not known:
        columns = [_narrowest(schema)]
    return UsedColumns(tuple(columns), known, is_all=False)


def _takes_all(query: ParsedQuery, reference: Reference) -> bool:
    if query.tree is None or reference.node is None:
        return True
    alias = reference.node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return True
    if any(word.is_quoted and _PATTERN.search(word.text) for word in query.statement.words):
        return True
    return any(_is_for(star, reference) for star in query.tree.find_all(exp.Star))


def _is_for(star: exp.Star, reference: Reference) -> bool:
    """Return whether ``*`` may take the columns of a table."""
    above = star.parent
    if isinstance(above, exp.Count) and not star.args.get("except_"):
        return False  # count(*)
    if isinstance(above, exp.Column):
        names = [part.name.lower() for part in above.parts[:-1]]
        return not names or names[-1] in reference.qualifiers
    select = star.find_ancestor(exp.Select)
    if select is not None and isinstance(select.parent, exp.Exists) and star.parent is select:
        return False  # EXISTS (SELECT * ...) asks for rows, not for their columns
    return select is None or any(each is reference.node for each in sources_of(select))


def sources_of(select: exp.Select) -> Iterator[exp.Table]:
    """Yield the tables of a SELECT's own FROM clause and joins, those in parentheses among them."""
    pending: list[exp.Expr] = []
    for key in ("from_", "joins", "laterals"):
        value = select.args.get(key)
        pending += value if isinstance(value, list) else [] if value is None else [value]
    while pending:
        node = pending.pop()
        if isinstance(node, (exp.Select, exp.SetOperation)):
            continue
        if isinstance(node, exp.Table):
            yield node
        for child in node.iter_expressions():
            pending.append(child)


def _paths_used(statement: Statement, reference: Reference) -> Iterator[tuple[str, ...]]:
    """Yield what names of a statement may mean of a table: a column and fields inside it."""
    own = [part.lower() for part in reference.full_name]
    for name in chains(statement):
        if name.first == reference.name.first:
            continue
        lower = [part.lower() for part in name.parts]
        yield name.parts
        for at in range(len(own)):
            before = own[at:] if reference.alias is None else [reference.alias.lower()]
            if lower[: len(before)] == before and len(lower) > len(before):
                yield name.parts[len(before) :]
    for word in statement.words:
        if word.is_text and statement.text[word.start] == '"':
            yield (word.text,)  # a name, if the session says so


def _narrowed(field: st.StructField, uses: set[tuple[str, ...]]) -> Sequence[str]:
    """Return a column, or only the fields inside it that are used."""
    found: set[str] = set()
    for path in uses:
        kind: st.DataType = field.dataType
        names = [field.name]
        for part in path:
            if not isinstance(kind, st.StructType):
                break
            same = [each for each in kind.fields if each.name.lower() == part.lower()]
            if len(same) != 1:
                return [field.name]
            names.append(same[0].name)
            kind = same[0].dataType
        if len(names) == 1 or any("." in each or "`" in each for each in names):
            return [field.name]
        found.add(".".join(names))
    paths = sorted(found)
    return [path for path in paths if not any(path.startswith(other + ".") for other in paths)]


def _narrowest(schema: st.StructType) -> str:
    for kind in _NARROW:
        for field in schema.fields:
            if isinstance(field.dataType, kind):
                return field.name
    return schema.fields[0].name


def qualifier_splices(statement: Statement, reference: Reference) -> Iterator[Splice]:
    """Yield what makes ``lake.space.t.column`` into ``t.column``, as a view has no catalog."""
    own = [part.lower() for part in reference.full_name]
    if reference.alias is not None or len(own) == 1:
        return
    for name in chains(statement):
        lower = [part.lower() for part in name.parts]
        if name.first == reference.name.first or not _is_qualified(statement, name):
            continue
        for at in range(len(own) - 1):
            if (
                lower[: len(own) - at] == own[at:]
                and len(lower) + _star_follows(statement, name) > len(own) - at
            ):
                first = statement.words[name.first]
                last = statement.words[name.first + 2 * (len(own) - at - 1)]
                yield Splice(first.start, last.end, quoted(reference.name.parts[-1]))
                break


def _is_qualified(statement: Statement, name: Name) -> bool:
    return len(name.parts) > 1 and not (name.first and statement.words[name.first - 1].upper == ".")


def _star_follows(statement: Statement, name: Name) -> bool:
    words = statement.words[name.after : name.after + 2]
    return [word.upper for word in words] == [".", "*"]
