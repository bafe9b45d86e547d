"""A function of SQL text as one value: how it is called, whether it is constant, when it is NULL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from pennon.expr.cast import Datum


class NullRule(Enum):
    """When a function may give NULL, as far as its arguments tell."""

    UNKNOWN = auto()
    """With a column among its arguments perhaps; else the value tells."""
    ANY = auto()
    """If an argument may be NULL."""
    ALL = auto()
    """If all arguments may be NULL."""
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Function:
    """A SQL function: its implementation, and its number of arguments; ``most`` None: any number."""

    run: Callable[..., Datum]
    least: int = 1
    most: int | None = 1
    is_mixed: bool = False
    """Whether the arguments keep types of their own; else they get one they have in common."""
    takes_rows: bool = False
    """Whether it has no arguments and takes the number of rows: each row has a value of its own."""
    is_constant: bool = True
    """Whether the same arguments give the same value at any time: an index may be asked for it."""
    null_rule: NullRule = NullRule.UNKNOWN
