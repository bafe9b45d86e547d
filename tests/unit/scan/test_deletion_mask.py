"""Live offsets and physical offsets, against plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.scan.deletion_mask import LiveRows


def test_deletion_mask_worked_example() -> None:
    live = LiveRows.of(6, np.array([1, 4]))
    assert live.count == 4
    assert live.to_physical(np.arange(4)).tolist() == [0, 2, 3, 5]


@given(st.integers(1, 80), st.data())
def test_deletion_mask_equals_the_twin(rows: int, data: st.DataObject) -> None:
    dead = sorted(data.draw(st.sets(st.integers(0, rows - 1))))
    alive = [row for row in range(rows) if row not in dead]
    live = LiveRows.of(rows, np.array(dead, np.int64))
    assert live.count == len(alive)
    assert live.to_physical(np.arange(len(alive))).tolist() == alive
    each = [int(live.to_physical(np.array([row]))[0]) for row in range(len(alive))]
    assert each == alive
    assert live.is_deleted(np.arange(rows)).tolist() == [row in dead for row in range(rows)]
    start = data.draw(st.integers(0, len(alive)))
    end = data.draw(st.integers(start, len(alive)))
    part = live.between(start, end)
    assert part.count == end - start
    assert part.physical().tolist() == alive[start:end]
    numbers = np.arange(0, end - start, 2)
    assert part.chosen(numbers).tolist() == alive[start:end:2]
    ranges = part.ranges()
    found = [row for a, b in zip(ranges.starts, ranges.ends, strict=True) for row in range(a, b)]
    assert found == alive[start:end]
    assert ranges.count == end - start


@pytest.mark.parametrize("dead", [[5], [-1, 2], [0, 1, 9]])
def test_rows_outside_the_fragment_are_refused(dead: list[int]) -> None:
    with pytest.raises(FormatError, match="5 rows"):
        LiveRows.of(5, np.array(dead, np.int64))
