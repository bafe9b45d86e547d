"""Running random programs, and making those that fail small."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.property.programs.child import Pylance
from tests.property.programs.generate import Generator
from tests.property.programs.kinds import FILE_VERSIONS
from tests.property.programs.lines import DisagreementError
from tests.property.programs.model import NotApplicableError
from tests.property.programs.steps import Dimensions, Step
from tests.property.programs.world import World

SHRINK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """What was run, all of it."""

    seed: int
    dimensions: Dimensions
    steps: tuple[Step, ...]

    def script(self) -> str:
        """Return the program as a script."""
        lines = [
            "import datetime",
            "from decimal import Decimal",
            "from tests.property.programs.runner import replay",
            "from tests.property.programs.steps import Dimensions, Step",
            "",
            "steps = [",
            *(f"    {step!r}," for step in self.steps),
            "]",
            f"replay({self.dimensions!r}, steps, seed={self.seed})",
        ]
        return "\n".join(lines)


class ProgramFailedError(AssertionError):
    """A program failed; the message has the smallest one that fails so, as a script."""


@dataclass(slots=True)
class Runner:
    """Runs programs one after another, each in a folder of its own."""

    folder: Path
    pylance: Pylance
    generator: type[Generator] = Generator
    done: Counter[str] = field(default_factory=Counter)
    _runs: int = 0

    def run_seed(self, seed: int, versions: Sequence[str] = FILE_VERSIONS) -> None:
        """Run the program of a seed; raises ProgramFailedError."""
        failure = self.failure_of_seed(seed, versions)
        if failure is None:
            return
        program, error = failure
        small, said = self.shrink(program, error)
        message = (
            f"PENNON_PROGRAM_SEED={seed} PENNON_PROGRAM_VERSIONS={','.join(versions)}: {said}\n\n"
            f"The smallest program that fails so ({len(small.steps)} of {len(program.steps)} "
            f"steps):\n\n{small.script()}\n"
        )
        raise ProgramFailedError(message) from error

    def failure_of_seed(
        self, seed: int, versions: Sequence[str] = FILE_VERSIONS
    ) -> tuple[Program, DisagreementError] | None:
        """Run the program of a seed; returns what was run, and how it failed."""
        rng = Random(seed)
        generator = self.generator(rng)
        dimensions = generator.dimensions(versions)
        length = round(rng.triangular(*generator.length))
        steps: list[Step] = []

        def draw(world: World) -> Iterator[Step]:
            yield generator.create(dimensions)
            for _ in range(length - 1):
                step = generator.propose(world.surroundings())
                if step is not None:
                    yield step

        error = self._run(dimensions, seed, draw, steps)
        self.done[f"{dimensions.version} {dimensions.stable} {dimensions.naming}"] += 1
        return None if error is None else (Program(seed, dimensions, tuple(steps)), error)

    def _run(
        self,
        dimensions: Dimensions,
        seed: int,
        draw: Callable[[World], Iterator[Step]],
        steps: list[Step],
    ) -> DisagreementError | None:
        """Run steps; ``steps`` gets those that were done."""
        self._runs += 1
        folder = self.folder / f"{self._runs}"
        self.pylance.call("clear")
        world = World(str(folder / "t.lance"), dimensions, self.pylance, Random(seed))
        try:
            for step in draw(world):
                steps.append(step)
                try:
                    steps[-1] = world.run(step)
                except NotApplicableError:
                    steps.pop()
            if world.lines:
                world.check_old_versions()
        except DisagreementError as error:
            return error
        finally:
            self.done.update(world.done)
            shutil.rmtree(folder, ignore_errors=True)
        return None

    # --- making programs small --------------------------------------------------------------------

    def again(self, program: Program) -> tuple[Program, DisagreementError] | None:
        """Run a program once more; returns those of its steps that were done, and the failure."""
        steps: list[Step] = []
        error = self._run(program.dimensions, program.seed, lambda _: iter(program.steps), steps)
        return None if error is None else (replace(program, steps=tuple(steps)), error)

    def shrink(
        self, program: Program, error: DisagreementError
    ) -> tuple[Program, DisagreementError]:
        """Return a small program that fails in the same way."""
        until = time.monotonic() + SHRINK_SECONDS
        progress = True
        while progress:
            progress = False
            for smaller in _smaller(program):
                if time.monotonic() > until:
                    return program, error
                found = self.again(smaller)
                if found is not None and found[1].kind == error.kind:
                    program, error = found
                    progress = True
                    break
        return program, error


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs with less in them, the smallest first."""
    steps = program.steps
    size = len(steps) // 2
    while size:
        for start in range(1, len(steps), size):
            yield replace(program, steps=steps[:start] + steps[start + size :])
        size //= 2
    for at, step in enumerate(steps):
        for simpler in _simpler(step):
            yield replace(program, steps=(*steps[:at], simpler, *steps[at + 1 :]))


def _simpler(step: Step) -> Iterator[Step]:
    """Yield steps that are simpler: by Pennon, with fewer rows, fewer columns."""
    if step.library == "pylance":
        yield replace(step, library="pennon")
    if step.handle is not None:
        yield replace(step, handle=None)
    args = step.args
    rows = args.get("rows", ())
    for half in (rows[len(rows) // 2 :], rows[: len(rows) // 2]):
        if 0 < len(half) < len(rows) and step.op != "add_data":
            yield replace(step, args={**args, "rows": half, "cuts": ()})
    columns = args.get("columns", ())
    if not rows:
        return
    for at, column in enumerate(columns):
        if column[0] != "k" and len(columns) > 1:
            fewer = {
                "columns": columns[:at] + columns[at + 1 :],
                "rows": tuple(row[:at] + row[at + 1 :] for row in rows),
            }
            yield replace(step, args={**args, **fewer})


def replay(dimensions: Dimensions, steps: Sequence[Step], seed: int = 0) -> None:
    """Run a program that was printed; raises DisagreementError."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, Pylance(Path(folder)) as pylance:
        found = Runner(Path(folder), pylance).again(Program(seed, dimensions, tuple(steps)))
    if found is not None:
        raise found[1]
    print("no disagreement")
