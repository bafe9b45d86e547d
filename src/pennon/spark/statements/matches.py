"""Conditions on texts in WHERE: ``lance_match(body, 'words')`` is a full-text search of the table.

The condition is one of the AND parts of the WHERE of the SELECT that has the table.  The driver searches, and the
rows that it finds are the view of the table; the words become TRUE in the text that Spark gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from pennon.errors import ArgumentError, UnsupportedError
from pennon.index.text.queries import (
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from pennon.scan.plan.query import ScanOptions
from pennon.scan.plan.row_search import TextSearch
from pennon.spark.source.options import ReadOptions
from pennon.spark.statements.pruning import sources_of
from pennon.spark.statements.references import ParsedQuery, Reference
from pennon.spark.statements.searches import literal_value
from pennon.spark.statements.words import Cursor, Name, chains

_FUNCTIONS: Final = ("lance_match", "lance_match_phrase", "lance_multi_match")


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A condition on texts: where it stands, the table that it is about, and the search that it is."""

    start: int
    end: int
    reference: Reference
    query: FullTextQuery

    def options(self, shown: ReadOptions) -> ScanOptions:
        """Return the scan that finds all rows that match, with some columns."""
        return ScanOptions(
            columns=shown.columns,
            with_row_id=shown.with_row_id,
            with_row_address=shown.with_row_address,
            blobs_as_bytes=True,
            nests=True,
            search=TextSearch(self.query, None, is_scored=False),
        )


def find_matches(query: ParsedQuery) -> list[TextMatch]:
    """Return the conditions on texts of Lance tables.

    Raises UnsupportedError for one that stands in an OR, or in another place where a search cannot be.
    """
    names = [name for name in chains(query.statement) if _is_call(query, name)]
    if not names or not query.references:
        return []
    nodes = [] if query.tree is None else _calls(query.tree)
    if len(nodes) != len(names):
        raise _refused(query, names[0])
    nodes.sort(key=lambda node: node.meta.get("start", 0))
    found: list[TextMatch] = []
    for name in names:
        node = next(
            (each for each in nodes if str(each.this).lower() == name.parts[0].lower()), None
        )
        if node is None:
            raise _refused(query, name)
        nodes.remove(node)
        cursor = Cursor(query.statement, name.after)
        cursor.group()
        words = query.statement.words
        asked, columns = text_query(name.parts[0].lower(), node.expressions)
        reference = _reference(query, node, columns)
        if reference is None or any(each.reference is reference for each in found):
            raise _refused(query, name)
        found.append(TextMatch(words[name.first].start, words[cursor.at - 1].end, reference, asked))
    return found


def _is_call(query: ParsedQuery, name: Name) -> bool:
    words = query.statement.words
    is_called = name.after < len(words) and words[name.after].upper == "("
    return is_called and len(name.parts) == 1 and name.parts[0].lower() in _FUNCTIONS


def _calls(tree: exp.Expr) -> list[exp.Anonymous]:
    return [each for each in tree.find_all(exp.Anonymous) if str(each.this).lower() in _FUNCTIONS]


def _reference(query: ParsedQuery, node: exp.Anonymous, columns: Sequence[str]) -> Reference | None:
    """Return the table that a condition is about; None if it is not an AND part of a WHERE."""
    above = node.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    if not isinstance(above, exp.Where) or not isinstance(above.parent, exp.Select):
        return None
    if above.parent.args.get("joins") and any(join.side for join in above.parent.args["joins"]):
        return None
    nodes = list(sources_of(above.parent))
    own = [each for each in query.references if any(each.node is one for one in nodes)]
    qualifiers = {name.rpartition(".")[0].lower() for name in columns} - {""}
    if qualifiers:
        own = [each for each in own if qualifiers <= each.qualifiers]
    return own[0] if len(own) == 1 else None


def _refused(query: ParsedQuery, name: Name) -> UnsupportedError:
    message = (
        f"{query.statement.title!r}: {name} is a search of one table: it stands once among the AND parts of the WHERE of "
        "the SELECT that has the table, and not beside an outer join"
    )
    return UnsupportedError(message)


def text_query(
    function: str, arguments: Sequence[exp.Expr]
) -> tuple[FullTextQuery, tuple[str, ...]]:
    """Return the full-text query of ``lance_match(column, 'words')`` and the like, and its columns."""
    values = [literal_value(each, function) for each in arguments]
    if function == "lance_multi_match":
        words, *columns = values
        settings: dict[str, str] = {}
        if columns and "=" in str(columns[0]):
            settings, columns = _settings(str(columns[0])), columns[1:]
        if not columns:
            message = "lance_multi_match('words', column, ...) names the columns"
            raise ArgumentError(message)
        said = tuple(map(str, columns))
        names = tuple(each.rpartition(".")[2] for each in said)
        if settings.get("operator", "OR").upper() == "AND":
            whole: FullTextQuery = MatchQuery(words, names[0])
            for name in names[1:]:
                whole = whole & MatchQuery(words, name)
            return whole, said
        return MultiMatchQuery(words, names), said
    if len(values) not in (2, 3):
        message = f"{function}(column, 'words') has two or three arguments, not {len(values)}"
        raise ArgumentError(message)
    said, words = (str(values[0]),), str(values[1])
    column = said[0].rpartition(".")[2]
    if function == "lance_match_phrase":
        return PhraseQuery(words, column, slop=int(values[2]) if len(values) == 3 else 0), said
    settings = _settings(str(values[2])) if len(values) == 3 else {}
    query = MatchQuery(
        words,
        column,
        boost=float(settings.get("boost", "1.0")),
        fuzziness=int(settings["fuzziness"]) if "fuzziness" in settings else 0,
        max_expansions=int(settings.get("max_expansions", "50")),
        operator=FullTextOperator(settings.get("operator", "OR").upper()),
        prefix_length=int(settings.get("prefix_length", "0")),
    )
    return query, said


def _settings(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    return {key.strip().lower(): value.strip() for key, _, value in pairs}
