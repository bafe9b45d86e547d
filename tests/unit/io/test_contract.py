"""What every store must do, whichever it is."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, SparseRead
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    FormatError,
    NotFoundError,
    TooLargeError,
)
from pennon.io.store import ObjectReader, Store

BODY = bytes(range(256)) * 40


def gather(*ranges: tuple[int, int]) -> Gather:
    starts, ends = zip(*ranges, strict=True) if ranges else ((), ())
    return Gather(np.array(starts, np.int64), np.array(ends, np.int64))


def stored(store: Store, body: bytes = BODY) -> ObjectReader:
    with store.open_writer("data/x.lance") as writer:
        writer.write(body)
    return store.open("data/x.lance")


def test_a_written_object_reads_back(store: Store) -> None:
    with store.open_writer("data/x.lance") as writer:
        writer.write(b"ab")
        writer.write(b"")
        writer.write(memoryview(b"cd"))
        writer.write(pa.py_buffer(b"ef"))
        assert writer.tell() == 6
    reader = store.open("data/x.lance")
    assert (reader.path, reader.size_bytes) == ("data/x.lance", 6)
    (whole,) = reader.read([ByteRange(0, 6)])
    assert whole.to_pybytes() == b"abcdef"


def test_a_whole_object_is_read_without_its_size(store: Store) -> None:
    stored(store)
    store.put("empty", b"")
    assert store.read_whole("data/x.lance").to_pybytes() == BODY
    assert store.read_whole("empty").to_pybytes() == b""
    with pytest.raises(NotFoundError):
        store.read_whole("none")
    with pytest.raises(FormatError):
        store.read_whole("../x")


def test_an_object_is_invisible_until_it_is_closed(store: Store) -> None:
    writer = store.open_writer("data/x.lance")
    writer.write(BODY)
    with pytest.raises(NotFoundError):
        store.open("data/x.lance")
    writer.close()
    writer.close()
    assert store.open("data/x.lance").size_bytes == len(BODY)


@pytest.mark.parametrize("size", [10, 300_000])
def test_an_aborted_object_never_appears(store: Store, size: int) -> None:
    def give_up() -> None:
        with store.open_writer("data/x.lance") as writer:
            writer.write(bytes(size))
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        give_up()
    with pytest.raises(NotFoundError):
        store.open("data/x.lance")
    assert list(store.list("data")) == []


def test_an_empty_object_can_be_opened(store: Store) -> None:
    store.put("data/empty", b"")
    reader = store.open("data/empty")
    assert reader.size_bytes == 0
    answers = reader.read([ByteRange(0, 0), gather(), gather((0, 0))])
    assert [answer.size for answer in answers] == [0, 0, 0]


@pytest.mark.parametrize(
    "ranges",
    [
        [],
        [(5, 5)],
        [(0, 4)],
        [(0, len(BODY))],
        [(0, 4), (4, 8), (8, 12)],
        [(100, 108), (7, 7), (3, 11), (100, 108)],
        [(0, 50), (25, 75), (10, 20)],
        [(9000, 9003), (20, 24), (5000, 5017), (0, 1), (10239, 10240)],
    ],
)
def test_a_gather_packs_its_ranges_in_order(store: Store, ranges: list[tuple[int, int]]) -> None:
    reader = stored(store)
    (answer,) = reader.read([gather(*ranges)])
    assert answer.to_pybytes() == b"".join(BODY[start:end] for start, end in ranges)


def test_a_peek_is_packed_or_all_of_its_hull(store: Store) -> None:
    starts = np.array([10, 20, 9000])
    reader = stored(store)
    (answer,) = reader.read([SparseRead(starts, starts + 5)])
    packed = b"".join(BODY[start : start + 5] for start in starts)
    assert answer.to_pybytes() == (BODY[10:9005] if reader.is_mapped else packed)
    nothing = np.empty(0, np.int64)
    assert reader.read([SparseRead(nothing, nothing)])[0].size == 0
    with pytest.raises(FormatError):
        reader.read([SparseRead(starts, starts + len(BODY))])


def test_a_gather_takes_arrays_of_any_stride_and_integer(store: Store) -> None:
    starts = np.arange(0, 80, 4, dtype=np.int64)[::2]
    answers = stored(store).read(
        [Gather(starts, starts + 2), Gather(starts.astype("<i4"), starts + 1)]
    )
    assert answers[0].to_pybytes() == b"".join(BODY[i : i + 2] for i in range(0, 80, 8))
    assert answers[1].to_pybytes() == BODY[0:80:8]


def test_a_round_answers_in_the_order_asked(store: Store) -> None:
    requests: list[ByteRequest] = [
        ByteRange(100, 3),
        gather((50, 52), (1, 2)),
        ByteRange(0, 0),
        ByteRange(99, 5),
        gather(),
    ]
    answers = [answer.to_pybytes() for answer in stored(store).read(requests)]
    assert answers == [BODY[100:103], BODY[50:52] + BODY[1:2], b"", BODY[99:104], b""]


def test_a_round_may_ask_for_nothing(store: Store) -> None:
    assert stored(store).read([]) == []


@pytest.mark.parametrize(
    "request_",
    [
        ByteRange(-1, 5),
        ByteRange(0, -1),
        ByteRange(len(BODY), 1),
        ByteRange(0, len(BODY) + 1),
        ByteRange(1 << 62, 1 << 62),
        ByteRange((1 << 64) - 1, 1),
        gather((-1, 4)),
        gather((5, 4)),
        gather((0, len(BODY) + 1)),
        gather((0, 4), (1 << 62, (1 << 62) + 4)),
        gather((-(1 << 63), (1 << 63) - 1)),
    ],
)
def test_ranges_outside_of_the_object_are_damage(
    store: Store, request_: ByteRange | Gather
) -> None:
    reader = stored(store)
    with pytest.raises(FormatError) as caught:
        reader.read([ByteRange(0, 1), request_])
    assert caught.value.where.file == "data/x.lance"


def test_a_gather_cannot_multiply_a_small_object(store: Store) -> None:
    reader = stored(store)
    starts = np.zeros(1 << 20, np.int64)
    with pytest.raises(TooLargeError):
        reader.read([Gather(starts, starts + len(BODY))])


def test_starts_and_ends_must_match(store: Store) -> None:
    with pytest.raises(ArgumentError):
        stored(store).read([Gather(np.zeros(2, np.int64), np.ones(3, np.int64))])


def test_of_all_that_create_one_name_exactly_one_wins(store: Store) -> None:
    def create(number: int) -> bool:
        try:
            store.put_if_absent(f"_versions/{number // 8}.manifest", b"%d" % number)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(80)))
    winners = [number for number, mine in enumerate(won) if mine]
    assert [number // 8 for number in winners] == list(range(10))
    for number in winners:
        reader = store.open(f"_versions/{number // 8}.manifest")
        assert reader.read([ByteRange(0, reader.size_bytes)])[0].to_pybytes() == b"%d" % number
    names = [f"_versions/{number}.manifest" for number in range(10)]
    assert [found.path for found in store.list("_versions")] == names


def test_put_replaces(store: Store) -> None:
    store.put("a", b"old and long")
    store.put("a", b"new")
    assert store.open("a").read([ByteRange(0, 3)])[0].to_pybytes() == b"new"


def test_a_listing_is_sorted_and_stays_in_its_folder(store: Store) -> None:
    paths = [
        "data/b",
        "data/a b.lance",
        "data2/c",
        "data/sub/d",
        "_refs/tags/x%2Fy ü.json",
        "data/A",
    ]
    for path in paths:
        store.put(path, path.encode())
    found = list(store.list("data"))
    assert [one.path for one in found] == [
        "data/A",
        "data/a b.lance",
        "data/b",
        "data/sub/d",
    ]
    assert [one.size_bytes for one in found] == [6, 14, 6, 10]
    age = datetime.now(UTC) - found[0].modified
    assert abs(age) < timedelta(minutes=10)
    assert [one.path for one in store.list("data/")] == [one.path for one in found]
    assert [one.path for one in store.list("")] == sorted(paths)
    assert list(store.list("nothing")) == []


def test_deleting_is_idempotent(store: Store) -> None:
    store.put("a/b", b"1")
    store.delete("a/b")
    store.delete("a/b")
    with pytest.raises(NotFoundError):
        store.open("a/b")


def test_what_is_missing_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"_versions/7\.manifest"):
        store.open("_versions/7.manifest")


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "%2e%2e/x", "a\\b", "a\0b", ""]
)
def test_no_verb_leaves_the_root(store: Store, path: str) -> None:
    for verb in (
        lambda: store.open(path),
        lambda: store.open_writer(path),
        lambda: store.put(path, b""),
        lambda: store.put_if_absent(path, b""),
        lambda: store.delete(path),
        lambda: list(store.list(path or "..")),
    ):
        with pytest.raises(FormatError):
            verb()


def test_stores_and_readers_pickle(store: Store) -> None:
    reader = stored(store)
    again = pickle.loads(pickle.dumps((store, reader)))
    assert again[0] == store
    assert again[0].uri == store.uri
    assert again[1].read([ByteRange(5, 3)])[0].to_pybytes() == BODY[5:8]
    assert len(pickle.dumps(reader)) < 1500


def test_readers_serve_threads(store: Store) -> None:
    reader = stored(store)

    def piece(start: int) -> bytes:
        return reader.read([gather((start, start + 3), (0, 2))])[0].to_pybytes()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(piece, range(40)))
    assert found == [BODY[start : start + 3] + BODY[:2] for start in range(40)]
