"""Functions of numbers: limits of a count of digits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.expr.functions.registry import find_function

VALUES = pa.array([1.5, -2.25, 1e300])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["round", "trunc"])
@pytest.mark.parametrize("digits", [308, 10**9, 2**63 - 1])
def test_more_digits_than_floats_have_end_at_once(name: str, digits: int) -> None:
    """Arrow would multiply so many times by ten: hours of it."""
    run = find_function(name).run
    assert run(VALUES, pa.scalar(-digits)).to_pylist() == [0.0, -0.0, 0.0]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        run(VALUES, pa.scalar(digits))
