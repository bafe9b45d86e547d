"""Tags and branches: names for versions, each a small JSON file under ``_refs/``.

::

    _refs/tags/{tag}.json           a version, of the main line or of a branch
    _refs/branches/{branch}.json    where a branch left its parent; "/" in the name is "%2F"
    tree/{branch}/                  what was committed on the branch since: a table's folder

They lie at the root of the table, also for a handle that stands on a branch.  Keys are written in
camel case, as Lance writes them, and read in either form.  A name is taken by creating its file if
absent, so of two that create one tag, one is told (Lance looks first and writes then).

Source: commit-and-faults reference, 1.1; files of pylance 14.0.2 (ledger F-340).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Protocol, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa

from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    FormatError,
    InvalidRefError,
    NotFoundError,
    RefExistsError,
)
from pennon.io.store import CreatesIfAbsent, Lists, Opens, Writes
from pennon.table.refs.files import (
    Branch,
    Tag,
    parse_branch,
    parse_tag,
    serialize_branch,
    serialize_tag,
)

TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
MAIN = "main"

_MOST_BYTES = 1 << 20
_LONGEST_FILE_NAME = 255
_PARTS = frozenset(
    {"_deletions", "_indices", "_refs", "_transactions", "_versions", "data", "tree"}
)
_SEGMENT = re.compile(r"[\w.\-]+")

R = TypeVar("R")


class RefStore(Opens, Lists, Writes, CreatesIfAbsent, Protocol):
    """The store operations that tags and branches use; clean-up drops them."""


def check_tag_name(name: str) -> str:
    """Return a tag's name if it can be one; raises InvalidRefError."""
    problem = _problem(name)
    if problem is None and (name.startswith(".") or name.endswith(".")):
        problem = "no dot stands at an end"
    return _checked("tag", name, problem)


def check_new_tag_name(name: str) -> str:
    """Return the name of a tag to be made; raises InvalidRefError."""
    return _checked("tag", check_tag_name(name), _too_long(name))


def check_branch_name(name: str) -> str:
    """Return a branch's name if it can be one: segments joined by slashes; raises InvalidRefError."""
    segments = name.split("/") if isinstance(name, str) else [name]
    problem = next(filter(None, map(_problem, segments)), None)
    return _checked("branch", name, "it is the main line's" if name == MAIN else problem)


def check_new_branch_name(name: str) -> str:
    """Return the name of a branch to be made; raises InvalidRefError.

    Branches may lie inside of one another's folders, so none is called like a part of a table.
    """
    if any(part in _PARTS for part in check_branch_name(name).split("/")[1:]):
        return _checked("branch", name, f"{', '.join(sorted(_PARTS))} are folders of tables")
    return _checked("branch", name, _too_long(name))


def tag_path(name: str) -> str:
    """Return the path of a tag's file; raises InvalidRefError."""
    return f"{TAGS}/{_file_name(check_tag_name(name))}"


def branch_path(name: str) -> str:
    """Return the path of a branch's file; raises InvalidRefError."""
    return f"{BRANCHES}/{_file_name(check_branch_name(name))}"


def branch_folder(name: str) -> str:
    """Return the folder that a branch's own files lie in; raises InvalidRefError."""
    return f"{TREE}/{check_branch_name(name)}"


def list_tags(store: RefStore) -> dict[str, Tag]:
    """Return all tags by name; raises FormatError for a damaged file."""
    return _list(store, TAGS, check_tag_name, parse_tag)


def list_branches(store: RefStore) -> dict[str, Branch]:
    """Return all branches by name; raises FormatError for a damaged file."""
    return _list(store, BRANCHES, check_branch_name, parse_branch)


def read_tag(store: Opens, name: str) -> Tag:
    """Return one tag; raises NotFoundError."""
    return _read(store, "tag", name, tag_path(name), parse_tag)


def read_branch(store: Opens, name: str) -> Branch:
    """Return one branch; raises NotFoundError."""
    return _read(store, "branch", name, branch_path(name), parse_branch)


def create_tag(store: RefStore, name: str, tag: Tag) -> None:
    """Take a name for a version; raises RefExistsError if it is taken."""
    _create(store, "tag", name, tag_path(name), serialize_tag(tag))


def create_branch(store: RefStore, name: str, branch: Branch) -> None:
    """Take a name for a branch; raises RefExistsError if it is taken."""
    _create(store, "branch", name, branch_path(name), serialize_branch(branch))


def replace_tag(store: RefStore, name: str, tag: Tag) -> None:
    """Write a tag that exists anew; raises NotFoundError."""
    read_tag(store, name)
    store.put(tag_path(name), serialize_tag(tag))


def replace_branch(store: RefStore, name: str, branch: Branch) -> None:
    """Write a branch that exists anew; raises NotFoundError."""
    read_branch(store, name)
    store.put(branch_path(name), serialize_branch(branch))


def new_identifier(parent: Branch | None, version: int) -> tuple[tuple[int, str], ...]:
    """Return the identifier of a branch that leaves its parent at a version."""
    above = () if parent is None else parent.identifier
    return (*above, (version, secrets.token_hex(16)))


def _problem(segment: object) -> str | None:
    """Return what keeps text from being a tag's name, or a part of a branch's."""
    if not isinstance(segment, str):
        return "it is no text"
    if not segment:
        return "it is empty, or has two slashes beside each other or one at an end"
    if not _SEGMENT.fullmatch(segment):
        return "only letters, digits, '.', '-' and '_' are allowed"
    if segment == "." or ".." in segment:
        return "it has two dots beside each other, or nothing but one"
    return "it ends with .lock" if segment.endswith(".lock") else None


def _file_name(name: str) -> str:
    return f"{quote(name, safe='')}.json"


def _too_long(name: str) -> str | None:
    """Return what keeps a name from being a file's: file systems take no longer ones."""
    size_bytes = len(_file_name(name))
    if size_bytes <= _LONGEST_FILE_NAME:
        return None
    return f"the name of its file would have {size_bytes} bytes, and {_LONGEST_FILE_NAME} is the maximum; use a shorter name"


def _checked(kind: str, name: str, problem: str | None) -> str:
    if problem is not None:
        shown = name[:200] if isinstance(name, str) else name
        message = f"{shown!r} is no name for a {kind}: {problem}"
        raise InvalidRefError(message)
    return name


def _list(
    store: RefStore, folder: str, check: Callable[[str], str], parse: Callable[[bytes], R]
) -> dict[str, R]:
    found = {}
    for path, _ in store.list_names(folder):
        name = path.removeprefix(f"{folder}/")
        if name.endswith(".json") and "/" not in name:
            found[_name_of_file(path, name, check)] = _parse_at(store, path, parse)
    return found


def _name_of_file(path: str, file_name: str, check: Callable[[str], str]) -> str:
    try:
        return check(unquote(file_name.removesuffix(".json")))
    except InvalidRefError as error:
        raise FormatError(error.message, where=Breadcrumb(file=path)) from error


def _read(store: Opens, kind: str, name: str, path: str, parse: Callable[[bytes], R]) -> R:
    try:
        return _parse_at(store, path, parse)
    except NotFoundError:
        message = f"{kind} {name} does not exist"
        raise NotFoundError(message) from None


def _parse_at(store: Opens, path: str, parse: Callable[[bytes], R]) -> R:
    data = store.read_whole(path)
    try:
        return parse(_small(data))
    except FormatError as error:
        raise error.located(Breadcrumb(file=path)) from error.__cause__


def _small(data: pa.Buffer) -> bytes:
    if data.size > _MOST_BYTES:
        message = f"a tag or branch is no file of {data.size} bytes"
        raise FormatError(message)
    small: bytes = data.to_pybytes()
    return small


def _create(store: RefStore, kind: str, name: str, path: str, data: bytes) -> None:
    try:
        store.put_if_absent(path, data)
    except AlreadyExistsError:
        if store.read_whole(path).to_pybytes() == data:
            return  # our own write, whose answer was lost
        message = f"{kind} {name} already exists"
        raise RefExistsError(message) from None
