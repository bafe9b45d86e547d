"""Read mutants of the files in a folder, and judge what the reader does with each of them.

Run as a program, this is the child process of `test_mutants_2_1`, so that a crash ends the child and not
the test run:  ``python -m tests.faults.try_mutants FOLDER SEED FIRST COUNT``.  It prints a JSON object a
line: before each try which mutant it is, and at last a summary.

Every mutant is read as a file, and every fourth also as the one data file of a table.  The bytes go
through `memory://`, every buffer in memory of its own (`exact_memory`): under the address sanitizer
(`make asan`) a step beyond a buffer is a step beyond an allocation.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

import pennon
from pennon.dataset.metadata import DataFile as DataFileMetadata
from pennon.dataset.metadata import FragmentMetadata
from pennon.errors import LanceError
from pennon.file import LanceFileReader
from pennon.file.open import open_container_file
from pennon.io.memory import MemoryStore
from pennon.schema.arrow import schema_to_arrow
from tests.faults import exact_memory
from tests.faults.damage import MESSAGES, Damaged, Damager
from tests.limits.peak import peak_bytes, start_peak

SECONDS_PER_TRY: Final = 5
"""Of processor time: other processes must not make a slow machine look like a hang."""
SPARE_BYTES: Final = 256 << 20
SCANNED_ROWS: Final = 1 << 17
"""A file may well say that it has 2**40 NULLs; a scan of so many rows is enough to see."""
REFUSED: Final = "refused"
URI: Final = "memory://mutants"
NAME: Final = "mutant.lance"
FILES_A_TABLE: Final = 4
OF_THE_FILE: Final = {
    "descriptor",
    "rows",
    "global buffer",
    "column table",
    "buffer table",
    "footer",
}
"""Parts whose damage may concern no one column."""

Read = Callable[[], None]


def reads_of_file() -> Iterator[Read]:
    """Yield a whole scan, a slice and takes."""
    reader = LanceFileReader(f"{URI}/data/{NAME}")
    rows = reader.num_rows()
    yield lambda: scan(reader.read_all().to_batches())
    first, count = rows // 3, min(rows // 3, SCANNED_ROWS)
    yield lambda: reader.read_range(first, count).to_table().validate(full=True)
    wanted = some(rows)
    yield lambda: reader.take_rows(wanted).to_table().validate(full=True)
    yield lambda: reader.take_rows(wanted[-1:]).to_table().validate(full=True)


def reads_of_table() -> Iterator[Read]:
    """Yield the same of a table, which knows from its manifest how many rows there were."""
    table = pennon.dataset(URI)
    rows = table.count_rows()
    yield lambda: scan(table.to_batches())
    yield lambda: table.to_table(offset=rows // 3, limit=rows // 3).validate(full=True)
    yield lambda: table.take(some(rows)[::-1]).validate(full=True)


def some(rows: int) -> list[int]:
    """Return the numbers of a few rows, the first and the last among them."""
    wanted = {0, 1, rows // 5, rows // 2, rows // 2 + 1, rows - 1}
    return sorted(row for row in wanted if 0 <= row < rows)


def scan(batches: Iterator[pa.RecordBatch]) -> None:
    """Read batches, and let Arrow check them; of endless ones so many that it is enough."""
    seen = 0
    for batch in batches:
        batch.validate(full=True)
        seen += batch.num_rows
        if seen >= SCANNED_ROWS:
            break


def judge(mutant: Damaged, reads: Callable[[], Iterator[Read]]) -> str | None:
    """Read a mutant; return as `outcome`."""
    MemoryStore("mutants").put(f"data/{NAME}", mutant.data)
    return outcome(reads, len(mutant.data), lambda error: _check_place(error, mutant))


def outcome(
    reads: Callable[[], Iterator[Read]], size_bytes: int, check: Callable[[LanceError], None]
) -> str | None:
    """Read; return None for valid rows, REFUSED for typed errors that say where, else the fault.

    ``size_bytes``: how large the file is; ``check`` raises for an error that does not say enough.
    """
    before, verdict = start_peak(), None
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TRY)
    try:
        for read in reads():
            try:
                read()
            except LanceError as error:
                verdict = REFUSED
                check(error)
    except LanceError as error:
        verdict = REFUSED if error.where.file else f"an error without a place: {error}"
    except BaseException:  # noqa: BLE001 - anything else is what we look for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = peak_bytes() - before
    return f"took {grown >> 20} MiB" if grown > SPARE_BYTES + size_bytes else verdict


class UnplacedError(Exception):
    """An error of ours that does not say where the damage is."""


def _check_place(error: LanceError, mutant: Damaged) -> None:
    """Raise unless the error names the file and the column, and the bytes if a page was hit."""
    where = error.where
    known = where.file is not None
    if mutant.part not in OF_THE_FILE and mutant.how != "cut":
        known = known and where.column is not None
        # Of two columns of one field that contradict each other, none is known to be the damaged one.
        told_apart = "columns of one field" not in error.message
        if told_apart and mutant.part not in MESSAGES and mutant.part != "column metadata":
            known = known and where.byte_range is not None
    if not known:
        raise UnplacedError(str(error)) from error


def timed_out(_signal: int, _frame: object) -> None:
    """End a try that takes too long; a handler of a signal."""
    raise TimeoutError


def make_table(data: bytes) -> None:
    """Commit a table that has the file, while it is sound, as its one data file."""
    store = MemoryStore("mutants")
    store.put(f"data/{NAME}", data)
    file = open_container_file(store.open(f"data/{NAME}"))
    fields: list[int] = list(file.column_of)
    columns: list[int] = list(file.column_of.values())
    ref = DataFileMetadata(NAME, fields, columns, *file.footer.numbers, len(data))
    fragment = FragmentMetadata(0, [ref], file.num_rows)
    schema = schema_to_arrow(file.schema)
    pennon.LanceDataset.commit(URI, pennon.LanceOperation.Overwrite(schema, [fragment]))


def run(folder: Path, seed: int, first: int, count: int) -> None:
    """Try the mutants ``[first, first + count)`` of each file and print what came of it."""
    signal.signal(signal.SIGPROF, timed_out)
    exact_memory.install()
    refused, parts, problems = 0, Counter[str](), []
    for path in sorted(folder.glob("*.lance")):
        data = path.read_bytes()
        make_table(data)
        for reads in (reads_of_file, reads_of_table):
            if problem := judge(Damaged("", "", data), reads):
                sys.exit(f"{path.name}, undamaged: {problem}")
        damager = Damager(path.name, data, seed)
        for number in range(first, first + count):
            mutant = damager.mutant(number)
            name = f"{path.name} {seed} {number}: {mutant.how} in {mutant.part}"
            print(json.dumps({"mutant": name}), flush=True)
            parts[mutant.part] += 1
            found = {judge(mutant, reads_of_file)}
            if number % FILES_A_TABLE == 0:
                found.add(judge(mutant, reads_of_table))
            refused += REFUSED in found
            faults = found - {None, REFUSED}
            problems += [{"mutant": name, "problem": fault} for fault in faults]
    summary = {
        "tried": sum(parts.values()),
        "refused": refused,
        "problems": problems,
        "parts": parts,
    }
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
