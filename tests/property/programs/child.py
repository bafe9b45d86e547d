"""The process that runs pylance, seen from here: started when it is needed, and again when it died."""

from __future__ import annotations

import base64
import pickle
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.oracle import NEWEST, Oracle, OracleError

MOST_SECONDS = 60.0


class Pylance:
    """pylance 14.0.2 in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._oracle: Oracle | None = None
        self._line = ThreadPoolExecutor(1)  # calls wait for each other here, not their callers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.shutdown()
        if self._oracle is not None:
            self._oracle.close()
            self._oracle = None

    def call(self, name: str, *positional: Any, **named: Any) -> Any:
        """Call a method of the child; raises OracleError if it fails, or dies."""
        return self.begin(name, *positional, **named).result()

    def begin(self, name: str, *positional: Any, **named: Any) -> Future[Any]:
        """Begin such a call, behind those that were begun before: both processes work then."""
        return self._line.submit(self._call, name, positional, named)

    def _call(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._oracle is None:
            module = "tests.property.programs.pylance_child"
            self._oracle = Oracle.start(NEWEST, self._folder, module)
        sent = base64.b64encode(pickle.dumps((name, positional, named))).decode()
        watch = threading.Timer(MOST_SECONDS, self._oracle.process.kill)
        watch.start()
        try:
            return pickle.loads(base64.b64decode(self._oracle.call("program", call=sent)))
        except OracleError as error:
            if error.kind == "Died":
                self._oracle = None
            raise
        finally:
            watch.cancel()
