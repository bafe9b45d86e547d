"""Every file that a manifest names, found by walking its messages as the descriptors lay them out.

A kind of reference that is added to table.proto is so either found, because it uses a message that
is known to name files, or makes a test fail (`tests/unit/table/test_named_files_wire.py`); and a manifest
with fields that this release does not know is refused, because they may name files, too.

==================  ===========================================================================
message             names
==================  ===========================================================================
DataFile            ``data/{path}``, and what lies in ``data/{path without .lance}/`` (blobs)
DataFragment        ``_deletions/{id}-{read_version}-{id}.arrow`` or ``.bin``
ExternalFile        ``{path}``
Manifest            ``_transactions/{transaction_file}``
IndexMetadata       what lies in ``_indices/{uuid}/``
==================  ===========================================================================

What has a ``base_id`` lies in another place, which may be this one under another name.  So such a
file is known by its last name only: all of them hold a uuid.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.core.fast_dataclass import dataclass
from pennon.errors import UnsupportedError
from pennon.proto import table_pb2
from pennon.table.fragment import DeletionKind

_HARMLESS = frozenset({("lance.file.Field", 11), ("lance.table.Manifest", 17)})
"""Fields that are not in the messages: how a column was stored once, and the version of the nested table.

No file of the nested table is ever deleted (`pennon.table.blob_table`).
"""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of files: whole paths, folders with all in them, and last names of files elsewhere."""

    paths: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def add(self, others: Names) -> None:
        """Add other names to these."""
        self.paths.update(others.paths)
        self.folders.update(others.folders)
        self.elsewhere.update(others.elsewhere)

    def name(self, path: str) -> bool:
        """Tell whether a path is one of those named here."""
        if path in self.paths:
            return True
        return any(folder in self.folders for folder in _folders_above(path))

    def may_name(self, path: str) -> bool:
        """Return whether these names may contain a path, in any spelling."""
        return self.name(path) or not self.elsewhere.isdisjoint(path.split("/"))


def read_names(proto: table_pb2.Manifest, indices: table_pb2.IndexSection) -> Names:
    """Return the files that a manifest names; raises UnsupportedError if it may name others."""
    found = Names()
    for message in (proto, indices):
        _check_known(message)
        _collect(message, found)
    return found


def _collect(message: Message, found: Names) -> None:
    collect = _NAMED_BY.get(message.DESCRIPTOR.full_name)
    if collect is not None:
        collect(message, found)
    for name, repeated in _ways(message.DESCRIPTOR):
        if repeated:
            for each in getattr(message, name):
                _collect(each, found)
        elif message.HasField(name):
            _collect(getattr(message, name), found)


@cache
def _ways(descriptor: Descriptor) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a message that lead to a message that names files."""
    return tuple(
        (each.name, each.is_repeated)
        for each in descriptor.fields
        if each.message_type is not None
        and any(known in _NAMED_BY for known in reachable(each.message_type))
    )


@cache
def reachable(descriptor: Descriptor) -> frozenset[str]:
    """Return the names of a message and of all that it may hold."""
    found: dict[str, Descriptor] = {}
    left = [descriptor]
    while left:
        each = left.pop()
        if each.full_name not in found:
            found[each.full_name] = each
            left += [it.message_type for it in each.fields if it.message_type is not None]
    return frozenset(found)


def _data_file(message: table_pb2.DataFile, found: Names) -> None:
    if message.HasField("base_id"):
        name = message.path.rpartition("/")[2]
        found.elsewhere.update((name, name.removesuffix(".lance")))
    else:
        path = f"data/{message.path}"
        found.paths.add(path)
        found.folders.add(path.removesuffix(".lance"))


def _fragment(message: table_pb2.DataFragment, found: Names) -> None:
    if not message.HasField("deletion_file"):
        return
    deletion = message.deletion_file
    suffix = "arrow" if int(deletion.file_type) == int(DeletionKind.ARROW) else "bin"
    name = f"{message.id}-{deletion.read_version}-{deletion.id}.{suffix}"
    if deletion.HasField("base_id"):
        found.elsewhere.add(name)
    else:
        found.paths.add(f"_deletions/{name}")


def _external_file(message: table_pb2.ExternalFile, found: Names) -> None:
    found.paths.add(message.path)
    found.elsewhere.add(message.path.rpartition("/")[2])


def _manifest(message: table_pb2.Manifest, found: Names) -> None:
    if message.transaction_file:
        found.paths.add(f"_transactions/{message.transaction_file}")


def _index(message: table_pb2.IndexMetadata, found: Names) -> None:
    name = str(uuid.UUID(bytes=message.uuid.uuid[:16].ljust(16, b"\0")))
    if message.HasField("base_id"):
        found.elsewhere.add(name)
    else:
        found.folders.add(f"_indices/{name}")


_NAMED_BY: Mapping[str, Callable[[Any, Names], None]] = {
    "lance.table.DataFile": _data_file,
    "lance.table.DataFragment": _fragment,
    "lance.table.ExternalFile": _external_file,
    "lance.table.Manifest": _manifest,
    "lance.table.IndexMetadata": _index,
}


def _check_known(message: Message) -> None:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() == message.ByteSize():
        return
    others = sorted(set(_unknown(message)) - _HARMLESS)
    if others:
        listed = ", ".join(f"{number} of {name}" for name, number in others[:5])
        text = f"a manifest has fields that may name files, which Pennon does not know: {listed}"
        raise UnsupportedError(text)


def _unknown(message: Message) -> Iterator[tuple[str, int]]:
    unknown: Any = UnknownFieldSet(message)
    for each in unknown:
        yield message.DESCRIPTOR.full_name, each.field_number
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            continue
        for inner in value if descriptor.is_repeated else [value]:
            yield from _unknown(inner)


def _folders_above(path: str) -> Iterator[str]:
    at = path.rfind("/")
    while at > 0:
        yield path[:at]
        at = path.rfind("/", 0, at)
