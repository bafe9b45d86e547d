"""Damage the files of vector indices, and search them.

Run as a program, this is the child process of `test_vector_index_mutants`:
``python -m tests.faults.try_vector_index_mutants FOLDER SEED FIRST COUNT``.  It prints a JSON object a line: first the
mutant before each try, then a summary.

A try is right if it ends in no more rows than were asked for, whose distances ascend, or in one of our typed errors:
a code, a value of a centroid or a row number is as good as another one, so other rows than before are only counted.
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

import numpy as np
import pyarrow as pa

import pennon
from pennon.errors import LanceError
from pennon.index.vector.base import Probes
from pennon.vector import vec_to_table
from tests.faults.mutants import SPARE_BYTES, Mutant, mutants_of
from tests.faults.try_index_mutants import regions_of
from tests.faults.try_mutants import SECONDS_PER_TRY, timed_out
from tests.interop.vector_planner import Searched
from tests.limits.peak import peak_bytes, start_peak

TABLES: Final = (
    *("14.0.2/ivf_flat_l2", "14.0.2/ivf_pq_cosine", "14.0.2/ivf_pq4_l2", "14.0.2/ivf_sq_dot"),
    *("14.0.2/ivf_rq1_l2", "14.0.2/ivf_rq5_l2", "14.0.2/u8_ivf_flat_hamming"),
    *("14.0.2/ivf_hnsw_flat_l2", "14.0.2/ivf_hnsw_pq_l2", "14.0.2/ivf_hnsw_sq_l2"),
    *("14.0.2/ivf_pq_data_2_1", "14.0.2/ivf_pq_l2_v1file", "1.0.4/ivf_rq1_dot", "1.0.4/f16_ivf_pq"),
    *("0.19.2/ivf_hnsw_pq_l2", "0.15.0/ivf_pq4_l2", "0.15.0/ivf_hnsw_sq_l2"),
    *("0.10.18/ivf_hnsw_sq_l2", "0.10.18/ivf_hnsw_pq_l2", "0.10.18/ivf_pq_dot"),
)
OURS: Final[dict[str, dict[str, Any]]] = {
    "ours/ivf_flat_dot": {"index_type": "IVF_FLAT", "metric": "dot"},
    "ours/ivf_pq_cosine": {"index_type": "IVF_PQ", "metric": "cosine", "num_sub_vectors": 4},
    "ours/ivf_pq4_l2": {"index_type": "IVF_PQ", "num_sub_vectors": 4, "num_bits": 4},
    "ours/ivf_sq_l2": {"index_type": "IVF_SQ"},
    "ours/ivf_rq1_l2": {"index_type": "IVF_RQ", "num_bits": 1},
    "ours/ivf_rq5_dot": {"index_type": "IVF_RQ", "metric": "dot"},
    "ours/ivf_hnsw_flat_l2": {"index_type": "IVF_HNSW_FLAT", "m": 4, "ef_construction": 20},
    "ours/ivf_hnsw_pq_l2": {"index_type": "IVF_HNSW_PQ", "num_sub_vectors": 4, "m": 4},
    "ours/ivf_hnsw_sq_cosine": {"index_type": "IVF_HNSW_SQ", "metric": "cosine", "m": 4},
}
"""Indices that Pennon writes, and how; in files of 2.0, 2.1 and 2.2 by turns."""
RIGHT, REFUSED, OTHER = "right", "refused", "other rows"
_K: Final = 7


@dataclass(frozen=True)
class Target:
    """A file of an index, and the rows that searches find."""

    table: Path
    path: Path
    expected: list[list[int]]


def write_ours(folder: Path) -> None:
    """Write tables of our own into a folder."""
    vectors = np.random.default_rng(5).normal(size=(300, 16)).astype(np.float32)
    for number, (name, how) in enumerate(OURS.items()):
        version = ("2.0", "2.1", "2.2")[number % 3]
        data = vec_to_table(vectors).append_column("id", pa.array(range(len(vectors))))
        table = pennon.write_dataset(data, folder / f"{name}.lance", data_storage_version=version)
        table.create_index("vector", num_partitions=3, sample_rate=64, **how)


def targets_of(table: Path) -> Iterator[Target]:
    """Yield all files of the index of a table."""
    searched = Searched(table)
    expected = answers(table)
    for entry in searched.entries:
        for path in sorted((table / entry.folder).iterdir()):
            yield Target(table, path, expected)


def answers(table: Path) -> list[list[int]]:
    """Return the rows that some searches find; raises AssertionError for such as no index finds."""
    searched = Searched(table)
    (index,) = searched.segments
    queries = np.random.default_rng(3).normal(size=(2, index.dimension)) * 2
    found = []
    for allowed in (None, lambda rows: rows % 3 == 0, lambda rows: rows % 50 == 0):
        near = index.search(queries.astype(np.float32), _K, Probes(1, None, 20), allowed)
        counts = np.bincount(near.queries, minlength=2)
        assert len(near.rows) == len(near.distances) == len(near.queries)
        assert len(counts) == 2
        assert counts.max(initial=0) <= _K
        for number in range(2):
            mine = near.queries == number
            assert (np.sort(near.distances[mine]) == near.distances[mine]).all()
            found.append(near.rows[mine].tolist())
    return found


def parts_of(data: bytes) -> dict[str, tuple[int, int]]:
    """Return the parts of a file by their names."""
    if data[-8:-4] != bytes((0, 0, 1, 0)):
        return regions_of(data)
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    end = len(data) - 16
    return {"rows": (0, position), "message": (position, end), "footer": (end, len(data))}


def judge(target: Target) -> str:
    """Search an index one of whose files was damaged; return what came of it, or the fault."""
    before, verdict = start_peak(), RIGHT
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TRY)
    try:
        try:
            if answers(target.table) != target.expected:
                verdict = OTHER
        except LanceError:
            verdict = REFUSED
    except BaseException:  # noqa: BLE001 - anything else is what we look for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = peak_bytes() - before
    return verdict if grown <= SPARE_BYTES else f"took {grown >> 20} MiB"


def mutant_of(target: Target, data: bytes, seed: int, number: int) -> tuple[str, Mutant]:
    """Return a mutant of a file by its number, and the part of the file that it hits."""
    parts = parts_of(data)
    part = list(parts)[number % len(parts)]
    name = f"{target.table.name}/{target.path.name}"
    (mutant,) = mutants_of(name, data, [parts[part]], seed * 1_000_003 + number, 1)
    return part, mutant


def run(folder: Path, seed: int, first: int, count: int) -> None:
    """Try ``count`` mutants, which go through all files of all indices, and print what came of them."""
    signal.signal(signal.SIGPROF, timed_out)
    targets = [each for name in (*TABLES, *OURS) for each in targets_of(folder / f"{name}.lance")]
    random.Random(seed).shuffle(targets)
    for target in targets:
        if (found := judge(target)) != RIGHT:
            sys.exit(f"{target.path}, undamaged: {found}")
    verdicts: Counter[str] = Counter()
    problems: list[dict[str, Any]] = []
    for number in range(first, first + count):
        target = targets[number % len(targets)]
        data = target.path.read_bytes()
        part, mutant = mutant_of(target, data, seed, number // len(targets))
        shown = f"{number}: {mutant.kind} in {part} of {target.table.parent.name}/{mutant.file}"
        print(json.dumps({"mutant": shown}), flush=True)
        target.path.unlink()  # a reader may still map the old file: never write into it
        target.path.write_bytes(mutant.apply(data))
        found = judge(target)
        target.path.unlink()
        target.path.write_bytes(data)
        verdicts[found if found in {RIGHT, REFUSED, OTHER} else "problem"] += 1
        if found not in {RIGHT, REFUSED, OTHER}:
            problems.append({"mutant": shown, "problem": found})
    summary = {"tried": sum(verdicts.values()), "verdicts": verdicts, "problems": problems}
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
