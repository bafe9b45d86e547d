"""The machine in general words, and what it can do at best: the limits that no reader passes."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise

import numpy as np

BLOCK_BYTES = 1 << 28
TURNS = 7


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes per second, with a thread for each processor.

    ``copy``: from memory to memory that is there already.  ``read``: a file that the system has
    cached, into the same.
    """

    copy: float
    read: float


def measure_limits() -> Limits:
    """Return the best of several turns."""
    source, target = np.ones(BLOCK_BYTES, np.uint8), np.ones(BLOCK_BYTES, np.uint8)
    threads = os.cpu_count() or 1
    edges = np.linspace(0, BLOCK_BYTES, threads + 1, dtype=np.int64).tolist()
    parts = [slice(*both) for both in pairwise(edges)]
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(threads) as pool:
        file.write(source.data)
        file.flush()
        number = file.fileno()

        def copy(part: slice) -> None:
            np.copyto(target[part], source[part])

        def read(part: slice) -> None:
            os.preadv(number, [target[part].data], part.start)

        def fastest(work: Callable[[slice], None]) -> float:
            return BLOCK_BYTES / min(
                seconds(lambda: list(pool.map(work, parts))) for _ in range(TURNS)
            )

        return Limits(fastest(copy), fastest(read))


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def describe_machine(*names: str) -> str:
    """Return what a reader needs to know of the machine and of the versions, and of which day it is."""
    return f"{machine_facts(*names)[:-1]}, {datetime.now(UTC):%Y-%m-%d}."


def machine_facts(*names: str) -> str:
    """Return what a reader needs to know of the machine and of the versions, in a sentence or two."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {memory:.0f} GiB of memory, "
        f"{platform.system()}, Python {platform.python_version()}, {versions}. "
        f"Pennon at commit {commit()}."
    )


def commit() -> str:
    """Return the commit that was measured, and whether files differed from it.

    Those under docs do not count: the page that tells of the measures is one of them.
    """
    words = ["git", "describe", "--always", "--abbrev=8"]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        return "unknown"
    compare = ["git", "diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)docs"]
    differs = subprocess.run(compare, check=False).returncode != 0
    return f"{found}-dirty" if differs else found
