"""Files of version 0.1 with given row groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.file.container.write_limits import RowGroups
from pennon.file.open import create_data_file, open_data_file
from pennon.io.memory import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1

ARROW = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize("batch_rows", [1, 3, 4, 100])
@pytest.mark.parametrize(
    "borders", [[0, 4, 8, 10], [0, 2, 3, 10], [0, 1, 2, 9, 10], [0, 10], [0, 5, 10]]
)
def test_row_groups_have_the_given_borders(borders: list[int], batch_rows: int) -> None:
    store = MemoryStore("same-groups")
    wanted = np.array(borders, np.int64)
    sink, groups = store.open_writer("f"), RowGroups(borders=wanted)
    with create_data_file(sink, schema_from_arrow(ARROW), V0_1, groups=groups) as writer:
        for batch in pa.table({"n": range(10)}, ARROW).to_batches(max_chunksize=batch_rows):
            writer.write(batch)
    opened = open_data_file(store.open("f"))
    assert opened.row_groups is not None
    assert opened.row_groups.tolist() == borders
