"""Run Delta's tests of its table with `LanceTable` in its place: ``python -m tests.delta FILE``.

FILE is Delta's ``python/delta/tests/test_deltatable.py``, which is no part of this tree.  Each test must
do what `tests.delta.changes` says of it: pass as it is, pass with changes, or fail for the reason that it
is left out for.  A test that is not known there fails the run.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennon.errors import LanceError
from pennon.spark import activate
from tests.delta.case import DeltaTestCase, install
from tests.delta.changes import EVERYWHERE, TESTS, LeftOut

PAGE = Path(__file__).parents[2] / "docs" / "delta.md"
START, END = "<!-- written by make delta-suite -->\n", "<!-- end -->\n"
_HEAD = "class DeltaTableTestsMixin:\n"
_NAME = re.compile(r"def (\w+)\(")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test was found to do: nothing failed, or the traceback and the words of what it failed with."""

    name: str
    failure: str | None
    words: str = ""

    def fault(self) -> str | None:
        """Return what is not as `TESTS` says, if anything is."""
        said = TESTS.get(self.name)
        if said is None:
            return "tests.delta.changes does not know it"
        if not isinstance(said, LeftOut):
            return self.failure
        if self.failure is None:
            return f"it passes, though it is left out: {said.why}"
        found = re.search(said.error, self.words)
        return None if found else f"it fails for another reason than {said.why}: {self.failure}"


class Suite:
    """Delta's file, cut into what comes before the tests, helpers and tests."""

    def __init__(self, text: str) -> None:
        """Cut the text; tests that Delta's file has, by mistake, within another one are taken out."""
        text = EVERYWHERE.applied(text)
        head, found, rest = text.partition(_HEAD)
        if not found:
            message = f"no {_HEAD.strip()} in the file: is it Delta's test_deltatable.py?"
            raise ValueError(message)
        body, _, _ = rest.partition("\nclass ")
        self.head = head
        self.helpers: dict[str, str] = {}
        self.tests: dict[str, str] = {}
        for part in _methods(body):
            name = _NAME.search(part)
            if name is None:
                continue
            kind = self.tests if name[1].startswith("test_") else self.helpers
            kind[name[1]] = part

    def case(self, name: str) -> type[unittest.TestCase]:
        """Return a class with one test alone, and with what it calls, changed as `TESTS` says."""
        said = TESTS.get(name, ())
        changes = said.changes if isinstance(said, LeftOut) else said
        body = "".join(self._called(self.tests[name])) + self.tests[name]
        for change in changes:
            body = change.applied(body)
        space: dict[str, object] = {"activate": activate, "LanceError": LanceError}
        source = f"{self.head}\nclass Case(DeltaTestCase):\n{body}"
        exec(compile(source, f"<{name}>", "exec"), space)
        made = space["Case"]
        assert isinstance(made, type)
        assert issubclass(made, DeltaTestCase)
        return made

    def _called(self, text: str) -> list[str]:
        """Return the helpers that a text calls, and those that these call."""
        found: dict[str, str] = {}
        left = [text]
        while left:
            now = left.pop()
            for name, helper in self.helpers.items():
                if name not in found and f"self.{name}(" in now:
                    found[name] = helper
                    left.append(helper)
        return list(found.values())


def _methods(body: str) -> Iterator[str]:
    """Yield the methods of a class, those within others as if they stood beside them."""
    lines = body.splitlines(keepends=True)
    starts = [
        n for n, line in enumerate(lines) if re.match(r"(?:    |        )def (?:test_|_)", line)
    ]
    for first, after in zip(starts, [*starts[1:], len(lines)], strict=True):
        part = textwrap.dedent("".join(lines[first:after]))
        yield textwrap.indent(part, "    ")


class Failures(unittest.TestResult):
    """Keeps what was raised beside the traceback; a skipped test has not passed either."""

    found: tuple[str, str] | None = None

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        """See `unittest.TestResult`."""
        super().addError(test, err)
        self._keep(self.errors[-1][1], err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        """See `unittest.TestResult`."""
        super().addFailure(test, err)
        self._keep(self.failures[-1][1], err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """See `unittest.TestResult`."""
        super().addSkip(test, reason)
        self.found = f"skipped: {reason}", reason

    def _keep(self, traceback: str, err: Any) -> None:
        self.found = traceback.strip(), f"{err[0].__name__}: {err[1]}"


def outcome(suite: Suite, name: str) -> Outcome:
    """Run one test."""
    result = Failures()
    try:
        unittest.TestSuite([suite.case(name)(name)]).run(result)
    except ValueError as error:
        return Outcome(name, str(error))
    return Outcome(name, *(result.found or (None,)))


def table_of_tests() -> str:
    """Return the table of the page: each test, and what is done with it."""
    lines = ["| test | here |\n|---|---|\n"]
    for name, said in TESTS.items():
        if isinstance(said, LeftOut):
            what = f"left out: {said.why}"
        else:
            what = "; ".join(dict.fromkeys(change.why for change in said)) or "as it is"
        lines.append(f"| `{name}` | {what} |\n")
    return "".join(lines)


def main() -> int:
    """Run the tests, say what became of each, and write the page if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="Delta's test_deltatable.py")
    parser.add_argument("-k", dest="name", default="", help="only tests whose names contain this")
    parser.add_argument("--page", action="store_true", help=f"write the table of {PAGE.name}")
    asked = parser.parse_args()
    install()
    suite = Suite(asked.file.read_text(encoding="utf-8"))
    names = [name for name in suite.tests if asked.name in name]
    faults = [f"{name}: Delta has no such test" for name in TESTS.keys() - suite.tests.keys()]
    passed: list[str] = []
    for name in names:
        found = outcome(suite, name)
        fault = found.fault()
        said = TESTS.get(name, ())
        state = "left out" if isinstance(said, LeftOut) else "with changes" if said else "as it is"
        print(f"{name}: {'NOT ' if fault else ''}{state}", flush=True)
        if fault:
            faults.append(f"{name}: {fault}")
        else:
            passed.append(state)
    counts = ", ".join(f"{passed.count(state)} {state}" for state in dict.fromkeys(passed))
    print(f"{len(names)} tests: {counts}; {len(faults)} not as tests/delta/changes.py says")
    print("\n\n".join(faults))
    if asked.page and not faults:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{START}{table_of_tests()}{END}{after}", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
