"""Filters on tables with indices of old releases give the recorded rows."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.ops import check_indices
from tests.golden.archives import unpack

ARCHIVES = Path(__file__).parent / "indices"
RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz"))
NO_FUNCTION = "st_intersects"
"""Pennon has no functions of geometry, with an index or without."""
ASKED = {
    "0.15.0": 76,
    "0.19.2": 76,
    "0.25.2": 75,
    "0.30.0": 29,
    "0.38.3": 8,
    "1.0.4": 242,
    "2.0.1": 32,
    "7.0.0": 56,
    "14.0.2": 299,
}
"""Of how many filters an index is asked.  Those of 0.15 and 0.19 do not say of what kind they are: their files do."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indices")
    for release in RELEASES:
        unpack(ARCHIVES / f"{release}.tar.xz", folder)
    return folder


def answers(release: Path) -> Iterator[tuple[str, str, list[list[int]]]]:
    """Yield table, filter, rows."""
    for path in sorted(release.glob("*.answers.json")):
        known: dict[str, Any] = json.loads(path.read_text())
        newer = known.get("read_by_14.0.2", {}).get("filters", {})
        for condition, answer in known["filters"].items():
            found = newer.get(condition, answer)
            rows = found.get("rows", found.get("without_index"))
            if isinstance(rows, list) and NO_FUNCTION not in condition:
                yield str(path).replace(".answers.json", ".lance"), condition, rows


@pytest.mark.parametrize("release", RELEASES)
def test_filters_with_and_without_index_select_the_recorded_rows(
    tables: Path, release: str
) -> None:
    asked = 0
    for uri, condition, expected in answers(tables / release):
        table = pennon.dataset(uri)
        for uses in (True, False):
            found = table.to_table(["id"], condition, with_row_id=True, use_scalar_index=uses)
            rows = [list(each.values()) for each in found.to_pylist()]
            assert sorted(rows) == sorted(expected), (uri, condition, uses)
        assert table.count_rows(condition) == len(expected), (uri, condition)
        plan = table.scanner(filter=condition).explain_plan()
        asked += "ScalarIndexQuery" in plan
    assert asked == ASKED[release]


@pytest.mark.parametrize("release", ["7.0.0", "14.0.2"])
def test_indices_after_deferred_compaction_cover_the_new_fragments(
    tables: Path, release: str
) -> None:
    table = pennon.dataset(tables / release / "fri.lance")
    there = {fragment.fragment_id for fragment in table.get_fragments()}
    kinds = {}
    for index in table.describe_indices():
        kinds[index.index_type] = index.num_rows_indexed
        assert index.segments[0].fragment_ids <= there
    rows = table.count_rows()
    assert kinds == dict.fromkeys(("BTree", "Bitmap", "FragmentReuse", "Inverted"), rows)
    assert f"rows=0 of {rows}," in table.scanner(["id"], "i = 5").analyze_plan()


def test_index_description_shows_why_it_is_unused(tables: Path) -> None:
    """A BTREE of 0.19 has lost its NULLs, and what it finds of others is sorted by what they became."""

    def whys(table: str) -> dict[str, str]:
        described = pennon.dataset(tables / table).describe_indices()
        assert all(each.details.keys() <= {"not_asked"} for each in described)
        return {each.name: each.details.get("not_asked", "") for each in described}

    assert not any(whys("0.19.2/bitmap.lance").values())
    assert not any(whys("14.0.2/btree.lance").values())
    old = whys("0.19.2/btree.lance")
    assert all("version 0.1, in which NULLs of an index are lost" in why for why in old.values())
    broken = whys("1.0.4/btree_pages.lance")
    assert "an old release broke it" in broken["i_idx"]
    assert whys("14.0.2/minhash_fm.lance")["s_fm"] == "Pennon searches no index of FMIndexDetails"


def test_bitmap_of_0_15_distinguishes_nulls_from_empty_texts(tables: Path) -> None:
    """The BITMAP of 0.15 has NULL texts as empty ones, beside those that are."""
    table = pennon.dataset(tables / "0.15.0/bitmap.lance")
    for condition in ("s = ''", "s < 'b'", "NOT (s > 'a')", "s IS NULL", "s IS NOT NULL", "i = 0"):
        plain = table.to_table(["id"], condition, use_scalar_index=False)
        assert table.to_table(["id"], condition).equals(plain), condition
        assert "@" in table.scanner(filter=condition).explain_plan()
    assert 0 < table.count_rows("s IS NULL") < table.count_rows("s IS NOT NULL")


@pytest.mark.parametrize("merged", [None, 0, 100])
@pytest.mark.parametrize("release", ["1.0.4", "2.0.1"])
def test_a_btree_of_stable_ids_is_not_mixed_with_one_of_addresses(
    tables: Path, tmp_path: Path, release: str, merged: int | None
) -> None:
    """Releases up to 2.0.1 name rows by stable ids, later ones by addresses: ledger F-706."""
    folder = shutil.copytree(tables / release / "stable.lance", tmp_path / "t.lance")
    rows = pennon.dataset(folder).to_table()
    pennon.write_dataset(rows.slice(0, 20), folder, mode="append")
    pennon.dataset(folder).optimize.optimize_indices(num_indices_to_merge=merged)
    table = pennon.dataset(folder)
    for value in {each for each in rows["i"].to_pylist() if each is not None}:
        found, plain = (
            table.to_table(["id"], f"i = {value}", use_scalar_index=uses) for uses in (True, False)
        )
        assert found.equals(plain), value
    table.validate()


@pytest.mark.parametrize("release", RELEASES)
def test_indices_of_old_releases_pass_validation(tables: Path, release: str) -> None:
    for path in sorted((tables / release).glob("*.lance")):
        table = pennon.dataset(path)
        names = {each.name for each in table.describe_indices()}
        if names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # sizes of files of version 0.1
                check_indices(table.snapshot)
