"""What is measured of each group, and how: the sides in turn, in processes of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from groups import ACCESS, KEYS, NOT_IN_2_0, make_table
from tasks import Task

HERE = Path(__file__).parent
OURS, THEIRS, PARQUET = "pennon", "pylance", "parquet"
SIDES = (OURS, THEIRS, PARQUET)
COUNTED = "counted"
VERSIONS = ("2.0", "2.1", "2.2")
OLD = "0.1"
"""The first version: measured beside pylance alone, and little of it."""

TAKES: dict[str, Task] = {
    "take 1": {"do": "take", "count": 1, "times": 50},
    "take 1, alone": {"do": "take", "count": 1, "times": 1},
    "take 100": {"do": "take", "count": 100, "times": 10},
    "take 100, alone": {"do": "take", "count": 100, "times": 1},
    "take 5,000": {"do": "take", "count": 5_000, "times": 1},
}
"""How many rows, and how many takes in a row.  One alone finds the caches of the processor cold."""

READS: dict[str, Task] = {
    "open": {"do": "open"},
    "open + first row": {"do": "first"},
    "scan": {"do": "scan"},
    "scan, bytes touched": {"do": "touch"},
    "one column": {"do": "scan"},
    "filter keeps 0.1 %": {"do": "scan", "below": KEYS // 1000},
    "filter keeps 1 %": {"do": "scan", "below": KEYS // 100},
    "filter keeps 50 %": {"do": "scan", "below": KEYS // 2},
    "filtered count": {"do": "count"},
    **TAKES,
}
UNSYNCED = "write, no fsync"
OPERATIONS = ("write", UNSYNCED, "file size", *READS, "peak memory")
OLD_OPERATIONS = ("write", "scan", "take 100")
UNITS = {"file size": "MB", "peak memory": "MB"}
"""Of what is not measured in milliseconds."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long each operation is repeated: ``least`` rounds, and more while there is time.

    The first ``uncounted`` rounds find caches cold and are not counted among these.
    """

    least: int
    most: int
    seconds: float
    quick: bool
    uncounted: int = 1


FULL = Effort(4, 21, 0.6, quick=False)
QUICK = Effort(3, 7, 0.1, quick=True)
SHORT = Effort(3, 5, 0.2, quick=False)
SHORT_SHARE = 4
"""Of the rows of a group, version 0.1 has one in so many."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What Pennon asked of its store for one operation; ``rows`` are those that came of it."""

    rounds: int
    requests: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Timed:
    """One operation on one group: the values of each side."""

    group: str
    what: str
    values: Mapping[str, Sequence[float]]

    @property
    def unit(self) -> str:
        """Return the unit of the values."""
        return UNITS.get(self.what, "ms")

    @property
    def note(self) -> str:
        """Return what is to be known beside the values."""
        return ""

    def median(self, side: str) -> float:
        """Return the middle value of a side."""
        return statistics.median(self.values[side])

    def ratio(self, side: str = THEIRS) -> float:
        """Return how many times a side's median is ours: above 1 we are faster (or smaller)."""
        return self.median(side) / max(self.median(OURS), 1e-9)


@dataclass(frozen=True, slots=True)
class Measure(Timed):
    """One operation on a group of types in a version of the data files, and what Pennon read for it."""

    version: str
    reads: Reads | None = None
    arrow_bytes: int = 0
    """What the columns that were read take in memory."""


def save_results(results: Any, path: Path) -> None:
    """Write what a run found as JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(results), indent=1))


class Worker:
    """A side that is running."""

    def __init__(self, name: str, program: str = "side.py", python: str = sys.executable) -> None:
        self.process = subprocess.Popen(
            [python, str(HERE / program), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, task: Task) -> dict[str, Any]:
        """Run one task there."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            message = f"{self.process.args!r} failed at {task}"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


@dataclass(frozen=True, slots=True)
class Bench:
    """The running sides, and how much of their time is taken."""

    workers: Mapping[str, Worker]
    effort: Effort
    operations: Sequence[str]

    def run_group(self, group: str, version: str, folder: Path) -> Iterator[Measure]:
        """Measure one group of types in one version of the data files.

        All read tables with a key.  Pennon and pylance read the same one, which pylance wrote.
        """
        data = folder / f"{group}.arrow"
        if not data.exists():
            self._make(group, data)
        if version == OLD:
            yield from self._run_old(group, data, folder)
            return
        columns, rows = describe(data)
        uris = {side: str(folder / f"{group}-{version}-{side}") for side in SIDES}
        task = {"group": group, "version": version, "data": str(data), "columns": columns}
        if group not in ACCESS:
            yield from self._writes(task, uris, group, version)
        for side in (THEIRS, PARQUET):
            with_key = {**task, "do": "write", "columns": [*columns, "key"]}
            self.workers[side].run({**with_key, "uri": uris[side]})
        uris |= dict.fromkeys((OURS, COUNTED), uris[THEIRS])
        plans = TAKES if group in ACCESS else READS
        for what in [what for what in plans if what in self.operations]:
            mine = columns[:1] if what == "one column" else columns
            plan = {**task, **plans[what], "rows": rows, "columns": mine}
            times, reads = self._repeat(plan, uris), self._reads(plan, uris)
            yield Measure(group, what, times, version, reads, arrow_bytes(data, mine))
        if group not in ACCESS and "peak memory" in self.operations:
            peaks = {side: [peak_of(side, task, uris[side])] for side in SIDES}
            yield Measure(group, "peak memory", peaks, version)

    def _run_old(self, group: str, whole: Path, folder: Path) -> Iterator[Measure]:
        """Measure a share of a group in version 0.1.  Both sides read what pylance wrote."""
        table = arrow_table(whole)
        data = folder / f"{group}-{OLD}.arrow"
        _save(table.slice(0, table.num_rows // SHORT_SHARE), data)
        columns, rows = describe(data)
        sides = (OURS, THEIRS)
        uris = {side: str(folder / f"{group}-{OLD}-{side}") for side in sides}
        task = {"group": group, "version": OLD, "data": str(data), "columns": columns}
        mine = [what for what in OLD_OPERATIONS if what in self.operations]
        for what in mine:
            if what == "write":
                times = self._repeat({**task, "do": "write"}, uris, sides, SHORT)
                yield Measure(group, what, times, OLD)
        self.workers[THEIRS].run({**task, "do": "write", "uri": uris[THEIRS]})
        uris[OURS] = uris[THEIRS]
        for what in mine:
            if what in READS:
                plan = {**task, **READS[what], "rows": rows}
                times = self._repeat(plan, uris, sides, SHORT)
                yield Measure(group, what, times, OLD, None, arrow_bytes(data, columns))

    def _make(self, group: str, data: Path) -> None:
        """Make the table of a group and leave it where all sides find it."""
        _save(make_table(group, quick=self.effort.quick), data)

    def _writes(
        self, task: Task, uris: Mapping[str, str], group: str, version: str
    ) -> Iterator[Measure]:
        """Measure writing, and what was written."""
        if "write" in self.operations or "file size" in self.operations:
            times = self._repeat({**task, "do": "write"}, uris)
            yield Measure(group, "write", times, version)
        if UNSYNCED in self.operations:
            plan = {**task, "do": "write", "durability": "none"}
            yield Measure(group, UNSYNCED, self._repeat(plan, uris), version)
            sizes = {side: [data_bytes(Path(uris[side])) / 1e6] for side in SIDES}
            yield Measure(group, "file size", sizes, version)

    def _repeat(
        self,
        task: Task,
        uris: Mapping[str, str],
        sides: Sequence[str] = SIDES,
        effort: Effort | None = None,
    ) -> dict[str, list[float]]:
        """Run a task on all sides in turn; see `take_turns`."""
        return take_turns(
            self.workers, task, {side: uris[side] for side in sides}, effort or self.effort
        )

    def _reads(self, task: Task, uris: Mapping[str, str]) -> Reads:
        """Run a task over a store that counts, the second time around, one take of a row of them."""
        once = {**task, "uri": uris[COUNTED], "times": 1}
        self.workers[COUNTED].run({**once, "round": 0})
        answer = self.workers[COUNTED].run({**once, "round": 1})
        counts = answer["reads"]
        return Reads(counts["rounds"], counts["requests"], counts["read_bytes"], answer["found"])


def take_turns(
    workers: Mapping[str, Worker], task: Task, uris: Mapping[str, str], effort: Effort
) -> dict[str, list[float]]:
    """Run a task on the sides that have a table, in turn; return milliseconds.

    Who begins changes, and nobody comes twice in a row, when its code would still be in caches.
    Raises RuntimeError if the sides find different things.
    """
    sides = list(uris)
    times: dict[str, list[float]] = {side: [] for side in sides}
    started = time.monotonic()
    for number in range(effort.most + effort.uncounted):
        counted = number - effort.uncounted
        if counted >= effort.least and time.monotonic() - started > effort.seconds:
            break
        found = []
        first = number % len(sides)
        for side in (*sides[first:], *sides[:first]):
            answer = workers[side].run({**task, "round": number, "uri": uris[side]})
            if answer["found"] not in found:
                found.append(answer["found"])
            if counted >= 0:
                times[side].append(answer["seconds"] * 1000)
        if len(found) > 1:
            message = f"the sides disagree: {found} for {task}"
            raise RuntimeError(message)
    return times


def _save(table: pa.Table, data: Path) -> None:
    with pa.ipc.new_file(data, table.schema) as writer:
        writer.write_table(table)


def describe(data: Path) -> tuple[list[str], int]:
    """Return the columns of a group's table without the key, and the number of its rows."""
    table = arrow_table(data)
    return table.column_names[:-1], table.num_rows


def arrow_bytes(data: Path, columns: list[str]) -> int:
    """Return how much memory columns take."""
    return int(arrow_table(data).select(columns).nbytes)


def arrow_table(data: Path) -> pa.Table:
    """Return the table in an Arrow file, mapped."""
    return pa.ipc.open_file(pa.memory_map(str(data))).read_all()


def data_bytes(root: Path) -> int:
    """Return the size of all data files of a table."""
    return sum(path.stat().st_size for path in (root / "data").iterdir())


def peak_of(side: str, task: Task, uri: str) -> float:
    """Return by how many MB a scan raises the peak memory of a fresh process."""
    with Worker(side) as worker:
        return float(worker.run({**task, "do": "peak", "uri": uri})["found"]) / 1024


def is_written(group: str, version: str) -> bool:
    """Tell whether a version of the data files can hold a group, and is measured with it."""
    if version == OLD and group in ACCESS:
        return False
    return version not in (OLD, "2.0") or group not in NOT_IN_2_0
