"""Changes of a catalog that a failing store cuts short: names and tables stay whole, and the change can be run again."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

import pennon
from pennon.catalog import DirectoryCatalog
from pennon.errors import AlreadyExistsError, LanceError, NotFoundError
from pennon.io.memory import MemoryStore
from pennon.testing import Fault, FaultyStore
from tests.unit.catalog.catalog_contract import ROWS

Change = Callable[[DirectoryCatalog], object]
CHANGES: dict[str, Change] = {
    "create namespace": lambda c: c.create_namespace(("ns", "new")),
    "drop namespace": lambda c: c.drop_namespace(("ns", "empty")),
    "declare": lambda c: c.declare_table(("ns", "new")),
    "declare in the root": lambda c: c.declare_table(("new",)),
    "rename": lambda c: c.rename_table(("ns", "t"), ("ns", "u")),
    "deregister": lambda c: c.deregister_table(("ns", "t")),
    "deregister in the root": lambda c: c.deregister_table(("t",)),
    "drop": lambda c: c.drop_table(("ns", "t")),
    "drop in the root": lambda c: c.drop_table(("t",)),
}


@pytest.fixture(scope="module")
def template() -> MemoryStore:
    """A catalog to be copied."""
    store = MemoryStore(uuid.uuid4().hex)
    catalog = DirectoryCatalog(store.uri)
    catalog.create_namespace(("ns",))
    catalog.create_namespace(("ns", "empty"))
    for name in (("t",), ("other",), ("ns", "t"), ("ns", "other")):
        pennon.write_dataset(ROWS, catalog.declare_table(name).location)
    return store


def copy_of(template: MemoryStore) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex)
    for path, _ in template.list_names(""):
        store.put(path, template.read_whole(path).to_pybytes())
    return store


def content(catalog: DirectoryCatalog) -> tuple[object, ...]:
    """All names, and the rows of the tables that no change touches."""
    others = [catalog.describe_table(name).location for name in (("other",), ("ns", "other"))]
    counts = [pennon.dataset(each).count_rows() for each in others]
    spaces = catalog.list_namespaces(("ns",))
    return catalog.list_tables(), catalog.list_tables(("ns",)), spaces, counts


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_catalog_cut_short_is_whole_after_another_run(
    name: str, moment: str, template: MemoryStore
) -> None:
    change = CHANGES[name]
    catalog = DirectoryCatalog(copy_of(template).uri)
    before = content(catalog)
    change(catalog)
    after = content(catalog)
    assert before != after
    number, is_over = 1, False
    while not is_over:
        store = copy_of(template)
        catalog = DirectoryCatalog(store.uri)
        faulty = FaultyStore(store, Fault(number, moment))
        try:
            change(DirectoryCatalog.on_store(faulty))
        except LanceError:
            assert faulty.fired
        is_over = faulty.calls < number
        found = content(catalog)
        assert found in (before, after), (number, found)
        try:
            change(catalog)
        except (AlreadyExistsError, NotFoundError):
            assert found == after, number
        assert content(catalog) == after, number
        number += 1 + number // 8
    assert number > 3
