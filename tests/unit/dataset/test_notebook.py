"""``_repr_html_`` of datasets, fragments and scans: escaped, short, cheap."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.display.html import object_html

EVIL = "<script>alert(1)</script>&\"'\x1b[2J\u202e"


class Tags(HTMLParser):
    """Collects tags and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def evil(tmp_path: Path) -> pennon.LanceDataset:
    vectors = pa.array([[0.5, 1.0]] * 9, pa.list_(pa.float32(), 2))
    rows = {EVIL: [EVIL] * 9, "n": range(9), "vec": vectors, "data": [b"secret"] * 9}
    return pennon.write_dataset(pa.table(rows), tmp_path / "t.lance")


def test_dataset_shows_numbers_columns_and_first_rows(evil: pennon.LanceDataset) -> None:
    shown = Tags(evil._repr_html_())
    text = "|".join(shown.text)
    for part in ("LanceDataset", "version|1", "rows|9", "n|int64", "[0.5, 1.0]"):
        assert part in text, part
    assert text.count("alert(1)") == 7  # its type, its head, and five rows
    assert "secret" not in text


def test_hostile_names_and_values_are_escaped_in_html(evil: pennon.LanceDataset) -> None:
    scan = evil.scanner(filter=f"`{EVIL}` = 'x'")
    for thing in (evil, evil.get_fragments()[0], scan):
        html = thing._repr_html_()
        assert Tags(html).tags <= {"div", "strong", "table", "tr", "th", "td", "p"}
        assert "\x1b" not in html
        assert "\u202e" not in html


def test_fragment_shows_rows_and_files(evil: pennon.LanceDataset) -> None:
    evil.delete("n < 2")
    text = "|".join(Tags(evil.get_fragments()[0]._repr_html_()).text)
    assert "rows|7" in text
    assert "deleted rows|2" in text
    assert ".lance" in text


def test_scan_shows_its_plan_and_columns(evil: pennon.LanceDataset) -> None:
    text = "|".join(Tags(evil.scanner(["n"], "n > 3", limit=2)._repr_html_()).text)
    assert "n|int64" in text
    assert "Limit" in text


def test_wide_and_long_things_are_cut() -> None:
    schema = pa.schema([(f"column {n}", pa.int64()) for n in range(1000)])
    html = object_html("x" * 1000, {"a": "y" * 1000}, schema)
    assert "and 970 more columns" in html
    assert len(html) < 5_000


def test_html_of_a_damaged_table_has_its_numbers(tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({"n": [1]}), tmp_path / "t.lance")
    next((tmp_path / "t.lance" / "data").iterdir()).write_bytes(b"damaged")
    text = "|".join(Tags(pennon.dataset(ds.uri)._repr_html_()).text)
    assert "rows|1" in text


def test_empty_table_and_table_without_columns(tmp_path: Path) -> None:
    for rows in (pa.table({"n": pa.array([], pa.int64())}), pa.table({})):
        ds = pennon.write_dataset(rows, tmp_path / "t.lance", mode="overwrite")
        assert "rows|0" in "|".join(Tags(ds._repr_html_()).text)
