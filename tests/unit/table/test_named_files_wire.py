"""Every file that a manifest names, and every field that may hold a name."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from pennon.errors import UnsupportedError
from pennon.proto import table_pb2
from pennon.table.named_files_wire import read_names

TEXT = {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}

NAMES = """
    lance.table.DataFile.path
    lance.table.ExternalFile.path
    lance.table.Manifest.transaction_file
    lance.table.UUID.uuid
"""
"""Fields that name files: `pennon.table.named_files_wire` collects them (UUID is that of an index)."""

PLACES = """
    lance.table.BasePath.name
    lance.table.BasePath.path
"""
"""Fields that name other places, where nothing is deleted."""

NO_NAMES = """
    google.protobuf.Any.type_url google.protobuf.Any.value
    lance.file.Field.MetadataEntry.key lance.file.Field.MetadataEntry.value
    lance.file.Field.extension_name lance.file.Field.logical_type lance.file.Field.name
    lance.table.DataFragment.inline_created_at_versions
    lance.table.DataFragment.inline_last_updated_at_versions
    lance.table.DataFragment.inline_row_ids
    lance.table.IndexFile.path
    lance.table.IndexMetadata.fragment_bitmap lance.table.IndexMetadata.name
    lance.table.Manifest.ConfigEntry.key lance.table.Manifest.ConfigEntry.value
    lance.table.Manifest.DataStorageFormat.file_format
    lance.table.Manifest.DataStorageFormat.version
    lance.table.Manifest.SchemaMetadataEntry.key lance.table.Manifest.SchemaMetadataEntry.value
    lance.table.Manifest.TableMetadataEntry.key lance.table.Manifest.TableMetadataEntry.value
    lance.table.Manifest.WriterVersion.build_metadata lance.table.Manifest.WriterVersion.library
    lance.table.Manifest.WriterVersion.prerelease lance.table.Manifest.WriterVersion.version
    lance.table.Manifest.branch lance.table.Manifest.tag
"""
"""Fields of text or bytes that name no file."""


def texts(descriptor: Descriptor, seen: set[str]) -> set[str]:
    """Return all fields of text or bytes in a message and in those that it may hold."""
    found: set[str] = set()
    if descriptor.full_name not in seen:
        seen.add(descriptor.full_name)
        for field in descriptor.fields:
            if field.type in TEXT:
                found.add(field.full_name)
            elif field.message_type is not None:
                found |= texts(field.message_type, seen)
    return found


def test_named_files_know_every_manifest_field() -> None:
    """Clean-up deletes what nobody names: say of every new field whether it names files.

    If it does, teach `pennon.table.named_files_wire` to collect it.
    """
    seen: set[str] = set()
    found = texts(table_pb2.Manifest.DESCRIPTOR, seen)
    found |= texts(table_pb2.IndexSection.DESCRIPTOR, seen)
    assert found == {*NAMES.split(), *PLACES.split(), *NO_NAMES.split()}


def test_deletion_file_message_has_no_path_fields() -> None:
    fields = [field.name for field in table_pb2.DeletionFile.DESCRIPTOR.fields]
    assert fields == ["file_type", "read_version", "id", "num_deleted_rows", "base_id"]


def test_named_files_of_a_manifest_include_every_kind() -> None:
    proto = table_pb2.Manifest(transaction_file="1-a.txn")
    fragment = proto.fragments.add(id=7)
    fragment.files.add(path="x.lance")
    fragment.files.add(path="y.lance", base_id=2)
    fragment.deletion_file.read_version, fragment.deletion_file.id = 3, 4
    fragment.external_row_ids.path = "data/ids.bin"
    other = proto.fragments.add(id=8)
    other.deletion_file.file_type = table_pb2.DeletionFile.BITMAP
    other.deletion_file.base_id = 2
    indices = table_pb2.IndexSection()
    indices.indices.add().uuid.uuid = bytes(range(16))
    indices.indices.add(base_id=2).uuid.uuid = bytes(range(1, 17))
    names = read_names(proto, indices)
    uuid, based = "00010203-0405-0607-0809-0a0b0c0d0e0f", "01020304-0506-0708-090a-0b0c0d0e0f10"
    mine = [
        "_transactions/1-a.txn",
        "_deletions/7-3-4.arrow",
        "data/ids.bin",
        "data/x.lance",
        "data/x/1.blob",
        f"_indices/{uuid}/deep/page.lance",
    ]
    elsewhere = [
        "data/y.lance",
        "data/y/1.blob",
        "y.lance",
        "_deletions/8-0-0.bin",
        f"_indices/{based}/page.lance",
    ]
    assert all(names.name(path) and names.may_name(path) for path in mine)
    assert all(names.may_name(path) and not names.name(path) for path in elsewhere)
    nobody = ["data/z.lance", "data/x", "data/xx/1.blob", "_deletions/7-3-4.bin", "_indices/a/b"]
    assert not any(names.may_name(path) for path in nobody)


def test_fields_of_newer_writers() -> None:
    proto, indices = table_pb2.Manifest(), table_pb2.IndexSection()
    proto.fields.add().MergeFromString(b"\x5a\x03abc")  # field 11: how a column was stored once
    read_names(proto, indices)
    proto.fragments.add().files.add().MergeFromString(b"\xfa\x3e\x03abc")
    with pytest.raises(UnsupportedError, match=r"1007 of lance\.table\.DataFile"):
        read_names(proto, indices)
