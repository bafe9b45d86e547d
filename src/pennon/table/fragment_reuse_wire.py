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
from pennon.table.message_wire import parse_message, serialize_message, unknown_fields

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


def serialize_reuse_versions(versions: Iterable[ReuseVersion]) -> bytes:
    """Return versions as a file has them."""
    content = _Proto.InlineContent()
    for version in versions:
        message = content.versions.add(dataset_version=version.dataset_version)
        for group in version.groups:
            message.groups.add(
                changed_row_addrs=group.kept,
                old_fragments=map(_digest, group.old),
                new_fragments=map(_digest, group.new),
            )
    return serialize_message(content)


def inline_details(content: bytes) -> bytes:
    """Return details that hold the versions, as `serialize_reuse_versions` gives them."""
    inline = parse_message(_Proto.InlineContent, content)
    return serialize_message(_Proto(inline=inline))


def external_details(file: ExternalFile) -> bytes:
    """Return details that say where the versions are; the path is relative to the index's folder."""
    external = table_pb2.ExternalFile(path=file.path, offset=file.offset, size=file.size_bytes)
    return serialize_message(_Proto(external=external))


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


def _digest(fragment: FragmentDigest) -> table_pb2.FragmentReuseIndexDetails.FragmentDigest:
    return _Proto.FragmentDigest(
        id=fragment.id, physical_rows=fragment.physical_rows, num_deleted_rows=fragment.deleted_rows
    )


def _check_known(message: Message) -> None:
    """Raise UnsupportedError if there is more in it: then rows may have moved in ways not known here."""
    if unknown_fields(message):
        text = "a fragment reuse index has fields that Pennon does not know"
        raise UnsupportedError(text)
