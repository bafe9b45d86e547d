"""bfloat16 and images as Arrow columns: values, numpy, pandas, tables."""

from __future__ import annotations

import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pennon
from pennon.arrow import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    EncodedImageType,
    FixedShapeImageTensorType,
    ImageArray,
    ImageURIArray,
    ImageURIType,
    bfloat16_array,
    cast,
)
from pennon.arrow.bfloat16 import bits_of, floats_of
from pennon.errors import ArgumentError, ColumnTypeError, StoreError, UnsupportedError


def test_bfloat16_rounds_to_the_nearest_and_ties_to_even() -> None:
    every = np.arange(0, 0x7F80, dtype=np.uint16)
    exact = floats_of(every)
    np.testing.assert_array_equal(bits_of(exact), every)
    middle = (exact[:-1].astype(np.float64) + exact[1:]) / 2
    expected = every[:-1] + (every[:-1] & 1)
    np.testing.assert_array_equal(bits_of(middle), expected)
    assert all(a < b for a, b in pairwise(exact))


def test_bfloat16_keeps_signs_nan_and_infinity() -> None:
    shown = [str(BFloat16(value)) for value in (-0.0, float("nan"), float("-inf"), 1e39, 123456)]
    assert shown == ["-0", "NaN", "-inf", "inf", "123392"]
    assert BFloat16(float("nan")) != BFloat16(float("nan"))


def test_bfloat16_compares_with_its_own_kind_only() -> None:
    assert BFloat16(1.1) == BFloat16(1.1015625) != 1.1
    assert len({BFloat16(1), BFloat16(1.001)}) == 1
    with pytest.raises(TypeError):
        BFloat16(1) < 2  # type: ignore[operator]  # noqa: B015
    with pytest.raises(ArgumentError, match="2 bytes, not 3"):
        BFloat16.from_bytes(b"abc")


def test_bfloat16_array_shows_ten_values_at_each_end() -> None:
    assert str(bfloat16_array([1, None])) == "[\n  1,\n  None\n]"
    lines = str(bfloat16_array([*range(22)])).splitlines()
    assert (len(lines), lines[11]) == (23, "...,")


def test_bfloat16_slices_keep_their_rows() -> None:
    array = bfloat16_array([1, 2, None, 4])
    floats = cast(array.slice(1, 3), pa.float64())
    assert floats.to_pylist() == [2.0, None, 4.0]
    assert cast(cast(array, "float32"), BFloat16Type()) == array


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bfloat16_lists_of_a_fixed_size_are_cast(dtype: type[np.floating[Any]]) -> None:
    values = pa.array(np.arange(6, dtype=dtype))
    lists = pa.FixedSizeListArray.from_arrays(values, 2).slice(1)
    narrow = cast(lists, pa.list_(BFloat16Type(), 2))
    assert narrow.to_pylist() == [[BFloat16(2), BFloat16(3)], [BFloat16(4), BFloat16(5)]]
    assert cast(narrow, lists.type).to_pylist() == lists.to_pylist()
    with pytest.raises(ArgumentError, match="lists of 2 values"):
        cast(lists, pa.list_(BFloat16Type(), 3))


def test_bfloat16_is_cast_from_and_to_floats_only() -> None:
    with pytest.raises(ArgumentError, match="got int64"):
        cast(pa.array([1]), "bf16")
    with pytest.raises(ArgumentError, match="to floats only"):
        cast(bfloat16_array([1]), pa.int32())
    assert cast(pa.array([1]), pa.int8()) == pa.array([1], pa.int8())


def test_bfloat16_without_ml_dtypes_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(UnsupportedError, match="pip install ml_dtypes"):
        bfloat16_array([1]).to_numpy()
    with pytest.raises(ArgumentError, match="NULL"):
        bfloat16_array([None]).to_numpy()


def test_bfloat16_column_of_pandas_goes_to_arrow_and_back() -> None:
    column = bfloat16_array([1.5, None, 3]).to_pandas()
    assert str(column.dtype) == "lance.bfloat16"
    assert column.tolist() == [BFloat16(1.5), None, BFloat16(3)]
    assert column.isna().tolist() == [False, True, False]
    assert column[column.notna()].tolist() == [BFloat16(1.5), BFloat16(3)]
    assert column.iloc[[2, 0]].tolist() == [BFloat16(3), BFloat16(1.5)]
    assert pd.concat([column, column]).isna().sum() == 2
    assert column.reindex([2, 9]).tolist() == [BFloat16(3), None]
    assert isinstance(pa.array(column), BFloat16Array)
    pd.testing.assert_series_equal(column, pd.Series([1.5, None, 3], dtype="lance.bfloat16"))


def test_bfloat16_columns_and_vectors_are_stored_and_read(tmp_path: Path) -> None:
    numbers = bfloat16_array([1, None, 2.5, 3])
    vectors = pa.FixedSizeListArray.from_arrays(bfloat16_array([*range(8)]), 2)
    rows = pa.table({"n": numbers, "v": vectors})
    table = pennon.write_dataset(rows, tmp_path / "t.lance")
    assert table.schema == rows.schema
    assert table.to_table() == rows
    assert table.take([2, 1])["n"].to_pylist() == [BFloat16(2.5), None]


def test_types_are_registered_by_the_module_arrow_only() -> None:
    program = """
import pyarrow as pa, pennon
field = pa.field("n", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""})
message = pa.schema([field]).serialize()
assert pa.ipc.read_schema(message).field("n").type == pa.binary(2)
import pennon.arrow
assert pa.ipc.read_schema(message).field("n").type == pennon.arrow.BFloat16Type()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_images_are_made_of_texts_bytes_and_tensors() -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 1, 2, 3), np.uint8))
    found = [
        ImageArray.from_array(each).type
        for each in (["a.png"], pa.array(["a"]), pa.array([b""], pa.large_binary()), tensors)
    ]
    assert found == [
        ImageURIType(),
        ImageURIType(),
        EncodedImageType(pa.large_binary()),
        FixedShapeImageTensorType(pa.uint8(), [1, 2, 3]),
    ]
    with pytest.raises(ColumnTypeError, match="got int64"):
        ImageArray.from_array(pa.array([1]))
    with pytest.raises(ColumnTypeError, match="a list of texts"):
        ImageURIArray.from_uris("a.png")
    for kind, stored in ((ImageURIType, pa.int8()), (EncodedImageType, pa.string())):
        with pytest.raises(ArgumentError, match="are stored as"):
            kind(stored)
    with pytest.raises(ArgumentError, match="lengths of 0 or more"):
        FixedShapeImageTensorType(pa.uint8(), (2, -1))


def test_images_are_read_from_files_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"PNG!")
    images = ImageURIArray.from_uris([tmp_path / "a.png", (tmp_path / "a.png").as_uri(), None])
    assert images.read_uris().to_pylist() == [b"PNG!", b"PNG!", None]
    assert repr(images.read_uris()).endswith("[3 images]\nb'PNG!'")
    with pytest.raises(StoreError, match=r"b\.png"):
        ImageURIArray.from_uris([tmp_path / "b.png"]).read_uris(pa.large_binary())


def test_images_are_decoded_and_encoded_by_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = ImageArray.from_array(pa.array([b"\1\2\3", b"\4\5\6"]))
    pixels = encoded.to_tensor(
        lambda images: np.array([np.frombuffer(each, np.uint8) for each in images.to_pylist()])
    )
    np.testing.assert_array_equal(pixels.to_numpy(), [[1, 2, 3], [4, 5, 6]])
    assert pixels.to_pylist() == [[1, 2, 3], [4, 5, 6]]
    again = pixels.to_encoded(lambda images: pa.array([each.tobytes() for each in images]))
    assert again == encoded
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError, match="pip install pillow"):
        encoded.to_tensor()
    with pytest.raises(ArgumentError, match="NULL has no pixels"):
        ImageArray.from_array(pa.array([None], pa.binary())).to_tensor()


def test_images_are_stored_read_and_pickled(tmp_path: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 1, 4), np.uint8))
    arrays = [ImageArray.from_array(x) for x in (["a", "b"], pa.array([b"1", None]), tensors)]
    rows = pa.table(dict(zip("abc", arrays, strict=True)))
    table = pennon.write_dataset(rows, tmp_path / "t.lance")
    assert table.schema == rows.schema
    assert table.to_table() == rows
    assert [pickle.loads(pickle.dumps(each)) == each for each in arrays] == [True] * 3


def test_image_tensor_of_metadata_without_shape_is_refused() -> None:
    for damaged in (
        b"{}",
        b"[]",
        b"\xff",
        b'{"shape": "ab"}',
        b'{"shape": [true]}',
        b'{"shape": []}',
    ):
        with pytest.raises(ArgumentError):
            FixedShapeImageTensorType.__arrow_ext_deserialize__(pa.list_(pa.uint8(), 2), damaged)
