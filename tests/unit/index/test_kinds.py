"""Kinds of indices: each is one value, and the table layer agrees with it."""

from __future__ import annotations

import pytest

from pennon.errors import UnsupportedError
from pennon.index.kind import LookupCost, RowNames
from pennon.index.kinds import (
    KINDS,
    is_scalar_kind,
    kind_called,
    kind_of,
    stores_row_ids,
)
from pennon.table.indices import Index


def index(details: str, version: int = 0) -> Index:
    return Index("u", "i", (), frozenset(), 1, version, details=(f"/lance.table.{details}", b""))


def test_table_and_kinds_agree_on_row_ids() -> None:
    by_ids = {each.details: each.names_rows_by is RowNames.ROW_IDS for each in KINDS}
    assert by_ids == {name: index(name).goes_by_row_ids for name in by_ids}


def test_btree_version_decides_row_ids_or_addresses() -> None:
    assert stores_row_ids(index("BTreeIndexDetails", 0))
    assert not stores_row_ids(index("BTreeIndexDetails", 1))
    btree = kind_called("btree")
    assert btree.written_version({}, has_stable_row_ids=True) == 1
    assert btree.written_version({}, has_stable_row_ids=False) == 0


def test_names_of_kinds_are_distinct() -> None:
    names = [name for kind in KINDS for name in kind.user_names]
    assert len(set(names)) == len(names)
    assert len({kind.details for kind in KINDS}) == len(KINDS)


def test_kind_names_ignore_case_and_have_aliases() -> None:
    assert kind_called("fts") is kind_called("INVERTED")
    assert kind_called("LabelList") is kind_called("label_list")
    assert is_scalar_kind("zonemap")
    assert not is_scalar_kind("IVF_PQ")
    with pytest.raises(UnsupportedError, match=r"'RTREE'; the kinds are BTREE, BITMAP, .*INVERTED"):
        kind_called("RTREE")


def test_kind_of_newer_version_is_unknown() -> None:
    for kind in KINDS:
        assert kind_of(index(kind.details, kind.reads)) is kind
        assert kind_of(index(kind.details, kind.reads + 1)) is None
    assert kind_of(index("RTreeIndexDetails")) is None


def test_merges_look_up_keys_in_these_kinds() -> None:
    costs = {kind.name: kind.lookup_cost for kind in KINDS}
    assert costs["BTree"] is costs["Bitmap"] is costs["BloomFilter"] is LookupCost.POINT
    assert costs["ZoneMap"] is LookupCost.RANGE
    assert (
        costs["NGram"] is costs["LabelList"] is costs["Inverted"] is costs["IVF"] is LookupCost.NONE
    )
