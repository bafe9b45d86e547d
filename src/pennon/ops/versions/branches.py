"""Branches, tables that begin as a version of another, and versions that become the newest again.

A branch is a table's folder of its own, ``tree/{branch}/``, whose first version names the files of
the version that it left, through a base path (`pennon.table.base_paths`).  A shallow clone is the same in
another place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pennon.errors import AlreadyExistsError, ArgumentError, NotFoundError, RefExistsError
from pennon.io.store import Store
from pennon.ops.commit import commit_transaction
from pennon.ops.held import held
from pennon.ops.versions.refs import (
    Point,
    Reference,
    check_texts,
    held_too_long,
    measure,
    open_point,
    open_version,
    resolve,
)
from pennon.scan.snapshot import Snapshot
from pennon.table.base_paths import absolute_uri, branch_store, place_store, root_of, trust_of
from pennon.table.fragment import Sequence
from pennon.table.manifest import Manifest
from pennon.table.operations import Clone, Restore
from pennon.table.refs.files import Branch
from pennon.table.refs.tags_and_branches import (
    branch_folder,
    branch_path,
    check_new_branch_name,
    create_branch,
    list_branches,
    list_tags,
    new_identifier,
    read_branch,
    replace_branch,
)
from pennon.table.row_ids.decode_wire import read_sequence
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import latest_version, list_locations, read_manifest


def make_branch(snapshot: Snapshot, name: str, reference: Reference) -> Snapshot:
    """Make a branch that leaves at a version, and return its first version.

    The branch's manifest is made first and its name after, so a name always leads somewhere.  A
    branch that was left without its name, by a crash in between, gets it now.  Raises RefExistsError,
    NotFoundError, InvalidRefError, and RetryableConflict if a clean-up is removing the version.
    """
    check_new_branch_name(name)
    root = root_of(snapshot.store)
    if name in list_branches(root):
        message = f"branch {name} already exists"
        raise RefExistsError(message)
    point = resolve(snapshot, reference)
    source = open_point(snapshot, point)
    parent = None if point.branch is None else read_branch(root, point.branch)
    version = source.manifest.version
    home = branch_store(root, name)
    clone = _clone_of(source, name)
    with held(branch_store(root, point.branch), version) as hold:
        _, size_bytes = measure(snapshot, Point(point.branch, version))
        manifest = _left_unnamed(home, clone) or _commit_clone(source, home, clone)
        now = int(datetime.now(UTC).timestamp())
        identifier = new_identifier(parent, version)
        create_branch(root, name, Branch(point.branch, version, now, size_bytes, identifier))
        if not hold.lasts():
            root.delete(branch_path(name))
            raise held_too_long(snapshot, point.branch, version)
    placed = place_store(home, manifest, trust_of(snapshot.store))
    return Snapshot(placed, manifest, snapshot.session)


def clone_shallow(snapshot: Snapshot, reference: Reference, target: Store) -> str:
    """Make a version the first one of a table at another place; its files stay where they are.

    Returns the place of those files, which whoever opens the clone must trust.
    Raises NotFoundError if there is no such version, AlreadyExistsError if there is a table.
    """
    source = open_version(snapshot, reference)
    _commit_clone(source, target, _clone_of(source, None))
    return absolute_uri(root_of(source.store))


def restore(snapshot: Snapshot, properties: Mapping[str, str] | None = None) -> Manifest:
    """Commit that the snapshot's version is the newest again, and return the version made.

    What was committed since is no part of it, also what comes in while this runs: a restore conflicts
    with nothing.  No file is written but the manifest.
    """
    store = snapshot.store
    operation = Restore(snapshot.manifest.version)
    transaction = Transaction(latest_version(store), operation, properties=properties or {})
    return commit_transaction(store, transaction, base=snapshot.manifest)


def _clone_of(source: Snapshot, branch: str | None) -> Clone:
    manifest = source.manifest
    return Clone(
        is_shallow=True,
        ref_name=manifest.branch,
        ref_version=manifest.version,
        ref_path=absolute_uri(source.store),
        branch_name=branch,
    )


def _commit_clone(source: Snapshot, home: Store, clone: Clone) -> Manifest:
    transaction = Transaction(clone.ref_version, clone)
    past = _with_inline_sequences(source)
    return commit_transaction(home, transaction, past=past, counted_in=source.store)


def commit_copy(target: Store, source: Snapshot, copied: Manifest) -> Manifest:
    """Make a version whose files were copied the first one of the table at ``target``."""
    clone = replace(_clone_of(source, None), is_shallow=False)
    transaction = Transaction(clone.ref_version, clone)
    return commit_transaction(target, transaction, past=copied, counted_in=source.store)


def _with_inline_sequences(source: Snapshot) -> Manifest:
    """Return the version with row ids and versions that lie in files put into the manifest.

    Such a file is named without a base path, so a clone could not find it.
    """
    manifest = source.manifest

    def inline(sequence: Sequence | None) -> Sequence | None:
        return None if sequence is None else read_sequence(source.store, sequence)

    fragments = tuple(
        replace(
            fragment,
            row_ids=inline(fragment.row_ids),
            created_at_versions=inline(fragment.created_at_versions),
            last_updated_at_versions=inline(fragment.last_updated_at_versions),
        )
        for fragment in manifest.fragments
    )
    return replace(manifest, fragments=fragments)


def _left_unnamed(home: Store, clone: Clone) -> Manifest | None:
    """Return the only version of a branch that has no name, if it is the one to be made."""
    found = list_locations(home)
    if not found:
        return None
    manifest = read_manifest(home)
    made = find_transaction(home, manifest)
    if len(found) == 1 and made is not None and made.operation == clone:
        return manifest
    message = f"{home.uri!r} holds versions, though no branch of that name exists; drop it first"
    raise AlreadyExistsError(message)


def branches_of(snapshot: Snapshot) -> dict[str, Branch]:
    """Return all branches of the table by name."""
    return list_branches(root_of(snapshot.store))


def describe_branch(snapshot: Snapshot, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a branch; raises TypeError for what is no text."""
    root = root_of(snapshot.store)
    described = replace(read_branch(root, name), metadata=check_texts(metadata))
    replace_branch(root, name, described)


def drop_branch(snapshot: Snapshot, name: str) -> None:
    """Drop a branch: its name first, then its own files; a half-done drop is finished.

    Raises NotFoundError, and RefExistsError if branches that left it still stand on its files, or
    tags name its versions.
    """
    root = root_of(snapshot.store)
    path, folder = branch_path(name), branch_folder(name)
    branches = list_branches(root)
    children = sorted(each for each, it in branches.items() if it.parent_branch == name)
    if children:
        message = f"branch {name} is the parent of {', '.join(children)}, and cannot be dropped"
        raise RefExistsError(message)
    tags = sorted(each for each, it in list_tags(root).items() if it.branch == name)
    if tags:
        message = f"tags name versions of branch {name}: {', '.join(tags)}; delete them first"
        raise RefExistsError(message)
    others = [f"{branch_folder(each)}/" for each in branches if each != name]
    files = [info.path for info in root.list(folder)]
    mine = [file for file in files if not file.startswith(tuple(others))]
    if name not in branches and not mine:
        message = f"branch {name} does not exist"
        raise NotFoundError(message)
    if snapshot.manifest.branch == name:
        message = f"this handle stands on branch {name}; drop it from another one"
        raise ArgumentError(message)
    root.delete(path)
    for file in mine:
        root.delete(file)
