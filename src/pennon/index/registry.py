"""The registry of scalar index kinds: the versions that are read, and the one that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.fast_dataclass import dataclass
from pennon.errors import UnsupportedError
from pennon.expr.prune import can_prune
from pennon.expr.tree import Call, Expression
from pennon.index import details_wire
from pennon.index.base import OpenIndex, Values
from pennon.index.files import IndexFiles
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_set import RowSet
from pennon.index.scalar import bitmap, bloom_filter, btree, ngram, ngram_build, zone_map
from pennon.table.indices import Index
from pennon.table.json_index_wire import json_target


@dataclass(frozen=True, slots=True)
class Making:
    """The build of a kind of index.

    ``takes``: whether a column of a type can have one; ``types`` says which can, in words.  ``write`` makes one of
    values, ``rewrite`` one of several whose rows may have moved, unless ``by_zones``.  ``parameters_of`` are those
    that an old one was made with, ``known`` all that there are, and ``check`` raises if these, or their values, or
    the column's type cannot be; ``details`` are the message of them, which is one of ``package``, and
    ``chosen_of`` those that a message says.  ``version_of`` is the version of an index that is made, if it is not the
    newest, ``ending`` what a name of an index has behind the column's.  ``row_bytes``: about how much memory a row
    takes while the index is made, beside its value.
    """

    takes: Callable[[pa.DataType], bool]
    types: str
    write: Callable[[Iterable[Values], pa.DataType, NewFiles], None]
    rewrite: Callable[[Sequence[OldIndex], pa.DataType, NewFiles], None]
    parameters_of: Callable[[IndexFiles], Mapping[str, Any]] = lambda _: {}
    known: frozenset[str] = frozenset()
    details: Callable[[Mapping[str, Any]], bytes] = lambda _: b""
    package: str = "lance.table"
    by_zones: bool = False
    check: Callable[[Mapping[str, Any], str, pa.DataType], None] | None = None
    chosen_of: Callable[[bytes], Mapping[str, Any]] = lambda _: {}
    version_of: Callable[[Mapping[str, Any]], int] | None = None
    ending: Callable[[Mapping[str, Any]], str] = lambda _: ""
    row_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of index.

    ``name`` as plans show it.  ``open`` takes the type of the table's column, too, and gives a `ScalarIndex` if
    filters ask the kind.  ``answers``: whether an index of a version knows more of a condition than that any row
    may pass.  ``version``: the newest that is understood.  ``rows_named`` gives all rows that the files of one name;
    ``names_all``: these are all rows of the fragments that it was made of, also those without a value.
    """

    name: str
    open: Callable[[IndexFiles, pa.DataType], OpenIndex]
    answers: Callable[[Expression, int], bool]
    version: int
    making: Making
    rows_named: Callable[[IndexFiles], RowSet]
    names_all: bool = False


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether values of a type have an order that all releases agree on."""
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind)
    is_number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    return bool(
        _is_text(kind) or is_bytes or is_number or t.is_boolean(kind) or t.is_temporal(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind))


def _is_hashed(kind: pa.DataType) -> bool:
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind)
    is_number = t.is_integer(kind) or t.is_float32(kind) or t.is_float64(kind)
    is_time = t.is_temporal(kind) and not t.is_duration(kind)
    return bool(_is_text(kind) or is_bytes or is_number or is_time)


def _is_list_of_plain(kind: pa.DataType) -> bool:
    return (t.is_list(kind) or t.is_large_list(kind)) and _is_plain(kind.value_type)


def _is_text_or_texts(kind: pa.DataType) -> bool:
    """Return whether a column has texts, or lists of texts; JSON is text here."""
    if t.is_list(kind) or t.is_large_list(kind):
        kind = kind.value_type
    return _is_text(kind) or bool(t.is_string_view(kind))


def _text(module: str, name: str) -> Callable[..., Any]:
    """Return a function of full text, which few tables have: its module is loaded when it is called."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"pennon.index.text.{module}"), name)(*given)

    return call


def _answers_of_labels(condition: Expression, version: int) -> bool:
    """Return whether lists are asked for items; an index of version 0 does not know which lists are NULL."""
    if isinstance(condition, Call) and condition.function == "NOT":
        return version > 0 and _answers_of_labels(condition.arguments[0], version)
    return bitmap.items_of(condition) is not None


_PLAIN: Final = "int, float, bool, str, large_str, binary, large_binary, decimal, fixed-size-binary, or temporal"

KINDS: Final[Mapping[str, Kind]] = {
    "BTreeIndexDetails": Kind(
        "BTree",
        lambda files, _: btree.BTree(files),
        lambda c, _: can_prune(c),
        1,
        Making(
            _is_plain,
            _PLAIN,
            btree.write_btree,
            btree.rewrite_btree,
            btree.page_rows_of,
            frozenset({"zone_size"}),
        ),
        btree.rows_named,
        names_all=True,
    ),
    "BitmapIndexDetails": Kind(
        "Bitmap",
        lambda files, _: bitmap.Bitmap(files),
        lambda *_: True,
        0,
        Making(_is_plain, _PLAIN, bitmap.write_bitmap, bitmap.rewrite_bitmap),
        bitmap.rows_named,
        names_all=True,
    ),
    "LabelListIndexDetails": Kind(
        "LabelList",
        bitmap.LabelList,
        _answers_of_labels,
        1,
        Making(
            _is_list_of_plain,
            "a list or large list of plain values",
            bitmap.write_label_list,
            bitmap.rewrite_label_list,
        ),
        bitmap.rows_named,
    ),
    "NGramIndexDetails": Kind(
        "NGram",
        ngram.NGram,
        lambda c, _: ngram.answers(c),
        0,
        Making(
            _is_text,
            "a string",
            lambda parts, _, new: ngram_build.write_ngram(parts, new),
            lambda old, _, new: ngram_build.rewrite_ngram(old, new),
            row_bytes=ngram_build.ROW_BYTES,
        ),
        ngram.rows_named,
    ),
    "BloomFilterIndexDetails": Kind(
        "BloomFilter",
        bloom_filter.BloomFilter,
        lambda c, _: bloom_filter.answers(c),
        0,
        Making(
            _is_hashed,
            "int, float of 32 or 64 bits, string, binary, date, time or timestamp",
            lambda parts, _, new: bloom_filter.write_bloom_filter(parts, new),
            lambda old, _, new: bloom_filter.rewrite_bloom_filter(old, new),
            bloom_filter.bloom_filter_parameters,
            frozenset({"number_of_items", "probability"}),
            package="lance.index.pb",
            by_zones=True,
        ),
        bloom_filter.rows_named,
    ),
    "ZoneMapIndexDetails": Kind(
        "ZoneMap",
        lambda files, _: zone_map.ZoneMap(files),
        lambda c, _: can_prune(c),
        0,
        Making(
            _is_plain,
            _PLAIN,
            zone_map.write_zone_map,
            zone_map.rewrite_zone_map,
            zone_map.zone_map_parameters,
            frozenset({"rows_per_zone"}),
            details_wire.zone_map_details,
            by_zones=True,
        ),
        zone_map.rows_named,
    ),
    "InvertedIndexDetails": Kind(
        "Inverted",
        lambda files, _: _text("inverted", "Inverted")(files),
        lambda *_: False,  # a search in text asks it, no filter
        3,
        Making(
            _is_text_or_texts,
            "string, large string or list of strings, or json",
            _text("build", "write_inverted"),
            _text("merge", "rewrite_inverted"),
            _text("merge", "inverted_parameters"),
            details=_text("registry_entry", "details_of"),
            check=_text("registry_entry", "check_choices"),
            chosen_of=_text("registry_entry", "chosen_of"),
            version_of=_text("registry_entry", "version_of"),
            ending=_text("registry_entry", "name_ending"),
        ),
        _text("inverted", "rows_named"),
    ),
}
"""By the name of the message of their details; of several indices on a column the first is asked."""


def written_version(name: str, *, has_stable_row_ids: bool) -> int:
    """Return the version of an index that is made now; that of a BTREE says that it holds addresses."""
    if name == "BTreeIndexDetails":
        return int(has_stable_row_ids)
    return KINDS[name].version


def kind_of(index: Index) -> Kind | None:
    """Return the kind of an index; None for one that is not asked: of another kind, or newer than this.

    The kind of one on a path of a JSON column is that of an index of the values there.
    """
    index = _of_values(index)
    found = KINDS.get(index.type_name)
    return found if found is not None and index.index_version <= found.version else None


def rows_named(index: Index, files: IndexFiles) -> RowSet:
    """Return all rows that the files of an index name, by its own numbers.

    Raises FormatError or NotFoundError if they cannot be read, UnsupportedError for a kind that is not known.
    """
    if index.is_vector:
        found: RowSet = import_module("pennon.index.vector.layout").rows_named(files)
        return found
    kind = kind_of(index)
    if kind is None:
        message = f"the rows of an index of {index.type_name or 'an unknown kind'} cannot be read: the kind is not supported"
        raise UnsupportedError(message)
    return kind.rows_named(files)


def stores_row_ids(index: Index) -> bool:
    """Return whether an index of a table with stable row ids names rows by these, and not by addresses.

    A BTREE says so by its version: 1 are addresses.  Source: reference index-scalar, 0.
    """
    index = _of_values(index)
    if index.type_name == "BTreeIndexDetails":
        return index.index_version == 0
    return index.goes_by_row_ids


def _of_values(index: Index) -> Index:
    json = json_target(index)
    return index if json is None else json[1]
