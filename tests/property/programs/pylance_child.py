"""pylance, as a process that does steps of random programs.

Steps and answers are pickles in text, for they hold dates, bytes and tables.
"""

from __future__ import annotations

import base64
import pickle
from typing import Any

import lance

from tests.interop import oracle_server
from tests.property.programs import steps


class Child:
    """The handles of one program."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self.seen: Any = None

    def clear(self) -> None:
        """Begin another program."""
        self.held = {}
        self.seen = None

    def create(self, uri: str, dimensions: steps.Dimensions, step: steps.Step) -> None:
        """Make the table."""
        steps.create(lance, uri, dimensions, step)

    def hold(self, uri: str, line: str | None, number: int) -> None:
        """Open a handle and keep it."""
        self.held[number] = steps.open_line(lance, uri, line)

    def do(self, uri: str, step: steps.Step) -> Any:
        """Do a step."""
        if step.handle is None:
            dataset = steps.open_line(lance, uri, step.line)
        else:
            dataset = self.held.pop(step.handle)
        return steps.execute(dataset, step)

    def look(self, uri: str, line: str | None, *, stable: bool) -> Any:
        """Look at the newest version of a line."""
        self.seen = steps.open_line(lance, uri, line)
        return steps.look(self.seen, stable=stable)

    def ask(self, queries: list[Any]) -> list[Any]:
        """Answer queries of the version that was looked at last; errors are answers, too."""
        return [self._answer(query) for query in queries]

    def _answer(self, query: Any) -> Any:
        try:
            return steps.ask(self.seen, query)
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            return f"{type(error).__name__}: {error}"

    def rows_at(self, uri: str, point: Any) -> Any:
        """Return the rows of a version: of a branch, or of a tag."""
        return lance.dataset(uri).checkout_version(point).to_table()


CHILD = Child()


def program(call: str) -> str:
    """Do one call: the name of a method of `Child`, and arguments."""
    name, positional, named = pickle.loads(base64.b64decode(call))
    answer = getattr(CHILD, name)(*positional, **named)
    return base64.b64encode(pickle.dumps(answer)).decode()


if __name__ == "__main__":
    operations: dict[str, Any] = oracle_server.OPERATIONS
    operations["program"] = program
    oracle_server.main()
