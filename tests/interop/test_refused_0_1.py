"""Types that version 0.1 cannot hold: pylance refuses them, or cannot read its own files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import UnsupportedError
from tests.interop.oracle import Oracle

MAP = pa.map_(pa.string(), pa.int8())
REFUSED: list[pa.Array] = [
    pa.array([b"", b""], pa.binary(0)),
    pa.array([{}, {}], pa.struct([])),
    pa.array([[{}], []], pa.list_(pa.struct([]))),
    pa.array([[("a", 1)], []], MAP),
    pa.array([[[("a", 1)]], []], pa.list_(MAP)),
    pa.array([{"m": [("a", 1)]}], pa.struct([("m", MAP)])),
    pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
    pa.array([[{"a": 1}, {"a": 2}]], pa.list_(pa.struct([("a", pa.int8())]), 2)),
    pa.array([[[1], [2]]], pa.list_(pa.list_(pa.int8()), 2)),
    pa.array([[None, None]], pa.list_(pa.null(), 2)),
    pa.array([0.5, 1.5]).dictionary_encode(),
    pa.array([True, False]).dictionary_encode(),
    pa.array([1, 2], pa.date32()).dictionary_encode(),
    pa.array([1, 2], pa.timestamp("us")).dictionary_encode(),
    pa.array([b"ab", b"cd"], pa.binary(2)).dictionary_encode(),
    pa.array([1, 2]).cast(pa.decimal128(20, 1)).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.nulls(1)),
    pa.array([[1], [2]], pa.list_view(pa.int8())),
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
]


def test_write_0_1_of_type_unreadable_by_pylance_is_refused(newest: Oracle, tmp_path: Path) -> None:
    for number, array in enumerate(REFUSED):
        table, uri = pa.table({"c": array}), str(tmp_path / f"t{number}")
        calls = [
            {"op": "write", "uri": uri, "table": table, "data_storage_version": "legacy"},
            {"op": "scan", "uri": uri, "out": True},
        ]
        assert isinstance(newest.run(calls)[1], Exception), array.type
        with pytest.raises(UnsupportedError, match="column 'c"):
            pennon.write_dataset(table, tmp_path / f"o{number}", data_storage_version="0.1")
        assert not (tmp_path / f"o{number}").exists()
