import pyarrow as pa
import pytest

from pennon.schema.width import row_bytes


@pytest.mark.parametrize(
    ("data_type", "least"),
    [
        (pa.int64(), 8),
        (pa.bool_(), 1),
        (pa.null(), 0),
        (pa.decimal128(10, 2), 16),
        (pa.binary(7), 7),
        (pa.string(), 4),
        (pa.large_binary(), 8),
        (pa.list_(pa.int64()), 4),
        (pa.large_list(pa.int64()), 8),
        (pa.map_(pa.string(), pa.int64()), 4),
        (pa.list_(pa.float32(), 768), 3072),
        (pa.list_(pa.list_(pa.bool_(), 4), 4), 2),
        (pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int16())]))]), 6),
        (pa.dictionary(pa.int8(), pa.string()), 1),
        (pa.json_(), 4),
    ],
)
def test_row_bytes_minimum_by_type(data_type: pa.DataType, least: int) -> None:
    assert row_bytes(pa.schema([("a", data_type)])) == least
    assert row_bytes(pa.schema([("a", data_type), ("b", pa.int8())])) == least + 1
