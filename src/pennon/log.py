"""Log messages of Pennon, with the names of ``lance.log``.

The loggers are ``pennon.commit``, ``pennon.io``, ``pennon.scan`` and ``pennon.maintenance``
(`pennon.core.loggers` says what each of them logs).  A program configures them with `logging`, with
`set_logger`, or by its environment:

- ``LANCE_LOG``: a level, such as ``info``, and levels of single loggers: ``info,pennon.scan=debug``.
  Messages go to the standard error output.
- ``LANCE_LOG_FILE``: a file that they go to instead; its folder is created.
- ``LANCE_LOG_TS_PRECISION``: digits of the time: ``s``, ``ms`` (the default), ``us`` or ``ns``.

Without either of the first two, nothing is configured.

>>> import logging
>>> import pennon.log
>>> pennon.log.LOGGER is logging.getLogger("pennon")
True
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

__all__ = ["ENV_NAME_PYLANCE_LOGGING_LEVEL", "LOGGER", "get_log_level", "set_logger"]

ENV_NAME_PYLANCE_LOGGING_LEVEL: Final = "LANCE_LOG"
"""The environment variable that has the level."""
_FILE: Final = "LANCE_LOG_FILE"
_PRECISION: Final = "LANCE_LOG_TS_PRECISION"
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_PYTHON_LEVELS: Final = {"TRACE": "DEBUG", "WARN": "WARNING", "OFF": "CRITICAL"}
_LEVELS: Final = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
_FORMAT: Final = (
    "%(asctime)s %(name)s [%(levelname)s] %(filename)s:%(lineno)d %(funcName)s : %(message)s"
)


def get_log_level() -> str:
    """Return the level that ``LANCE_LOG`` gives all loggers, in Python's words: "INFO" if it gives none.

    >>> import pennon.log
    >>> pennon.log.get_log_level()
    'INFO'
    """
    level, _ = _parse(os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, ""))
    return level


def set_logger(
    file_path: str | None = "pennon.log",
    name: str = "pennon",
    level: int | str = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Send the messages of a logger to a file, or to a handler of `logging`.

    ``name``: the logger, such as ``"pennon.commit"``.  ``level``: messages below it are dropped.
    ``format_string``: as `logging.Formatter` takes it.  Raises OSError if the file cannot be written,
    ValueError for an unknown level.

    >>> import logging
    >>> import pennon.log
    >>> pennon.log.set_logger(name="pennon.example", level="DEBUG", log_handler=logging.NullHandler())
    >>> logging.getLogger("pennon.example").handlers
    [<NullHandler (DEBUG)>]
    """
    handler = log_handler or logging.FileHandler(file_path or "pennon.log")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.addHandler(handler)


def _parse(text: str) -> tuple[str, dict[str, str]]:
    """Return the level for all loggers, and the levels of single ones, of a text such as "info,pennon.io=debug"."""
    general, single = "INFO", {}
    is_given = False
    for entry in text.split(","):
        name, equals, level = entry.strip().rpartition("=")
        known = _PYTHON_LEVELS.get(level.strip().upper(), level.strip().upper())
        if known not in _LEVELS:
            continue
        if equals:
            single[name.strip()] = known
        elif not is_given:
            general, is_given = known, True
    return general, single


class _TimedFormatter(logging.Formatter):
    """Formats a message as ``[2026-11-29T06:30:00.123Z INFO pennon.commit] message``."""

    def __init__(self, precision: str) -> None:
        super().__init__("[%(asctime)s %(levelname)s %(name)s] %(message)s")
        self._digits = _DIGITS.get(precision, 3)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Return the time of a record, in UTC."""
        del datefmt
        begin = datetime.fromtimestamp(record.created, UTC)
        text = begin.strftime("%Y-%m-%dT%H:%M:%S")
        fraction = f"{begin.microsecond:06d}000"[: self._digits]
        return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def _configure() -> None:
    """Set levels and a handler as the environment asks."""
    asked = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "")
    file = os.environ.get(_FILE, "")
    general, single = _parse(asked)
    LOGGER.setLevel(general)
    for name, level in single.items():
        if name == "pennon" or name.startswith("pennon."):
            logging.getLogger(name).setLevel(level)
    if asked or file:
        handler = _file_handler(file) if file else logging.StreamHandler()
        handler.setFormatter(_TimedFormatter(os.environ.get(_PRECISION, "ms")))
        LOGGER.addHandler(handler)


def _file_handler(file: str) -> logging.Handler:
    """Return a handler that writes to a file; one for the error output if the file cannot be written."""
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        return logging.FileHandler(file)
    except OSError as error:
        sys.stderr.write(f"pennon: {_FILE}={file!r} cannot be written ({error}); logging here\n")
        return logging.StreamHandler()


LOGGER: Final = logging.getLogger("pennon")
"""The logger above all of Pennon's."""
_configure()
