"""The tables of docs/compatibility.md are what releases of pylance and Pennon do today."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compatibility.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("compatibility", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _rows(script: Any, release: str) -> list[str]:
    """Return the rows of a release in the two tables of releases and file versions."""
    text = script.PAGE.read_text().partition("## Kept tables")[0]
    return re.findall(rf"^\| {re.escape(release)} \|.*$", text, re.MULTILINE)


def test_tables_of_the_newest_release_and_of_pennon_are_used_by_each_other_as_the_page_shows(
    script: Any,
) -> None:
    used, changed, _ = script.matrix(("14.0.2",))
    assert [*used, *changed] == _rows(script, "14.0.2"), "run `make compatibility`"


def test_page_has_commit_and_date_and_every_release(script: Any) -> None:
    text = script.PAGE.read_text()
    assert re.search(r"Tried on \d{4}-\d\d-\d\d with commit `[0-9a-f]{8}`", text)
    assert all(len(_rows(script, release)) == 2 for release in script.RELEASES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "release",
    ["0.7.5", "0.8.14", "0.10.18", "0.15.0", "0.19.2", "1.0.4", "2.0.1", "4.0.2", "8.0.1"],
)
def test_tables_of_old_releases_and_of_pennon_are_used_by_each_other_as_the_page_shows(
    script: Any, release: str
) -> None:
    used, changed, _ = script.matrix((release,))
    assert [*used, *changed] == _rows(script, release), "run `make compatibility`"
