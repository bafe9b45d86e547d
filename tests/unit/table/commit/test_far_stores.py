"""Commits to a far store: what is asked for at once, and what is left alone."""

from __future__ import annotations

import threading
import uuid

import pytest

from pennon.errors import ConflictError, StoreError
from pennon.io import open_store
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.commit.options import CommitOptions
from pennon.table.naming import transaction_path
from pennon.table.operations import Append, Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest
from pennon.testing import LatencyStore
from tests.unit.table.tables import SCHEMA, create_table, new_fragment


def _empty() -> Store:
    return open_store(f"memory://{uuid.uuid4()}")


class _Meeting(LatencyStore):
    """A far store that lists nothing before a transaction's file comes, and takes none before it is asked to list."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner, 0.0)
        self._both = threading.Barrier(2, timeout=30)
        self.meets = False

    def before(self, verb: str, path: str) -> None:
        if self.meets and (verb == "list" or path.startswith("_transactions/")):
            self._both.wait()


def test_transaction_file_is_written_while_a_far_store_lists_versions() -> None:
    store = _Meeting(_empty())
    base = create_table(store)
    store.meets = True
    made = commit(store, Transaction(1, Append((new_fragment(),))), CommitOptions(base=base))
    store.meets = False
    assert made.version == 2
    assert read_manifest(store) == made


def test_transaction_file_of_a_new_table_is_written_while_a_far_store_lists_versions() -> None:
    store = _Meeting(_empty())
    store.meets = True
    made = create_table(store)
    store.meets = False
    assert read_manifest(store) == made


def test_conflict_on_a_far_store_leaves_the_transaction_file_of_the_same_uuid() -> None:
    store = LatencyStore(_empty(), 0.0)
    base = create_table(store)
    name = str(uuid.uuid4())
    first = Transaction(1, Overwrite((new_fragment(),), SCHEMA), uuid=name)
    made = commit(store, first, CommitOptions(base=base))
    path = transaction_path(first.file_name)
    before = store.read_whole(path).to_pybytes()
    second = Transaction(1, Append((new_fragment(),)), uuid=name)
    with pytest.raises(ConflictError):
        commit(store, second, CommitOptions(base=base))
    assert store.read_whole(path).to_pybytes() == before
    assert read_manifest(store) == made


class _Refusing(LatencyStore):
    """A far store that creates no transaction file, but replaces one."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.startswith("_transactions/"):
            raise StoreError(path)
        super().put_if_absent(path, data)


@pytest.mark.parametrize("is_new", [True, False])
def test_transaction_file_that_a_far_store_did_not_create_is_written_again(*, is_new: bool) -> None:
    store = _Refusing(_empty(), 0.0)
    made = create_table(store)
    if not is_new:
        transaction = Transaction(1, Append((new_fragment(),)))
        made = commit(store, transaction, CommitOptions(base=made))
    assert made.transaction_file is not None
    assert store.read_whole(transaction_path(made.transaction_file)).size > 0
