"""The page of Delta's tests lists the same outcomes as the run."""

from __future__ import annotations

from tests.delta.__main__ import END, PAGE, START, table_of_tests


def test_the_page_lists_every_test_as_the_run_does() -> None:
    written = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    assert written == table_of_tests()
