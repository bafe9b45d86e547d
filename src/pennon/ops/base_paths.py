"""Base paths: adding some to a table, and writing data files into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pennon.errors import ArgumentError
from pennon.io.trust import remember_named
from pennon.ops.commit import commit_on
from pennon.ops.write import WriteMode, WritePlan, WriteTask
from pennon.scan.snapshot import Snapshot
from pennon.table.apply.settings import with_new_bases
from pennon.table.base_paths import BasedStore, Trust, below, place_store, root_of, trust_of
from pennon.table.fragment import BasePath
from pennon.table.operations import UpdateBases


def add_bases(
    snapshot: Snapshot, bases: tuple[BasePath, ...], properties: Mapping[str, str]
) -> Snapshot:
    """Commit further places for files, which the caller trusts, and return the version made.

    Raises IncompatibleConflict if another writer took an id, a name or a path of them meanwhile.
    """
    manifest = commit_on(snapshot, UpdateBases(bases), properties=properties)
    return trusting(snapshot.at(manifest), [base.path for base in bases])


def trusting(snapshot: Snapshot, places: Sequence[str]) -> Snapshot:
    """Return a version, read by who named these places for the table."""
    remember_named(root_of(snapshot.store).uri, places)
    trust = trust_of(snapshot.store) or Trust.given(None, None)
    placed = place_store(snapshot.store, snapshot.manifest, trust.naming(places))
    return Snapshot(placed, snapshot.manifest, snapshot.session)


def with_base_paths(
    plan: WritePlan, new: Sequence[BasePath], storage_options: Mapping[str, str] | None
) -> WritePlan:
    """Plan to give a table that is about to be made base paths, which the caller trusts.

    Raises ArgumentError for any other write, and for paths that clash.
    """
    if plan.mode is not WriteMode.CREATE:
        message = "only a new table (mode='create') can be given base paths; others: `add_bases`"
        raise ArgumentError(message)
    bases = with_new_bases((), new)
    named = [base.path for base in bases]
    remember_named(plan.task.store.uri, named)
    trust = Trust.given(None, storage_options).naming(named)
    store = BasedStore(plan.task.store, bases, trust)
    blobs = replace(plan.task.blobs, bases=bases)
    return replace(plan, task=replace(plan.task, store=store, blobs=blobs), base_paths=bases)


@dataclass(frozen=True, slots=True)
class Targets:
    """The base paths that new data files go to, one after the other.

    ``names``: names, paths, or the table's own URI for its own folder; None stands for all base paths, and with
    ``include_primary`` for the table's own folder before them.
    """

    names: tuple[str, ...] | None
    include_primary: bool = True


def into_bases(
    plan: WritePlan, targets: Sequence[str] | None, storage_options: Mapping[str, str] | None
) -> WritePlan:
    """Plan to write data files into base paths, each file into the next one.

    ``targets`` are names or paths of theirs; None stands for all, and the table's own folder.  Who names
    a path trusts it; others must be trusted before, for the table says where they are.

    Raises ArgumentError for what the table does not have.
    """
    bases = plan.base_paths if plan.base is None else plan.base.base_paths
    wanted = Targets(tuple(targets) if targets else None)
    return replace(plan, task=task_into_bases(plan.task, bases, wanted, storage_options))


def task_into_bases(
    task: WriteTask,
    bases: Sequence[BasePath],
    targets: Targets,
    storage_options: Mapping[str, str] | None = None,
) -> WriteTask:
    """Return a task whose data files go to some of the base paths of a table; see `into_bases`."""
    store = task.store
    home = store.inner if isinstance(store, BasedStore) else store
    root = root_of(home).uri
    names = targets.names or ()
    found = [None if below(name, root) == "" else _find(bases, name) for name in names]
    ids: tuple[int | None, ...] = tuple(None if base is None else base.id for base in found)
    if targets.names is None:
        own = (None,) if targets.include_primary else ()
        ids = (*own, *sorted(base.id for base in bases))
    if not ids:
        message = "the table has no base path besides its own folder; `add_bases` gives it some"
        raise ArgumentError(message)
    pairs = zip(found, names, strict=True)
    named = [base.path for base, it in pairs if base is not None and it != base.name]
    trust = trust_of(store) or Trust.given(None, storage_options)
    remember_named(root, named)
    placed = BasedStore(home, tuple(bases), trust.naming(named))
    return replace(task, store=placed, bases=ids)


def _find(bases: Sequence[BasePath], target: str) -> BasePath:
    for base in bases:
        if target == base.name or below(target, base.path) == "":
            return base
    known = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    message = f"the table has no base path {target!r}; its base paths are: {known}"
    raise ArgumentError(message)
