"""Every operation that rewrites or moves rows with every kind of index: answers equal those of a scan.

Half of the operations follow on steps of the other library, deferred compactions among them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import lance
import pytest

import pennon
from tests.interop import index_matrix as matrix

P, L = pennon, lance
Step = tuple[Any, str]

BEFORE: Final[Mapping[str, Sequence[Step]]] = {
    "nothing": (),
    "deferred by Pennon": ((P, "delete"), (P, "defer")),
    "deferred by Pennon, then pylance commits": ((P, "delete"), (P, "defer"), (L, "config")),
    "deferred by pylance, then appended to": ((L, "delete"), (L, "defer"), (L, "append")),
    "segments, and rows that moved": (
        (P, "append"),
        (P, "new segments"),
        (L, "update"),
        (P, "optimize"),
    ),
    "updated by Pennon": ((P, "update"), (P, "update one column"), (P, "delete")),
}
"""The steps before an operation."""
PENNON_ALONE: Final = frozenset({"convert", "cast"})
"""pylance converts no files, and casts no column with an index."""
MOVES: Final = frozenset({"update", "update one column", "update all", "upsert"})
"""They give rows with stable ids new values in another place."""
REWRITES: Final = frozenset({"compact", "compact a little"})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[Any, bool], Path]:
    """Tables with all indices, made by either library, with and without stable row ids."""
    found = {}
    for maker, stable in product((P, L), (False, True)):
        folder = tmp_path_factory.mktemp("tables") / "t.lance"
        matrix.make_table(str(folder), maker, stable=stable)
        found[maker, stable] = folder
    return found


class Case:
    """A copy of a table, and what was done to it."""

    def __init__(self, template: Path, folder: Path, steps: Sequence[Step]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        self.uri = str(folder)
        self.steps: list[Step] = []
        for step in steps:
            self.take(step)

    def take(self, step: Step) -> None:
        """Take another step."""
        library, name = step
        matrix.OPERATIONS[name](library, self.uri)
        self.steps.append(step)

    def check(self) -> None:
        """Check that both libraries find with indices what is there."""
        said = " > ".join(f"{library.__name__}: {name}" for library, name in self.steps)
        for library in self._readers():
            wrong = matrix.check(library.dataset(self.uri))
            assert not wrong, f"{said}: {library.__name__} finds {wrong}"

    def _readers(self) -> Iterator[Any]:
        """Yield the libraries whose answers are to be right.

        pylance 14 loses rows of its indices when it compacts after a deferred compaction: ledger F-702.  It makes
        segments that answer by old values, too, of rows with stable ids: ledger F-724.
        """
        yield P
        names = [name for _, name in self.steps]
        is_stable = pennon.dataset(self.uri).has_stable_row_ids
        if is_stable and self.steps[-1] == (L, "new segments") and MOVES.intersection(names):
            return
        if "defer" in names:
            later = self.steps[names.index("defer") :]
            if any(library is L and name in REWRITES for library, name in later):
                return
        yield L


def cases(operation: str) -> Iterator[tuple[Any, Sequence[Step], Step]]:
    """Yield who made the table, what was done before, and an operation by either library."""
    libraries = (P,) if operation in PENNON_ALONE else (P, L)
    for number, (steps, library) in enumerate(product(BEFORE.values(), libraries)):
        yield (P, L)[number // len(libraries) % 2], steps, (library, operation)


def run(tables: Any, folder: Path, stable: bool, case: tuple[Any, Sequence[Step], Step]) -> None:
    maker, before, step = case
    made = Case(tables[maker, stable], folder, before)
    made.take(step)
    made.check()
    made.take((P, "optimize"))
    made.check()


@pytest.mark.parametrize("operation", matrix.OPERATIONS)
def test_indices_answer_as_scans_after(tables: Any, tmp_path: Path, operation: str) -> None:
    """The operation by Pennon after one of the histories: each operation after another one.

    Every other operation is on a table with stable row ids.
    """
    chosen = [case for case in cases(operation) if case[2][0] is P]
    number = list(matrix.OPERATIONS).index(operation)
    stable = number % 2 == 1
    run(tables, tmp_path / "t.lance", stable, chosen[number % len(chosen)])


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("operation", matrix.OPERATIONS)
def test_indices_answer_as_scans_after_every_history(
    tables: Any, tmp_path: Path, operation: str, stable: bool
) -> None:
    for case in cases(operation):
        run(tables, tmp_path / "t.lance", stable, case)


# --- deferred compactions, and what comes after ---------------------------------------------------

COMMITS: Final = (
    "append",
    "delete",
    "update",
    "update unindexed",
    "delete fragment",
    "merge columns",
    "config",
    "add columns",
    "upsert",
    "restore",
    "new segments",
    "optimize",
)


def chains(stable: bool = False) -> Iterator[list[Step]]:
    """Yield chains: a deferred compaction, a commit, a compaction."""
    del stable
    for deferrer, committer, name in product((P, L), (P, L), COMMITS):
        for last in ((P, "compact"), (P, "defer"), (P, "compact a little")):
            yield [(P, "delete"), (deferrer, "defer"), (committer, name), last]


QUICK_CHAINS: Final = [
    [(P, "delete"), (P, "defer"), (L, "config"), (P, "compact")],
    [(P, "delete"), (L, "defer"), (L, "append"), (P, "compact")],
    [(P, "delete"), (P, "defer"), (L, "update"), (P, "compact")],
    [(P, "delete"), (P, "defer"), (L, "append"), (P, "optimize")],
    [(P, "delete"), (P, "defer"), (L, "update"), (P, "optimize"), (P, "compact")],
    [(P, "delete"), (P, "defer"), (P, "delete fragment")],
    [(P, "delete"), (L, "defer"), (P, "compact")],
    [(P, "delete"), (P, "defer"), (L, "config"), (L, "compact"), (P, "compact")],
]


@pytest.mark.parametrize("steps", QUICK_CHAINS, ids=lambda s: ", ".join(name for _, name in s))
def test_index_answers_after_deferred_compaction_chains(
    tables: Any, tmp_path: Path, steps: list[Step]
) -> None:
    made = Case(tables[L, False], tmp_path / "t.lance", steps)
    made.check()
    made.take((P, "optimize"))
    made.check()
    described = pennon.dataset(made.uri).describe_indices()
    rows = {each.num_rows_indexed for each in described if not each.name.startswith("__")}
    assert rows == {pennon.dataset(made.uri).count_rows()}


@pytest.mark.slow
def test_index_answers_after_all_deferred_compaction_chains(tables: Any, tmp_path: Path) -> None:
    for steps in chains():
        made = Case(tables[L, False], tmp_path / "t.lance", steps)
        made.check()
        made.take((P, "optimize"))
        made.check()


@pytest.mark.parametrize("merged", [None, 0, 1])
@pytest.mark.parametrize("deferrer", [P, L], ids=["by Pennon", "by pylance"])
def test_index_segments_built_after_deferred_compaction_do_not_overlap(
    tables: Any, tmp_path: Path, deferrer: Any, merged: int | None
) -> None:
    steps = [(P, "append"), (P, "new segments"), (P, "delete"), (deferrer, "defer"), (L, "config")]
    made = Case(tables[L, False], tmp_path / "t.lance", steps)
    for _ in range(2):
        pennon.dataset(made.uri).optimize.optimize_indices(num_indices_to_merge=merged)
        lance.dataset(made.uri).validate()
        made.check()
        made.take((P, "append"))


# --- branches and shallow clones ------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("compactor", [P, L], ids=["by Pennon", "by pylance"])
def test_indices_of_compacted_branches_and_clones(
    tables: Any, tmp_path: Path, compactor: Any, stable: bool
) -> None:
    """pylance names the base path of files that it wrote into the branch; Pennon finds them there."""
    made = Case(tables[L, stable], tmp_path / "t.lance", [(P, "delete")])
    clone = str(tmp_path / "clone.lance")
    pennon.dataset(made.uri).shallow_clone(clone, pennon.dataset(made.uri).version)
    pennon.dataset(made.uri).create_branch("x")

    def opened(library: Any) -> list[Any]:
        branch = library.dataset(made.uri).checkout_version(("x", None))
        return [branch, library.dataset(clone)]

    for dataset in opened(compactor):
        dataset.optimize.compact_files(target_rows_per_fragment=10_000)
    for reader in (P, L) if compactor is P else (P,):
        for dataset in opened(reader):
            assert not matrix.check(dataset), reader.__name__
    for dataset in opened(P):
        described = dataset.describe_indices()
        assert all(each.details is None or "not_asked" not in each.details for each in described)
        whole = {each.name for each in described if each.num_rows_indexed == dataset.count_rows()}
        assert whole >= {"bt_idx", "ft_idx", "ng_idx", "vf_idx", "hs_idx"}


# --- segments of tables with stable row ids -------------------------------------------------------


@pytest.mark.parametrize("merged", [None, 0, 1, 100])
@pytest.mark.parametrize("moves", ["update", "upsert", "update unindexed"])
def test_index_segments_of_moved_rows_do_not_overlap(
    tables: Any, tmp_path: Path, moves: str, merged: int | None
) -> None:
    """pylance finds a row by what an older segment says of it: ledger F-555."""
    before = [(P, "append"), (P, "new segments"), (P, moves)]
    made = Case(tables[L, True], tmp_path / "t.lance", before)
    pennon.dataset(made.uri).optimize.optimize_indices(num_indices_to_merge=merged)
    made.check()
    segments = {
        each.name: len(each.segments) for each in pennon.dataset(made.uri).describe_indices()
    }
    expected = {None: 1, 0: 3, 1: 2, 100: 1}[merged]
    if moves != "update unindexed":
        assert set(segments.values()) == {expected}


@pytest.mark.parametrize("merged", [None, 0, 1, 100])
@pytest.mark.parametrize("then", ["nothing", "compact", "defer"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_index_segments_of_columns_written_anew_do_not_overlap(
    tables: Any, tmp_path: Path, stable: bool, then: str, merged: int | None
) -> None:
    """Rows that have new values in their place are named by no older segment, for pylance takes rows from all."""
    made = Case(tables[P, stable], tmp_path / "t.lance", [(P, "append"), (P, "new segments")])
    _update_all_columns(made.uri)
    if then != "nothing":
        pennon.dataset(made.uri).delete("id % 9 = 2")
        made.take((P, then))
    pennon.dataset(made.uri).optimize.optimize_indices(num_indices_to_merge=merged)
    made.check()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_optimize_leaves_as_many_segments_as_pylance(
    tables: Any, tmp_path: Path, stable: bool
) -> None:
    """Scalar and text indices only: Pennon merges the last segment of vectors, pylance does so at times."""
    counts = {}
    for library in (P, L):
        steps = [(L, "append"), (L, "new segments"), (L, "append"), (library, "optimize")]
        made = Case(tables[L, stable], tmp_path / "t.lance", steps)
        counts[library] = [_segments(made.uri)]
        for step in ((L, "update"), (library, "optimize")):
            made.take(step)
        counts[library].append(_segments(made.uri))
        made.check()
    assert counts[P] == counts[L]


def _update_all_columns(folder: str) -> None:
    """Give the rows of the first fragment the values of one another, in all columns with an index."""
    dataset = pennon.dataset(folder)
    first = dataset.get_fragments()[0]
    old = first.to_table()
    turned = old.take([*range(7, old.num_rows), *range(7)])
    data = turned.set_column(turned.column_names.index("id"), "id", old["id"])
    changed, fields = first.update_columns(data.drop_columns(["plain"]).to_reader(), "id", "id")[:2]
    operation = pennon.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    pennon.LanceDataset.commit(folder, operation, read_version=dataset.version)


def _segments(uri: str) -> dict[str, int]:
    described = pennon.dataset(uri).describe_indices()
    return {
        each.name: len(each.segments)
        for each in described
        if each.name.removesuffix("_idx") in matrix.SCALARS
    }
