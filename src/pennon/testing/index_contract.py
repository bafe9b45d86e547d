"""The tests that every kind of index must pass.

    class TestMyIndex(IndexContract):
        def rows(self, first: int, count: int) -> pa.Table:
            return pa.table({"id": range(first, first + count)})

        def build(self, dataset: LanceDataset, name: str) -> None:
            dataset.create_scalar_index("id", "BTREE", name)

        def scans(self, dataset: LanceDataset, *, uses_index: bool) -> Sequence[LanceScanner]:
            return [dataset.scanner(filter="id = 7", use_scalar_index=uses_index)]

pytest runs the methods that begin with ``test_``, each on tables of its own, with and without stable row ids.  An index
must find the rows of a scan: as it was built, opened again, after rows were appended, deleted, updated and compacted,
and after it was optimised.  A file of an index that was cut is a FormatError, or the index is passed over; one with other
bytes is a FormatError, or an answer.
"""

from __future__ import annotations

import pickle
import random
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

import pyarrow as pa

import pennon
from pennon.dataset import LanceDataset, LanceScanner
from pennon.dataset.index_descriptions import IndexDescription
from pennon.errors import FormatError
from pennon.io import open_store

_ROWS: Final = 120
_FRAGMENT_ROWS: Final = 40
_CHANGES: Final = 6
_NAME: Final = "tested"


class IndexContract:
    """The conformance suite of a kind of index: see the module."""

    moves_with_rows: ClassVar[bool] = True
    """Whether a compaction rewrites the index; else its rows are scanned until the index is optimised."""

    def rows(self, first: int, count: int) -> pa.Table:
        """Return rows with the numbers ``first``, ``first + 1`` ... in a column ``id``; equal numbers, equal rows."""
        raise NotImplementedError

    def build(self, dataset: LanceDataset, name: str) -> None:
        """Make the index under a name."""
        raise NotImplementedError

    def scans(self, dataset: LanceDataset, *, uses_index: bool) -> Sequence[LanceScanner]:
        """Return scans that ask the index, or for each of them one without it that finds the same rows."""
        raise NotImplementedError

    def new_uri(self) -> str:
        """Return where a new table is made; by default in memory."""
        return f"memory://{uuid.uuid4().hex}/t.lance"

    def is_asked(self, scan: LanceScanner) -> bool:
        """Return whether a scan asks the index, as its plan says."""
        return _NAME in scan.explain_plan()

    # --- tests ------------------------------------------------------------------------------------

    def test_built_index_finds_the_rows_of_a_scan(self) -> None:
        """The scans that use the index ask it, and one of them finds some rows at least."""
        for dataset in self._tables():
            assert all(map(self.is_asked, self.scans(dataset, uses_index=True)))
            assert any(_ids(scan) for scan in self.scans(dataset, uses_index=True))
            self._check(dataset)

    def test_reopened_index_finds_the_rows_of_a_scan(self) -> None:
        """The table is opened anew, pickled, and its index loaded before it is asked."""
        for dataset in self._tables():
            self._check(pennon.dataset(dataset.uri))
            self._check(pickle.loads(pickle.dumps(dataset)))  # noqa: S301 - pickled one line up
            warm = pennon.dataset(dataset.uri)
            warm.prewarm_index(_NAME)
            self._check(warm)

    def test_appended_rows_are_found(self) -> None:
        """First by a scan beside the index, then by a second segment of it, then by one for all."""
        for dataset in self._tables():
            dataset.insert(self.rows(0, _FRAGMENT_ROWS))
            self._check(dataset)
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
            assert len(_index(dataset).segments) == 2
            self._check_covered(dataset)
            dataset.optimize.optimize_indices(num_indices_to_merge=10)
            self._check_covered(dataset)
            assert len(_index(dataset).segments) == 1

    def test_deleted_rows_are_not_found(self) -> None:
        """Some rows of each fragment are deleted, then all of one."""
        for dataset in self._tables():
            dataset.delete("id % 3 = 1")
            self._check(dataset)
            dataset.delete(f"id < {_FRAGMENT_ROWS}")
            self._check(dataset)
            dataset.optimize.optimize_indices()
            self._check(dataset)

    def test_updated_rows_are_found_where_they_are(self) -> None:
        """Rows are put in place of others by a merge, which moves them, and keeps the ids of stable rows."""
        for dataset in self._tables():
            changed = self.rows(1, 30).drop_columns(["id"])
            changed = changed.append_column("id", pa.array(range(30), pa.int64()))
            changed = changed.select(dataset.schema.names).cast(dataset.schema)
            dataset.merge_insert("id").when_matched_update_all().execute(changed)
            self._check(dataset)
            dataset.optimize.optimize_indices()
            self._check_covered(dataset)

    def test_compacted_rows_are_found(self) -> None:
        """The index is rewritten by the compaction, where it names rows by their addresses."""
        for dataset in self._tables():
            dataset.delete("id % 4 = 1")
            dataset.optimize.compact_files()
            if self.moves_with_rows:
                self._check_covered(dataset)
            self._check_compacted(dataset)

    def test_compacted_rows_are_found_by_an_index_left_as_it_was(self) -> None:
        """The compaction leaves the index to be rewritten later (``defer_index_remap``)."""
        dataset = next(self._tables())
        dataset.delete("id % 4 = 1")
        dataset.optimize.compact_files(defer_index_remap=True)
        self._check_compacted(dataset)

    def test_cut_files_are_an_error_or_the_rows_of_a_scan(self) -> None:
        """Each file of the index is empty, cut, or ends in other bytes."""
        for dataset in self._tables():
            wanted = [_ids(scan) for scan in self.scans(dataset, uses_index=False)]
            for damaged in _damaged(dataset, _cut):
                for found, ids in zip(self._found(damaged), wanted, strict=True):
                    assert found is None or found == ids
            self._check(pennon.dataset(dataset.uri))

    def test_files_with_other_bytes_are_an_error_or_an_answer(self) -> None:
        """Some bytes of each file are changed; nothing tells wrong values from right ones, but all else is checked."""
        for dataset in self._tables():
            for damaged in _damaged(dataset, _changed):
                for found in self._found(damaged):
                    assert found is None or {*found} <= {*range(_ROWS)}

    # --- what they are made of --------------------------------------------------------------------

    def _tables(self) -> Iterator[LanceDataset]:
        """Yield tables of some fragments with the index: rows by their addresses, and by stable ids."""
        for is_stable in (False, True):
            dataset = pennon.write_dataset(
                self.rows(0, _ROWS),
                self.new_uri(),
                max_rows_per_file=_FRAGMENT_ROWS,
                enable_stable_row_ids=is_stable,
            )
            self.build(dataset, _NAME)
            yield dataset

    def _check(self, dataset: LanceDataset) -> None:
        """Compare what the index finds with what scans find."""
        asked = self.scans(dataset, uses_index=True)
        plain = self.scans(dataset, uses_index=False)
        for one, other in zip(asked, plain, strict=True):
            assert _ids(one) == _ids(other), one.explain_plan()

    def _check_covered(self, dataset: LanceDataset) -> None:
        """Compare, and check that the index covers all fragments."""
        covered = set().union(*(each.fragment_ids for each in _index(dataset).segments))
        assert {each.fragment_id for each in dataset.get_fragments()} <= covered
        self._check(dataset)

    def _check_compacted(self, dataset: LanceDataset) -> None:
        """Compare after a compaction, and after the index was optimised."""
        assert len(dataset.get_fragments()) == 1
        assert all(map(self.is_asked, self.scans(dataset, uses_index=True)))
        self._check(dataset)
        dataset.insert(self.rows(0, 20))
        dataset.optimize.optimize_indices(num_indices_to_merge=10)
        self._check_covered(dataset)

    def _found(self, dataset: LanceDataset) -> list[list[int] | None]:
        """Return what each scan that uses the index finds; None: a FormatError."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # an index that cannot be read is passed over with a warning
            return [
                self._one_found(dataset, number)
                for number in range(len(self.scans(dataset, uses_index=False)))
            ]

    def _one_found(self, dataset: LanceDataset, number: int) -> list[int] | None:
        try:
            return _ids(self.scans(dataset, uses_index=True)[number])
        except FormatError:
            return None


def _ids(scan: LanceScanner) -> list[int]:
    ids: list[int] = sorted(scan.to_table()["id"].to_pylist())
    return ids


def _index(dataset: LanceDataset) -> IndexDescription:
    (found,) = (each for each in dataset.describe_indices() if each.name == _NAME)
    return found


def _damaged(
    dataset: LanceDataset, damage: Callable[[bytes], Iterator[bytes]]
) -> Iterator[LanceDataset]:
    """Yield the table opened anew for each damage that is done to a file of its index; the files are whole at the end."""
    store = open_store(dataset.uri)
    for path in [each.path for each in store.list("_indices")]:
        whole = store.read_whole(path).to_pybytes()
        for bad in (*damage(whole), whole):
            store.delete(path)
            store.put(path, bad)
            yield pennon.dataset(dataset.uri)


def _cut(whole: bytes) -> Iterator[bytes]:
    """Yield a file's bytes empty, cut, and with another end."""
    yield b""
    yield whole[: len(whole) // 2]
    yield whole[:-1]
    yield whole[:-40] + bytes(40)


def _changed(whole: bytes) -> Iterator[bytes]:
    """Yield a file with some bytes changed; the same bytes each time."""
    chance = random.Random(len(whole))  # noqa: S311 - the same damage each time
    for _ in range(_CHANGES):
        start = chance.randrange(len(whole))
        yield whole[:start] + chance.randbytes(4) + whole[start + 4 :]
