"""Names and words by which programs above pylance find their way."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import lance
import pytest

import pennon

SHARED = sorted(
    {each.name for each in pkgutil.iter_modules(lance.__path__)}
    & {each.name for each in pkgutil.iter_modules(pennon.__path__)} - {"torch"}
)
"""Without `torch`, which needs a package that this environment lacks."""


@pytest.mark.parametrize("name", SHARED)
def test_a_module_of_both_is_an_attribute_without_an_import(name: str) -> None:
    """`import pennon as lance; lance.query.MatchQuery(...)`; of the name `dataset` both have a function."""
    found = getattr(pennon, name)
    assert found is importlib.import_module(f"pennon.{name}") or callable(found)


def test_missing_table_error_has_the_text_of_pylance(tmp_path: Path) -> None:
    path = str(tmp_path / "nothing.lance")
    for library in (lance, pennon):
        with pytest.raises(ValueError, match=f"^Dataset at path .*{path[1:]} was not found"):
            library.dataset(path)
