"""A commit after concurrent transactions: rebase, retry or conflict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pennon.core.units import FieldId, FragmentId
from pennon.errors import ConflictError, IncompatibleConflict, RetryableConflict
from pennon.proto import transaction_pb2
from pennon.schema.field import Field, Schema
from pennon.table.commit.conflict_matrix import RULES, Verdict, judge
from pennon.table.commit.rebase import check_compatible
from pennon.table.operations import CreateIndex, Other, Update, UpdateMode
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import parse_transaction, serialize_transaction
from tests.unit.table.commit.test_conflict_matrix import index
from tests.unit.table.tables import append, new_fragment, overwrite

OPERATIONS = [f.name for f in transaction_pb2.Transaction.DESCRIPTOR.oneofs[0].fields]
X, R = IncompatibleConflict, RetryableConflict
AGAINST_APPEND: dict[str, type[ConflictError]] = {
    "merge": R,  # of no column at all: the appended ones would be lost
    "overwrite": X,
    "restore": X,
    "update_mem_wal_state": X,
}
AGAINST_OVERWRITE: dict[str, type[ConflictError]] = {"overwrite": R, "update_mem_wal_state": X}


def other(name: str) -> bytes:
    message = transaction_pb2.Transaction(read_version=1, uuid="u")
    getattr(message, name).SetInParent()
    return message.SerializeToString()


def test_the_table_has_every_operation_of_the_format() -> None:
    assert {other for _, other in RULES} == set(OPERATIONS)
    assert {mine for mine, _ in RULES} == set(OPERATIONS) - {"clone", "update_mem_wal_state"}
    assert len(RULES) == (len(OPERATIONS) - 2) * len(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_append_after_each_operation(name: str) -> None:
    expect(append(1), name, AGAINST_APPEND)


@pytest.mark.parametrize("name", OPERATIONS)
def test_overwrite_after_each_operation(name: str) -> None:
    expect(overwrite(1), name, AGAINST_OVERWRITE)


def expect(mine: Transaction, name: str, conflicts: dict[str, type[ConflictError]]) -> None:
    theirs = other(name)
    if name not in conflicts:
        check_compatible(mine, theirs, 2)
        return
    with pytest.raises(conflicts[name], match=f"version 2: .* conflicts with {name}") as caught:
        check_compatible(mine, theirs, 2)
    assert caught.value.other == theirs


def test_overwrites_of_one_config_key_are_incompatible() -> None:
    mine = overwrite(1, team="red")
    assert judge(mine.operation, overwrite(1, team="red").operation) is Verdict.INCOMPATIBLE
    assert judge(mine.operation, overwrite(1, size="xl").operation) is Verdict.RETRYABLE
    message = transaction_pb2.Transaction()
    message.update_config.config_updates.update_entries.add(key="team")
    deletes = parse_transaction(message.SerializeToString())
    assert judge(mine.operation, deletes.operation) is Verdict.INCOMPATIBLE
    assert judge(overwrite(1, size="xl").operation, deletes.operation) is Verdict.COMPATIBLE
    assert judge(append(1).operation, deletes.operation) is Verdict.COMPATIBLE


def test_index_on_a_list_conflicts_with_an_update_of_its_items() -> None:
    """Files, and so updates, name the items alone."""
    items = Field("item", FieldId(2), "string")
    schema = Schema((Field("ll", FieldId(1), "list", children=(items,)),))
    made = index("ll", 1, 0)
    mine = Transaction(1, CreateIndex((made,)))
    for modified, is_conflict in ((2, True), (1, True), (7, False)):
        fields, fragment = (FieldId(modified),), new_fragment(4)
        changed = (replace(fragment, id=FragmentId(0)),)
        update = Update((), changed, (), fields, mode=UpdateMode.REWRITE_COLUMNS)
        theirs = serialize_transaction(Transaction(1, update))
        if not is_conflict:
            check_compatible(mine, theirs, 2, schema=schema)
            continue
        with pytest.raises(R, match="create_index conflicts with update"):
            check_compatible(mine, theirs, 2, schema=schema)


@pytest.mark.parametrize("mine", [append(1), overwrite(1)])
def test_rebase_over_unknown_transaction_is_incompatible(mine: Transaction) -> None:
    newer = transaction_pb2.Transaction(uuid="u").SerializeToString() + b"\x82\x08\x00"
    with pytest.raises(X, match="does not know"):
        check_compatible(mine, newer, 2)
    with pytest.raises(X, match="lost"):
        check_compatible(mine, None, 2)
    with pytest.raises(X, match="cannot be read"):
        check_compatible(mine, b"\xff\xff", 2)
    unmade = Transaction(1, Other("data_overlay"))
    assert judge(unmade.operation, mine.operation) is Verdict.INCOMPATIBLE
    with pytest.raises(X):
        check_compatible(unmade, serialize_transaction(mine), 2)
