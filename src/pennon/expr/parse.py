"""From SQL text to a typed tree.

The dialect is the reference's: strings in single or double quotes, names with odd characters in
back-ticks, names without regard to case where only one column fits.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, Final

import pyarrow as pa
from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from pennon.errors import ArgumentError, ExpressionError, UnsupportedError
from pennon.expr.bind import Binder, as_condition
from pennon.expr.literal_lists import take_out_lists, take_out_values
from pennon.expr.tree import Expression

_LACKS: Final = re.compile(r"Required keyword: '\w+' missing for <class '[^']*'>(\..*)?")
LONGEST_TEXT: Final = 16 << 20
DEEPEST_NESTING: Final = 128
KNOWN_TEXTS: Final = 64
"""Texts whose literals were taken out are remembered when they are parsed."""


_STATEMENTS: Final = """
    ALTER ANALYZE CALL COMMENT CREATE CROSS DESCRIBE DROP EXECUTE FETCH FOR FROM GRANT HAVING INNER
    INSERT INTO JOIN LATERAL ON OUTER QUALIFY RETURNING ROLLBACK SELECT SHOW TABLESAMPLE UNION USING
    WHERE WITH
"""
"""Words that begin or part statements, of which there are none here: columns may be called so."""


class LanceSQL(Dialect):
    """The expressions that Lance's readers take."""

    class Tokenizer(tokens.Tokenizer):
        """The tokenizer of Lance's SQL."""

        QUOTES: ClassVar = ["'", '"']
        IDENTIFIERS: ClassVar = ["`"]
        STRING_ESCAPES: ClassVar = ["'", '"']
        COMMANDS: ClassVar = set()
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]

    class Parser(parser.Parser):
        """The parser of Lance's SQL; functions are looked up in Pennon's registry."""

        IS_PREDICATE_PRECEDENCE: ClassVar = parser.IsPredicatePrecedence.LOW  # (a = b) IS NULL
        ID_VAR_TOKENS: ClassVar = parser.Parser.ID_VAR_TOKENS | {
            tokens.Tokenizer.KEYWORDS[word] for word in _STATEMENTS.split()
        }
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {
            name: parser.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
        }


def parse_filter(text: str, schema: pa.Schema) -> Expression:
    """Return the condition that ``text`` is for rows of ``schema``.

    Raises ExpressionError if it is no SQL, names what is not there, or is not a condition.
    """
    found = as_condition(parse_column(text, schema))
    if found.type != pa.bool_():
        message = f"the filter {_shown(text)} gives {found.type}, not true or false"
        raise ExpressionError(message)
    return found


def parse_column(text: str, schema: pa.Schema) -> Expression:
    """Return the expression that ``text`` is for rows of ``schema``; raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        message = f"an expression of {len(text)} characters; at most {LONGEST_TEXT} are taken"
        raise ExpressionError(message)
    if not _is_unicode(text):
        message = f"the expression {_shown(text)} has a lone surrogate, which is no character"
        raise ExpressionError(message)
    try:
        return _bound(text, schema)
    except ArgumentError as error:
        message = f"in the expression {_shown(text)}: {error.message}"
        raise ExpressionError(message) from error
    except (pa.ArrowException, OverflowError) as error:  # of a literal that takes another type
        message = f"in the expression {_shown(text)}: {error}"
        raise ExpressionError(message) from error
    except RecursionError:
        message = f"the expression {_shown(text)} is nested too deeply"
        raise ExpressionError(message) from None


def _bound(text: str, schema: pa.Schema) -> Expression:
    same, values = take_out_values(text)
    if values:
        try:
            syntax = _known_syntax(same)
        except ArgumentError:
            pass  # what is wrong is said of the text as it was written
        else:
            return Binder(schema, values=values).bind_top(syntax)
    short, lists = take_out_lists(text)
    return Binder(schema, lists).bind_top(_syntax(short))


@lru_cache(maxsize=KNOWN_TEXTS)
def _known_syntax(text: str) -> exp.Expr:
    """Return the syntax tree of a text without literals, parsed now or before; callers do not change it."""
    return _syntax(text)


def _syntax(text: str) -> exp.Expr:
    _check_nesting(text)
    try:
        found = LanceSQL().parse_into(exp.Condition, text)
    except (SqlglotError, ValueError) as error:
        message = f"this is not SQL: {_in_words(_first_line(error))}"
        raise ArgumentError(message) from error
    except TypeError as error:
        if "inherit from compiled" not in str(error):
            raise
        message = (
            "sqlglot's compiled build takes no dialect but its own, and filters need Lance's: "
            "uninstall the package sqlglotc (the extra sqlglot[c])"
        )
        raise UnsupportedError(message) from error
    if len(found) != 1 or found[0] is None:
        message = "one expression was expected"
        raise ArgumentError(message)
    return found[0]


def _in_words(said: str) -> str:
    """Return what the parser says, where it names its own classes in words: an operator lacks what it works on."""
    found = _LACKS.fullmatch(said)
    return said if found is None else f"a value is missing{found.group(1) or ''}"


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_nesting(text: str) -> None:
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth > DEEPEST_NESTING:
            message = f"parentheses more than {DEEPEST_NESTING} deep"
            raise ArgumentError(message)


def _first_line(error: Exception) -> str:
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if "description" in found:
        return f"{found['description']}. Line {found['line']}, Col: {found['col']}."
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _shown(text: str) -> str:
    longest = 200
    return repr(text if len(text) <= longest else text[:longest] + "…")
