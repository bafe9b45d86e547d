"""Examples in docstrings: who must have one, and how they run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield a class's public methods and properties that Pennon defines, with their names.

    Methods that only refuse are left out: their docstring begins with "Refuse".
    """
    for base in owner.__mro__:
        if not base.__module__.startswith("pennon."):
            continue
        for name, value in vars(base).items():
            kinds = (property, cached_property, staticmethod, classmethod)
            if name.startswith("_") or not (inspect.isfunction(value) or isinstance(value, kinds)):
                continue
            if not (inspect.getdoc(value) or "").startswith("Refuse"):
                yield f"{owner.__name__}.{name} ({base.__name__})", value


def run_examples(name: str, value: Any, names: Mapping[str, Any]) -> None:
    """Run the examples in a docstring, with ``names`` as globals; fail if there is none."""
    text = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0)
    assert test.examples, f"{name} has no example (>>>) in its docstring"
    report: list[str] = []
    doctest.DocTestRunner(optionflags=_FLAGS, verbose=False).run(test, out=report.append)
    assert not report, "".join(report)
