"""NumPy's types of Arrow's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.numpy_types import numpy_dtype

NAMES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("name", [*NAMES, "float16", "float32", "float64"])
def test_number_types_have_the_same_name_in_numpy(name: str) -> None:
    assert numpy_dtype(getattr(pa, name)()) == np.dtype(name)


def test_other_fixed_widths_are_integers_in_numpy() -> None:
    assert numpy_dtype(pa.timestamp("us")) == np.int64
    assert numpy_dtype(pa.date32()) == np.int32
