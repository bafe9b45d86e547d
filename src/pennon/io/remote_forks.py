"""obstore in the child of a fork.

obstore does its I/O on threads of its own, which belong to the library as it was loaded.  Threads do
not survive a fork, so in a child the library that the parent used can do nothing but panic.  The
child loads it a second time, from a copy of its file, because the loader gives the same file only
once.  The copy has threads of its own; the parent's clients are of no use to it and are forgotten.

Source: ledger F-104.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType

from pennon.core.thread_pools import in_forked_child
from pennon.errors import StoreError

_LIBRARY = "obstore._obstore"
_CLIENTS = "pennon.io.remote_client"


class _Threads:
    """The state of obstore's threads in this process."""

    lock = threading.Lock()
    used = False
    lost = False


def _lose_threads() -> None:
    _Threads.lock = threading.Lock()
    _Threads.lost |= _Threads.used
    _Threads.used = False


in_forked_child(_lose_threads)


def use_obstore() -> None:
    """Make sure that obstore works in this process; to be called before anything is asked of it.

    Raises StoreError if the library cannot be loaded once more.
    """
    if _Threads.lost:
        with _Threads.lock:
            if _Threads.lost:
                _load_again()
                _Threads.lost = False
    _Threads.used = True


def _load_again() -> None:
    path = sys.modules[_LIBRARY].__file__ or ""
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        del sys.modules[name]
    sys.modules.pop(_CLIENTS, None)
    try:
        library = _load_copy(path)
    except (OSError, ImportError) as error:
        message = (
            "this process was forked after its parent had used a remote store, and obstore cannot"
            f" be loaded again ({error}); start processes by 'spawn' or 'forkserver'"
        )
        raise StoreError(message) from error
    library.__file__ = path
    sys.modules[_LIBRARY] = library


def _load_copy(path: str) -> ModuleType:
    """Return the library as a copy of its file, which is gone from disk when this returns."""
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:
        shutil.copyfile(path, copy.name)
        loader = ExtensionFileLoader(_LIBRARY, copy.name)
        library = module_from_spec(ModuleSpec(_LIBRARY, loader, origin=copy.name))
        loader.exec_module(library)
    return library
