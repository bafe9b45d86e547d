"""A kind of index as one value: what is true of a kind stands in its own file, at the end, as its ``KIND``.

``pennon.index.kinds`` lists them.  Functions whose modules few tables need are named by `lazy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.expr.tree import Expression
from pennon.index.base import OpenIndex, Values
from pennon.index.files import IndexFiles
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_set import RowSet


class RowNames(Enum):
    """The numbers by which an index names rows, in a table with stable row ids."""

    ROW_IDS = auto()
    ADDRESSES = auto()
    BY_VERSION = auto()
    """Version 0 of the index has row ids, version 1 addresses; without stable row ids 0 is written."""


class LookupCost(Enum):
    """The cost of a lookup of keys; a merge decides by it whether to ask the index before it reads rows."""

    NONE = auto()
    """It is not asked."""
    POINT = auto()
    """It is asked for single keys: an answer to a range is as long as the range has rows."""
    RANGE = auto()
    """It is asked for a range, too: an answer is as long as the table has zones."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The settings that a user may give for an index of a kind.

    ``names``: all that there are.  ``check`` raises if these, or their values, or the column's type cannot be; without
    it only names are checked.  ``of_files`` are those that an old index was made with, ``of_details`` those that a
    details message says, ``to_details`` is the message of some.  ``name_ending``: what a name of an index has behind
    the column's.
    """

    names: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, Any], str, pa.DataType], None] | None = None
    of_files: Callable[[IndexFiles], Mapping[str, Any]] = lambda _: {}
    of_details: Callable[[bytes], Mapping[str, Any]] = lambda _: {}
    to_details: Callable[[Mapping[str, Any]], bytes] = lambda _: b""
    name_ending: Callable[[Mapping[str, Any]], str] = lambda _: ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """The facts that every kind of index has.

    ``details``: the name of the message of its details.  ``user_names``: what users call it, the usual name first.
    ``reads``: the newest version that is read.  ``rows_named`` gives all rows that the files of an index name.
    """

    details: str
    user_names: tuple[str, ...]
    names_rows_by: RowNames
    reads: int
    rows_named: Callable[[IndexFiles], RowSet]
    lookup_cost: LookupCost = LookupCost.NONE


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScalarKind(Kind):
    """A kind of index of the values of a column, or of their words, and how one is asked and made.

    ``name`` as plans show it.  ``open`` takes the type of the table's column, too, and gives a `ScalarIndex` if filters
    ask the kind.  ``answers``: whether an index of a version knows more of a condition than that any row may pass.
    ``names_all``: an index names all rows of the fragments that it was made of, also those without a value.

    ``takes``: whether a column of a type can have one; ``types`` says which can, in words.  ``build`` makes one of
    values, ``merge`` one of several whose rows may have moved, unless ``by_zones``.  ``writes`` gives the version of an
    index that is made, if that is not ``reads``.  ``package``: where its details message is.  ``row_bytes``: about how
    much memory a row takes while the index is made, beside its value.
    ``may_be_json_target``: whether one can be made of what lies at a path of a JSON column; ``tells_type``: whether its
    files tell the type of its values, without which an index on a path is not asked.
    """

    name: str
    open: Callable[[IndexFiles, pa.DataType], OpenIndex]
    answers: Callable[[Expression, int], bool]
    names_all: bool = False
    takes: Callable[[pa.DataType], bool]
    types: str
    build: Callable[[Iterable[Values], pa.DataType, NewFiles], None]
    merge: Callable[[Sequence[OldIndex], pa.DataType, NewFiles], None]
    by_zones: bool = False
    parameters: Parameters = Parameters()
    writes: Callable[[Mapping[str, Any]], int] | None = None
    package: str = "lance.table"
    row_bytes: int = 0
    may_be_json_target: bool = False
    tells_type: bool = True

    def written_version(self, parameters: Mapping[str, Any], *, has_stable_row_ids: bool) -> int:
        """Return the version of an index that is made now: of addresses, if versions tell."""
        if self.writes is not None:
            return self.writes(parameters)
        if self.names_rows_by is RowNames.BY_VERSION:
            return int(has_stable_row_ids)
        return self.reads

    def described(self, parameters: Mapping[str, Any]) -> tuple[str, bytes]:
        """Return what the entry of an index says of it: the URL of the details message, and the message."""
        return f"/{self.package}.{self.details}", self.parameters.to_details(parameters)


def lazy(module: str, name: str) -> Callable[..., Any]:
    """Return a function whose module below `pennon.index` is imported when it is called."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"pennon.index.{module}"), name)(*given)

    return call


# --- types of columns that several kinds take -----------------------------------------------------

PLAIN_TYPES: Final = "int, float, bool, str, large_str, binary, large_binary, decimal, fixed-size-binary, or temporal"


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type are texts."""
    return bool(t.is_string(kind) or t.is_large_string(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Return whether values of a type have an order that all releases agree on."""
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind)
    is_number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    return bool(is_text(kind) or is_bytes or is_number or t.is_boolean(kind) or t.is_temporal(kind))
