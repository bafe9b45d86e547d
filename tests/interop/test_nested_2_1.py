"""Random nested tables at file versions 2.1 and 2.2, both ways; at 2.1 with two oracles.

Each test takes a block of seeds.  A failure names its seed: ``nested_case(seed, version)`` gives the
table again.

The older of the two oracles does not read back much of what it wrote itself: lists that are never
NULL nor empty but have NULL items, for one.  It only counts where it does.  And it loses rows of
pages of lists that hold nothing but NULLs, which it seldom writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.interop.known_failures import REFUSED_TO_WRITE
from tests.interop.layouts import has_constant_lists
from tests.interop.nested_tables import nested_case
from tests.interop.oracle import MIDDLE, Oracle, OracleError
from tests.interop.random_tables import Case, as_lance_reads
from tests.interop.reads import Read, differences, reads_of, trusted, write_ours, write_theirs

SEEDS = 520
IN_EVERY_RUN = 20
IN_EVERY_RUN_OF_MIDDLE = 20
BLOCK = 20
LEAST_TRUSTED = 0.3


def blocks(in_every_run: int) -> pytest.MarkDecorator:
    """Parametrize a test with blocks of seeds; those from ``in_every_run`` on are slow."""
    starts = range(0, SEEDS, BLOCK)
    seeds = [
        pytest.param(
            range(start, start + BLOCK),
            id=f"{start}-{start + BLOCK - 1}",
            marks=[pytest.mark.slow] if start >= in_every_run else [],
        )
        for start in starts
    ]
    return pytest.mark.parametrize("seeds", seeds)


@blocks(IN_EVERY_RUN)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nested_2_1_of_pennon_is_read_by_pylance(
    newest: Oracle, version: str, seeds: range, folder: Path
) -> None:
    found = []
    for case, uri in _cases(seeds, version, folder):
        write_ours(case, uri)
        found += differences(case, reads_of(case), as_lance_reads(case.table), newest, uri)
    assert not found, "\n".join(found)


@blocks(IN_EVERY_RUN)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nested_2_1_of_pylance_is_read(
    newest: Oracle, version: str, seeds: range, folder: Path
) -> None:
    found = []
    for case, uri in _cases(seeds, version, folder):
        try:
            write_theirs(newest, case, uri)
        except OracleError as error:
            if REFUSED_TO_WRITE not in str(error):
                raise
            continue
        found += differences(case, reads_of(case), as_lance_reads(case.table), newest, uri)
    assert not found, "\n".join(found)


@blocks(BLOCK)
def test_nested_2_1_rows_deleted_by_pylance_are_skipped(
    newest: Oracle, seeds: range, folder: Path
) -> None:
    found = []
    for case, uri in _cases(seeds, "2.1", folder):
        numbers = pa.array(range(case.table.num_rows))
        write_theirs(newest, replace(case, table=case.table.append_column("number", numbers)), uri)
        newest.call("delete", uri=str(uri), predicate="number % 7 < 3")
        scans = [read for read in reads_of(case) if read.op == "scan"]
        found += differences(case, scans, None, newest, uri)
    assert not found, "\n".join(found)


@blocks(IN_EVERY_RUN_OF_MIDDLE)
def test_nested_2_1_is_read_in_both_directions_with_older_pylance(
    oracles: dict[str, Oracle], seeds: range, folder: Path
) -> None:
    oracle = oracles[MIDDLE]
    found, tried, counted = [], 0, 0
    for random_case, uri in _cases(seeds, "2.1", folder):
        case = replace(random_case, page_bytes=None)  # like its own files, which it judges by
        source, reads = as_lance_reads(case.table), _reads_of_middle(case)
        tried += len(reads)
        try:
            write_theirs(oracle, case, uri)
        except OracleError:
            continue
        reads = trusted(oracle, reads, source, uri)
        counted += len(reads)
        found += differences(case, reads, source, oracle, uri)
        shutil.rmtree(uri)
        write_ours(case, uri)
        if not has_constant_lists(uri):
            found += differences(case, reads, source, oracle, uri)
    assert not found, "\n".join(found)
    assert counted >= tried * LEAST_TRUSTED


def _reads_of_middle(case: Case) -> list[Read]:
    """Return the reads whose rows the table tells; a take of a nested column gives none there."""
    return [read for read in reads_of(case) if not read.options.keys() & {"with_row_id"}]


def _cases(seeds: range, version: str, folder: Path) -> Iterator[tuple[Case, Path]]:
    for seed in seeds:
        yield nested_case(seed, version), folder / str(seed)
        shutil.rmtree(folder / str(seed), ignore_errors=True)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pages_of_null_lists_are_read_by_both(newest: Oracle, version: str, folder: Path) -> None:
    lists = [[f"l{n % 50}", f"l{n % 77}"] for n in range(100_000)] + [None] * 200_000
    table = pa.table({"lists": pa.array(lists, pa.list_(pa.string()))})
    uri = folder / "theirs.lance"
    newest.write(uri, table, data_storage_version=version)
    assert pennon.dataset(uri).to_table() == table
    assert pennon.dataset(uri).take([0, 299_999]) == table.take([0, 299_999])
    uri = folder / "ours.lance"
    pennon.write_dataset(table, uri, data_storage_version=version)
    assert newest.scan(uri) == table
