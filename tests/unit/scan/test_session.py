"""The caches that the datasets of a session share, and their bounds."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.core.byte_ranges import ByteRange
from pennon.dataset.lance_dataset import LanceDataset
from pennon.io import open_store
from pennon.scan.session import FILE_BYTES, Session
from pennon.scan.snapshot import Key, Same, Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore, MemoryStore

ROWS = 60_000
"""So many that no page is within reach of the tail that opening reads."""

WORDS = [f"word {n % 100}" for n in range(ROWS)]
TABLE = pa.table({"n": range(ROWS), "w": WORDS, "l": [[n] * (n % 3) for n in range(ROWS)]})


def write(place: Any, table: pa.Table = TABLE, **options: Any) -> LanceDataset:
    return pennon.write_dataset(
        table, str(place), data_storage_version="2.1", mode="overwrite", **options
    )


def opened(store: CountingStore, session: Session, version: int | None = None) -> LanceDataset:
    snapshot = Snapshot(store, read_manifest(store, version), session)
    return LanceDataset.of_snapshot("t", snapshot)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    write(tmp_path / "t.lance", max_rows_per_file=ROWS // 2)
    pennon.write_dataset(TABLE.slice(0, 10), tmp_path / "t.lance", mode="append")
    return CountingStore(open_store(tmp_path / "t.lance"))


def test_the_pages_of_a_file_are_learned_once(store: CountingStore) -> None:
    session = Session()
    opened(store, session).take([ROWS // 3])
    first = opened(store, session)
    store.reset()
    first.take([5])
    assert store.counts.rounds == 1, "chunks and nothing else"
    assert store.counts.verbs["open"] == 0
    older = opened(store, session, 1)
    store.reset()
    older.take([5])
    assert (store.counts.rounds, store.counts.verbs["open"]) == (1, 0)
    (fragment, *_) = opened(store, session).get_fragments()
    store.reset()
    fragment.take([6])
    assert (store.counts.rounds, store.counts.verbs["open"]) == (1, 0)


def test_sessions_have_separate_caches(store: CountingStore) -> None:
    opened(store, Session()).take([5])
    table = opened(store, Session())
    store.reset()
    table.take([5])
    assert store.counts.verbs["open"] == 1
    assert store.counts.rounds > 1


def test_versions_and_writes_of_a_dataset_share_its_session(tmp_path: Path) -> None:
    table = write(tmp_path / "t.lance")
    session = table.session()
    assert table.checkout_version(1).session().is_same_as(session)
    appended = pennon.write_dataset(TABLE.slice(0, 3), table, mode="append")
    assert appended.session().is_same_as(session)
    fragments = appended.get_fragments()
    operation = pennon.LanceOperation.Append([fragments[-1].metadata])
    made = LanceDataset.commit(appended, operation, read_version=2)
    assert made.session().is_same_as(session)
    assert pennon.dataset(tmp_path / "t.lance", session=session).session() is session
    assert not pennon.dataset(tmp_path / "t.lance").session().is_same_as(session)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_session_size_grows_with_reads(tmp_path: Path, version: str) -> None:
    table = pennon.write_dataset(
        TABLE, tmp_path / "t", data_storage_version=version, max_rows_per_file=ROWS // 4
    )
    session = table.session()
    assert (session.size_bytes(), session.approx_num_items()) == (0, 0)
    table.to_table(columns=["n"])
    assert session.size_bytes() >= 4 * FILE_BYTES
    assert session.approx_num_items() >= 4
    size = session.size_bytes()
    assert table.to_table() == TABLE
    if version == "2.1":
        assert session.size_bytes() > size, "dictionaries and indices of lists"
    assert repr(session) == (
        f"Session(index_cache_size_bytes=0, metadata_cache_size_bytes={session.size_bytes()})"
    )


def test_session_with_zero_cache_size_caches_no_items(tmp_path: Path) -> None:
    write(tmp_path / "t")
    table = pennon.dataset(tmp_path / "t", metadata_cache_size_bytes=0)
    assert table.to_table() == TABLE
    assert table.take([7, 3])["n"].to_pylist() == [7, 3]
    assert (table.session().size_bytes(), table.session().approx_num_items()) == (0, 0)


def test_a_file_of_another_table_with_the_same_name_is_another_file(tmp_path: Path) -> None:
    """A table is replaced by one whose file has the name and the size of the old one."""
    session = Session()
    first = pa.table({"w": ["one", "two"] * ROWS})
    second = pa.table({"w": ["six", "ten"] * ROWS})
    old = write(tmp_path / "t", first)
    new = write(tmp_path / "u", second)
    (old_name,), (new_name,) = (
        [file.path for file in table.get_fragments()[0].metadata.files] for table in (old, new)
    )
    read = pennon.dataset(tmp_path / "t", session=session)
    assert read.take([0])["w"].to_pylist() == ["one"]
    replacement = tmp_path / "t" / "data" / old_name
    shutil.copy2(tmp_path / "u" / "data" / new_name, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_size == replacement.stat().st_size
    (tmp_path / "copy").replace(replacement)
    again = pennon.dataset(tmp_path / "t", session=session)
    assert again.take([0])["w"].to_pylist() == ["six"]
    assert read.take([1])["w"].to_pylist() == ["two"], "what was open stays what it was"


def test_replaced_data_file_is_refused_once_then_read(tmp_path: Path) -> None:
    """What was learned of the old file is never used for the new one."""
    session = Session(metadata_cache_size_bytes=0)
    table = write(tmp_path / "t", pa.table({"w": ["one", "two"] * ROWS}))
    other = write(tmp_path / "u", pa.table({"w": ["six", "ten"] * ROWS}))
    old, new = (
        tmp_path / name / "data" / each.get_fragments()[0].metadata.files[0].path
        for name, each in (("t", table), ("u", other))
    )
    read = pennon.dataset(tmp_path / "t", session=session)
    assert read.to_table(limit=1)["w"].to_pylist() == ["one"]
    new.replace(old)
    with pytest.raises(OSError, match="another program replaced this file"):
        read.to_table(limit=1)
    assert read.to_table(limit=1)["w"].to_pylist() == ["six"]


def test_replaced_memory_object_is_read_anew() -> None:
    session = Session()
    place = "memory://sessions/t"
    name = write(place, pa.table({"w": ["one"]})).get_fragments()[0].metadata.files[0].path
    assert pennon.dataset(place, session=session).to_table()["w"].to_pylist() == ["one"]
    other = write("memory://sessions/u", pa.table({"w": ["six"]}))
    stored = MemoryStore("sessions", "u").open(
        f"data/{other.get_fragments()[0].metadata.files[0].path}"
    )
    memory = MemoryStore("sessions", "t")
    before = memory.identity(f"data/{name}")
    memory.put(f"data/{name}", stored.read([ByteRange(0, stored.size_bytes)])[0].to_pybytes())
    assert memory.identity(f"data/{name}") != before
    assert pennon.dataset(place, session=session).to_table()["w"].to_pylist() == ["six"]


def test_session_evicts_entries_of_deleted_tables(tmp_path: Path) -> None:
    """Entries of a table that nobody reads make room for those of others."""
    session = Session(metadata_cache_size_bytes=4 * FILE_BYTES)
    table = write(tmp_path / "gone")
    pennon.dataset(tmp_path / "gone", session=session).to_table(columns=["n"])
    file = tmp_path / "gone" / "data" / table.get_fragments()[0].metadata.files[0].path
    del table
    gc.collect()
    assert is_mapped(file)
    shutil.rmtree(tmp_path / "gone")
    for number in range(4):
        write(tmp_path / f"t{number}", TABLE.slice(0, 100))
        pennon.dataset(tmp_path / f"t{number}", session=session).to_table()
        assert session.size_bytes() <= 4 * FILE_BYTES
    gc.collect()
    assert not is_mapped(file)


def is_mapped(file: Path) -> bool:
    return file.name in Path("/proc/self/maps").read_text()


def test_dropped_session_unmaps_its_files(tmp_path: Path) -> None:
    write(tmp_path / "t", TABLE.slice(0, 100))
    gc.collect()
    gc.disable()
    try:
        table = pennon.dataset(tmp_path / "t")
        file = tmp_path / "t" / "data" / table.get_fragments()[0].metadata.files[0].path
        table.to_table()
        assert is_mapped(file)
        del table
        assert not is_mapped(file)
    finally:
        gc.enable()


def test_dropped_session_unmaps_its_index_files(tmp_path: Path) -> None:
    rows = 300
    vectors = pa.array([float(n * n % 97) for n in range(rows * 4)], pa.float32())
    data = pa.table(
        {
            "n": range(rows),
            "text": [f"word {n % 7}" for n in range(rows)],
            "vector": pa.FixedSizeListArray.from_arrays(vectors, 4),
        }
    )
    table = pennon.write_dataset(data, tmp_path / "t")
    table.create_scalar_index("n", "BTREE")
    table.create_scalar_index("text", "INVERTED")
    table.create_index("vector", "IVF_FLAT", num_partitions=2)
    del table
    gc.collect()
    gc.disable()
    try:
        table = pennon.dataset(tmp_path / "t")
        near = {"column": "vector", "q": [1.0, 2.0, 3.0, 4.0], "k": 3}
        assert table.to_table(nearest=near).num_rows == 3
        assert table.to_table(filter="n = 7").num_rows == 1
        assert table.to_table(full_text_query="word", limit=5).num_rows == 5
        assert "_indices" in Path("/proc/self/maps").read_text()
        del table
        assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    finally:
        gc.enable()


def test_session_cache_bound_holds_with_concurrent_reads(tmp_path: Path) -> None:
    most = 3 * FILE_BYTES + 40_000
    session = Session(metadata_cache_size_bytes=most)
    write(tmp_path / "t", max_rows_per_file=ROWS // 8)
    wrong: list[object] = []

    def work(seed: int) -> None:
        table = pennon.dataset(tmp_path / "t", session=session)
        for step in range(25):
            row = (seed * 7_919 + step * 4_001) % ROWS
            if table.take([row]).to_pylist() != TABLE.slice(row, 1).to_pylist():
                wrong.append(row)
            if session.size_bytes() > most:
                wrong.append(session)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert 0 < session.size_bytes() <= most


def test_an_unpickled_session_is_empty_and_has_the_bounds(tmp_path: Path) -> None:
    write(tmp_path / "t")
    table = pennon.dataset(tmp_path / "t", session=Session(metadata_cache_size_bytes=1 << 20))
    table.to_table()
    assert len(pickle.dumps(table.session())) < 200
    copy = pickle.loads(pickle.dumps(table))
    assert not copy.session().is_same_as(table.session())
    assert copy.session().size_bytes() == 0
    assert copy.to_table() == TABLE
    assert 0 < copy.session().size_bytes() <= 1 << 20


@pytest.fixture
def held(tmp_path: Path) -> Iterator[LanceDataset]:
    """A dataset whose session's lock another thread holds."""
    write(tmp_path / "t")
    table = pennon.dataset(tmp_path / "t")
    table.take([5])
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with table.session()._memory._lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    yield table
    done.set()
    thread.join()


def test_session_reads_in_fork_while_parent_holds_the_lock(held: LanceDataset) -> None:
    def check() -> bool:
        empty = held.session().size_bytes() == 0
        return empty and held.take([9])["n"].to_pylist() == [9] and held.session().size_bytes() > 0

    assert _fork(check) == 0


def test_children_read_while_threads_of_the_parent_do(tmp_path: Path) -> None:
    """Forks at any moment: no lock that a thread holds reaches the child."""
    table = write(tmp_path / "t", max_rows_per_file=ROWS // 4)
    done = threading.Event()

    def scan() -> None:
        while not done.is_set():
            pennon.dataset(tmp_path / "t", session=table.session()).take([1, ROWS - 1])
            table.to_table(columns=["w", "l"])

    threads = [threading.Thread(target=scan) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = [_fork(lambda: table.take([7])["n"].to_pylist() == [7]) for _ in range(12)]
    done.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 12


def _fork(check: Callable[[], bool]) -> int:
    """Return the exit code of a child: 0 if the check holds, negative if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        fine = False
        try:
            fine = check()
        finally:
            os._exit(0 if fine else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_bounds_and_options_are_checked(tmp_path: Path) -> None:
    write(tmp_path / "t", TABLE.slice(0, 3))
    with pytest.raises(ValueError, match="-1"):
        Session(metadata_cache_size_bytes=-1)
    with pytest.raises(TypeError, match="str"):
        Session(index_cache_size_bytes="many")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="index_cache_backend"):
        Session(index_cache_backend="moka://")
    with pytest.raises(TypeError, match="int"):
        pennon.dataset(tmp_path / "t", session=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int"):
        Session().is_same_as(3)


@pytest.mark.parametrize("name", ["remember", "remember_plan", "remember_take"])
def test_snapshot_memory_evicts_least_recent_entries(name: str, tmp_path: Path) -> None:
    remember = getattr(write(tmp_path / "t", TABLE.slice(0, 3)).snapshot, name)
    first_key, key = Key[object]("first"), Key[object]("numbered")
    first = remember(first_key, object)
    for number in range(1000):
        remember(key, object, number)
        assert remember(first_key, object) is first
    assert remember(key, lambda: "new", 999) != "new"
    assert remember(key, lambda: "new", 1) == "new"


def test_snapshot_memory_keys_differ_by_identity(tmp_path: Path) -> None:
    remember = write(tmp_path / "t", TABLE.slice(0, 3)).snapshot.remember
    key, other = Key[object]("same"), Key[object]("same")
    assert remember(key, object) is not remember(other, object)
    one, equal = ["x"], ["x"]
    found = remember(key, object, Same(one))
    assert remember(key, object, Same(one)) is found
    assert remember(key, object, Same(equal)) is not found


def test_snapshot_plan_is_shared_by_threads(tmp_path: Path) -> None:
    snapshot = write(tmp_path / "t", TABLE.slice(0, 3)).snapshot
    key = Key[object]("plan")
    plan = snapshot.remember_plan(key, object)
    found: list[object] = []

    def ask() -> None:
        found.extend(snapshot.remember_plan(key, object) for _ in range(20_000))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 80_000
    assert all(each is plan for each in found)
