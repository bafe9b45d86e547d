"""Index entries of older writers that a new manifest keeps or clears."""

from __future__ import annotations

import pytest

from pennon.table.apply.index_rules import believable
from pennon.table.indices import FRAGMENT_REUSE
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import WriterVersion
from tests.unit.table.tables import index_section

RIGHT = index_section(("a", (0, 1)), ("a", (2,)), ("b", (0,)))
NEW = WriterVersion("lance", "0.8.15")


def covered(section: bytes) -> list[set[int] | None]:
    ids = (index.fragment_ids for index in parse_indices(section))
    return [None if each is None else set(each) for each in ids]


@pytest.mark.parametrize("writer", [NEW, WriterVersion("lance", "14.0.2"), WriterVersion("x", "0")])
def test_index_rules_keep_valid_sections_byte_for_byte(writer: WriterVersion) -> None:
    assert believable(RIGHT, writer) is RIGHT
    assert believable(b"", writer) == b""


@pytest.mark.parametrize(
    "writer", [None, WriterVersion("lance", "0.8.14"), WriterVersion("lance", "?")]
)
def test_index_rules_clear_bitmaps_of_early_writers(writer: WriterVersion | None) -> None:
    assert covered(believable(RIGHT, writer)) == [set(), set(), set()]
    assert believable(b"", writer) == b""


def test_index_rules_clear_overlapping_or_missing_bitmaps() -> None:
    section = index_section(("a", (0, 1)), ("a", (1,)), ("b", (0,)), ("c", None))
    assert covered(believable(section, NEW)) == [set(), set(), {0}, set()]
    system = index_section((FRAGMENT_REUSE, None))
    assert believable(system, NEW) is system
