"""Read mutants of tables with blobs of version 2, and judge what the reader does with each of them.

Run as a program, this is the child process of `test_mutants_blobs`:
``python -m tests.faults.try_blob_mutants FOLDER SEED FIRST COUNT``, like `try_mutants`.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pennon
from pennon.errors import LanceError
from tests.faults import exact_memory
from tests.faults.blob_files import COLUMNS, BlobDamager, DamagedFile, place
from tests.faults.try_mutants import REFUSED, Read, UnplacedError, outcome, scan, some, timed_out

MOST_ROWS: Final = 1000
"""A manifest may well say that there are 2**40 rows; so many are enough to see."""
OF_THE_TABLE: Final = {"manifest", "base path"}
"""Parts whose damage may concern no one file."""


def reads_of(uri: Path) -> Iterator[Read]:
    """Yield scans of descriptions and of bytes, takes, blobs as files, and the table's own check."""
    table, column = pennon.dataset(uri), COLUMNS[uri.name]
    rows = min(table.count_rows(), MOST_ROWS)
    wanted = sorted({*some(rows), *range(min(rows, 9))})
    yield lambda: scan(table.to_batches())
    yield lambda: table.take(wanted).validate(full=True)
    yield lambda: table.to_table(blob_handling="all_binary", limit=rows).validate(full=True)
    yield lambda: _check_sizes(table.read_blobs(column, indices=wanted))
    yield lambda: _read_as_files(table.take_blobs(column, indices=wanted))
    yield table.validate


def _check_sizes(found: list[tuple[int, bytes | None]]) -> None:
    for _, data in found:
        if data is not None and not isinstance(data, bytes):
            raise TypeError(data)


def _read_as_files(blobs: list[Any]) -> None:
    """Read the start, the end, and behind the end of each blob."""
    refused = None
    for blob in blobs:
        try:
            if blob is not None:
                blob.read(3)
                blob.seek(max(blob.size() - 2, 0))
                blob.read()
                if blob.read(1) != b"":
                    raise AssertionError(blob)
        except LanceError as error:
            refused = error
    if refused is not None:
        raise refused


def _check_place(mutant: DamagedFile, error: LanceError) -> None:
    """Raise unless the error names a file, where one was hit."""
    if mutant.part not in OF_THE_TABLE and error.where.file is None:
        raise UnplacedError(str(error)) from error


def judge(mutant: DamagedFile, uri: Path) -> str | None:
    """Read a table one of whose files was replaced; return as `outcome`."""
    place(mutant.path, mutant.data)
    size_bytes = len(mutant.data or b"")
    return outcome(partial(reads_of, uri), size_bytes, partial(_check_place, mutant))


def run(folder: Path, seed: int, first: int, count: int) -> None:
    """Try the mutants ``[first, first + count)`` of each table and print what came of it."""
    signal.signal(signal.SIGPROF, timed_out)
    exact_memory.install()
    refused, parts, problems = Counter[str](), Counter[str](), []
    for name, column in COLUMNS.items():
        uri = folder / name
        table = pennon.dataset(uri).to_table(columns={"b": column})
        damager = BlobDamager(uri, table["b"].to_pylist(), seed)
        if problem := outcome(partial(reads_of, uri), 0, _no_error):
            sys.exit(f"{name}, undamaged: {problem}")
        for number in range(first, first + count):
            mutant = damager.mutant(number)
            shown = f"{name} {seed} {number}: {mutant.how} in {mutant.part}"
            print(json.dumps({"mutant": shown}), flush=True)
            parts[mutant.part] += 1
            found = judge(mutant, uri)
            damager.restore(mutant)
            if found == REFUSED:
                refused[mutant.part] += 1
            elif found is not None:
                problems.append({"mutant": shown, "problem": found})
    summary = {
        "tried": sum(parts.values()),
        "refused": sum(refused.values()),
        "refused parts": refused,
        "problems": problems,
        "parts": parts,
    }
    print(json.dumps(summary), flush=True)


def _no_error(error: LanceError) -> None:
    raise error


if __name__ == "__main__":
    run(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
