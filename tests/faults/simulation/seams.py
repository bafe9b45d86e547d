"""Virtual time, randomness and threads of a simulated actor.

Whoever is no actor (the checker, pytest) has the real ones all the while.  Pennon binds clocks as defaults
of arguments and fields, so those are found in its modules and replaced; that needs no seam in `src`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from types import FunctionType
from typing import Any, Protocol
from unittest.mock import patch

import pennon
from pennon.core import thread_pools as threads
from pennon.table.commit.clock import SYSTEM_CLOCK

_LEFT_OUT = ("pennon.cli", "pennon.spark", "pennon.proto")


class Virtual(Protocol):
    """What an actor has in place of the machine."""

    def time(self) -> float:
        """Return the seconds since 1970 by this actor's clock."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let others go on until some time has passed."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that the seed determines."""
        ...


_mine = threading.local()
_REAL = {name: getattr(time, name) for name in ("time", "time_ns", "monotonic", "sleep")}
_REAL_URANDOM = os.urandom


def become(actor: Virtual | None) -> None:
    """Make this thread that of an actor, or of nobody."""
    _mine.actor = actor


def current() -> Virtual | None:
    """Return the actor whose thread this is."""
    return getattr(_mine, "actor", None)


def _time() -> float:
    actor = current()
    return float(_REAL["time"]()) if actor is None else actor.time()


def _time_ns() -> int:
    actor = current()
    return int(_REAL["time_ns"]()) if actor is None else int(actor.time() * 10**9)


def _monotonic() -> float:
    actor = current()
    return float(_REAL["monotonic"]()) if actor is None else actor.monotonic()


def _sleep(seconds: float) -> None:
    actor = current()
    if actor is None:
        _REAL["sleep"](seconds)
    else:
        actor.sleep(seconds)


def _urandom(count: int) -> bytes:
    actor = current()
    return _REAL_URANDOM(count) if actor is None else actor.random_bytes(count)


_VIRTUAL: dict[str, Callable[..., Any]] = {
    "time": _time,
    "time_ns": _time_ns,
    "monotonic": _monotonic,
    "sleep": _sleep,
}
_REPLACED = {real: _VIRTUAL[name] for name, real in _REAL.items()}


class InlinePool:
    """A thread pool that has no threads: work is done when it is handed in."""

    def __init__(self, *_: object) -> None:
        """Take what a pool takes."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Do the work now; a dead actor's end is not kept for later."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 - as a pool does
            future.set_exception(error)
        return future


@contextlib.contextmanager
def virtual() -> Iterator[None]:
    """Make all of it virtual, as long as this goes on."""
    with ExitStack() as stack:
        for name, replacement in _VIRTUAL.items():
            stack.enter_context(patch.object(time, name, replacement))
        stack.enter_context(patch.object(os, "urandom", _urandom))
        stack.enter_context(patch.object(random, "_urandom", _urandom))
        stack.enter_context(patch.object(threads, "Workers", InlinePool))
        stack.enter_context(patch.dict(threads._pools, clear=True))
        stack.callback(random.setstate, random.getstate())
        for undo in (*_rebind(), *_rebind_clock()):
            stack.callback(undo)
        yield


def _rebind_clock() -> Iterator[Callable[[], None]]:
    """Replace the clock that commits go by; yield what undoes it."""
    for field in fields(SYSTEM_CLOCK):
        real = getattr(SYSTEM_CLOCK, field.name)
        if _is_clock(real):
            object.__setattr__(SYSTEM_CLOCK, field.name, _REPLACED[real])
            yield partial(object.__setattr__, SYSTEM_CLOCK, field.name, real)


def _rebind() -> list[Callable[[], None]]:
    """Replace the clocks that Pennon's functions have as defaults; return what undoes it."""
    undo: list[Callable[[], None]] = []
    for module in _modules():
        for value in list(vars(module).values()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if isinstance(value, FunctionType):
                undo += _rebind_function(value)
            elif isinstance(value, type):
                for made in list(vars(value).values()):
                    if isinstance(made, FunctionType):
                        undo += _rebind_function(made)
    return undo


def _modules() -> list[Any]:
    """Return all modules of Pennon that take part, loaded: later ones would have the real clock."""
    for found in pkgutil.walk_packages(pennon.__path__, "pennon.", lambda _: None):
        if not found.name.startswith(_LEFT_OUT):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("pennon.")]


def _is_clock(value: object) -> bool:
    return any(value is real for real in _REPLACED)


def _rebind_function(function: FunctionType) -> Iterator[Callable[[], None]]:
    if any(map(_is_clock, function.__defaults__ or ())):
        old = function.__defaults__ or ()
        function.__defaults__ = tuple(_REPLACED[x] if _is_clock(x) else x for x in old)
        yield partial(setattr, function, "__defaults__", old)
    if any(map(_is_clock, (function.__kwdefaults__ or {}).values())):
        named = function.__kwdefaults__ or {}
        function.__kwdefaults__ = {k: _REPLACED[x] if _is_clock(x) else x for k, x in named.items()}
        yield partial(setattr, function, "__kwdefaults__", named)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            held = cell.cell_contents
            if _is_clock(held):
                cell.cell_contents = _REPLACED[held]
                yield partial(setattr, cell, "cell_contents", held)
    if (
        function.__name__ == "__init__"
    ):  # a dataclass's, of `pennon.core.fast_dataclass` or the standard library
        for name, held in list(function.__globals__.items()):
            if _is_clock(held) and name.startswith(("make_", "default_", "_dflt_")):
                function.__globals__[name] = _REPLACED[held]
                yield partial(function.__globals__.__setitem__, name, held)
