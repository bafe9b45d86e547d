"""The text of a table's name: parts joined by dots, in backticks where a part holds more than word characters.

========================  ==================
text                      name
========================  ==================
``train.images``          (train, images)
``train.`my.images```     (train, my.images)
`````odd``name`````       (odd`name)
========================  ==================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pennon.catalog.base import TableName
from pennon.errors import ArgumentError

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_PLAIN: Final = re.compile(r"[^\W\d]\w*")
_SHOWN: Final = 100
LONGEST_NAME: Final = 1 << 16
"""Characters of the text of a name; no store has paths that are nearly as long."""


def split_name(text: str) -> TableName:
    """Return the parts of the text of a name.

    A part in backticks may hold dots, and a backtick that is written twice.  Raises ArgumentError for
    an empty part, and for a backtick that does not close.

    >>> from pennon.catalog import split_name
    >>> split_name("a.`b.c`")
    ('a', 'b.c')
    """
    if len(text) > LONGEST_NAME:
        message = (
            f"a name of a table has at most {LONGEST_NAME} characters, and this one {len(text)}"
        )
        raise ArgumentError(message)
    parts, at = [], 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            raise _not_a_name(text, at)
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise _not_a_name(text, at)
        at += 1


def join_name(name: Sequence[str]) -> str:
    """Return the text of a name, which `split_name` takes apart again.

    >>> from pennon.catalog import join_name
    >>> join_name(("a", "b.c"))
    'a.`b.c`'
    """
    return ".".join(_quoted(part) for part in name)


def check_parts(name: Sequence[str], *, is_table: bool) -> TableName:
    """Return a name whose parts any catalog could hold.

    Raises ArgumentError for a table without a name, an empty part, control characters, and for what is no
    text.
    """
    if isinstance(name, str):
        message = f"a name is a tuple of its parts; for text there is split_name({name[:_SHOWN]!r})"
        raise ArgumentError(message)
    parts = tuple(name)
    if is_table and not parts:
        message = "a table needs a name; () is the root namespace"
        raise ArgumentError(message)
    for part in parts:
        if not isinstance(part, str) or not part or not _is_clean(part):
            message = (
                f"the part {str(part)[:_SHOWN]!r} of a name must be text that is not empty and "
                "has no control characters"
            )
            raise ArgumentError(message)
    return parts


def _is_clean(part: str) -> bool:
    return not any(each < " " or each == "\x7f" or "\ud800" <= each <= "\udfff" for each in part)


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"


def _not_a_name(text: str, at: int) -> ArgumentError:
    message = (
        f"{text[:_SHOWN]!r} is no name of a table: at character {at} there must be a part, such as "
        "word or `any.thing`, and dots only between parts"
    )
    return ArgumentError(message)
