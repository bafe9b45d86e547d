"""Manifest files: of other writers, of Pennon, and damaged."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.errors import FormatError, UnsupportedError
from pennon.proto import table_pb2
from pennon.schema.field import Schema
from pennon.table.fragment import DataFileRef, DeletionFileRef, DeletionKind, Fragment
from pennon.table.manifest import Manifest, WriterVersion
from pennon.table.manifest_wire import (
    parse_manifest_file,
    serialize_manifest_file,
    summarize_manifest_file,
)
from tests.unit.table.tables import SCHEMA, new_fragment

OLD = Path(__file__).parent / "old_releases"
OLD_MANIFESTS = sorted(OLD.rglob("*.manifest"))
POSITIONS = ("index_section", "inline_transaction", "transaction_section")


def message_of(data: bytes) -> table_pb2.Manifest:
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    return table_pb2.Manifest.FromString(data[position + 4 : -16])


def file_of(message: table_pb2.Manifest, before: bytes = b"") -> bytes:
    body = message.SerializeToString()
    head = before + struct.pack("<I", len(body)) + body
    return head + struct.pack("<QHH", len(before), 0, 2) + b"LANC"


def without_positions(data: bytes) -> table_pb2.Manifest:
    message = message_of(data)
    for name in POSITIONS:
        message.ClearField(name)  # type: ignore[arg-type]
    message.timestamp.SetInParent()
    return message


@pytest.fixture(scope="module")
def oracle_manifests(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the manifests of a table with all that pylance 14 puts into them."""
    root = str(tmp_path_factory.mktemp("oracle") / "t.lance")
    rows = pa.table({"a": range(20), "s": [str(i) for i in range(20)]})
    rows = rows.replace_schema_metadata({"k": "v"})
    lance.write_dataset(rows, root, data_storage_version="2.0", enable_stable_row_ids=True)
    table = lance.write_dataset(rows, root, mode="append")
    table.create_scalar_index("a", "BTREE")
    table.delete("a = 3")
    table.update_config({"team": "red"})
    table.update_metadata({"owner": "me"})
    table.add_columns({"b": "a + 1"})
    table.optimize.compact_files()
    return [path.read_bytes() for path in Path(root).glob("_versions/*.manifest")]


def test_manifests_of_pylance_round_trip(oracle_manifests: list[bytes]) -> None:
    assert len(oracle_manifests) >= 8
    for data in oracle_manifests:
        manifest = parse_manifest_file(data)
        ours = serialize_manifest_file(manifest)
        assert without_positions(ours) == without_positions(data)
        assert parse_manifest_file(ours) == manifest
        assert manifest.transaction is not None


def test_the_oracles_index_section_moves_with_the_manifest(oracle_manifests: list[bytes]) -> None:
    manifests = [parse_manifest_file(data) for data in oracle_manifests]
    indexed = [manifest for manifest in manifests if manifest.indices]
    assert indexed
    for manifest in indexed:
        grown = replace(manifest, transaction=b"\x08\x01" * 50)
        again = parse_manifest_file(serialize_manifest_file(grown))
        assert again.indices == manifest.indices
        assert again.transaction == grown.transaction


@pytest.mark.parametrize("path", OLD_MANIFESTS, ids=lambda p: "-".join(p.relative_to(OLD).parts))
def test_manifests_of_old_releases_round_trip(path: Path) -> None:
    data = path.read_bytes()
    manifest = parse_manifest_file(data)
    ours = serialize_manifest_file(manifest)
    before, after = without_positions(data), without_positions(ours)
    if manifest.writer is None:
        for fragment in before.fragments:
            fragment.physical_rows = 0
            fragment.deletion_file.num_deleted_rows = 0
        for fragment in after.fragments:
            fragment.deletion_file.SetInParent()
    assert after == before
    assert parse_manifest_file(ours) == manifest


def test_row_counts_of_unsigned_manifests_are_ignored() -> None:
    """The manifest of 0.8.0 says 90 rows, which is wrong, and so may be its count of deletions."""
    path = OLD / "v0.8.0/migrated_from_v0.7.5/_versions/3.manifest"
    manifest = parse_manifest_file(path.read_bytes())
    assert message_of(path.read_bytes()).fragments[0].physical_rows == 90
    assert [f.physical_rows for f in manifest.fragments] == [None, None]
    assert manifest.fragments[0].num_deleted_rows is None
    assert manifest.fragments[0].num_rows is None


def test_manifest_unknown_fields_round_trip_at_every_level() -> None:
    unknown = b"\xa2\x1f\x03abc"  # field 500, length 3
    signed = Manifest(SCHEMA, DatasetVersion(1), (new_fragment(),), writer=WriterVersion("x", "1"))
    data = serialize_manifest_file(signed)
    message = message_of(data)
    for part in (message, message.fragments[0], message.fragments[0].files[0], message.fields[1]):
        part.MergeFromString(unknown)
    again = message_of(serialize_manifest_file(parse_manifest_file(file_of(message))))
    for part in (again, again.fragments[0], again.fragments[0].files[0], again.fields[1]):
        assert unknown in part.SerializeToString()
    assert again == message


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_of_one_file_are_not_copied_into_another(name: str) -> None:
    before = struct.pack("<I", 2) + b"\x08\x01"
    data = serialize_manifest_file(Manifest(SCHEMA, DatasetVersion(1)))
    message = message_of(data)
    setattr(message, name, 0)
    message.version_aux_data = 77
    section = b"\0" * 4 if name == "index_section" else before
    manifest = parse_manifest_file(file_of(message, section))
    bare = replace(manifest, indices=b"", transaction=None)
    again = message_of(serialize_manifest_file(bare))
    assert not any(again.HasField(position) for position in POSITIONS)  # type: ignore[arg-type]
    assert again.version_aux_data == 0


def test_a_manifest_cut_off_anywhere_is_refused(oracle_manifests: list[bytes]) -> None:
    for data in (*oracle_manifests[:3], OLD_MANIFESTS[0].read_bytes()):
        for size in range(len(data)):
            with pytest.raises(FormatError):
                parse_manifest_file(data[:size])


@pytest.mark.parametrize(
    ("position", "length"),
    [(1 << 63, None), (10**6, None), (0, 0), (0, 2**32 - 1), (1, None), (2**64 - 1, None)],
)
def test_lengths_and_positions_are_checked(position: int, length: int | None) -> None:
    data = bytearray(serialize_manifest_file(Manifest(SCHEMA, DatasetVersion(1))))
    struct.pack_into("<Q", data, len(data) - 16, position)
    if length is not None:
        struct.pack_into("<I", data, 0, length)
    with pytest.raises(FormatError):
        parse_manifest_file(bytes(data))


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("position", [0, 1, 2**31, 2**64 - 1])
def test_sections_outside_the_file_are_refused(name: str, position: int) -> None:
    message = message_of(serialize_manifest_file(Manifest(SCHEMA, DatasetVersion(1))))
    setattr(message, name, position)
    with pytest.raises(FormatError, match="section"):
        parse_manifest_file(file_of(message))


def damaged(**changes: object) -> bytes:
    manifest = Manifest(SCHEMA, DatasetVersion(1), (new_fragment(),))
    message = message_of(serialize_manifest_file(manifest))
    for path, value in changes.items():
        *parents, name = path.split("__")
        part: object = message
        for parent in parents:
            part = getattr(part, parent) if not parent.isdigit() else part[int(parent)]  # type: ignore[index]
        setattr(part, name, value)
    return file_of(message)


@pytest.mark.parametrize(
    "changes",
    [
        {"fragments__0__id": 1 << 32},
        {"fragments__0__physical_rows": (1 << 32) + 1},
        {"timestamp__seconds": 1 << 60},
        {"timestamp__seconds": -1},
        {"timestamp__nanos": -5},
        {"fragments__0__deletion_file__file_type": 7},
        {"reader_feature_flags": 2},
    ],
)
def test_manifest_with_values_out_of_bounds_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        parse_manifest_file(damaged(**changes))


def test_unknown_reader_flag_is_refused_before_other_damage() -> None:
    data = damaged(reader_feature_flags=1 << 40, fragments__0__id=1 << 32)
    with pytest.raises(UnsupportedError, match=str(1 << 40)):
        parse_manifest_file(data)


def test_manifest_with_more_columns_than_fields_is_refused() -> None:
    message = message_of(damaged())
    message.fragments[0].files[0].column_indices.append(9)
    with pytest.raises(FormatError, match="2 fields, 3 columns"):
        parse_manifest_file(file_of(message))


def test_manifest_bytes_are_deterministic() -> None:
    config = {str(i): "x" for i in range(50)}
    manifest = Manifest(SCHEMA, DatasetVersion(1), config=config)
    again = replace(manifest, config=dict(reversed(config.items())))
    assert serialize_manifest_file(manifest) == serialize_manifest_file(again)


@pytest.mark.parametrize("writer", [WriterVersion("lance", "1.0"), None])
def test_manifest_summary_equals_that_of_the_parsed_manifest(writer: WriterVersion | None) -> None:
    deletion = DeletionFileRef(DeletionKind.BITMAP, 3, 9, 4)
    files = (DataFileRef("a.lance", (FieldId(0),), (0,), 2, 0, 100),) * 2
    fragments = (
        Fragment(FragmentId(0), files, 10),
        Fragment(FragmentId(1), files[:1], 7, deletion),
    )
    manifest = Manifest(
        Schema(()), DatasetVersion(5), fragments, timestamp_ns=1_234_567_891, writer=writer
    )
    data = serialize_manifest_file(manifest)
    summary = summarize_manifest_file(data)
    assert summary == parse_manifest_file(data).summary
    assert (summary.version, summary.files, summary.size_bytes) == (5, 3, 300)
    assert (summary.physical_rows, summary.deleted_rows) == ((17, 4) if writer else (0, 0))
