"""Checks for the end of the interpreter, when threads can no longer be started.

After `atexit`'s functions Python takes ``sys.meta_path`` away and empties ``sys.modules``: from then on
nothing is imported, not even what was imported before, and pyarrow ends the process where it tries. An
object's ``__del__`` may still run. What reads or changes a table imports some of its parts only when
they are needed, so there it would work or fail by what ran before.
"""

from __future__ import annotations

import sys

from pennon.errors import InterpreterEndError


def check_imports_work() -> None:
    """Raise InterpreterEndError if Python imports nothing any more."""
    if getattr(sys, "meta_path", None) is None:
        message = (
            "Python has ended so far that it imports nothing any more, so that no table can be opened, read"
            " or changed; do it before: in a with block, or in a function that atexit calls, not in __del__"
        )
        raise InterpreterEndError(message)
