"""Damage the files of indices, ask them, and judge the answers by those of a scan.

Run as a program, this is the child process of `test_index_mutants`:
``python -m tests.faults.try_index_mutants FOLDER SEED FIRST COUNT``.  It prints a JSON object a line: first the mutant
before each try, then a summary.

A try is right if it ends in the rows of the scan, or in one of our typed errors.  Files have no checksums: an index
that says, in good order, that 5 is where 3 is, cannot be told from one that is right.  So rows that are wrong
are counted by the part of the file that was hit, and judged by whoever reads the summary.
"""

from __future__ import annotations

import json
import random
import signal
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pennon
from pennon.errors import LanceError
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_indices
from tests.faults.mutants import SPARE_BYTES, Mutant, mutants_of
from tests.faults.try_mutants import SECONDS_PER_TRY, timed_out
from tests.limits.peak import peak_bytes, start_peak

TABLES: Final = (
    *("14.0.2/btree", "14.0.2/bitmap", "14.0.2/label_list", "14.0.2/zonemap", "14.0.2/bloomfilter"),
    *("14.0.2/ngram", "14.0.2/small_zones", "14.0.2/btree_pages", "14.0.2/json", "14.0.2/fri"),
    *("1.0.4/btree", "1.0.4/label_list", "0.15.0/btree", "0.15.0/bitmap", "0.15.0/label_list"),
)
KINDS: Final = frozenset({"BTree", "Bitmap", "LabelList", "ZoneMap", "BloomFilter", "NGram"})
ASKED_A_TRY: Final = 3
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"


@dataclass(frozen=True)
class Target:
    """A file of an index, and conditions that its index is asked, with the rows of each."""

    table: Path
    kind: str
    path: Path
    asked: list[tuple[str, list[int]]]


def targets_of(table: Path) -> Iterator[Target]:
    """Yield all files of the indices of a table that conditions are known for."""
    dataset = pennon.dataset(table)
    answers = json.loads(Path(str(table).replace(".lance", ".answers.json")).read_text())
    plans = {}
    for condition in answers["filters"]:
        try:
            plans[condition] = dataset.scanner(filter=condition).explain_plan()
        except LanceError:
            continue
    for index in parse_indices(dataset.snapshot.manifest.indices):
        mine = [condition for condition, plan in plans.items() if f"@{index.name}(" in plan]
        asked = [(condition, _rows(table, condition, uses=False)) for condition in mine]
        if asked:
            (kind,) = {
                plans[each].partition(f"@{index.name}(")[2].partition(")")[0] for each in mine
            }
            yield from (Target(table, kind, path, asked) for path in _files(table, index))


def _files(table: Path, index: Index) -> list[Path]:
    return sorted(path for path in (table / index.folder).iterdir() if path.suffix == ".lance")


def _rows(table: Path, condition: str, *, uses: bool) -> list[int]:
    found = pennon.dataset(table).to_table(["id"], condition, use_scalar_index=uses)
    found.validate(full=True)
    rows: list[int] = found["id"].to_pylist()
    return rows


def regions_of(data: bytes) -> dict[str, tuple[int, int]]:
    """Return the parts of a file by their names: pages, global buffers, metadata of columns, tables, footer."""
    if data[-8:-4] == bytes((0, 0, 2, 0)):
        return {"pages and metadata": (0, len(data) - 16), "footer": (len(data) - 16, len(data))}
    metadata, offsets, globals_, count = struct.unpack_from("<QQQI", data, len(data) - 40)
    found = {"column metadata": (metadata, offsets), "tables": (offsets, len(data) - 40)}
    for number in range(count):
        start, size = struct.unpack_from("<QQ", data, globals_ + 16 * number)
        found["schema" if number == 0 else "global buffer"] = (start, start + size)
    first = min(start for start, _ in found.values())
    found |= {"pages": (0, first), "footer": (len(data) - 40, len(data))}
    return {name: (start, end) for name, (start, end) in found.items() if end > start}


def judge(target: Target, asked: list[tuple[str, list[int]]]) -> str:
    """Ask an index one of whose files was damaged; return what came of it, or the fault."""
    before, verdict = start_peak(), RIGHT
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TRY)
    try:
        for condition, expected in asked:
            try:
                if _rows(target.table, condition, uses=True) != expected:
                    verdict = WRONG
            except LanceError:
                verdict = REFUSED if verdict == RIGHT else verdict
    except BaseException:  # noqa: BLE001 - anything else is what we look for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = peak_bytes() - before
    return verdict if grown <= SPARE_BYTES else f"took {grown >> 20} MiB"


def mutant_of(target: Target, data: bytes, seed: int, number: int) -> tuple[str, Mutant]:
    """Return a mutant of a file by its number, and the part of the file that it hits."""
    regions = regions_of(data)
    part = list(regions)[number % len(regions)]
    name = f"{target.table.name}/{target.path.name}"
    (mutant,) = mutants_of(name, data, [regions[part]], seed * 1_000_003 + number, 1)
    return part, mutant


def run(folder: Path, seed: int, first: int, count: int) -> None:
    """Try ``count`` mutants, which go through all files of all indices, and print what came of them."""
    signal.signal(signal.SIGPROF, timed_out)
    targets = [each for name in TABLES for each in targets_of(folder / f"{name}.lance")]
    random.Random(seed).shuffle(targets)
    for target in targets:
        if (found := judge(target, target.asked)) != RIGHT:
            sys.exit(f"{target.path}, undamaged: {found}")
    verdicts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    problems: list[dict[str, Any]] = []
    for number in range(first, first + count):
        target = targets[number % len(targets)]
        data = target.path.read_bytes()
        part, mutant = mutant_of(target, data, seed, number // len(targets))
        shown = f"{number}: {mutant.kind} in {part} of {target.table.parent.name}/{mutant.file}"
        print(json.dumps({"mutant": shown}), flush=True)
        asked = random.Random(f"{seed}:{number}").choices(target.asked, k=ASKED_A_TRY)
        target.path.unlink()  # a reader may still map the old file: never write into it
        target.path.write_bytes(mutant.apply(data))
        found = judge(target, asked)
        target.path.unlink()
        target.path.write_bytes(data)
        verdicts[found if found in {RIGHT, REFUSED, WRONG} else "problem"] += 1
        if found == WRONG:
            wrong[f"{target.kind}: {part} of {target.path.name}"] += 1
        elif found not in {RIGHT, REFUSED}:
            problems.append({"mutant": shown, "problem": found})
    summary = {
        "tried": sum(verdicts.values()),
        "verdicts": verdicts,
        "wrong": wrong,
        "kinds": sorted({target.kind for target in targets}),
        "problems": problems,
    }
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
