"""Statements as words with their places in the text, and a cursor that reads them.

sqlglot's tokenizer of the Spark dialect cuts the text.  Nothing is printed back from a syntax tree: what Spark
gets is the user's own text, with some words replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from pennon.errors import ArgumentError

_WORD: Final = re.compile(r"\w+\Z")
_TEXTS: Final = frozenset(
    {TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING}
)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_CONTINUED_COMMENT: Final = re.compile(r"--[^\n]*\\\r?\n")
_MOST_SHOWN: Final = 60


class _Tokenizer(Spark.Tokenizer):
    """The tokenizer of the Spark dialect, which cuts statements such as SHOW into words, too."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Word:
    """A word, sign or literal: ``text`` is what it says, ``start`` and ``end`` where it stands."""

    text: str
    start: int
    end: int
    is_text: bool = False
    is_number: bool = False
    is_quoted: bool = False

    @property
    def upper(self) -> str:
        """Return the word in capitals; of literals and quoted names nothing, for they are no keywords."""
        return "" if self.is_text or self.is_quoted else self.text.upper()

    @property
    def is_name(self) -> bool:
        """Return whether the word may be a part of a name."""
        return self.is_quoted or (
            not self.is_text and not self.is_number and _WORD.match(self.text) is not None
        )


def cut_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text; comments are left out.

    Raises ArgumentError for text that ends inside a string, a quoted name or a comment, and for a comment that
    Spark continues on the next line.
    """
    try:
        tokens = _Tokenizer(dialect=Spark()).tokenize(text)
    except SqlglotError as error:
        message = f"the statement cannot be cut into words: {error}"
        raise ArgumentError(message) from None
    words: list[Word] = []
    for token in tokens:
        start, end = token.start, token.end + 1
        if words and start < words[-1].end:
            continue  # the suffix of a number, which sqlglot takes for a cast
        if token.token_type is TokenType.HINT:
            end = text.index("*/", start) + 2  # all of it, as one word
        source = text[start:end]
        if source.startswith("'") and words and words[-1].is_text and words[-1].end == start:
            words[-1] = replace(words[-1], text=f"{words[-1].text}'{token.text}", end=end)
            continue
        if token.token_type not in _TEXTS and len(source.split()) > 1 and source[0].isalpha():
            parts = re.finditer(r"\S+", source)  # sqlglot's keywords of several words
            words += [Word(each[0], start + each.start(), start + each.end()) for each in parts]
            continue
        is_quoted = source.startswith("`")
        words.append(
            Word(
                source[1:-1].replace("``", "`") if is_quoted else token.text,
                start,
                end,
                is_text=token.token_type in _TEXTS,
                is_number=token.token_type is TokenType.NUMBER,
                is_quoted=is_quoted,
            )
        )
    _check_comments(text, words)
    return tuple(words)


def _check_comments(text: str, words: Sequence[Word]) -> None:
    end = 0
    for start, after in [*((each.start, each.end) for each in words), (len(text), len(text))]:
        if start > end and _CONTINUED_COMMENT.search(text, end, start + 1):
            message = "a comment ends in a backslash, so Spark continues it on the next line: take the backslash away"
            raise ArgumentError(message)
        end = after


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its text and its words."""

    text: str
    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str) -> Statement:
        """Cut a text into words; see `cut_words`."""
        return cls(text, cut_words(text))

    @property
    def title(self) -> str:
        """Return the first words, for messages and plans."""
        shown = " ".join(self.text.split())
        return shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN].rstrip() + " ..."

    def slice(self, first: int, after: int) -> str:
        """Return the text from one word to another one, which is not part of it."""
        if first >= after:
            return ""
        return self.text[self.words[first].start : self.words[after - 1].end]


def split_statements(text: str) -> list[Statement]:
    """Return the statements of a text, which semicolons divide; empty ones are left out.

    A script, ``BEGIN ... END``, is one statement.
    """
    words = cut_words(text)
    if words and words[0].upper == "BEGIN":
        return [Statement(text, words)]
    found: list[Statement] = []
    begin = 0
    for number, word in [*enumerate(words), (len(words), None)]:
        if word is not None and word.upper != ";":
            continue
        if number > begin:
            found.append(Statement.of(text[words[begin].start : words[number - 1].end]))
        begin = number + 1
    return found


@dataclass(frozen=True, slots=True)
class Name:
    """A name with dots, and the words that it is: ``lake.flights`` has the parts lake and flights."""

    parts: tuple[str, ...]
    first: int
    after: int

    def __str__(self) -> str:
        """Return the name as SQL shows it."""
        return ".".join(each if _WORD.match(each) else f"`{each}`" for each in self.parts)


@dataclass(slots=True)
class Cursor:
    """Reads a statement word by word."""

    statement: Statement
    at: int = 0
    words: tuple[Word, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.words = self.statement.words

    def peek(self, ahead: int = 0) -> str:
        """Return a word to come in capitals; nothing for literals, quoted names and the end."""
        number = self.at + ahead
        return self.words[number].upper if number < len(self.words) else ""

    @property
    def is_done(self) -> bool:
        """Return whether all words are read."""
        return self.at >= len(self.words)

    def takes(self, *keywords: str) -> bool:
        """Read some keywords if they are the next ones, and return whether they are."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(keywords)):
            self.at += len(keywords)
            return True
        return False

    def takes_any(self, *keywords: str) -> str:
        """Read one of some keywords, and return it; nothing if another word comes."""
        found = self.peek()
        if found and found in keywords:
            self.at += 1
            return found
        return ""

    def needs(self, *keywords: str) -> None:
        """Read some keywords.  Raises ArgumentError if another word comes."""
        if not self.takes(*keywords):
            raise self.wrong(" ".join(keywords))

    def wrong(self, wanted: str) -> ArgumentError:
        """Return the error for a word that is not the one wanted."""
        here = "the end" if self.is_done else repr(self.words[self.at].text)
        return ArgumentError(f"{self.statement.title!r}: {wanted} is expected, not {here}")

    def ends(self) -> None:
        """Raise ArgumentError if there are more words."""
        if not self.is_done:
            raise self.wrong("the end of the statement")

    def name(self) -> Name:
        """Read a name with dots."""
        found = self.name_if_any()
        if found is None:
            raise self.wrong("a name")
        return found

    def name_if_any(self) -> Name | None:
        """Read a name with dots if one comes."""
        first = self.at
        if self.is_done or not self.words[first].is_name:
            return None
        parts = [self.words[first].text]
        self.at += 1
        while self.peek() == "." and self.at + 1 < len(self.words):
            part = self.words[self.at + 1]
            if not part.is_name and not part.is_number:
                break
            parts.append(part.text)
            self.at += 2
        return Name(tuple(parts), first, self.at)

    def identifier(self) -> str:
        """Read a name without dots."""
        if self.is_done or not self.words[self.at].is_name:
            raise self.wrong("a name")
        self.at += 1
        return self.words[self.at - 1].text

    def identifier_or_text(self) -> str:
        """Read a name or a literal of text."""
        return self.text_literal() if self._is_text() else self.identifier()

    def text_literal(self) -> str:
        """Read a literal of text."""
        if not self._is_text():
            raise self.wrong("a text in quotes")
        self.at += 1
        return self.words[self.at - 1].text

    def _is_text(self) -> bool:
        return not self.is_done and self.words[self.at].is_text

    def number(self) -> int:
        """Read a whole number."""
        word = None if self.is_done else self.words[self.at]
        digits = "" if word is None else word.text.removesuffix("L").removesuffix("l")
        if word is None or word.is_text or not digits.isdecimal():
            raise self.wrong("a whole number")
        self.at += 1
        return int(digits)

    def rest(self) -> str:
        """Read all words to come, and return their text."""
        first, self.at = self.at, len(self.words)
        return self.statement.slice(first, self.at)

    def group(self) -> tuple[int, int]:
        """Read a pair of parentheses; return the words inside, the first one and the one after the last."""
        self.needs("(")
        first = self.at
        depth = 1
        while not self.is_done:
            sign = self.peek()
            self.at += 1
            depth += (sign in _OPENING if sign else False) - (sign in _CLOSING if sign else False)
            if depth == 0:
                return first, self.at - 1
        raise self.wrong("a closing parenthesis")

    def until(self, *keywords: str) -> str:
        """Read to one of some keywords outside of parentheses, or to the end; return the text before it.

        A keyword inside of ``CASE ... END`` is passed over.
        """
        first = self.at
        depth = cases = 0
        while not self.is_done:
            word = self.peek()
            if depth == 0 and cases == 0 and word and word in keywords and self.at > first:
                break
            depth += (word in _OPENING if word else False) - (word in _CLOSING if word else False)
            cases += (word == "CASE") - (word == "END" and cases > 0)
            self.at += 1
        return self.statement.slice(first, self.at)

    def names(self) -> list[str]:
        """Read names in parentheses, ``(a, b.c)``; dots stay."""
        self.needs("(")
        found = [dotted(self.name().parts)]
        while self.takes(","):
            found.append(dotted(self.name().parts))
        self.needs(")")
        return found

    def properties(self) -> dict[str, str]:
        """Read properties, ``('key' = 'value', other.key = 3)``; values are texts, numbers or words."""
        self.needs("(")
        found: dict[str, str] = {}
        while not self.takes(")"):
            key = self.property_key()
            self.takes("=")
            sign = "-" if self.takes("-") else ""
            if self.is_done:
                raise self.wrong("a value")
            found[key] = sign + self.words[self.at].text
            self.at += 1
            if not self.takes(",") and self.peek() != ")":
                raise self.wrong(", or )")
        return found

    def property_key(self) -> str:
        """Read the key of a property: a text, or a name with dots."""
        return self.text_literal() if self._is_text() else ".".join(self.name().parts)


def dotted(parts: Iterable[str]) -> str:
    """Return a path of a column and its fields as one text; a part that is no plain word has backticks."""
    return ".".join(
        each if _WORD.match(each) else "`" + each.replace("`", "``") + "`" for each in parts
    )


def chains(statement: Statement) -> Iterator[Name]:
    """Yield all names with dots of a statement, keywords among them."""
    cursor = Cursor(statement)
    while not cursor.is_done:
        found = cursor.name_if_any()
        if found is None:
            cursor.at += 1
        else:
            yield found


@dataclass(frozen=True, slots=True)
class Splice:
    """A part of a text that another text takes the place of."""

    start: int
    end: int
    text: str

    def is_within(self, other: Splice) -> bool:
        """Return whether another one replaces its part of the text, too."""
        return other.start <= self.start and self.end <= other.end


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return a text with some parts replaced; they do not overlap."""
    parts: list[str] = []
    at = 0
    for each in sorted(splices, key=lambda one: (one.start, one.end)):
        parts += [text[at : each.start], each.text]
        at = each.end
    return "".join([*parts, text[at:]])
