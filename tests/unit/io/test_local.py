"""The local file system: durability, faults, links, processes."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

from pennon.core.byte_ranges import ByteRange, Gather
from pennon.errors import (
    AlreadyExistsError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io import LocalStore, open_store
from pennon.io.durable import FolderSync

MANIFEST = "_versions/1.manifest"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    root = str(tmp_path / "t.lance")
    return LocalStore(root, root)


def files(store: LocalStore) -> list[str]:
    return [found.path for found in store.list("")]


def record(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> list[str]:
    """Return a list that grows by the name of every call of these functions of ``os``."""
    calls: list[str] = []

    def spy(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return real(*args, **kwargs)

        return call

    for name in names:
        monkeypatch.setattr(os, name, spy(name))
    return calls


def test_a_commit_syncs_the_bytes_before_the_name_and_then_the_folder(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("_versions/0.manifest", b"")
    calls = record(monkeypatch, ["write", "fsync", "link", "replace", "unlink"])
    store.put_if_absent(MANIFEST, b"1")
    assert calls == ["write", "fsync", "link", "fsync", "unlink"]
    calls.clear()
    store.put("data/x", b"1")
    assert [name for name in calls if name != "fsync"] == ["write", "replace"]
    assert calls.count("fsync") == 3  # of the file, its folder, and the folder of the new folder
    assert calls[-1] == "fsync"
    calls.clear()
    store.put("data/x", b"2")
    assert calls == ["write", "fsync", "replace", "fsync"]


class BusyPool:
    """A pool none of whose threads ever has time."""

    def submit(self, work: Callable[[], object]) -> None:
        """Do nothing."""


def test_concurrent_puts_share_one_folder_sync(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 8
    store.put("_deletions/first", b"")
    named = Barrier(count)
    real, folders = os.fsync, []

    def sync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            folders.append(sum(1 for _ in (Path(store.root) / "_deletions").iterdir()))
        else:
            named.wait(timeout=60)
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr("pennon.io.durable.pool", BusyPool)
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(lambda n: store.put(f"_deletions/{n}", b"x"), range(count)))
    assert folders == [count + 1]  # one sync, once all names were there


def test_folder_sync_in_progress_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)
    began, may_end, syncs = Event(), Event(), []

    def sync(folder: str) -> None:
        syncs.append(folder)
        began.set()
        assert may_end.wait(timeout=60)

    monkeypatch.setattr("pennon.io.durable.sync_path", sync)
    monkeypatch.setattr("pennon.io.durable.pool", BusyPool)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(FolderSync.begin(folder).end)
        assert began.wait(timeout=60)
        second = threads.submit(
            FolderSync.begin(folder).end
        )  # its name came after the first had looked
        may_end.set()
        assert [first.result(), second.result()] == [None, None]
    assert syncs == [folder, folder]


def test_failed_folder_sync_is_raised_to_all_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pennon.io.durable.pool", BusyPool)
    fail_at(monkeypatch, "fsync", 1, errno.EIO)
    first, second = FolderSync.begin(str(tmp_path)), FolderSync.begin(str(tmp_path))
    for each in (second, first):
        with pytest.raises(OSError, match="Input/output"):
            each.end()


@pytest.mark.parametrize("step", [1, 7])
def test_short_writes_are_continued(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:step]))
    body = bytes(range(256)) * 4
    store.put_if_absent(MANIFEST, body)
    store.put("data/x", body)
    for path in (MANIFEST, "data/x"):
        assert store.open(path).read([ByteRange(0, len(body))])[0].to_pybytes() == body


def fail_at(monkeypatch: pytest.MonkeyPatch, name: str, nth: int, code: int) -> list[int]:
    """Let the ``nth`` call of ``os.name`` fail; returns a list that has one entry per call."""
    real = getattr(os, name)
    calls: list[int] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == nth:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, call)
    return calls


@pytest.mark.parametrize("name", ["write", "fsync", "link", "replace", "open", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_failed_write_step_raises_typed_error_and_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    body = bytes(1_000_000)

    def stream(store: LocalStore) -> None:
        with store.open_writer("data/x") as writer:
            for start in range(0, len(body), 150_000):
                writer.write(body[start : start + 150_000])

    fired = 0
    for verb in (stream, lambda store: store.put_if_absent(MANIFEST, body)):
        for nth in range(1, 20):
            root = str(tmp_path / f"{fired}-{nth}")
            store = LocalStore(root, root)
            with monkeypatch.context() as patch:
                calls = fail_at(patch, name, nth, code)
                with contextlib.suppress(StoreError):  # any other error fails the test
                    verb(store)
            assert [found.path for found in store.list("") if ".tmp" in found.path] == []
            assert {found.size_bytes for found in store.list("")} <= {len(body)}
            if len(calls) < nth:
                break
            fired += 1
    assert fired > 0


def test_without_hard_links_a_commit_is_refused(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(monkeypatch, "link", 1, errno.EOPNOTSUPP)
    with pytest.raises(UnsupportedError, match="hard links"):
        store.put_if_absent(MANIFEST, b"1")
    assert files(store) == []


def test_put_if_absent_with_lost_link_answer_succeeds(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "as network file systems do")

    monkeypatch.setattr(os, "link", link)
    store.put_if_absent(MANIFEST, b"1")
    assert files(store) == [MANIFEST]


def test_a_lost_race_leaves_the_winner_and_no_temporary(store: LocalStore) -> None:
    store.put_if_absent(MANIFEST, b"first")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(MANIFEST, b"second")
    assert files(store) == [MANIFEST]
    assert store.open(MANIFEST).read([ByteRange(0, 5)])[0].to_pybytes() == b"first"


def test_unfinished_file_has_a_temporary_name(store: LocalStore) -> None:
    writer = store.open_writer("_versions/1.manifest")
    writer.write(bytes(1_000_000))
    (path,) = files(store)
    assert path.startswith("_versions/.tmp_")
    assert not path.endswith("manifest")
    writer.abort()
    assert files(store) == []


RACE = """
import sys
from pennon.errors import AlreadyExistsError
from pennon.io import open_store
store, name = open_store(sys.argv[1]), sys.argv[2].encode()
sys.stdin.readline()
for version in range(60):
    try:
        store.put_if_absent(f"_versions/{version}.manifest", name)
        print(version)
    except AlreadyExistsError:
        pass
"""


def test_put_if_absent_has_one_winner_among_processes(store: LocalStore) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, store.root, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = {}
    for number, racer in enumerate(racers):
        for version in racer.communicate(timeout=60)[0].split():
            assert version not in won
            won[version] = str(number)
    assert len(won) == 60
    for version, name in won.items():
        reader = store.open(f"_versions/{version}.manifest")
        assert reader.read([ByteRange(0, 1)])[0].to_pybytes().decode() == name
    assert len(files(store)) == 60


def test_a_reader_survives_a_fork(store: LocalStore) -> None:
    store.put("data/x", b"0123456789")
    reader = store.open("data/x")
    one = np.array([3], np.int64)
    child = os.fork()
    if child == 0:
        answers = reader.read([ByteRange(0, 2), Gather(one, one + 2)])
        os._exit(0 if [a.to_pybytes() for a in answers] == [b"01", b"34"] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_extent_is_a_view_of_one_map_and_keeps_no_descriptor(
    store: LocalStore,
) -> None:
    store.put("data/x", bytes(100_000))
    before = len(list(Path("/proc/self/fd").iterdir()))
    readers = [store.open("data/x") for _ in range(20)]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    first, second = readers[0].read([ByteRange(0, 100_000), ByteRange(64, 10)])
    assert readers[0].is_mapped
    assert second.address == first.address + 64
    assert not first.is_mutable


def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.lance").symlink_to("real")
    store = open_store(tmp_path / "link.lance")
    store.put("data/x", b"1")
    assert (tmp_path / "real" / "data" / "x").read_bytes() == b"1"


def test_folders_and_pipes_are_not_objects(store: LocalStore) -> None:
    store.put("data/x", b"1")
    os.mkfifo(f"{store.root}/data/pipe")
    for path in ("data", "data/pipe", "data/x/y"):
        with pytest.raises(NotFoundError):
            store.open(path)
    assert files(store) == ["data/x"]
    store.delete("data/x/y")
    with pytest.raises(StoreError, match="Not a directory"):
        store.put("data/x/y", b"")
    with pytest.raises(StoreError, match="cannot delete"):
        store.delete("data")


def test_file_names_up_to_the_system_limit(store: LocalStore) -> None:
    store.put("ü" * 127, b"1")
    assert files(store) == ["ü" * 127]
    with pytest.raises(StoreError, match="too long"):
        store.put("ü" * 128, b"1")


def test_new_files_obey_the_umask(store: LocalStore) -> None:
    before = os.umask(0o027)
    try:
        store.put_if_absent(MANIFEST, b"1")
    finally:
        os.umask(before)
    assert Path(store.root, MANIFEST).stat().st_mode & 0o777 == 0o640


def test_a_full_disk_is_reported_by_the_system_itself(store: LocalStore) -> None:
    """RLIMIT_FSIZE stops the write in the kernel, so no function is replaced here."""
    script = """
import resource, signal, sys
from pennon.errors import StoreError
from pennon.io import open_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
store = open_store(sys.argv[1])
for verb in (store.put, store.put_if_absent):
    try:
        verb("data/x", bytes(400_000))
    except StoreError as error:
        print(error)
"""
    command = [sys.executable, "-c", script, store.root]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("File too large") == 2
    assert files(store) == []


def _temporaries(store: LocalStore) -> list[str]:
    return [path.name for path in Path(store.root).rglob(".tmp_*")]


def _in_child(run: Callable[[], object]) -> int:
    """Return the exit status of a forked child that runs something: 0 if it raised nothing."""
    pid = os.fork()
    if not pid:
        signal.alarm(20)  # what waits for a thread of the parent waits for ever
        try:
            run()
        except BaseException:  # noqa: BLE001 - the status tells
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_abort_in_forked_child_keeps_the_file_of_the_parent(store: LocalStore) -> None:
    writer = store.open_writer("data/x")
    writer.write(b"a" * (20 << 20))  # so much that a sync is under way on another thread
    assert _in_child(writer.abort) == 0
    writer.close()
    assert store.open("data/x").size_bytes == 20 << 20


def test_close_in_forked_child_does_not_finish_the_file(store: LocalStore) -> None:
    writer = store.open_writer("x")
    writer.write(b"parent")
    assert _in_child(writer.close) == 1
    writer.write(b"'s")
    writer.close()
    assert store.read_whole("x").to_pybytes() == b"parent's"


def test_collected_writer_removes_its_temporary_file(store: LocalStore) -> None:
    store.put("there", b"")
    writer = store.open_writer("x")
    writer.write(b"bytes")
    assert _temporaries(store)
    del writer
    gc.collect()
    assert not _temporaries(store)


@pytest.mark.parametrize("step", ["open", "fsync", "link"])
def test_interrupted_write_step_leaves_no_temporary_file(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The step was done, and its answer is lost with the interrupt."""
    store.put("there", b"")
    does: Any = getattr(os, step)

    def interrupted(*arguments: Any) -> Any:
        does(*arguments)
        raise KeyboardInterrupt

    for name, write in (("x", store.put), ("y", store.put_if_absent)):
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(os, step, interrupted)
            write(name, b"bytes")
        assert not _temporaries(store)


def test_put_in_uncreatable_folder_raises_store_error() -> None:
    with pytest.raises(StoreError, match="create"):
        LocalStore("/proc/pennon.lance", "/proc/pennon.lance").put("x", b"")


@pytest.mark.parametrize("made", [["t.lance"], ["t.lance", "t.lance/data"]])
def test_put_with_concurrently_created_folder_succeeds(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[str]
) -> None:
    mkdir = os.mkdir

    def late(path: str, *mode: int) -> None:
        try:
            mkdir(path, *mode)
        except FileNotFoundError:
            for each in made:
                mkdir(tmp_path / each)
            raise

    monkeypatch.setattr(os, "mkdir", late)
    store.put("data/one", b"bytes")
    assert files(store) == ["data/one"]
