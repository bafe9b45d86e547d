"""The examples in docstrings of public names run, and every public name has one.

A docstring runs with three names: ``pennon``, ``pa`` (pyarrow) and ``uri``, a path in memory where
no table is yet.  ``...`` in the output stands for any text.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon import doctor, embeddings
from pennon.dataset import LanceDataset, LanceScanner, MergeInsertBuilder
from pennon.names import HOMES
from tests.examples import members, run_examples

NUMBERS = itertools.count()


def public() -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes that doors hand on, and the members of three classes."""
    for name, home in HOMES.items():
        found = getattr(import_module(home), name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield name, found
    for module in (doctor, embeddings):
        for name in module.__all__:
            yield name, getattr(module, name)
    for owner in (LanceDataset, LanceScanner, MergeInsertBuilder):
        yield from members(owner)


NAMES = dict(public())


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str) -> None:
    uri = f"memory://examples{next(NUMBERS)}/table.lance"
    run_examples(name, NAMES[name], {"pennon": pennon, "pa": pa, "uri": uri})
