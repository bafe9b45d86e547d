"""Refusals before anything is written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema import FileVersion, check_writable, schema_from_arrow
from pennon.schema.check import is_packed, null_struct_error
from tests.unit.schema.strategies import DICTIONARIES, EXTENSIONS, PRIMITIVE

V2_0 = FileVersion.parse("2.0")
V2_1 = FileVersion.parse("2.1")
V2_2 = FileVersion.parse("2.2")
both = pytest.mark.parametrize("version", [V2_0, V2_1], ids=str)
PACKED = {"packed": "true"}
BLOB = {"lance-encoding:blob": "true"}


def _check(
    t: pa.DataType, version: FileVersion = V2_0, metadata: dict[str, str] | None = None
) -> None:
    column = pa.field("c", t, metadata=metadata)
    check_writable(schema_from_arrow(pa.schema([column])), version)


@both
@pytest.mark.parametrize("t", PRIMITIVE + DICTIONARIES + EXTENSIONS, ids=str)
def test_check_takes_common_types_in_both_versions(t: pa.DataType, version: FileVersion) -> None:
    _check(t, version)
    _check(pa.list_(pa.struct([("x", pa.large_list(t))])), version)


@pytest.mark.parametrize(
    "t",
    [
        *(pa.int8(), pa.bool_(), pa.null(), pa.binary(3), pa.decimal128(5, 2)),
        *(pa.timestamp("us", "UTC"), pa.list_(pa.bool_(), 3), pa.list_(pa.list_(pa.int8(), 2), 2)),
    ],
    ids=str,
)
@both
def test_fixed_size_lists_of_fixed_width_values(t: pa.DataType, version: FileVersion) -> None:
    _check(pa.list_(t, 3), version)


MAP = pa.map_(pa.string(), pa.int8())
POINT = pa.struct([("x", pa.int8())])


@pytest.mark.parametrize(
    ("t", "metadata", "hint"),
    [
        (MAP, None, "2.2 can"),
        (pa.list_(POINT, 2), None, "2.2 can"),
        (pa.struct([("x", pa.string())]), PACKED, "2.2 can"),
        (pa.list_(pa.string(), 2), None, "no version can; a list or large_list would do"),
        (pa.list_(pa.list_(pa.large_binary(), 2), 2), None, "no version can; a list"),
        (pa.list_(DICTIONARIES[0], 2), None, "no version can"),
        (pa.list_(pa.int8(), 0), None, "no version can"),
        (pa.list_(pa.list_(pa.int8(), 0), 2), None, "no version can"),
        (pa.binary(0), None, "2.2 holds values of no bytes"),
        (pa.struct([("x", pa.binary(0))]), PACKED, "an unpacked struct can"),
        (pa.struct([("x", pa.bool_())]), PACKED, "an unpacked struct can"),
        (pa.struct([("x", pa.list_(pa.int8()))]), PACKED, "an unpacked struct can"),
        (pa.struct([("x", POINT)]), PACKED, "an unpacked struct can"),
        (pa.struct([("x", pa.list_(pa.bool_(), 8))]), PACKED, "an unpacked struct can"),
        (pa.struct([]), PACKED, "an unpacked struct can"),
        (pa.binary(), BLOB, "must be of type large_binary"),
    ],
    ids=str,
)
@both
def test_unsupported_type_error_names_column_type_and_version(
    t: pa.DataType, metadata: dict[str, str] | None, hint: str, version: FileVersion
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        _check(t, version, metadata)
    message = str(caught.value)
    assert "'c'" in message
    assert str(t) in message
    assert f"file version {version}" in message
    assert hint in message


def test_packed_structs_of_2_1_have_no_fixed_size_lists() -> None:
    struct = pa.struct([("x", pa.list_(pa.float32(), 2))])
    _check(struct, metadata=PACKED)
    with pytest.raises(UnsupportedError, match="'x' is a fixed-size list; an unpacked struct can"):
        _check(struct, V2_1, PACKED)


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        (pa.field("item", pa.large_binary(), metadata=BLOB), "2.0 holds blobs in lists"),
        (pa.field("item", pa.struct([])), "2.0 holds structs without fields in lists"),
    ],
    ids=str,
)
def test_check_2_1_refuses_some_items_in_lists(item: pa.Field, hint: str) -> None:
    for t in (pa.list_(item), pa.large_list(pa.struct([pa.field("item", pa.list_(item))]))):
        _check(t)
        with pytest.raises(UnsupportedError, match=rf"'c\.item.*file version 2\.1; {hint}"):
            _check(t, V2_1)
    _check(pa.struct([item]), V2_1)


def test_check_2_2_takes_maps_and_lists_of_structs() -> None:
    _check(MAP, V2_2)
    _check(pa.list_(POINT, 2), V2_2)
    _check(pa.map_(POINT, pa.list_(pa.map_(pa.string(), POINT))), V2_2)
    packed = pa.struct([("s", pa.string()), ("v", pa.list_(pa.int8(), 2)), ("j", pa.json_())])
    _check(packed, V2_2, PACKED)


@pytest.mark.parametrize("t", [pa.bool_(), POINT, pa.list_(pa.int8()), pa.null()], ids=str)
def test_check_2_2_refuses_unpackable_struct_fields(t: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"'t' has no fixed width.*an unpacked struct can"):
        _check(pa.struct([("s", pa.string()), ("t", t)]), V2_2, PACKED)


def test_fixed_size_lists_of_structs_are_not_in_lists() -> None:
    for t in (pa.list_(pa.list_(POINT, 2)), pa.map_(pa.string(), pa.list_(POINT, 2))):
        with pytest.raises(UnsupportedError, match=r"no version can in a list or map"):
            _check(t, V2_2)


def test_unsupported_nested_column_error_has_its_path() -> None:
    with pytest.raises(UnsupportedError, match=r"column 'c\.item\.m' of type map<string, int8>"):
        _check(pa.list_(pa.struct([("m", MAP)])))


@pytest.mark.parametrize(
    "t",
    [pa.int32(), pa.binary(3), pa.list_(pa.float32(), 2), pa.timestamp("us"), pa.decimal128(5, 2)],
    ids=str,
)
def test_packed_structs_of_fixed_width_fields(t: pa.DataType) -> None:
    _check(pa.struct([("x", t)]), metadata={"lance-encoding:packed": "True"})
    column = pa.field("c", pa.struct([("x", t)]), metadata=PACKED)
    assert is_packed(schema_from_arrow(pa.schema([column])).fields[0])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "2 columns are named 'a'"),
        (["a.b"], "'a.b' has a dot"),
        (["_rowid"], "'_rowid' is reserved"),
        (["_rowaddr"], "'_rowaddr' is reserved"),
    ],
)
def test_invalid_column_names_are_refused(names: list[str], message: str) -> None:
    schema = schema_from_arrow(pa.schema([(name, pa.int8()) for name in names]))
    with pytest.raises(ArgumentError, match=message):
        check_writable(schema, V2_0)


def test_column_names_that_differ_by_case_are_accepted() -> None:
    check_writable(schema_from_arrow(pa.schema([("a", pa.int8()), ("A", pa.int8())])), V2_0)


def test_null_struct_error_names_column_count_and_version() -> None:
    message = str(null_struct_error("p.q", 3, V2_0))
    assert message.startswith("column 'p.q' has 3 NULL struct(s); file version 2.0")
    assert "2.1 does" in message
