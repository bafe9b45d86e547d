"""A search for versions without listing files: a plain web server says only whether a file is there.

Versions follow one another without gaps, but for old ones that were cleaned up.  So there is a last
one behind any that exists, and twice as far each time, then half as far, finds it:

    known   1    2    4    8   16        there
                                  32     not there
                                24  28  26  27

The search begins at what the hint file says, if the table has one that tells the truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from pennon.errors import LanceError, NotFoundError
from pennon.io.store import Opens
from pennon.table.naming import HINT, MAX_VERSION, Naming


def find_newest(store: Opens) -> tuple[Naming, int] | None:
    """Return the naming scheme and the number of the newest version; None if none was found."""
    for start in dict.fromkeys([_hinted(store), 1]):
        naming = naming_of(store, start)
        if naming is not None:
            return naming, _last(start, partial(exists, store, naming))
    return None


def naming_of(store: Opens, version: int) -> Naming | None:
    """Return the scheme under which a version is there; None if it is not."""
    schemes = (Naming.V2, Naming.V1)
    return next((naming for naming in schemes if exists(store, naming, version)), None)


def exists(store: Opens, naming: Naming, version: int) -> bool:
    """Ask for the manifest of a version."""
    try:
        store.open(naming.manifest_path(version))
    except NotFoundError:
        return False
    return True


def _hinted(store: Opens) -> int:
    """Return the version that the hint file names; 1 if it names none."""
    try:
        hint = json.loads(store.read_whole(HINT).to_pybytes())
    except (LanceError, ValueError, RecursionError):
        return 1
    version = hint.get("version") if isinstance(hint, dict) else None
    return version if isinstance(version, int) and 0 < version <= MAX_VERSION else 1


def _last(known: int, is_there: Callable[[int], bool]) -> int:
    """Return the last version, given one that is there."""
    step = 1
    while known + step <= MAX_VERSION and is_there(known + step):
        known, step = known + step, 2 * step
    while step > 1:
        step //= 2
        if known + step <= MAX_VERSION and is_there(known + step):
            known += step
    return known
