"""Names of ``lance.tracing``: the log messages of Pennon as events, and as a trace for Chrome or Perfetto.

Pennon has no spans: an event is a message of a logger (`pennon.core.loggers`), at the time of the message.
"""

from __future__ import annotations

import atexit
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pennon.as_lance.modules import PYLANCE_RELEASE
from pennon.log import LOGGER

__all__ = ["TraceEvent", "capture_trace_events", "shutdown_tracing", "trace_to_chrome"]


@dataclass(frozen=True)
class TraceEvent:
    """A message: the logger, and a dict of the text, level, time and version."""

    target: str
    args: dict[str, str]


class _Events(logging.Handler):
    """Calls a function with each message as an event."""

    def __init__(self, callback: Callable[[TraceEvent], None]) -> None:
        super().__init__(logging.DEBUG)
        self._callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function; what it raises is shown as errors of handlers are."""
        args = {
            "message": record.getMessage(),
            "level": record.levelname,
            "timestamp": str(record.created),
            "client_version": PYLANCE_RELEASE,
        }
        try:
            self._callback(TraceEvent(record.name, args))
        except Exception:  # noqa: BLE001 - whatever the function raises
            self.handleError(record)


class _ChromeTrace(logging.Handler):
    """Writes each message to a file as an event of Chrome's trace format."""

    def __init__(self, file: Path) -> None:
        super().__init__(logging.DEBUG)
        self._stream = file.open("w", encoding="utf-8")
        self._stream.write("[")
        self._separator = "\n"

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message as an instant."""
        event = {
            "name": record.getMessage(),
            "cat": record.name,
            "ph": "i",
            "ts": record.created * 1e6,
            "pid": record.process,
            "tid": record.thread,
            "s": "t",
        }
        self._stream.write(self._separator + json.dumps(event))
        self._separator = ",\n"

    def close(self) -> None:
        """Finish the file."""
        if not self._stream.closed:
            self._stream.write("\n]\n")
            self._stream.close()
        super().close()


def trace_to_chrome(*, file: str | None = None) -> None:
    """Write messages from now on to a file that ``chrome://tracing`` and Perfetto open.

    ``file``: by default ``./trace-{microseconds since 1970}.json``.  It is complete when the process ends, or
    after `shutdown_tracing`.  Levels are those of ``LANCE_LOG``.
    """
    path = Path(file) if file else Path(f"trace-{time.time_ns() // 1000}.json")
    _add(_ChromeTrace(path))


def capture_trace_events(callback: Callable[[TraceEvent], None]) -> None:
    """Call a function with each message from now on, in the thread of the message.

    Levels are those of ``LANCE_LOG``, by default INFO.
    """
    _add(_Events(callback))


def shutdown_tracing() -> None:
    """End all traces, and finish their files."""
    for handler in [each for each in LOGGER.handlers if isinstance(each, (_Events, _ChromeTrace))]:
        LOGGER.removeHandler(handler)
        handler.close()


def _add(handler: logging.Handler) -> None:
    LOGGER.addHandler(handler)
    atexit.register(handler.close)
