"""The tests that every store must pass.

    class TestMyStore(StoreContract):
        def new_store(self) -> Store:
            return MyStore(f"my://bucket/{uuid.uuid4().hex}/t.lance")

pytest runs the methods that begin with ``test_``, each on a store of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, SparseRead
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    FormatError,
    NotFoundError,
    TooLargeError,
)
from pennon.io.store import ObjectReader, Store
from pennon.testing.raises import raises

_BODY: Final = bytes(range(256)) * 40
_NAME: Final = "data/x.lance"


class StoreContract:
    """The conformance suite of `pennon.io.store.Store`."""

    def new_store(self) -> Store:
        """Return a store on a new, empty root."""
        raise NotImplementedError

    def _stored(self) -> ObjectReader:
        store = self.new_store()
        with store.open_writer(_NAME) as writer:
            writer.write(_BODY)
        return store.open(_NAME)

    def test_written_object_reads_back(self) -> None:
        """Bytes, memory views and Arrow buffers become one object."""
        store = self.new_store()
        with store.open_writer(_NAME) as writer:
            writer.write(b"ab")
            writer.write(b"")
            writer.write(memoryview(b"cd"))
            writer.write(pa.py_buffer(b"ef"))
            assert writer.tell() == 6
        reader = store.open(_NAME)
        assert (reader.path, reader.size_bytes) == (_NAME, 6)
        (whole,) = reader.read([ByteRange(0, 6)])
        assert whole.to_pybytes() == b"abcdef"

    def test_read_whole_needs_no_size(self) -> None:
        """An empty object has no bytes; a missing one is an error."""
        store = self.new_store()
        store.put(_NAME, _BODY)
        store.put("empty", b"")
        assert store.read_whole(_NAME).to_pybytes() == _BODY
        assert store.read_whole("empty").to_pybytes() == b""
        with raises(NotFoundError):
            store.read_whole("none")
        with raises(FormatError):
            store.read_whole("../x")

    def test_writer_object_is_invisible_until_closed(self) -> None:
        """A second close changes nothing."""
        store = self.new_store()
        writer = store.open_writer(_NAME)
        writer.write(_BODY)
        with raises(NotFoundError):
            store.open(_NAME)
        writer.close()
        writer.close()
        assert store.open(_NAME).size_bytes == len(_BODY)

    def test_aborted_writer_object_never_appears(self) -> None:
        """An exception within the block aborts small objects and large ones."""
        store = self.new_store()

        def give_up(size: int) -> None:
            with store.open_writer(_NAME) as writer:
                writer.write(bytes(size))
                _ = 1 / 0

        for size in (10, 300_000):
            with raises(ZeroDivisionError):
                give_up(size)
            with raises(NotFoundError):
                store.open(_NAME)
            assert list(store.list("data")) == []

    def test_read_empty_object(self) -> None:
        """Empty ranges are in every object."""
        store = self.new_store()
        store.put("data/empty", b"")
        reader = store.open("data/empty")
        assert reader.size_bytes == 0
        answers = reader.read([ByteRange(0, 0), _gather(), _gather((0, 0))])
        assert [answer.size for answer in answers] == [0, 0, 0]

    def test_gather_packs_ranges_in_order(self) -> None:
        """Ranges may overlap, repeat, touch, and come in any order."""
        reader = self._stored()
        cases: list[list[tuple[int, int]]] = [
            [],
            [(5, 5)],
            [(0, 4)],
            [(0, len(_BODY))],
            [(0, 4), (4, 8), (8, 12)],
            [(100, 108), (7, 7), (3, 11), (100, 108)],
            [(0, 50), (25, 75), (10, 20)],
            [(9000, 9003), (20, 24), (5000, 5017), (0, 1), (10239, 10240)],
        ]
        for ranges in cases:
            (answer,) = reader.read([_gather(*ranges)])
            assert answer.to_pybytes() == b"".join(_BODY[start:end] for start, end in ranges)

    def test_sparse_read_is_packed_or_all_of_its_hull(self) -> None:
        """A mapped object answers with a slice; others with the bytes of the ranges alone."""
        starts = np.array([10, 20, 9000])
        reader = self._stored()
        (answer,) = reader.read([SparseRead(starts, starts + 5)])
        packed = b"".join(_BODY[start : start + 5] for start in starts)
        assert answer.to_pybytes() == (_BODY[10:9005] if reader.is_mapped else packed)
        nothing = np.empty(0, np.int64)
        assert reader.read([SparseRead(nothing, nothing)])[0].size == 0
        with raises(FormatError):
            reader.read([SparseRead(starts, starts + len(_BODY))])

    def test_gather_takes_any_stride_and_integer(self) -> None:
        """Arrays of ranges need not be contiguous, nor of 64 bits."""
        starts = np.arange(0, 80, 4, dtype=np.int64)[::2]
        answers = self._stored().read(
            [Gather(starts, starts + 2), Gather(starts.astype("<i4"), starts + 1)]
        )
        assert answers[0].to_pybytes() == b"".join(_BODY[i : i + 2] for i in range(0, 80, 8))
        assert answers[1].to_pybytes() == _BODY[0:80:8]

    def test_round_answers_in_the_order_asked(self) -> None:
        """A round without requests has no answers."""
        requests: list[ByteRequest] = [
            ByteRange(100, 3),
            _gather((50, 52), (1, 2)),
            ByteRange(0, 0),
            ByteRange(99, 5),
            _gather(),
        ]
        reader = self._stored()
        answers = [answer.to_pybytes() for answer in reader.read(requests)]
        assert answers == [_BODY[100:103], _BODY[50:52] + _BODY[1:2], b"", _BODY[99:104], b""]
        assert reader.read([]) == []

    def test_ranges_outside_of_the_object_are_refused(self) -> None:
        """The error names the object."""
        reader = self._stored()
        outside: Sequence[ByteRange | Gather] = [
            ByteRange(-1, 5),
            ByteRange(0, -1),
            ByteRange(len(_BODY), 1),
            ByteRange(0, len(_BODY) + 1),
            ByteRange(1 << 62, 1 << 62),
            ByteRange((1 << 64) - 1, 1),
            _gather((-1, 4)),
            _gather((5, 4)),
            _gather((0, len(_BODY) + 1)),
            _gather((0, 4), (1 << 62, (1 << 62) + 4)),
            _gather((-(1 << 63), (1 << 63) - 1)),
        ]
        for request in outside:
            with raises(FormatError) as caught:
                reader.read([ByteRange(0, 1), request])
            assert isinstance(caught.error, FormatError)
            assert caught.error.where.file == _NAME

    def test_gather_cannot_multiply_a_small_object(self) -> None:
        """A million ranges over one object are refused before memory is allocated."""
        starts = np.zeros(1 << 20, np.int64)
        with raises(TooLargeError):
            self._stored().read([Gather(starts, starts + len(_BODY))])

    def test_gather_starts_and_ends_must_match(self) -> None:
        """Arrays of two lengths are the caller's error."""
        with raises(ArgumentError):
            self._stored().read([Gather(np.zeros(2, np.int64), np.ones(3, np.int64))])

    def test_put_if_absent_has_one_winner(self) -> None:
        """Eight threads race for ten names."""
        store = self.new_store()

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
            found = store.read_whole(f"_versions/{number // 8}.manifest")
            assert found.to_pybytes() == b"%d" % number
        names = [f"_versions/{number}.manifest" for number in range(10)]
        assert [found.path for found in store.list("_versions")] == names

    def test_put_replaces(self) -> None:
        """A shorter object leaves nothing of the longer one."""
        store = self.new_store()
        store.put("a", b"old and long")
        store.put("a", b"new")
        assert store.read_whole("a").to_pybytes() == b"new"

    def test_list_is_sorted_and_stays_in_its_folder(self) -> None:
        """Folders are walked; names that only begin alike are left out; ages are sensible."""
        store = self.new_store()
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
        assert [one.path for one in found] == ["data/A", "data/a b.lance", "data/b", "data/sub/d"]
        assert [one.size_bytes for one in found] == [6, 14, 6, 10]
        assert abs(datetime.now(UTC) - found[0].modified) < timedelta(minutes=10)
        assert [one.path for one in store.list("data/")] == [one.path for one in found]
        assert [one.path for one in store.list("")] == sorted(paths)
        assert list(store.list("nothing")) == []

    def test_list_folders_goes_one_level_down(self) -> None:
        """Objects are no folders, and what lies deeper is not named."""
        store = self.new_store()
        for path in ("b.lance/data/x", "b.lance/_versions/1", "a b.lance/y", "b.lance2/z/z", "top"):
            store.put(path, path.encode())
        assert list(store.list_folders("")) == ["a b.lance", "b.lance", "b.lance2"]
        assert list(store.list_folders("b.lance")) == ["b.lance/_versions", "b.lance/data"]
        assert list(store.list_folders("b.lance/")) == ["b.lance/_versions", "b.lance/data"]
        assert list(store.list_folders("a b.lance")) == []
        assert list(store.list_folders("nothing")) == []
        assert list(store.list_folders("top")) == []

    def test_delete_is_idempotent(self) -> None:
        """A second delete is no error."""
        store = self.new_store()
        store.put("a/b", b"1")
        store.delete("a/b")
        store.delete("a/b")
        with raises(NotFoundError):
            store.open("a/b")

    def test_missing_object_is_named(self) -> None:
        """The error says which object is missing."""
        with raises(NotFoundError) as caught:
            self.new_store().open("_versions/7.manifest")
        assert "_versions/7.manifest" in str(caught.error)

    def test_no_verb_leaves_the_root(self) -> None:
        """Every verb refuses paths with parents, absolute paths, and encoded ones."""
        store = self.new_store()
        verbs: list[Callable[[str], object]] = [
            store.open,
            store.open_writer,
            lambda path: store.put(path, b""),
            lambda path: store.put_if_absent(path, b""),
            store.delete,
            lambda path: list(store.list(path or "..")),
            lambda path: list(store.list_folders(path or "..")),
        ]
        for path in ("../x", "/etc/passwd", "a/../../x", "%2e%2e/x", "a\\b", "a\0b", ""):
            for verb in verbs:
                with raises(FormatError):
                    verb(path)

    def test_stores_and_readers_pickle(self) -> None:
        """Both stay small, and work where they are unpickled."""
        store = self.new_store()
        store.put(_NAME, _BODY)
        reader = store.open(_NAME)
        other, opened = pickle.loads(pickle.dumps((store, reader)))  # noqa: S301 - made here
        assert other == store
        assert other.uri == store.uri
        assert opened.read([ByteRange(5, 3)])[0].to_pybytes() == _BODY[5:8]
        assert len(pickle.dumps(reader)) < 1500

    def test_readers_serve_threads(self) -> None:
        """Four threads read from one reader."""
        reader = self._stored()

        def piece(start: int) -> bytes:
            found: bytes = reader.read([_gather((start, start + 3), (0, 2))])[0].to_pybytes()
            return found

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(piece, range(40)))
        assert found == [_BODY[start : start + 3] + _BODY[:2] for start in range(40)]


def _gather(*ranges: tuple[int, int]) -> Gather:
    starts, ends = zip(*ranges, strict=True) if ranges else ((), ())
    return Gather(np.array(starts, np.int64), np.array(ends, np.int64))
