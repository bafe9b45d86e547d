"""The page that lists functions lists them all, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from pennon.expr.functions.registry import FUNCTIONS

PAGE = Path(__file__).parents[4] / "docs" / "sql.md"


def test_functions_page_lists_every_function() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Functions")[1]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    listed = re.findall(r"`(\w+)`", "\n".join(rows))
    assert len(listed) == len(set(listed))
    written = {name for name in FUNCTIONS if name not in ("||", "like", "ilike")}
    second = {"list_" + name.removeprefix("array_") for name in listed if name.startswith("array_")}
    assert set(listed) | (second & written) == written
