"""The tables of docs/compat.md are up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "compat.py"


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("compat", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    compat = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compat)
    text = compat.PAGE.read_text()
    assert text == compat.page(text), "run scripts/compat.py"
    listed = dict.fromkeys(owner for owner, _, _ in compat.rows())
    assert list(listed) == [
        "lance",
        *compat.OWNERS,
        *(f"from lance.{name}" for name in (*compat.MODULES, *compat.OTHER_MODULES)),
    ]
