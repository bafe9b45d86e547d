"""Which kinds of scalar indices there are, and which versions of each are understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.expr.prune import can_prune
from pennon.expr.tree import Call, Expression
from pennon.index.base import ScalarIndex
from pennon.index.files import IndexFiles
from pennon.index.scalar.bitmap import Bitmap, LabelList, items_of
from pennon.index.scalar.bloom_filter import BloomFilter
from pennon.index.scalar.bloom_filter import answers as may_answer
from pennon.index.scalar.btree import BTree
from pennon.index.scalar.ngram import NGram, text_of, tokens_of
from pennon.index.scalar.zone_map import ZoneMap
from pennon.table.indices import Index


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of index.

    ``name`` as plans show it.  ``open`` takes the type of the table's column, too.  ``answers``: whether an
    index of a version knows more of a condition than that any row may pass.  ``version``: the newest that is
    understood.
    """

    name: str
    open: Callable[[IndexFiles, pa.DataType], ScalarIndex]
    answers: Callable[[Expression, int], bool]
    version: int


def _answers_of_labels(condition: Expression, version: int) -> bool:
    """Return whether lists are asked for items; an index of version 0 does not know which lists are NULL."""
    if isinstance(condition, Call) and condition.function == "NOT":
        return version > 0 and _answers_of_labels(condition.arguments[0], version)
    return items_of(condition) is not None


KINDS: Final[Mapping[str, Kind]] = {
    "BTreeIndexDetails": Kind("BTree", lambda files, _: BTree(files), lambda c, _: can_prune(c), 1),
    "BitmapIndexDetails": Kind("Bitmap", lambda files, _: Bitmap(files), lambda *_: True, 0),
    "LabelListIndexDetails": Kind("LabelList", LabelList, _answers_of_labels, 1),
    "NGramIndexDetails": Kind("NGram", NGram, lambda c, _: bool(tokens_of(text_of(c))), 0),
    "BloomFilterIndexDetails": Kind("BloomFilter", BloomFilter, lambda c, _: may_answer(c), 0),
    "ZoneMapIndexDetails": Kind(
        "ZoneMap", lambda files, _: ZoneMap(files), lambda c, _: can_prune(c), 0
    ),
}
"""By the name of the message of their details; of several indices on a column the first is asked."""


def kind_of(index: Index) -> Kind | None:
    """Return the kind of an index; None for one that is not asked: of another kind, or newer than this."""
    found = KINDS.get(index.type_name)
    return found if found is not None and index.index_version <= found.version else None


def stores_row_ids(index: Index) -> bool:
    """Return whether an index of a table with stable row ids names rows by these, and not by addresses.

    A BTREE says so by its version: 1 are addresses.  Source: reference index-scalar, 0.
    """
    if index.type_name == "BTreeIndexDetails":
        return index.index_version == 0
    return index.goes_by_row_ids
