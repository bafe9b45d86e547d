"""Writers, readers, cleaners, and those who make names: what each does, chosen by the seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pennon.commit import CommitConflictError
from pennon.errors import CommitStateUnknown, LanceError, RetryableConflict
from tests.faults.simulation.model import (
    Append,
    ChangeColumns,
    CleanUp,
    Client,
    CommitAgain,
    Compact,
    Delete,
    MakeBranch,
    Merge,
    Migrate,
    Operation,
    Overwrite,
    Predicate,
    Read,
    Restore,
    SetConfig,
    Tag,
    Update,
    above,
    every,
    has_id,
)
from tests.faults.simulation.scheduler import Actor, Crashed, Scheduler
from tests.faults.simulation.store import Disk, Fault

HOUR = 3600.0
DAY = 24 * HOUR
INITIAL_IDS = tuple(range(6))


@dataclass(frozen=True)
class Script:
    """What one actor does, and how long it waits before each operation."""

    name: str
    operations: Sequence[Operation]
    waits: Sequence[float]
    skew: float = 0.0


@dataclass(frozen=True)
class Focus:
    """What a run is to have more of than the seed says: for bugs of which one knows what they need.

    ``kinds``: writers do nothing else.  ``cleans``, ``names``, ``migrates``: whether there are clean-ups,
    names, migrations at all.  ``hasty``: clean-ups spare next to nothing.  ``faults`` are all that there are.
    ``pauses``: actors often stop for long.  ``skewed``: clocks are wrong.
    """

    mode: str | None = None
    kinds: tuple[str, ...] = ()
    cleans: bool | None = None
    names: bool | None = None
    migrates: bool | None = None
    hasty: bool | None = None
    faults: Mapping[Fault, float] | None = None
    pauses: bool = False
    skewed: bool = False


NO_FOCUS = Focus()


class Maker:
    """Makes the operations of a seed; ids of appended rows are never given twice."""

    def __init__(self, rng: random.Random, *, cleans: bool, hasty: bool) -> None:
        self.rng = rng
        self.cleans = cleans
        self.ages = (0.0, 60.0, HOUR, 14 * DAY) if hasty else (HOUR, 3 * HOUR, 14 * DAY)
        self._next_id = 100
        self._next_name = 0

    def new_ids(self, most: int = 2) -> tuple[int, ...]:
        """Return ids that no other operation has."""
        count = self.rng.randint(1, most)
        self._next_id += count
        return tuple(range(self._next_id - count, self._next_id))

    def _fresh(self) -> bool:
        return self.rng.random() < 0.6

    def _predicate(self) -> Predicate:
        kind = self.rng.random()
        if kind < 0.5:
            return has_id(self.rng.choice(INITIAL_IDS))
        if kind < 0.85:
            return every(3, self.rng.randrange(3))
        return above(0)

    def _merge(self) -> Merge:
        pool = (*INITIAL_IDS, 50, 51, 52)
        ids = tuple(sorted(self.rng.sample(pool, self.rng.randint(1, 3))))
        kind = self.rng.randrange(4)
        return Merge(
            self._fresh(),
            ids=ids,
            value=1000 + self.rng.randrange(10**6),
            updates=kind != 0,
            in_place=kind == 1,
        )

    def kinds(self) -> dict[str, Callable[[], Operation]]:
        """Return how to make an operation of each kind that writes."""
        rng = self.rng
        return {
            "append": lambda: Append(self._fresh(), ids=self.new_ids()),
            "commit again": lambda: CommitAgain(self._fresh(), ids=self.new_ids()),
            "delete": lambda: Delete(self._fresh(), predicate=self._predicate()),
            "update": lambda: Update(self._fresh(), predicate=self._predicate()),
            "merge": self._merge,
            "compact": lambda: Compact(self._fresh()),
            "overwrite": lambda: Overwrite(self._fresh(), ids=self.new_ids()),
            "columns": lambda: ChangeColumns(self._fresh()),
            "restore": lambda: Restore(self._fresh(), back=rng.randint(1, 3)),
            "config": lambda: SetConfig(
                self._fresh(), key=rng.choice("ab"), value=str(rng.randrange(10**6))
            ),
        }

    def read(self) -> Read:
        """Return a read, perhaps of a version that is held for long."""
        again = self.rng.choice((None, None, 5.0, 2 * HOUR, 15 * DAY if self.cleans else 1.0))
        return Read(self._fresh() or self.rng.random() < 0.5, again_after=again)

    def clean_up(self) -> CleanUp:
        """Return a clean-up."""
        retain = self.rng.choice((None, None, 1, 2))
        return CleanUp(fresh=True, older_than=self.rng.choice(self.ages), retain=retain)

    def name(self) -> Operation:
        """Return what names a version."""
        self._next_name += 1
        if self.rng.random() < 0.5:
            return Tag(fresh=True, name=f"t{self.rng.randrange(2)}")
        return MakeBranch(fresh=True, name=f"b{self._next_name}", ids=self.new_ids(1))


WAITS = (0.0, 0.0, 0.0, 0.05, 1.0, 30.0)
LONG_WAITS = (0.0, 0.5, 30.0, 2 * HOUR, 7.5 * DAY, 16 * DAY)


def scripts(
    rng: random.Random, maker: Maker, focus: Focus, *, migrates: bool, names: bool
) -> list[Script]:
    """Return what the actors of a seed do."""
    kinds = maker.kinds()
    chosen = rng.sample(sorted(kinds), rng.randint(1, 4))
    if rng.random() < 0.5 and "append" not in chosen:
        chosen.append("append")
    chosen = list(focus.kinds) or chosen
    plans: list[tuple[str, list[Operation], Sequence[float]]] = []
    long = LONG_WAITS if maker.cleans else WAITS
    soon = (0.5, 30.0, 700.0) if focus.hasty else long
    for number in range(rng.randint(2, 4)):
        work = [kinds[rng.choice(chosen)]() for _ in range(rng.randint(1, 3))]
        usual = WAITS if rng.random() < 0.8 else long
        plans.append((f"writer{number}", work, (0.0, 0.05) if focus.migrates else usual))
    if rng.random() < 0.6:
        plans.append(("reader", [maker.read() for _ in range(rng.randint(1, 3))], long))
    if maker.cleans:
        plans += [
            (f"cleaner{n}", [maker.clean_up() for _ in range(rng.randint(1, 2))], soon)
            for n in range(rng.randint(1, 2))
        ]
    if (rng.random() < 0.25 or focus.names) and names:
        count = 3 if focus.names else rng.randint(1, 2)
        early = (0.0, 0.05) if focus.names else long
        plans += [(f"namer{n}", [maker.name()], early) for n in range(count)]
    if migrates:
        early = (0.0, 0.05) if focus.migrates else long
        plans.append(("migrator", [Migrate() for _ in range(rng.randint(1, 2))], early))
    skews = (0.0, 90.0, -2 * DAY, 30 * DAY, -365 * DAY)
    skewed = rng.random() < 0.4 or focus.skewed
    return [
        Script(name, work, [rng.choice(waits) for _ in work], rng.choice(skews) if skewed else 0.0)
        for name, work, waits in plans
    ]


@dataclass
class Acknowledged:
    """The newest version of which somebody was told, so far."""

    newest: int = 1


def perform(
    script: Script, client: Client, disk: Disk, told: Acknowledged
) -> Callable[[Actor], None]:
    """Return what an actor does: its operations, one after the other, errors or not."""

    def work(actor: Actor) -> None:
        for operation, wait in zip(script.operations, script.waits, strict=True):
            if wait:
                time.sleep(wait)
            actor.doing = operation
            actor.scheduler.note(f"{actor.name} begins {type(operation).__name__}")
            operation.begun, operation.outcome = told.newest, "died"
            operation.base = operation.begun if client.handle is None else client.handle.version
            _try(operation, client)
            operation.ended = disk.newest()
            actor.scheduler.note(f"{actor.name} {operation.outcome}")
            actor.doing = None
            made = [v.number for v in disk.history[""] if v.by is operation and not v.is_void]
            if operation.outcome == "acknowledged" and made:
                told.newest = max(told.newest, *made)

    return work


def _try(operation: Operation, client: Client) -> None:
    """Do an operation, and write down what its caller was told."""
    try:
        dataset = client.at(fresh=operation.fresh)
        operation.base = dataset.version
        operation.run(client, dataset)
    except Crashed:
        raise
    except CommitStateUnknown as error:
        operation.outcome, operation.error = "unknown", error
    except LanceError as error:
        operation.outcome, operation.error = "failed", error
    except Exception as error:  # noqa: BLE001 - for the checker
        operation.outcome, operation.error = "broken", error
    else:
        operation.outcome = "acknowledged"
        if client.handle is dataset or client.handle is None:
            client.handle = dataset


@dataclass
class Locks:
    """Locks of versions, as a service has them; whoever dies lets go."""

    scheduler: Scheduler
    held: dict[int, Actor] = field(default_factory=dict)
    patient: bool = True

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        """Hold the lock of a version."""
        from tests.faults.simulation import seams

        actor = seams.current()
        if not isinstance(actor, Actor):
            yield
            return
        self.scheduler.step("lock", str(version), may_pause_long=False)
        while version in self.held:
            if not self.patient:
                message = f"another writer has the lock of version {version}"
                raise self._conflict()(message)
            actor.sleep(0.5)
        self.held[version] = actor
        try:
            yield
        finally:
            self.held.pop(version, None)

    @staticmethod
    def _conflict() -> type[CommitConflictError]:
        return RetryableConflict
