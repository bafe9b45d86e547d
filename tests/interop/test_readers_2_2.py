"""Releases of pylance from 1.0.4 on read Pennon's 2.2 files as well as those of the newest release.

The newest writes 2.2 if it is not told otherwise; releases before it knew some of the version's pages, or
none.  So the same table is written by both, and ours may fail only where the oracle's does: in one page
a column, and in small pages of the same rows, for what they can read depends on where pages end.  The
newest itself: `test_nested_2_1`, `test_matrix_2_1`.  ``make test-all`` installs the releases.
With ``-rP`` pytest shows how many tables each of them reads of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.interop.known_failures import REFUSED_TO_WRITE
from tests.interop.nested_tables import nested_case
from tests.interop.oracle import MIDDLE, NEWEST, Oracle, OracleError
from tests.interop.random_arrays import NULLS
from tests.interop.random_tables import as_lance_reads
from tests.interop.reads import (
    Read,
    reads_of,
    rows_of_a_page,
    trusted,
    write_both_in_pages,
    write_ours,
    write_theirs,
)
from tests.interop.test_matrix_2_1 import reads_of_rows, tables_of
from tests.interop.test_nested_2_1 import SEEDS

RELEASES = [MIDDLE, "2.0.1", "4.0.2", "8.0.1"]
"""The newest of each series."""

BLOCK = 40
pytestmark = pytest.mark.slow

Written = tuple[str, pa.Table, list[Read], Path, Path]
"""A name, the table as it is read, its reads (the whole first), our dataset and the oracle's."""


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nested_2_2_tables_are_read_by_old_releases(
    oracles: dict[str, Oracle], first: int, folder: Path
) -> None:
    _check(oracles, _nested(oracles[NEWEST], range(first, first + BLOCK), folder))


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nested_tables_in_small_pages(oracles: dict[str, Oracle], first: int, folder: Path) -> None:
    """Of releases that knew the version: 2.0.1 does not read levels that are run lengths.

    Pennon has them in small pages (seed 234) where the oracle packs bits.
    """
    seeds = range(first, first + BLOCK)
    _check(oracles, _in_small_pages(oracles[NEWEST], seeds, folder), RELEASES[2:])


@pytest.mark.parametrize("rows", [9, 1030])
@pytest.mark.parametrize("nulls", NULLS)
def test_every_type_at_2_2_is_read_by_old_releases(
    oracles: dict[str, Oracle], nulls: str, rows: int, folder: Path
) -> None:
    _check(oracles, _of_a_type_each(oracles[NEWEST], nulls, rows, folder))


@pytest.mark.parametrize(("version", "able"), [("2.1", RELEASES), ("2.2", RELEASES[2:])])
def test_null_structs_around_lists_in_some_pages_only(
    oracles: dict[str, Oracle], version: str, able: list[str], folder: Path
) -> None:
    """No release here does: of a page without NULL structs it counts items where structs are."""
    rows = [{"l": [n, n + 1]} if n < 500 or n % 7 else None for n in range(1_000)]
    table = pa.table({"s": rows})
    whole = Read("scan", {})
    one, ten = folder / "one", folder / "ten"
    options = {"data_storage_version": version}
    oracles[NEWEST].write(one, table, **options)
    oracles[NEWEST].call("write_pages", uri=str(ten), table=table, page_rows=100, **options)
    for release in [*able, NEWEST]:
        assert _right(oracles, release, [whole], table, one) == [whole], release
        assert _right(oracles, release, [whole], table, ten) == [], release
    assert pennon.dataset(ten).to_table() == table


def _nested(newest: Oracle, seeds: range, folder: Path) -> Iterator[Written]:
    for seed in seeds:
        case = replace(nested_case(seed, "2.2"), page_bytes=None)  # the oracle does not go by it
        ours, theirs = folder / f"o{seed}", folder / f"t{seed}"
        write_ours(case, ours)
        try:
            write_theirs(newest, case, theirs)
        except OracleError as error:
            if REFUSED_TO_WRITE not in str(error):
                raise
            continue
        yield f"seed {seed}", as_lance_reads(case.table), reads_of(case), ours, theirs


def _in_small_pages(newest: Oracle, seeds: range, folder: Path) -> Iterator[Written]:
    """Yield the tables of which the seed's ``page_bytes`` makes more than one page.

    Both have pages of the same rows, for releases fail by where pages end: all of them, the newest as
    well, if a page has no NULL structs above its lists and the next one has (`known_failures`).
    """
    for seed in seeds:
        case = nested_case(seed, "2.2")
        rows = rows_of_a_page(case)
        if rows is None:
            continue
        ours, theirs = folder / f"o{seed}", folder / f"t{seed}"
        write_both_in_pages(newest, case, rows, ours, theirs)
        name = f"seed {seed} in pages of {rows} rows"
        yield name, as_lance_reads(case.table), reads_of(case), ours, theirs


def _of_a_type_each(newest: Oracle, nulls: str, rows: int, folder: Path) -> Iterator[Written]:
    for number, (name, table) in enumerate(tables_of(nulls, rows, "2.2").items()):
        ours, theirs = folder / f"o{number}", folder / f"t{number}"
        pennon.write_dataset(table, ours, data_storage_version="2.2")
        try:
            newest.write(theirs, table)
        except OracleError as error:
            if "Empty structs" not in str(error):
                raise
            continue
        yield name, as_lance_reads(table), reads_of_rows(rows), ours, theirs


def _check(
    oracles: dict[str, Oracle], written: Iterator[Written], releases: list[str] = RELEASES
) -> None:
    """Compare the tables of which a release scans the oracle's file rightly; it must have some.

    `MIDDLE` may have none.  Of the others it has a few rows right by luck.
    """
    tables = 0
    scanned: Counter[str] = Counter()
    lost = []
    for name, table, (whole, *parts), ours, theirs in written:
        tables += 1
        for release in releases:
            of_ours = _right(oracles, release, [whole, *parts], table, ours)
            scanned[f"{release} of ours"] += whole in of_ours
            if not _right(oracles, release, [whole], table, theirs):
                continue
            scanned[f"{release} of theirs"] += 1
            of_theirs = [whole, *_right(oracles, release, parts, table, theirs)]
            lost += [f"{release}, {name}: {read}" for read in of_theirs if read not in of_ours]
    print(f"{tables} tables, scanned rightly: {dict(scanned)}")
    assert not lost, "\n".join(lost)
    assert all(scanned[f"{release} of theirs"] for release in releases if release != MIDDLE)


def _right(
    oracles: dict[str, Oracle], release: str, reads: list[Read], table: pa.Table, uri: Path
) -> list[Read]:
    """Return the reads that a release has right, asked one by one: some end its process."""
    kept = []
    for read in reads:
        try:
            kept += trusted(oracles[release], [read], table, uri)
        except OracleError:
            oracles.pop(release).close()
    return kept
