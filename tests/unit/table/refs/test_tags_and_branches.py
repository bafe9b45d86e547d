"""Files of tags and branches: damage is refused, and names stay in their folder."""

from __future__ import annotations

import json
import random
import uuid
from contextlib import suppress

import pytest

from pennon.errors import FormatError, InvalidRefError, NotFoundError, RefExistsError
from pennon.io import MemoryStore
from pennon.table.refs.files import (
    Branch,
    Tag,
    parse_branch,
    parse_tag,
    serialize_branch,
    serialize_tag,
)
from pennon.table.refs.tags_and_branches import (
    branch_folder,
    branch_path,
    check_new_branch_name,
    create_tag,
    list_branches,
    list_tags,
    read_tag,
    replace_tag,
    tag_path,
)

SNAKE = b"""{"branch": null, "version": 3, "manifest_size": 9, "created_at": "2026-01-02T03:04:05.123456789Z"}"""


def _store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "")


def test_tag_and_branch_keys_in_snake_and_camel_case_are_read() -> None:
    tag = parse_tag(SNAKE)
    assert (tag.version, tag.manifest_size, tag.branch) == (3, 9, None)
    assert tag.created_at is not None
    assert tag.created_at.isoformat() == "2026-01-02T03:04:05.123456+00:00"
    branch = parse_branch(b'{"parent_version": 2, "create_at": 7, "parent_branch": "a/b"}')
    assert branch == Branch("a/b", 2, 7)


def test_tag_and_branch_are_written_and_read() -> None:
    tag = parse_tag(SNAKE)
    assert parse_tag(serialize_tag(tag)) == tag
    branch = Branch("p", 2, 7, 11, ((1, "aa"), (2, "bb")), {"ä": "ö"})
    assert parse_branch(serialize_branch(branch)) == branch


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"version": "1"}',
        b'{"version": true}',
        b'{"version": -1}',
        b'{"version": 18446744073709551616}',
        b'{"version": 1, "branch": 5}',
        b'{"version": 1, "metadata": {"a": 1}}',
        b'{"version": 1, "createdAt": "yesterday"}',
    ],
)
def test_damaged_tags_are_refused(data: bytes) -> None:
    store = _store()
    store.put("_refs/tags/t.json", data)
    for read in (lambda: read_tag(store, "t"), lambda: list_tags(store)):
        with pytest.raises(FormatError, match=r"_refs/tags/t\.json"):
            read()


@pytest.mark.parametrize(
    "identifier", [[1], {"version_mapping": [[1]]}, {"version_mapping": [["1", "a"]]}]
)
def test_damaged_branches_are_refused(identifier: object) -> None:
    text = json.dumps({"parentVersion": 1, "identifier": identifier})
    with pytest.raises(FormatError):
        parse_branch(text.encode())


def test_damaged_tag_raises_format_error_or_parses() -> None:
    pick = random.Random(5)
    whole = serialize_tag(Tag("b", 2, parse_tag(SNAKE).created_at, None, 400, {"k": "v"}))
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(pick.randint(1, 3)):
            data[pick.randrange(len(data))] = pick.randrange(256)
        with suppress(FormatError):
            assert isinstance(parse_tag(bytes(data)), Tag)


def test_tag_listing_ignores_other_files_and_refuses_bad_names() -> None:
    """A name that could not be made is damage; what is no JSON file is another's."""
    store = _store()
    store.put("_refs/tags/readme.txt", b"")
    store.put("_refs/tags/deeper/x.json", b"")
    assert list_tags(store) == {}
    store.put("_refs/branches/a%20b.json", b'{"parentVersion": 1}')
    with pytest.raises(FormatError):
        list_branches(store)


@pytest.mark.parametrize("name", ["../x", "a/../b", "/a", "a//b", "a\\b", "main", "a b", ""])
def test_tag_and_branch_names_outside_their_folder_are_refused(name: str) -> None:
    with pytest.raises(InvalidRefError):
        branch_folder(name)
    if name != "main":
        with pytest.raises(InvalidRefError):
            tag_path(name)


def test_a_branch_is_not_called_like_a_tables_folder() -> None:
    """``dev/_versions`` would lie among the manifests of the branch ``dev``."""
    assert check_new_branch_name("data") == "data"
    for name in ("dev/_versions", "dev/data", "dev/tree/x"):
        with pytest.raises(InvalidRefError):
            check_new_branch_name(name)


def test_branch_path_is_percent_encoded_as_in_pylance() -> None:
    assert branch_path("dev/ä") == "_refs/branches/dev%2F%C3%A4.json"


def test_tag_creation_and_replacement() -> None:
    store = _store()
    tag = parse_tag(SNAKE)
    create_tag(store, "t", tag)
    create_tag(store, "t", tag)  # the same bytes: our own write, whose answer was lost
    with pytest.raises(RefExistsError):
        create_tag(store, "t", Tag(None, 4))
    with pytest.raises(NotFoundError):
        replace_tag(store, "other", tag)
    replace_tag(store, "t", Tag(None, 4))
    assert read_tag(store, "t").version == 4
