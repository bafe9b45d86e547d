"""Random tables at file version 2.0, both ways with both oracles.

Each test takes a block of seeds, so that an oracle gets many calls in one message.  A failure names
its seed: ``random_case(seed)`` gives the table again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.interop.oracle import OLDEST, Oracle
from tests.interop.random_tables import Case, as_lance_reads, random_case
from tests.interop.reads import Read, differences, reads_of, write_ours, write_theirs

SEEDS = 320
BLOCK = 20
BLOCKS = [range(start, start + BLOCK) for start in range(0, SEEDS, BLOCK)]
DELETE_EVERY = 3

blocks = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(each, marks=pytest.mark.slow if at % 8 else [])
        for at, each in enumerate(BLOCKS)
    ],
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)


@blocks
def test_random_2_0_of_pennon_is_read_by_pylance(
    oracle: Oracle, seeds: range, folder: Path
) -> None:
    found = []
    for case in _cases(oracle, seeds):
        uri = folder / str(case.seed)
        write_ours(case, uri)
        found += differences(case, reads_of(case), as_lance_reads(case.table), oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@blocks
def test_random_2_0_of_pylance_is_read(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for case in _cases(oracle, seeds):
        uri = folder / str(case.seed)
        write_theirs(oracle, case, uri)
        found += differences(case, reads_of(case), as_lance_reads(case.table), oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@blocks
def test_random_2_0_rows_deleted_by_pylance_are_skipped(
    oracle: Oracle, seeds: range, folder: Path
) -> None:
    found = []
    for case in _cases(oracle, seeds):
        if case.seed % DELETE_EVERY or not case.table.num_rows:
            continue
        uri = folder / str(case.seed)
        numbers = pa.array(range(case.table.num_rows))
        oracle.write(uri, case.table.append_column("number", numbers), **case.options)
        oracle.call("delete", uri=str(uri), predicate="number % 7 < 3")
        left = sum(number % 7 >= 3 for number in range(case.table.num_rows))
        assert pennon.dataset(uri).count_rows() == left
        found += differences(case, _reads_after_delete(oracle, case, left), None, oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


def _cases(oracle: Oracle, seeds: range) -> list[Case]:
    return [random_case(seed, for_oldest=oracle.release == OLDEST) for seed in seeds]


def _reads_after_delete(oracle: Oracle, case: Case, left: int) -> list[Read]:
    """Return the reads of a table of which ``left`` rows are left.

    Takes of pylance 0.19.2 are left out: there an index counts deleted rows in some cases.
    """
    reads = [read for read in reads_of(case) if read.op == "scan"]
    if oracle.release == OLDEST or not left:
        return reads
    indices = [index % left for index in case.indices]
    return [*reads, Read("take", {"indices": indices}), Read("take", {"indices": indices[:1]})]
