"""Arrow schemas through Lance schemas and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema import schema_from_arrow, schema_to_arrow
from pennon.schema.arrow import storage_field
from tests.unit.schema.strategies import schemas

POINT = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])


def test_ids_are_depth_first_from_the_first_id() -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int8()), ("p", POINT), ("b", pa.int8())]), 7)
    assert [(f.id, f.name) for f in schema.walk()] == [
        (7, "a"),
        (8, "p"),
        (9, "x"),
        (10, "tags"),
        (11, "item"),
        (12, "b"),
    ]
    assert schema.field(10).logical_type == "list"
    assert schema.max_field_id() == 12
    with pytest.raises(ArgumentError, match="no field with id 99"):
        schema.field(99)


@settings(max_examples=60, deadline=None)
@given(schemas)
def test_arrow_to_lance_to_arrow_is_the_same(arrow: pa.Schema) -> None:
    back = schema_to_arrow(schema_from_arrow(arrow))
    assert back.equals(arrow, check_metadata=True)


@pytest.mark.parametrize(
    "extension",
    [
        pa.uuid(),
        pa.bool8(),
        pa.opaque(pa.int8(), "kind", "vendor"),
        pa.fixed_shape_tensor(pa.float32(), (2, 3), dim_names=["h", "w"], permutation=[1, 0]),
    ],
    ids=str,
)
def test_extension_types_round_trip(extension: pa.DataType) -> None:
    arrow = pa.schema(
        [
            pa.field("top", extension, metadata={"k": "v"}),
            pa.field("deep", pa.list_(pa.struct([pa.field("e", extension)]))),
        ]
    )
    assert schema_to_arrow(schema_from_arrow(arrow)).equals(arrow, check_metadata=True)


def test_unknown_and_broken_extensions_remain_metadata() -> None:
    for name in ("nobody.knows", "arrow.uuid"):  # a UUID is never an int8
        metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": "x"}
        arrow = pa.schema([pa.field("a", pa.int8(), metadata=metadata)])
        assert schema_to_arrow(schema_from_arrow(arrow)).equals(arrow, check_metadata=True)


def test_python_extension_type_round_trip() -> None:
    class Degrees(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.float64(), "pennon.test.degrees")

        def __arrow_ext_serialize__(self) -> bytes:
            return b"north"

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, given: bytes) -> Degrees:
            assert (storage, given) == (pa.float64(), b"north")
            return cls()

    pa.register_extension_type(Degrees())
    try:
        schema = schema_from_arrow(pa.schema([("a", Degrees())]))
        assert schema_to_arrow(schema).field("a").type == Degrees()
    finally:
        pa.unregister_extension_type("pennon.test.degrees")
    assert schema_to_arrow(schema).field("a").type == pa.float64()


def test_json_is_text_to_users_and_large_binary_in_files() -> None:
    schema = schema_from_arrow(pa.schema([pa.field("a", pa.json_(pa.large_string()))]))
    field = schema.fields[0]
    assert field.logical_type == "json"
    assert field.metadata["ARROW:extension:name"] == b"lance.json"
    assert schema_to_arrow(schema).field("a").type == pa.json_(pa.string())
    assert storage_field(field).type == pa.large_binary()


def test_views_become_their_plain_twins() -> None:
    arrow = pa.schema([("a", pa.string_view()), ("b", pa.list_(pa.binary_view()))])
    back = schema_to_arrow(schema_from_arrow(arrow))
    assert back.types == [pa.string(), pa.list_(pa.binary())]


def test_items_of_fixed_size_lists_lose_name_and_nullability() -> None:
    item = pa.field("element", pa.float32(), nullable=False, metadata={"k": "v"})
    back = schema_to_arrow(schema_from_arrow(pa.schema([("a", pa.list_(item, 2))])))
    assert back.field("a").type == pa.list_(pa.float32(), 2)


def test_type_without_logical_type_error_names_the_column() -> None:
    arrow = pa.schema([("p", pa.struct([("gap", pa.month_day_nano_interval())]))])
    with pytest.raises(UnsupportedError, match=r"month_day_nano_interval.*'p\.gap'"):
        schema_from_arrow(arrow)


def test_endless_nesting_is_refused() -> None:
    deep = pa.int8()
    for _ in range(200):
        deep = pa.list_(deep)
    with pytest.raises(ArgumentError, match="nested deeper than 64"):
        schema_from_arrow(pa.schema([("a", deep)]))
