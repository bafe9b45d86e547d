"""What a release from 1.0.4 on reads rightly in a file of the newest at version 2.2, it reads in ours.

The newest writes 2.2 if it is not told otherwise; releases before it knew some of the version's pages, or
none.  So the same table is written by both, and ours may fail only where the oracle's does.  The newest
itself reads all of it: `test_nested_2_1`, `test_matrix_2_1`.  ``make test-all`` installs the releases.
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
from tests.interop.oracle import MIDDLE, Oracle, OracleError
from tests.interop.random_arrays import NULLS
from tests.interop.random_tables import as_lance_reads
from tests.interop.reads import Read, reads_of, trusted, write_ours, write_theirs
from tests.interop.test_matrix_2_1 import reads_of_rows, tables_of

RELEASES = [MIDDLE, "2.0.1", "4.0.2", "8.0.1"]
"""The newest of each series."""

SEEDS = 520
BLOCK = 40
pytestmark = pytest.mark.slow

Written = tuple[str, pa.Table, list[Read], Path, Path]
"""A name, the table as it is read, its reads (the whole first), our dataset and the oracle's."""


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nested_tables(oracles: dict[str, Oracle], first: int, folder: Path) -> None:
    _check(oracles, _nested(oracles["14.0.2"], range(first, first + BLOCK), folder))


@pytest.mark.parametrize("rows", [9, 1030])
@pytest.mark.parametrize("nulls", NULLS)
def test_every_type(oracles: dict[str, Oracle], nulls: str, rows: int, folder: Path) -> None:
    _check(oracles, _of_a_type_each(oracles["14.0.2"], nulls, rows, folder))


def _nested(newest: Oracle, seeds: range, folder: Path) -> Iterator[Written]:
    for seed in seeds:
        # Pages as small as these tests like differ: ours end by their bytes, theirs by their batches.
        case = replace(nested_case(seed, "2.2"), page_bytes=None)
        ours, theirs = folder / f"o{seed}", folder / f"t{seed}"
        write_ours(case, ours)
        try:
            write_theirs(newest, case, theirs)
        except OracleError as error:
            if REFUSED_TO_WRITE not in str(error):
                raise
            continue
        yield f"seed {seed}", as_lance_reads(case.table), reads_of(case), ours, theirs


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


def _check(oracles: dict[str, Oracle], written: Iterator[Written]) -> None:
    """Compare the tables of which a release scans the oracle's file rightly; it must have some.

    Of the others it has a few rows right by luck.
    """
    tables = 0
    scanned: Counter[str] = Counter()
    lost = []
    for name, table, (whole, *parts), ours, theirs in written:
        tables += 1
        for release in RELEASES:
            of_ours = _right(oracles, release, [whole, *parts], table, ours)
            scanned[f"{release} of ours"] += whole in of_ours
            if not _right(oracles, release, [whole], table, theirs):
                continue
            scanned[f"{release} of theirs"] += 1
            of_theirs = [whole, *_right(oracles, release, parts, table, theirs)]
            lost += [f"{release}, {name}: {read}" for read in of_theirs if read not in of_ours]
    print(f"{tables} tables, scanned rightly: {dict(scanned)}")
    assert not lost, "\n".join(lost)
    assert all(scanned[f"{release} of theirs"] for release in RELEASES[1:])


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
