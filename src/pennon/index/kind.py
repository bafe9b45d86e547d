"""A kind of index as one value: what is true of a kind stands in its own file, at the end, as its ``KIND``.

``pennon.index.kinds`` lists them.  Functions whose modules few tables need are named by `lazy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as t

from pennon.errors import UnsupportedError
from pennon.expr.tree import Expression
from pennon.index.base import OpenIndex, Values
from pennon.index.files import IndexFiles
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_set import Numbers, RowSet


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
    details message says, ``to_details`` is the message of some.  ``shown``: how `LanceDataset.describe_indices` shows a
    details message.  ``name_ending``: what a name of an index has behind the column's.
    """

    names: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, Any], str, pa.DataType], None] | None = None
    of_files: Callable[[IndexFiles], Mapping[str, Any]] = lambda _: {}
    of_details: Callable[[bytes], Mapping[str, Any]] = lambda _: {}
    to_details: Callable[[Mapping[str, Any]], bytes] = lambda _: b""
    shown: Callable[[bytes], Mapping[str, Any]] = lambda _: {}
    name_ending: Callable[[Mapping[str, Any]], str] = lambda _: ""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The values of some rows, and a segment of an index that should name these rows.

    ``present`` turns row numbers of the segment into the present ones of the rows that are there, and says which these are.
    """

    files: IndexFiles
    type: pa.DataType
    values: Values
    present: Callable[[Numbers], tuple[Numbers, NDArray[np.bool_]]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """A kind of index: how one is described, asked, built and merged.

    ``details``: the name of the message of its details; ``package``: where that message is.  ``user_names``: what users
    call it, the usual name first; ``name``: what plans call it.  ``reads``: the newest version that is read.
    ``writes`` gives the version of an index that is made, if that is not ``reads``.

    ``rows_named`` gives all rows that the files of an index name; ``names_all``: these are all rows of the fragments
    that it was made of, also those without a value.  ``open`` takes the type of the table's column, too, and gives a
    `ScalarIndex` if filters ask the kind; None if only a search of its own opens one.  ``answers``: whether an index of
    a version knows more of a condition than that any row may pass.  ``finds``: which values of a sample a segment
    finds, for a kind that no filter asks; a few may be missed.  ``statistics`` of a segment, given its files and the
    table's URI; by default the open index has them.

    ``takes``: whether a column of a type can have one; ``types`` says which can, in words.  ``build`` makes one of
    values, ``merge`` one of several whose rows may have moved, unless ``by_zones``; both find the parameters in
    `NewFiles`.  ``row_bytes``: about how much memory a row takes while the index is made, beside its value.
    ``may_be_json_target``: whether one can be made of what lies at a path of a JSON column; ``tells_type``: whether its
    files tell the type of its values, without which an index on a path is not asked.
    """

    name: str
    details: str
    package: str = "lance.table"
    user_names: tuple[str, ...]
    names_rows_by: RowNames
    reads: int
    writes: Callable[[Mapping[str, Any]], int] | None = None
    rows_named: Callable[[IndexFiles], RowSet]
    names_all: bool = False
    open: Callable[[IndexFiles, pa.DataType], OpenIndex] | None = None
    answers: Callable[[Expression, int], bool] = lambda *_: False
    finds: Callable[[Sample], list[bool]] | None = None
    statistics: Callable[[IndexFiles, str], Mapping[str, Any]] | None = None
    lookup_cost: LookupCost = LookupCost.NONE
    takes: Callable[[pa.DataType], bool]
    types: str
    build: Callable[[Iterable[Values], pa.DataType, NewFiles], None]
    merge: Callable[[Sequence[OldIndex], pa.DataType, NewFiles], None]
    by_zones: bool = False
    parameters: Parameters = Parameters()
    row_bytes: int = 0
    may_be_json_target: bool = False
    tells_type: bool = True

    def open_segment(self, files: IndexFiles, column: pa.DataType) -> OpenIndex:
        """Open a segment.  Raises FormatError, NotFoundError or UnsupportedError if it cannot be read here."""
        if self.open is None:
            message = f"{files.folder}: only searches open an index of kind {self.name}"
            raise UnsupportedError(message)
        return self.open(files, column)

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
