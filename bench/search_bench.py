"""A group of searches that is measured: its table on each side, and how near each comes to the nearest rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from measure import OURS, THEIRS, Effort, Timed, Worker, take_turns
from search_groups import BUILD, Data, K, Kind, Plan
from tasks import Task

FAISS = "faiss"
SHORT, LONG = Effort(4, 61, 3, quick=False), Effort(1, 3, 10, quick=False, uncounted=0)
QUICK_SHORT = Effort(3, 5, 0.1, quick=True)
QUICK_LONG = Effort(1, 1, 0, quick=True, uncounted=0)
BLOCK = 8192
"""Rows that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Search(Timed):
    """One operation with an index of some kind.

    ``goal`` is what the ratio to pylance is to be, ``recall`` which share of the nearest rows each side found.
    """

    kind: str
    goal: float
    recall: Mapping[str, float] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """Return the shares as text."""
        return " / ".join(f"{share:.3f}" for share in self.recall.values())


class GroupBench:
    """A group that is measured: its table, on each side."""

    def __init__(
        self, name: str, data: Data, folder: Path, workers: Mapping[str, Worker], *, quick: bool
    ) -> None:
        """Leave the table where all sides find it, and let each write its own."""
        self.name, self.data = name, data
        self.workers = {s: each for s, each in workers.items() if s != FAISS or data.arrays}
        self.short, self.long = (QUICK_SHORT, QUICK_LONG) if quick else (SHORT, LONG)
        self.own = {side: str(folder / f"{name}-{side}") for side in self.workers}
        self.task: Task = {"data": str(folder / f"{name}.arrow")}
        with pa.ipc.new_file(self.task["data"], data.table.schema) as writer:
            writer.write_table(data.table)
        for each, array in data.arrays.items():
            self.task[each] = str(folder / f"{name}-{each}.npy")
            np.save(self.task[each], array)
        self.truths: dict[int | None, list[set[int]]] = {}
        for side, uri in self.own.items():
            self._run(side, {"do": "write"}, uri)

    def run(self, kind: Kind, operations: Sequence[str]) -> Iterator[Search]:
        """Make an index of a kind, and search with it."""
        chosen = [plan for plan in kind.plans if plan.what in operations]
        if kind.index is not None and BUILD in operations:
            goal = kind.build_goal
            build = Plan(BUILD, kind.index, goal, kind.has_faiss, on_own=True, is_long=True)
            times = self._turns(build)
            recall = self._recall(kind.plans[0].task, self._uris(build)) if self.data.arrays else {}
            yield Search(self.name, BUILD, times, kind.name, goal, recall)
        elif kind.index is not None and chosen:
            sides = [OURS] if any(plan.on_own for plan in chosen) else []
            sides += [
                side for side in self.own if side == THEIRS or kind.has_faiss & (side == FAISS)
            ]
            for side in sides:
                self._run(side, kind.index, self.own[side])
            for side in (OURS, THEIRS):  # it has the other's table open as it was
                self._run(side, {"do": "forget"}, self.own[side])
        for plan in chosen:
            recall = self._check(plan)
            yield Search(self.name, plan.what, self._turns(plan), kind.name, plan.goal, recall)

    def _turns(self, plan: Plan) -> dict[str, list[float]]:
        task, effort = {**self.task, **plan.task}, self.long if plan.is_long else self.short
        return take_turns(self.workers, task, self._uris(plan), effort)

    def _uris(self, plan: Plan) -> dict[str, str]:
        """Return the sides that a plan is of, and the table of each: pylance's, where none is changed."""
        sides = [side for side in self.own if side != FAISS or plan.has_faiss]
        return {
            side: self.own[THEIRS if side == OURS and not plan.on_own else side] for side in sides
        }

    def _check(self, plan: Plan) -> dict[str, float]:
        """Return which share of the nearest rows each side finds.

        Raises RuntimeError if there are no vectors and the sides find different rows.
        """
        uris = self._uris(plan)
        if self.data.arrays:
            return self._recall(plan.task, uris)
        if not plan.on_own:
            found = [
                self._run(side, {**plan.task, "answers": True}, uri) for side, uri in uris.items()
            ]
            if any(each != found[0] for each in found):
                message = f"the sides disagree at {self.name}, {plan.what}: {found}"
                raise RuntimeError(message)
        return {}

    def _recall(self, task: Task, uris: Mapping[str, str]) -> dict[str, float]:
        nearest = self._nearest(task["how"].get("below"))
        warm = {**task, "answers": True, "is_cold": False}
        return {side: recall_of(self._run(side, warm, uri), nearest) for side, uri in uris.items()}

    def _nearest(self, below: int | None) -> list[set[int]]:
        """Return the ids of the rows that are nearest to each query, of those with a percent below one."""
        if below not in self.truths:
            rows = np.arange(self.data.table.num_rows)
            if below is not None:
                rows = rows[self.data.table["percent"].to_numpy() < below]
            vectors, queries = self.data.arrays["vectors"], self.data.arrays["queries"]
            self.truths[below] = [nearest_rows(vectors, query, rows) for query in queries]
        return self.truths[below]

    def _run(self, side: str, task: Task, uri: str) -> Any:
        return self.workers[side].run({**self.task, **task, "uri": uri})["found"]


def nearest_rows(
    vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]
) -> set[int]:
    """Return the ``K`` of some rows that are nearest to a query."""
    distances = np.concatenate(
        [
            ((vectors[rows[start : start + BLOCK]] - query) ** 2).sum(1)
            for start in range(0, len(rows), BLOCK)
        ]
    )
    return set(rows[np.argsort(distances, kind="stable")[:K]].tolist())


def recall_of(found: Sequence[Sequence[int]], nearest: Sequence[set[int]]) -> float:
    """Return which share of the nearest rows was found."""
    pairs = zip(found, nearest, strict=True)
    return sum(len(right.intersection(ids)) for ids, right in pairs) / sum(map(len, nearest))
