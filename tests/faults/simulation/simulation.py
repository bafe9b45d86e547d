"""One run of one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pennon
from pennon.errors import LanceError
from pennon.io import registry
from pennon.io.limits import OBJECT_STORE
from pennon.table.external import ExternalStore
from tests.faults.simulation import seams
from tests.faults.simulation.actors import (
    INITIAL_IDS,
    NO_FOCUS,
    Acknowledged,
    Focus,
    Locks,
    Maker,
    Script,
    perform,
    scripts,
)
from tests.faults.simulation.checker import Checker, Watch
from tests.faults.simulation.model import Append, Client, Operation, table_of
from tests.faults.simulation.scheduler import EPOCH, Chances, Scheduler
from tests.faults.simulation.store import (
    CALM,
    Disk,
    Fault,
    SimulatedManifests,
    SimulatedStore,
    Weather,
)

MODES = ("create", "external", "external and create", "lock")


@dataclass
class Founder:
    """Makes the table, and uses it when all is over: by the virtual clock, where nothing fails."""

    scheduler: Scheduler
    doing: Operation | None = None

    def time(self) -> float:
        """Return the seconds since 1970."""
        return EPOCH + self.scheduler.now

    def monotonic(self) -> float:
        """Return the seconds since the start of the run."""
        return self.scheduler.now

    def sleep(self, seconds: float) -> None:
        """Set the clock forward."""
        self.scheduler.now += seconds

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that the seed determines."""
        return self.scheduler.bytes.randbytes(count)


@dataclass
class Run:
    """What came of a seed."""

    seed: int
    mode: str
    trace: str
    steps: int
    wrongs: list[str]
    operations: list[Operation]
    scripts: list[Script]
    log: list[str] = field(default_factory=list)

    def story(self) -> str:
        """Return what happened, for whoever must understand it."""
        lines = [f"seed {self.seed}, mode {self.mode!r}, {self.steps} steps, trace {self.trace}"]
        for script in self.scripts:
            lines.append(f"  {script.name} (clock {script.skew:+.0f} s)")
            lines += [f"    {operation}" for operation in script.operations]
        return "\n".join([*lines, *self.log, *(f"WRONG: {wrong}" for wrong in self.wrongs)])


def weather_of(rng: random.Random) -> Weather:
    """Return the faults of a seed: each kind with some chance, or not at all."""
    if rng.random() < 0.3:
        return Weather(page=rng.choice((None, 2)))
    faults = {fault: rng.choice((0.01, 0.04, 0.12)) for fault in Fault if rng.random() < 0.35}
    return Weather(faults, rng.choice((0.0, 0.0, 0.01, 0.03)), rng.choice((None, None, 1, 3)))


def chances_of(rng: random.Random) -> Chances:
    """Return how the turns of a seed go."""
    return Chances(
        stay=rng.choice((0.0, 0.5, 0.9, 0.97)),
        pause=rng.choice((0.0, 0.0, 0.01, 0.05)),
        long_pause=rng.choice((0.0, 0.0, 0.01)),
        crash=rng.choice((0.0, 0.0, 0.003, 0.01)),
    )


def simulate(seed: int, focus: Focus = NO_FOCUS, *, log: bool = False) -> Run:
    """Run a seed; `seams.virtual` must be on."""
    rng = random.Random(f"script {seed}")
    chosen = rng.choice(MODES)
    mode = focus.mode or chosen
    random.seed(f"global {seed}")
    chances = chances_of(rng)
    if focus.pauses:
        chances = Chances(
            rng.choice((0.5, 0.9)), pause=0.1 if focus.hasty else 0.05, long_pause=0.05
        )
    scheduler = Scheduler(str(seed), chances)
    scheduler.log = [] if log else None
    disk = Disk(scheduler)
    weather = weather_of(rng)
    if focus.faults is not None:
        weather = Weather(dict(focus.faults))
    far = rng.random() < 0.5 and not focus.hasty
    store = SimulatedStore(
        disk,
        weather,
        f"sim+simulation://{seed}",
        OBJECT_STORE if far else None,
        creates=mode in {"create", "external and create"},
        late_manifests=mode != "lock",
    )
    disk.is_external = mode.startswith("external")
    opened = (
        ExternalStore(store, SimulatedManifests(store), store.uri) if disk.is_external else store
    )
    registry.register("simulation", lambda _uri, _options: opened)
    seams.become(Founder(scheduler))
    locks = Locks(scheduler, patient=rng.random() < 0.5) if mode == "lock" else None
    columns = ("id", "v") if rng.random() < 0.7 else ("id", "v", "w")
    v2, stable = rng.random() < 0.75 and not focus.migrates, rng.random() < 0.5
    pennon.write_dataset(
        table_of(INITIAL_IDS, 0, columns),
        store.uri,
        max_rows_per_file=3,
        data_storage_version="2.0",
        enable_v2_manifest_paths=v2,
        enable_stable_row_ids=stable,
        commit_lock=locks,
    )
    cleans, migrates = rng.random() < 0.5, not v2 and (rng.random() < 0.5 or focus.migrates is True)
    is_late = Fault.LATE in weather.faults or Fault.DIE_LATE in weather.faults
    # else a manifest could be put back that was cleaned up
    hasty = not far and store.creates and not is_late
    maker = Maker(rng, cleans=cleans if focus.cleans is None else focus.cleans, hasty=hasty)
    plays = scripts(rng, maker, focus, migrates=migrates, names=store.creates)
    disk.before_delete.append(Watch(disk).deleted)
    told = Acknowledged()
    for script in plays:
        work = perform(script, Client(store.uri, locks), disk, told)
        scheduler.add(script.name, script.skew, work)
    seams.become(None)
    scheduler.run()
    operations = [operation for script in plays for operation in script.operations]
    try:
        operations.append(_go_on(store, locks, maker, disk))
        wrongs = Checker(
            disk, store, operations, stable, is_calm=not weather.faults and not weather.reads
        ).check()
    except LanceError as error:
        wrongs = [*disk.wrongs, f"the table is beyond use: {type(error).__name__}: {error}"]
    finally:
        seams.become(None)
    return Run(
        seed, mode, scheduler.trace, scheduler.steps, wrongs, operations, plays, scheduler.log or []
    )


def _go_on(store: SimulatedStore, locks: Locks | None, maker: Maker, disk: Disk) -> Operation:
    """Append once more, where nothing fails: no repair is needed whatever happened."""
    last = Append(ids=maker.new_ids())
    client = Client(store.uri, locks)
    store.weather = CALM
    last.begun = disk.newest()
    last.base = last.begun

    seams.become(Founder(disk.scheduler, last))
    dataset = client.open()
    if dataset.version != last.begun:
        disk.wrongs.append(f"{last.begun} was committed last, but {dataset.version} is opened")
    last.run(client, dataset)
    last.outcome, last.ended = "acknowledged", disk.newest()
    return last
