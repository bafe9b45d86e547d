"""Values that the files of a write cannot hold: counted, for one warning.

Only version 0.1 has such losses (`pennon.file.v0_1.losses`).  A job has many writers, on many
threads, and warns once of all that they lose.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pennon.errors import DataLossWarning

NULLS = "NULLs"
EMPTY = "empty values"
_READ_BACK = {
    NULLS: "NULLs read back as zeros, empty lists, first values of dictionaries, or what lies under them",
    EMPTY: "empty values as NULL",
}


@dataclass(slots=True)
class Losses:
    """The number of lost values by path and cause."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, path: str, what: str, rows: int) -> None:
        """Count rows of a column that lose something."""
        if rows:
            self.counts[path, what] = self.counts.get((path, what), 0) + rows

    def add(self, other: Losses) -> None:
        """Add counts from another thread."""
        with self._lock:
            for (path, what), rows in other.counts.items():
                self.count(path, what, rows)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Let what `warn` would tell in this thread be counted here, for one warning of all."""
        token = _gathering.set(self)
        try:
            yield
        finally:
            _gathering.reset(token)

    def warn(self) -> None:
        """Warn (DataLossWarning) if anything is lost, unless that is `gathered`."""
        whole = _gathering.get()
        if whole is not None:
            whole.add(self)
            return
        message = self.message()
        if message is not None:
            warnings.warn(message, DataLossWarning, stacklevel=3)

    def message(self) -> str | None:
        """Return the text of the warning, None if nothing is lost."""
        if not self.counts:
            return None
        each = (f"{path!r}: {count} {what}" for (path, what), count in self.counts.items())
        kinds = {what for _, what in self.counts}
        meaning = ", ".join(text for what, text in _READ_BACK.items() if what in kinds)
        return f"file version 0.1 does not hold all of these columns: {'; '.join(each)} ({meaning})"


_gathering: ContextVar[Losses | None] = ContextVar("gathering", default=None)
