"""Zone maps of version 2.0: no release of pylance reads the columns that have one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.interop.equality import difference
from tests.interop.oracle import MIDDLE, NEWEST, OLDEST, Oracle, OracleError


@pytest.mark.parametrize("release", [OLDEST, MIDDLE, NEWEST])
def test_zone_maps_of_2_0_are_refused_by_pylance(
    oracles: dict[str, Oracle], release: str, tmp_path: Path
) -> None:
    """They say what they do not know, and read the other columns of the file."""
    oracle, uri = oracles[release], tmp_path / "t"
    table = pa.table({"n": range(10), "t": list("abcdefghij"), "l": [[n] for n in range(10)]})
    pennon.write_dataset(table, uri, data_storage_version="2.0", rows_per_zone=4)
    for name in ("n", "t"):
        with pytest.raises(OracleError, match=r"column encoding ZoneIndex.* no decoder"):
            oracle.scan(uri, columns=[name])
    assert difference(oracle.scan(uri, columns=["l"]), table.select(["l"])) is None
    assert oracle.call("count", uri=str(uri)) == 10
    assert pennon.dataset(uri).to_table() == table
