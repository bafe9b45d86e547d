"""The scheduler: one actor at a time, chosen by the seed at every request to the store.

An actor is a thread, because Pennon's code waits where it asks.  It holds the baton while it runs and hands it
on at each request, so no two ever run at once, and the seed alone decides the order.
"""

from __future__ import annotations

import hashlib
import heapq
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.faults.simulation import seams

EPOCH = 1_800_000_000.0
_MOST_STEPS = 30_000
_BATON_SECONDS = 120.0


class Crashed(BaseException):
    """The actor is dead: not even its clean-up code reaches the store."""


class StuckError(AssertionError):
    """The run does not come to an end."""


@dataclass(frozen=True)
class Chances:
    """How likely the scheduler does what, at each step."""

    stay: float = 0.0
    """That the same actor goes on."""
    pause: float = 0.0
    long_pause: float = 0.0
    crash: float = 0.0


@dataclass(eq=False)
class Actor:
    """One client: a name, a clock that is wrong by ``skew`` seconds, and what it does."""

    name: str
    skew: float
    work: Callable[[Actor], None]
    scheduler: Scheduler = field(repr=False)
    baton: threading.Lock = field(default_factory=threading.Lock, repr=False)
    wake: float = 0.0
    is_dead: bool = False
    is_done: bool = False
    doing: object = None
    """The operation that it is about."""

    def time(self) -> float:
        """Return the seconds since 1970 by this actor's clock."""
        return EPOCH + self.scheduler.now + self.skew

    def monotonic(self) -> float:
        """Return the seconds since the start of the run."""
        return self.scheduler.now

    def sleep(self, seconds: float) -> None:
        """Let others go on until some time has passed."""
        self.scheduler.sleep(self, seconds)

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that the seed determines."""
        return self.scheduler.bytes.randbytes(count)


class Scheduler:
    """The clock, the order of turns, and the trace of a run."""

    def __init__(self, seed: str, chances: Chances) -> None:
        self.rng = random.Random(f"turns {seed}")
        self.bytes = random.Random(f"bytes {seed}")
        self.chances = chances
        self.now = 0.0
        self.actors: list[Actor] = []
        self.steps = 0
        self.crashes = 0
        self.log: list[str] | None = None
        self._digest = hashlib.blake2b(digest_size=16)
        self._late: list[tuple[float, int, Callable[[], object]]] = []
        self._main = threading.Lock()
        self._problem: BaseException | None = None

    def add(self, name: str, skew: float, work: Callable[[Actor], None]) -> Actor:
        """Add an actor."""
        actor = Actor(name, skew, work, self)
        self.actors.append(actor)
        return actor

    def run(self) -> None:
        """Let all go on until all are done."""
        alive = []
        for actor in self.actors:
            actor.baton.acquire()
            thread = threading.Thread(
                target=self._live, args=(actor,), name=actor.name, daemon=True
            )
            thread.start()
            alive.append(thread)
        self._main.acquire()
        self._hand_on(None)
        if not self._main.acquire(timeout=10 * _BATON_SECONDS):
            raise StuckError("nobody gave the baton back")
        self._main.release()
        for thread in alive:
            thread.join()
        if self._problem is not None:
            raise self._problem
        self._pass(float("inf"))

    def step(self, what: str, where: str, *, may_pause_long: bool = True) -> None:
        """Let others go on, and then this actor, unless it dies first."""
        actor = seams.current()
        if not isinstance(actor, Actor):
            return
        if actor.is_dead:
            raise Crashed
        self.note(f"{actor.name} {what} {where}")
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise StuckError(f"more than {_MOST_STEPS} steps")
        chances, draw = self.chances, self.rng.random()
        self._pass(self.now + self.rng.random() * 0.02)
        if draw < chances.crash:
            self.die(actor)
        draw -= chances.crash
        if draw < chances.pause:
            actor.wake = self.now + self.rng.choice((0.5, 5.0, 30.0, 700.0, 1500.0))
        elif may_pause_long and draw < chances.pause + chances.long_pause:
            actor.wake = self.now + self.rng.choice((2 * 3600.0, 8 * 86400.0, 20 * 86400.0))
        elif self.rng.random() < chances.stay:
            return
        self._give_turn(actor)

    def sleep(self, actor: Actor, seconds: float) -> None:
        """Let an actor sleep."""
        if actor.is_dead:
            raise Crashed
        actor.wake = self.now + max(seconds, 0.0)
        self.note(f"{actor.name} sleeps")
        self._give_turn(actor)

    def die(self, actor: Actor) -> None:
        """End an actor here and now."""
        self.note(f"{actor.name} dies")
        actor.is_dead = True
        self.crashes += 1
        raise Crashed

    def later(self, seconds: float, do: Callable[[], object]) -> None:
        """Do something when some time has passed, whoever's turn it is then."""
        heapq.heappush(self._late, (self.now + seconds, len(self._late) + self.steps, do))

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        self._digest.update(f"{self.now:.6f} {text}\n".encode())
        if self.log is not None:
            self.log.append(f"{self.now:12.3f} {text}")

    @property
    def trace(self) -> str:
        """Return what tells this run from others."""
        return self._digest.hexdigest()

    def _live(self, actor: Actor) -> None:
        self._wait(actor)
        seams.become(actor)
        try:
            actor.work(actor)
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001 - told by `run`
            self._problem = self._problem or error
        finally:
            seams.become(None)
            actor.is_done = True
            self._hand_on(None)

    def _wait(self, actor: Actor) -> None:
        if not actor.baton.acquire(timeout=_BATON_SECONDS):
            self._problem = StuckError(f"{actor.name} waited for its turn in vain")
            raise self._problem

    def _give_turn(self, actor: Actor) -> None:
        if self._hand_on(actor):
            self._wait(actor)

    def _hand_on(self, actor: Actor | None) -> bool:
        """Hand the baton on; return False if it stays with the same actor."""
        left = [each for each in self.actors if not each.is_done]
        if not left:
            self._main.release()
            return False
        ready = [each for each in left if each.wake <= self.now]
        if not ready:
            self._pass(min(each.wake for each in left))
            ready = [each for each in left if each.wake <= self.now]
        chosen = ready[self.rng.randrange(len(ready))]
        if chosen is actor:
            return False
        chosen.baton.release()
        return True

    def _pass(self, until: float) -> None:
        """Let time pass, and what was late happen."""
        while self._late and self._late[0][0] <= until:
            when, _, do = heapq.heappop(self._late)
            self.now = max(self.now, when)
            do()
        if until != float("inf"):
            self.now = max(self.now, until)
