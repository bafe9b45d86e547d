"""Fragments are made of their messages when they are looked at, and are then what they always were."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.schema.field import Schema
from pennon.table.fragments import Fragments
from pennon.table.manifest import Manifest, WriterVersion
from pennon.table.messages import holds_unknown, parse_fragment
from pennon.table.wire import parse_manifest_file, serialize_manifest_file
from pennon.units import DatasetVersion


def message(number: int, rows: int = 5, deleted: int | None = None) -> table_pb2.DataFragment:
    made = table_pb2.DataFragment(id=number, physical_rows=rows)
    made.files.add(path=f"{number}.lance", fields=[0, 1], column_indices=[0, 1])
    if deleted is not None:
        made.deletion_file.num_deleted_rows = deleted
    return made


def lazy(*messages: table_pb2.DataFragment) -> Fragments:
    return Fragments(messages, lambda: any(map(holds_unknown, messages)))


MESSAGES = [message(3), message(1, deleted=2), message(7, rows=0), message(8, 6, 0)]
ALL = tuple(map(parse_fragment, MESSAGES))


def test_they_are_those_of_the_messages() -> None:
    fragments = lazy(*MESSAGES)
    assert fragments[1] is fragments[1] == ALL[1]
    assert fragments[-1] == ALL[3]
    assert fragments[1:3] == ALL[1:3]
    assert list(fragments) == list(ALL)
    assert fragments == ALL
    assert fragments == lazy(*MESSAGES)
    assert fragments != lazy(*MESSAGES[:2])
    assert hash(fragments) == hash(ALL)
    assert fragments + ALL[:1] == (*ALL, ALL[0])
    assert pickle.loads(pickle.dumps(fragments)) == ALL
    assert repr(fragments) == repr(ALL)
    assert len(lazy()) == 0
    with pytest.raises(IndexError):
        lazy(*MESSAGES)[4]


def test_numbers_without_fragments() -> None:
    assert lazy(*MESSAGES).ids() == [3, 1, 7, 8]
    assert lazy(*MESSAGES).live_rows() == [5, 3, None, None]


def test_files_share_what_they_have_in_common() -> None:
    first, second = lazy(*MESSAGES).all()[:2]
    assert first.files[0].field_ids is second.files[0].field_ids


def test_bounds_are_checked_at_once_and_files_when_they_are_looked_at() -> None:
    for wrong in (message(1 << 32), message(0, rows=(1 << 32) + 1)):
        with pytest.raises(FormatError, match="does not fit"):
            lazy(wrong)
    damaged = message(0)
    damaged.files[0].column_indices.append(4)
    fragments = lazy(message(1), damaged)
    assert fragments[0].id == 1
    for look in (list, hash, repr):
        with pytest.raises(FormatError, match="columns"):
            look(fragments)


def test_unknown_fields_are_seen_in_one_and_in_all() -> None:
    strange = table_pb2.DataFragment.FromString(message(2).SerializeToString() + b"\xc8\x3e\x07")
    assert lazy(message(1), strange)[1].unknown == b"\xc8\x3e\x07"
    assert [bool(each.unknown) for each in lazy(message(1), strange)] == [False, True]


def test_the_same_bytes_are_one_manifest_while_somebody_holds_it() -> None:
    manifest = Manifest(
        Schema(()), DatasetVersion(1), fragments=ALL, writer=WriterVersion("pennon", "1")
    )
    data = serialize_manifest_file(manifest)
    first = parse_manifest_file(data)
    assert parse_manifest_file(data) is first
    assert first.fragments == ALL
    other = serialize_manifest_file(replace(manifest, version=DatasetVersion(2)))
    assert parse_manifest_file(other).version == 2
