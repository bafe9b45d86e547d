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
from tests.interop.equality import difference
from tests.interop.oracle import OLDEST, Oracle, OracleError
from tests.interop.random_tables import Case, as_lance_reads, random_case
from tests.interop.reads import Read, reads_of

SEEDS = 320
BLOCK = 20
BLOCKS = [range(start, start + BLOCK) for start in range(0, SEEDS, BLOCK)]
DELETE_EVERY = 3

blocks = pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


@blocks
def test_what_we_write_the_oracle_reads(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for case in _cases(oracle, seeds):
        uri = folder / str(case.seed)
        batches = pa.RecordBatchReader.from_batches(
            case.table.schema, case.table.to_batches(max_chunksize=case.batch_rows)
        )
        dataset = pennon.write_dataset(batches, uri, **case.options)
        found += _differences(case, dataset, oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@blocks
def test_what_the_oracle_writes_we_read(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for case in _cases(oracle, seeds):
        uri = folder / str(case.seed)
        oracle.write(uri, case.table, batch_rows=case.batch_rows, **case.options)
        found += _differences(case, pennon.dataset(uri), oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


@blocks
def test_rows_that_the_oracle_deletes_are_gone(oracle: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for case in _cases(oracle, seeds):
        if case.seed % DELETE_EVERY or not case.table.num_rows:
            continue
        uri = folder / str(case.seed)
        numbers = pa.array(range(case.table.num_rows))
        oracle.write(uri, case.table.append_column("number", numbers), **case.options)
        oracle.call("delete", uri=str(uri), predicate="number % 7 < 3")
        dataset = pennon.dataset(uri)
        left = sum(number % 7 >= 3 for number in range(case.table.num_rows))
        assert dataset.count_rows() == left
        reads = [_within(read, left) for read in reads_of(case) if read.op == "scan" or left]
        found += _reader_differences(case, reads, dataset, oracle, uri)
        shutil.rmtree(uri)
    assert not found, "\n".join(found)


def _cases(oracle: Oracle, seeds: range) -> list[Case]:
    return [random_case(seed, for_oldest=oracle.release == OLDEST) for seed in seeds]


def _within(read: Read, rows: int) -> Read:
    """Return the read with its row numbers in a table that has become smaller."""
    if read.op == "scan":
        return read
    return Read("take", {**read.options, "indices": [i % rows for i in read.options["indices"]]})


def _differences(case: Case, dataset: pennon.LanceDataset, oracle: Oracle, uri: Path) -> list[str]:
    """Compare what we read and what the oracle reads with the table that was written."""
    table = as_lance_reads(case.table)
    reads = reads_of(case)
    found = _reader_differences(case, reads, dataset, oracle, uri)
    for read in reads:
        wanted = read.wanted(table)
        different = None if wanted is None else difference(read.ours(dataset), wanted)
        if different is not None:
            found.append(f"seed {case.seed}, {read}, ours and the source: {different}")
    if not dataset.schema.equals(table.schema, check_metadata=True):
        found.append(f"seed {case.seed}: schema {dataset.schema} instead of {table.schema}")
    return found


def _reader_differences(
    case: Case, reads: list[Read], dataset: pennon.LanceDataset, oracle: Oracle, uri: Path
) -> list[str]:
    """Compare what we read with what the oracle reads."""
    found = []
    theirs = oracle.run([read.call(uri) for read in reads])
    for read, other in zip(reads, theirs, strict=True):
        if isinstance(other, OracleError):
            found.append(f"seed {case.seed}, {read}, the oracle fails: {other}")
            continue
        different = difference(read.ours(dataset), other)
        if different is not None:
            found.append(f"seed {case.seed}, {read}, ours and the oracle's: {different}")
    return found
