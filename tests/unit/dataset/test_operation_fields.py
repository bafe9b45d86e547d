"""Operations between pylance's names and the table layer's: no field is forgotten, errors name it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pennon import LanceOperation
from pennon.dataset.operation import Index
from pennon.dataset.operation_fields import (
    FIELDS,
    NOT_SHOWN,
    FieldMapping,
    from_table_operation,
    to_table_operation,
)
from pennon.errors import ArgumentError, UnsupportedError
from pennon.fragment import DataFile, FragmentMetadata
from pennon.schema import LanceSchema
from pennon.schema.arrow import schema_from_arrow
from pennon.table import operations as table

FILE = DataFile("x.lance", [0], [0], 2, 1, 100)
FRAGMENT = FragmentMetadata(3, [FILE], 7)
SCHEMA = LanceSchema(schema_from_arrow(pa.schema([pa.field("x", pa.int64())])))
MAP = LanceOperation.UpdateMap({"a": "1", "b": None}, replace=True)
INDEX = Index(
    "d0c0c0de-0000-4000-8000-000000000001",
    "by_x",
    [0],
    2,
    {3, 4},
    1,
    datetime(2024, 5, 6, 7, 8, 9, 500_000, tzinfo=UTC),
    5,
    index_details=("/lance.table.BTreeIndexDetails", b"\x08\x01"),
)
EXAMPLES = (
    LanceOperation.Append([FRAGMENT]),
    LanceOperation.Overwrite(SCHEMA, [FRAGMENT]),
    LanceOperation.Delete([FRAGMENT], [4], "x > 1"),
    LanceOperation.Update([1], [FRAGMENT], [FRAGMENT], [0], [0], "rewrite_columns", {3: b"\x01"}),
    LanceOperation.Merge([FRAGMENT], SCHEMA, preserves_nullability=True),
    LanceOperation.Project(SCHEMA, preserves_nullability=True),
    LanceOperation.Restore(4),
    LanceOperation.Clone(True, "main", 4, "/there", "branch"),  # noqa: FBT003 - pylance's
    LanceOperation.Rewrite(
        [LanceOperation.RewriteGroup([FRAGMENT], [FRAGMENT, FRAGMENT])],
        [LanceOperation.RewrittenIndex(INDEX.uuid, INDEX.uuid, "url", b"value", 2)],
    ),
    LanceOperation.CreateIndex([INDEX], [INDEX]),
    LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(3, FILE)]),
    LanceOperation.UpdateConfig(MAP, MAP, MAP, {0: MAP}),
)


def names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("user", "kind", "rows"),
    [(*classes, rows) for classes, rows in FIELDS.items()],
    ids=[user.__name__ for user, _ in FIELDS],
)
def test_operation_fields_have_one_mapping_each(
    user: type, kind: type, rows: list[FieldMapping]
) -> None:
    assert sorted(row.user for row in rows) == sorted(names(user))
    ours = [row.table for row in rows if row.table is not None]
    assert sorted(ours) == sorted(names(kind) - NOT_SHOWN)


def test_operations_have_field_mappings() -> None:
    users = {user for user, _ in FIELDS}
    made = {it for it in vars(LanceOperation).values() if dataclasses.is_dataclass(it)}
    assert made - users == {LanceOperation.Other}
    ours = {kind for _, kind in FIELDS}
    assert table.NAMES.keys() - ours == {table.ReserveFragments, table.UpdateBases}


@pytest.mark.parametrize("operation", EXAMPLES, ids=lambda it: type(it).__name__)
def test_operations_round_trip_through_the_table_layer(operation: Any) -> None:
    shown: Any = from_table_operation(to_table_operation(operation))
    if isinstance(operation, LanceOperation.CreateIndex):
        for index in (*shown.new_indices, *shown.removed_indices):
            assert index.wire
    assert shown == operation


def test_operations_have_examples() -> None:
    assert {type(it) for it in EXAMPLES} == {
        user for user, _ in FIELDS if issubclass(user, LanceOperation.BaseOperation)
    }


@pytest.mark.parametrize(
    ("operation", "error", "message"),
    [
        (
            LanceOperation.Update(update_mode="rewrite"),
            ArgumentError,
            r"Update\.update_mode: there is no update mode 'rewrite'",
        ),
        (
            LanceOperation.Update(removed_fragment_ids=None),  # type: ignore[arg-type]
            TypeError,
            r"Update\.removed_fragment_ids: .*None",
        ),
        (
            LanceOperation.DataReplacement([FILE]),  # type: ignore[list-item]
            TypeError,
            r"DataReplacement\.replacements: DataReplacementGroup\.fragment_id: ",
        ),
    ],
)
def test_errors_name_operation_and_field(
    operation: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        to_table_operation(operation)


def test_an_operation_without_rows_is_not_committed() -> None:
    with pytest.raises(UnsupportedError, match="a commit of Other is not supported"):
        to_table_operation(LanceOperation.Other("reserve_fragments"))
