"""Damage bytes on purpose, read what is left, and judge what the reader did.

Run as a program, this is the child process of `test_mutants`: a crash of the reader ends the child
and not the test run.  It prints one JSON object a line: first ``{"mutant": ...}`` before each try
(so that the last line names the mutant that killed it), then a summary.

A try is right when it ends in one of our typed errors, or in rows that Arrow finds valid.  Files
have no checksums: a flipped bit of a value is a different value, and no reader can tell.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa

import pennon
from pennon.errors import LanceError
from pennon.file import LanceFileReader
from tests.limits.peak import peak_bytes, start_peak

SECONDS_PER_TRY = 5
SPARE_BYTES = 256 << 20
ADDRESS_SPACE = 2 << 30


@dataclass(frozen=True, slots=True)
class Mutant:
    """One way to damage one file: ``edits`` are (position, new byte), then cut to ``size_bytes``."""

    file: str
    kind: str
    edits: tuple[tuple[int, int], ...]
    size_bytes: int

    def apply(self, data: bytes) -> bytes:
        """Return the damaged bytes."""
        changed = bytearray(data)
        for position, value in self.edits:
            changed[position] = value
        return bytes(changed[: self.size_bytes])


def mutants_of(
    name: str, data: bytes, regions: list[tuple[int, int]], seed: int, count: int
) -> Iterator[Mutant]:
    """Yield ``count`` mutants of one file: cuts, and edits that fall within ``regions``.

    A region is a half-open range of positions; each gets the same share, however small, so that
    forty bytes of footer are tried as often as a megabyte of pages.  The same bytes have the same
    mutants, though the names of data files are random.
    """
    rng = random.Random(f"{crc32(data)}:{seed}")
    for number in range(count):
        start, end = regions[number % len(regions)]
        position = rng.randrange(start, end)
        match rng.randrange(6):
            case 0:
                yield Mutant(name, "cut", (), position)
            case 1 | 2:
                flipped = data[position] ^ (1 << rng.randrange(8))
                yield Mutant(name, "flip", ((position, flipped),), len(data))
            case 3:
                yield Mutant(
                    name, "byte", ((position, rng.choice((0, 1, 0x7F, 0x80, 0xFF))),), len(data)
                )
            case 4:
                stop = min(position + rng.choice((2, 4, 8)), end)
                value = rng.choice((0, 0xFF))
                edits = tuple((at, value) for at in range(position, stop))
                yield Mutant(name, "run", edits, len(data))
            case _:
                many = tuple(
                    (rng.randrange(start, end), rng.randrange(256))
                    for _ in range(rng.randrange(2, 9))
                )
                yield Mutant(name, "noise", many, len(data))


REFUSED = "refused"


def judge(read: Callable[[], list[pa.Table]]) -> str | None:
    """Read; return None for valid rows, REFUSED for a typed error, else what went wrong."""
    signal.alarm(SECONDS_PER_TRY)
    try:
        for table in read():
            table.validate(full=True)
    except LanceError:
        return REFUSED
    except BaseException:  # noqa: BLE001 - anything else is what we look for
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return None


def _timed_out(_signal: int, _frame: object) -> None:
    raise TimeoutError


def read_dataset(uri: str) -> list[pa.Table]:
    """Read a table whole, by rows and by column."""
    dataset = pennon.dataset(uri)
    found = [dataset.to_table(with_row_id=True)]
    rows = dataset.count_rows()
    found.append(dataset.take([rows - 1, 0, rows // 2] if rows else []))
    found.extend(
        dataset.to_table(columns=[name], offset=rows // 3) for name in dataset.schema.names
    )
    return found


def read_file(path: str) -> list[pa.Table]:
    """Read a data file whole, a range of it and some rows."""
    reader = LanceFileReader(path)
    rows = reader.num_rows()
    return [
        reader.read_all().to_table(),
        reader.read_range(rows // 3, rows // 3).to_table(),
        reader.take_rows([0, rows // 2, rows - 1] if rows else []).to_table(),
    ]


FILTERS = {
    "int64": "int64 >= 300 AND int64 < 420",
    "int8": "int8 IN (3, 50) OR int8 IS NULL",
    "bool": "NOT bool",
    "decimal": "decimal < 12.5",
    "few": "few = 'city 3' OR few IS NULL",
    "many": "many >= 'word 5'",
    "large": "large < 'word 2'",
    "binary": "binary > x'776f7264203535'",
    "struct": "struct.a > 300 AND struct.b < '4'",
}
"""Conditions on columns of the tables of `test_mutants` that have bounds."""


def read_filtered(uri: str) -> list[pa.Table]:
    """Read what filters keep, by statistics or zone maps, and count it."""
    dataset = pennon.dataset(uri)
    found = []
    for name in [name for name in dataset.schema.names if name in FILTERS]:
        found.append(dataset.to_table(filter=FILTERS[name]))
        if dataset.count_rows(FILTERS[name]) != found[-1].num_rows:
            raise AssertionError(name)
    return found


def run(folder: Path, plan: Path) -> None:
    """Try all mutants of a plan; the damaged file is written in place and put back."""
    signal.signal(signal.SIGALRM, _timed_out)
    job = json.loads(plan.read_text())
    originals = {name: (folder / name).read_bytes() for name in job["files"]}
    reader = {"dataset": read_dataset, "file": read_file, "filters": read_filtered}[job["reader"]]
    if problem := judge(lambda: reader(job["target"])):
        sys.exit(f"the undamaged file does not read:\n{problem}")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    before = start_peak()
    tried, refused, problems = 0, 0, []
    for name, data in originals.items():
        regions = [tuple(region) for region in job["files"][name]] or [(0, len(data))]
        for mutant in mutants_of(name, data, regions, job["seed"], job["count"]):
            print(json.dumps({"mutant": asdict(mutant)}), flush=True)
            (folder / name).unlink()  # a reader may still map the old file: never write into it
            (folder / name).write_bytes(mutant.apply(data))
            tried += 1
            problem = judge(lambda: reader(job["target"]))
            refused += problem == REFUSED
            if problem not in {None, REFUSED}:
                problems.append({"mutant": asdict(mutant), "problem": problem})
        (folder / name).unlink()
        (folder / name).write_bytes(data)
    largest = max(map(len, originals.values()))
    over = peak_bytes() - before - largest
    summary = {"tried": tried, "refused": refused, "problems": problems, "bytes_over_file": over}
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
