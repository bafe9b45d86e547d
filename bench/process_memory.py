"""The memory of a process, and of all that it started, watched while something runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil

SAMPLE_SECONDS = 0.03
DRIVER, JVM, WORKER = "driver", "JVM", "largest worker"


class Watch(ABC):
    """Looks at a family of processes again and again within a block."""

    def __init__(self, pid: int) -> None:
        self.process = psutil.Process(pid)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.ended.wait(SAMPLE_SECONDS):
            try:
                self.look([self.process, *self.process.children(recursive=True)])
            except psutil.NoSuchProcess:
                return

    @abstractmethod
    def look(self, family: Sequence[psutil.Process]) -> None:
        """Take note of the memory of processes, the watched one first; some of the others may have ended."""


class Peak(Watch):
    """The resident memory of all together at its highest, in ``bytes``."""

    bytes = 0

    def look(self, family: Sequence[psutil.Process]) -> None:
        """See `Watch.look`."""
        self.bytes = max(self.bytes, sum(map(resident, family)))


class Peaks(Watch):
    """The anonymous memory at its highest of the driver, of its JVM, and of the largest other process."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.bytes = dict.fromkeys((DRIVER, JVM, WORKER), 0)

    def look(self, family: Sequence[psutil.Process]) -> None:
        """See `Watch.look`."""
        for each in family:
            part = DRIVER if each == self.process else JVM if is_jvm(each) else WORKER
            self.bytes[part] = max(self.bytes[part], anonymous(each.pid))


class Own(Watch):
    """The memory at its highest that a family holds in RAM and no file holds, in ``bytes``.

    A page that forked processes share counts once, and so does memory that they share on purpose (`/dev/shm`).
    """

    bytes = 0

    def look(self, family: Sequence[psutil.Process]) -> None:
        """See `Watch.look`."""
        self.bytes = max(self.bytes, sum(own(each.pid) for each in family))


def own(pid: int) -> int:
    """Return a process's share of memory that no file holds, in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    counted = ("Pss_Anon:", "Pss_Shmem:")
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(counted))


def resident(process: psutil.Process) -> int:
    """Return the resident memory of one process, 0 if it has ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def anonymous(pid: int) -> int:
    """Return the anonymous memory of a process, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(found[0]) * 1024 if found else 0


def is_jvm(process: psutil.Process) -> bool:
    """Tell whether a process is Java; one that has ended is not."""
    try:
        return bool(process.name() == "java")
    except psutil.NoSuchProcess:
        return False
