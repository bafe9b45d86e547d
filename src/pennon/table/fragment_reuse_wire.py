"""The details of the index `FRAGMENT_REUSE` as messages of table.proto, both ways.

They hold the versions themselves, or say in which file of the index's folder they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from pennon.core.units import FragmentId
from pennon.errors import FormatError, UnsupportedError
from pennon.proto import table_pb2
from pennon.table.fragment import ExternalFile
from pennon.table.fragment_reuse import FragmentDigest, ReuseGroup, ReuseVersion
from pennon.table.message_wire import parse_message, unknown_fields

_Proto = table_pb2.FragmentReuseIndexDetails


def parse_reuse(details: bytes) -> tuple[ReuseVersion, ...] | ExternalFile:
    """Return the versions, or where they are: a file whose path is relative to the index's folder.

    Raises FormatError, UnsupportedError for what newer writers put there.
    """
    message = parse_message(_Proto, details)
    _check_known(message)
    if message.HasField("external"):
        file = message.external
        return ExternalFile(file.path, file.offset, file.size)
    if not message.HasField("inline"):
        text = "a fragment reuse index says neither which fragments became which, nor where that stands"
        raise FormatError(text)
    return _versions(message.inline)


def parse_reuse_versions(content: bytes) -> tuple[ReuseVersion, ...]:
    """Return the versions in a file; raises as `parse_reuse` does."""
    return _versions(parse_message(_Proto.InlineContent, content))


def _versions(
    content: table_pb2.FragmentReuseIndexDetails.InlineContent,
) -> tuple[ReuseVersion, ...]:
    _check_known(content)
    return tuple(map(_version, content.versions))


def _version(message: table_pb2.FragmentReuseIndexDetails.Version) -> ReuseVersion:
    _check_known(message)
    return ReuseVersion(message.dataset_version, tuple(map(_group, message.groups)))


def _group(message: table_pb2.FragmentReuseIndexDetails.Group) -> ReuseGroup:
    _check_known(message)
    old, new = _digests(message.old_fragments), _digests(message.new_fragments)
    return ReuseGroup(message.changed_row_addrs, old, new)


def _digests(
    messages: Iterable[table_pb2.FragmentReuseIndexDetails.FragmentDigest],
) -> tuple[FragmentDigest, ...]:
    return tuple(
        FragmentDigest(FragmentId(each.id), each.physical_rows, each.num_deleted_rows)
        for each in messages
    )


def _check_known(message: Message) -> None:
    """Raise UnsupportedError if there is more in it: then rows may have moved in ways not known here."""
    if unknown_fields(message):
        text = "a fragment reuse index has fields that Pennon does not know"
        raise UnsupportedError(text)
