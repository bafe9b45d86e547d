"""Values as short text."""

from __future__ import annotations

import doctest

import pytest

from pennon.display import cells


def test_examples_of_cells() -> None:
    assert doctest.testmod(cells).failed == 0


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (5 << 40, "5.0 TiB"),
        (1 << 60, "1048576.0 TiB"),
    ],
)
def test_size_takes_the_largest_unit_that_fits(size_bytes: int, text: str) -> None:
    assert cells.size(size_bytes) == text


def test_cell_escapes_control_characters_and_cuts_long_text() -> None:
    assert cells.cell("a\x1b[31m") == "a\\x1b[31m"
    assert cells.cell("é" * 50) == "é" * 39 + "…"
    assert cells.cell("x" * 50, mark="...") == "x" * 37 + "..."
    assert cells.cell("x" * 40) == "x" * 40
