"""The conflict matrix, cell by cell, each where the two operations meet and where they do not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.proto import table_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.table.commit.conflict_matrix import COLUMNS, LETTERS, RULES, Verdict, judge
from pennon.table.fragment import BasePath, Fragment
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import covering, parse_index
from pennon.table.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Other,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)
from tests.unit.table.commit.conflict_table import cells
from tests.unit.table.tables import SCHEMA, data_file, new_fragment

ONLY_A = Schema(SCHEMA.fields[:1])


def fragment(number: int) -> Fragment:
    return replace(new_fragment(), id=FragmentId(number))


def index(name: str, field: int, *fragments: int) -> Index:
    """Return an index that names rows by their stable ids."""
    message = table_pb2.IndexMetadata(name=name, fields=[field])
    message.index_details.type_url = "/lance.table.InvertedIndexDetails"
    message.uuid.uuid = f"{name:16.16}".encode()
    return covering(parse_index(message), frozenset(map(FragmentId, fragments)))


def sample(name: str, number: int) -> Operation:
    """Return an operation that touches fragment, field, key, name of that number."""
    key = MapUpdate({f"k{number}": "v"})
    fields = {FieldId(number): MapUpdate({"x": "y"})}
    file = replace(data_file(), field_ids=(FieldId(number),), column_indices=(0,))
    samples: dict[str, Operation] = {
        "append": Append((new_fragment(),)),
        "delete": Delete((fragment(number),), ()),
        "overwrite": Overwrite((new_fragment(),), SCHEMA, {f"k{number}": "w"}),
        "create_index": CreateIndex((index(f"i{number}", number, number),)),
        "rewrite": Rewrite((RewriteGroup((fragment(number),), (fragment(7),)),)),
        "merge": Merge((), SCHEMA),
        "restore": Restore(DatasetVersion(1)),
        "reserve_fragments": ReserveFragments(1),
        "update": Update((), (fragment(number),), (new_fragment(),)),
        "project": Project(SCHEMA),
        "update_config": UpdateConfig(key, fields=fields),
        "data_replacement": DataReplacement((Replacement(FragmentId(number), file),)),
        "update_bases": UpdateBases((BasePath(0, f"/b{number}", f"n{number}"),)),
        "clone": Clone(
            is_shallow=True, ref_name=None, ref_version=DatasetVersion(1), ref_path="/t"
        ),
    }
    return samples[name]


def pair(mine: str, other: str, *, meet: bool) -> tuple[Operation, Operation]:
    """Return two operations that meet, or do not."""
    first, second = sample(mine, 1), sample(other, 1 if meet else 2)
    names = {mine, other}
    if names == {"create_index", "update"} and isinstance(second, Update):
        changed = (FieldId(1),) if meet else ()
        second = replace(second, fields_modified=changed, mode=UpdateMode.REWRITE_COLUMNS)
    if names & {"merge", "project"} and "create_index" in names and meet:
        second = replace(second, schema=ONLY_A) if isinstance(second, (Merge, Project)) else second
    if not meet and isinstance(second, UpdateConfig) and names & {"merge", "project"}:
        second = replace(second, fields={})
    if not meet and isinstance(first, UpdateConfig):
        first = replace(first, fields={})
    return first, second


@pytest.mark.parametrize(("mine", "other"), cells())
def test_conflict_matrix_cells_equal_judgements(mine: str, other: str) -> None:
    expected = cells()[mine, other]
    found = [judge(*pair(mine, other, meet=meet)).value for meet in (True, False)]
    assert tuple(found) == expected


def test_conflict_matrix_has_all_operations() -> None:
    others = set(COLUMNS.values())
    assert {other for _, other in RULES} == others
    assert len(RULES) == (len(others) - 2) * len(others)
    assert set(RULES.values()) == set(LETTERS)
    assert set(cells()) == {pair for pair in RULES if pair[1] != "update_mem_wal_state"}


@pytest.mark.parametrize("name", ["update_mem_wal_state", "data_overlay", ""])
def test_conflict_with_unknown_operation_is_incompatible(name: str) -> None:
    for other in set(COLUMNS.values()) - {"update_mem_wal_state"}:
        assert judge(Other(name), sample(other, 1)) is Verdict.INCOMPATIBLE
        if other != "clone":
            assert judge(sample(other, 1), Other(name)) is Verdict.INCOMPATIBLE


def test_whole_fragments_and_columns_written_anew_are_not_rebased() -> None:
    rows = Delete((fragment(1),), ())
    whole = Delete((), (FragmentId(1),))
    columns = Update((), (fragment(1),), (), mode=UpdateMode.REWRITE_COLUMNS)
    removed = Update((FragmentId(1),), (), (new_fragment(),))
    for other in (whole, columns, removed):
        assert judge(rows, other) is judge(other, rows) is Verdict.RETRYABLE
    assert judge(rows, Delete((fragment(2),), (FragmentId(3),))) is Verdict.COMPATIBLE


def test_append_conflicts_with_new_required_fields() -> None:
    field = pa.field("n", pa.int32(), nullable=False)
    schema = schema_from_arrow(
        pa.schema([pa.field("a", pa.int64()), pa.field("s", pa.string()), field])
    )
    for rows in (sample("append", 1), sample("update", 1)):
        for new in (Merge((), schema), Project(schema)):
            expected = Verdict.RETRYABLE
            assert judge(rows, new) is expected
            assert judge(new, rows) is expected
        promised = Project(schema, preserves_nullability=True)
        assert judge(rows, promised) is judge(promised, rows) is Verdict.COMPATIBLE
    assert judge(sample("append", 1), Merge((), schema, preserves_nullability=True)).value == "."


def test_append_conflicts_with_concurrent_column_cast() -> None:
    """The cast made a new field; the appended values would belong to none."""
    cast = Merge((), ONLY_A, preserves_nullability=True)
    assert judge(sample("append", 1), cast) is Verdict.RETRYABLE
    assert judge(sample("append", 1), Project(ONLY_A)) is Verdict.COMPATIBLE


def test_create_index_conflicts_in_cases_of_one_direction() -> None:
    mine = sample("create_index", 1)
    drop = CreateIndex((), (index("i1", 1, 1),))
    assert judge(mine, drop) is judge(drop, mine) is Verdict.RETRYABLE
    reuse = CreateIndex((index(FRAGMENT_REUSE, 5, 2),))
    assert judge(reuse, reuse) is Verdict.RETRYABLE
    assert judge(mine, reuse) is Verdict.COMPATIBLE
    unclear = CreateIndex((replace(index("i3", 3), fragment_ids=None),))
    assert judge(unclear, sample("rewrite", 1)) is Verdict.RETRYABLE
    elsewhere = replace(sample("update", 2), fields_modified=(FieldId(1),))  # type: ignore[arg-type]
    assert judge(mine, elsewhere) is Verdict.COMPATIBLE


def test_conflict_matrix_of_metadata_updates() -> None:
    schema = UpdateConfig(schema_metadata=MapUpdate({"a": "b"}))
    table = UpdateConfig(table_metadata=MapUpdate({"a": "b"}))
    config = UpdateConfig(MapUpdate({"a": "b"}))
    for one in (schema, table, config):
        for other in (schema, table, config):
            assert judge(one, other).value == ("X" if one is other else ".")
    for whole in (sample("overwrite", 1), sample("restore", 1)):
        assert judge(schema, whole).value == "X"
        assert judge(table, whole).value == judge(config, whole).value == "."
    assert judge(Merge((), SCHEMA), schema).value == "r"
    assert judge(Project(SCHEMA), schema).value == "."
