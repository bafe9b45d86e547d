"""Fragments are parsed from their bytes on access, and keep their values."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from pennon.core.units import DatasetVersion, FragmentId
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.schema.field import Schema
from pennon.table.fragment_wire import parse_fragment
from pennon.table.fragments import Fragments
from pennon.table.manifest import Manifest, WriterVersion
from pennon.table.manifest_wire import parse_manifest_file, serialize_manifest_file


def message(number: int, rows: int = 5, deleted: int | None = None) -> table_pb2.DataFragment:
    made = table_pb2.DataFragment(id=number, physical_rows=rows)
    made.files.add(path=f"{number}.lance", fields=[0, 1], column_indices=[0, 1])
    made.files[0].file_major_version = 2
    made.files[0].file_size_bytes = 100
    if deleted is not None:
        made.deletion_file.num_deleted_rows = deleted
    return made


def cached_property(*messages: table_pb2.DataFragment) -> Fragments:
    return Fragments(table_pb2.Manifest(fragments=messages).SerializeToString())


MESSAGES = [message(3), message(1, deleted=2), message(7, rows=0), message(8, 6, 0)]
ALL = tuple(map(parse_fragment, MESSAGES))


def test_fragments_equal_their_messages() -> None:
    fragments = cached_property(*MESSAGES)
    assert fragments[1] is fragments[1] == ALL[1]
    assert fragments[-1] == ALL[3]
    assert fragments[1:3] == ALL[1:3]
    assert list(fragments) == list(ALL)
    assert fragments == ALL
    assert fragments == cached_property(*MESSAGES)
    assert fragments != cached_property(*MESSAGES[:2])
    assert hash(fragments) == hash(ALL)
    assert fragments + ALL[:1] == (*ALL, ALL[0])
    assert pickle.loads(pickle.dumps(fragments)) == ALL
    assert repr(fragments) == repr(ALL)
    assert Fragments.of(ALL) == ALL
    assert len(cached_property()) == 0
    with pytest.raises(IndexError):
        cached_property(*MESSAGES)[4]


@pytest.mark.parametrize("before", ["nothing", "fields", "fields between fragments"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_fragments_added_to_fragments_are_those_of_all_bytes(before: str, count: int) -> None:
    other = table_pb2.Manifest(version=7, config={"a": "b"}).SerializeToString()
    parts = [table_pb2.Manifest(fragments=[each]).SerializeToString() for each in MESSAGES]
    between = other if before == "fields between fragments" else b""
    body = (b"" if before == "nothing" else other) + between.join(parts) + b"\x7a\x00"
    first = Fragments(body)
    assert first[1] == ALL[1]
    added = ALL[:count]
    for made in (first + added, first + iter(added), Fragments.of(()) + first + added):
        known = Fragments.of((*ALL, *added))
        assert made == known
        assert made[len(ALL) :] == added
        assert made.wire() == known.wire()
        assert made.rest() == b""
        assert made.sizes().tolist() == known.sizes().tolist()
        assert (made.ids(), made.highest_id()) == (known.ids(), 8)


def test_fragments_added_out_of_bounds_are_refused() -> None:
    wrong = replace(ALL[0], id=FragmentId(1 << 32))
    for made in (cached_property(*MESSAGES) + iter([wrong]), Fragments.of([wrong]) + ALL):
        with pytest.raises(FormatError, match="fragment 4294967296 of 5 rows"):
            made.check_bounds()


def test_numbers_without_fragments() -> None:
    fragments = cached_property(*MESSAGES)
    assert fragments.ids() == [3, 1, 7, 8]
    assert fragments.live_rows() == [5, 3, None, None]
    assert fragments.total_rows() == (16, 2)
    assert fragments.total_files() == (4, 400)
    assert fragments.sizes().sum(axis=0).tolist() == [16, 2, 400]
    assert fragments.deletion_files() == 2
    assert fragments.file_numbers() == {(2, 0)}
    assert not fragments.with_row_ids()
    assert Fragments.of([replace(ALL[0], row_ids=b"ids"), ALL[1]]).with_row_ids() == 1


def test_fragments_without_files_have_zero_live_rows() -> None:
    """A table may have millions of them; a deletion file of one is looked at, for it is wrong."""
    empty, torn = table_pb2.DataFragment(id=9), table_pb2.DataFragment(id=10)
    torn.deletion_file.num_deleted_rows = 1
    assert cached_property(message(3), empty, torn).live_rows() == [5, 0, None]


def test_versions_of_data_files_of_all_kinds() -> None:
    mixed, odd, empty = message(0), message(1), table_pb2.DataFragment(id=2)
    mixed.files.add(path="b", file_major_version=2, file_minor_version=1)
    odd.files[0].file_major_version = (1 << 32) - 1
    found = cached_property(mixed, message(3), empty, odd).file_numbers()
    assert found == {(2, 0), (2, 1), ((1 << 32) - 1, 0)}
    assert cached_property(empty).file_numbers() == set()


def test_fragments_are_split_from_the_rest_of_the_manifest() -> None:
    whole = table_pb2.Manifest(version=3, fragments=MESSAGES, tag="t")
    body = whole.SerializeToString()
    split = table_pb2.Manifest(fragments=MESSAGES[:1]).SerializeToString() + body + b"\x7a\x00"
    for data, count in ((body, 4), (split, 5)):
        fragments = Fragments(data)
        assert len(fragments) == count
        rest = table_pb2.Manifest.FromString(fragments.rest())
        assert (rest.version, rest.tag, len(rest.fragments)) == (3, "t", 0)
        alone = table_pb2.Manifest.FromString(fragments.wire())
        assert alone == table_pb2.Manifest(fragments=alone.fragments)
        assert list(alone.fragments)[-4:] == MESSAGES


def test_fragment_files_share_field_ids() -> None:
    first, second = cached_property(*MESSAGES)[:2]
    assert first.files[0].field_ids is second.files[0].field_ids


def test_fragment_bounds_are_checked_at_once_and_files_on_access() -> None:
    for wrong in (message(1 << 32), message((1 << 64) - 1), message(0, rows=(1 << 32) + 1)):
        with pytest.raises(FormatError, match="does not fit"):
            cached_property(message(0), wrong).check_bounds()
    damaged = message(0)
    damaged.files[0].column_indices.append(4)
    fragments = cached_property(message(1), damaged)
    assert fragments[0].id == 1
    for look in (list, hash, repr):
        with pytest.raises(FormatError, match="columns"):
            look(fragments)
    text = cached_property(message(1)).wire().replace(b"1.lance", b"\xff.lance")
    with pytest.raises(FormatError, match="DataFragment"):
        Fragments(text)[0]


def test_truncated_fragment_message_is_refused() -> None:
    data = cached_property(MESSAGES[1]).wire()
    for size in range(1, len(data)):
        with pytest.raises(FormatError, match="not a valid Manifest"):
            Fragments(data[:size])


def test_fragment_unknown_fields_are_found_in_one_and_all() -> None:
    strange = table_pb2.DataFragment.FromString(message(2).SerializeToString() + b"\xc8\x3e\x07")
    assert cached_property(message(1), strange)[1].unknown == b"\xc8\x3e\x07"
    assert [bool(each.unknown) for each in cached_property(message(1), strange)] == [False, True]
    inner = message(4)
    file = table_pb2.DataFile.FromString(inner.files[0].SerializeToString() + b"\xc8\x3e\x07")
    inner.files[0].CopyFrom(file)
    assert cached_property(inner)[0].files[0].unknown == b"\xc8\x3e\x07"
    assert (
        cached_property(strange, inner).wire()
        == cached_property(strange).wire() + cached_property(inner).wire()
    )


def test_a_manifest_keeps_the_bytes_of_its_fragments() -> None:
    strange = table_pb2.DataFragment.FromString(message(2).SerializeToString() + b"\xc8\x3e\x07")
    manifest = Manifest(
        Schema(()),
        DatasetVersion(1),
        fragments=cached_property(message(1), strange),
        writer=WriterVersion("pennon", "1"),
    )
    data = serialize_manifest_file(manifest)
    assert cached_property(message(1), strange).wire() in data
    again = parse_manifest_file(data)
    assert again == manifest
    assert serialize_manifest_file(again) == data
    assert serialize_manifest_file(replace(manifest, fragments=ALL)) != data
