"""Compaction of tables, step by step and on many machines (``lance.optimize``).

`Compaction.plan` chooses the fragments, `CompactionTask.execute` rewrites some of them, anywhere, and
`Compaction.commit` makes the results a version.  Plans, tasks and results pickle, and turn into
pylance's JSON, so that what one library planned or wrote, the other can go on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from typing import Any, Final, Literal, Self, TypedDict

from pennon.core.units import FragmentId
from pennon.dataset.base import DatasetBase
from pennon.dataset.metadata import FragmentMetadata
from pennon.dataset.write_options import with_statistics
from pennon.errors import ArgumentError
from pennon.io.durability import hands_over
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import CompactTask, Rewritten, commit_compact, plan_compact, task_of
from pennon.ops.row_counts import completed
from pennon.ops.run_tasks import run_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.apply.rows import by_id
from pennon.table.fragment import Fragment
from pennon.table.versions import read_manifest

_MODES: Final = {
    "reencode": "Reencode",
    "try_binary_copy": "TryBinaryCopy",
    "force_binary_copy": "ForceBinaryCopy",
}
_UNUSED_OPTIONS: Final = {
    "index_remap_mode": "Direct",
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "max_overlays_per_fragment": 10,
    "has_eager_remappable_index": None,
}
"""Options of pylance's JSON that mean nothing here."""


class CompactionOptions(TypedDict, total=False):
    """Options of a compaction; `LanceDataset.optimize` tells what they mean."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """The number of files and fragments that a compaction removed and added; deletion files count as files.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=1)
    >>> ds.optimize.compact_files()
    CompactionMetrics(fragments_removed=3, fragments_added=1, files_removed=3, files_added=1)
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    def __add__(self, other: CompactionMetrics) -> CompactionMetrics:
        """Return the sum."""
        return CompactionMetrics(
            self.fragments_removed + other.fragments_removed,
            self.fragments_added + other.fragments_added,
            self.files_removed + other.files_removed,
            self.files_added + other.files_added,
        )


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of one task: the fragments that it read, and those that it wrote.

    ``row_addrs``: which rows those are, where indices stay as they are.
    """

    read_version: int
    original_fragments: list[FragmentMetadata] = field(repr=False)
    new_fragments: list[FragmentMetadata]
    row_addrs: bytes | None = field(default=None, repr=False)
    old_fragments: list[FragmentMetadata] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Let the old fragments go by pylance's other name, too."""
        object.__setattr__(self, "old_fragments", self.original_fragments)

    @property
    def metrics(self) -> CompactionMetrics:
        """Return the numbers of fragments and files."""
        old, new = self.original_fragments, self.new_fragments
        return CompactionMetrics(len(old), len(new), _count_files(old), _count_files(new))

    def json(self) -> str:
        """Return pylance's JSON."""
        result = {
            "metrics": asdict(self.metrics),
            "new_fragments": list(map(_fragment_to_json, self.new_fragments)),
            "read_version": self.read_version,
            "original_fragments": list(map(_fragment_to_json, self.original_fragments)),
            "row_addrs": None if self.row_addrs is None else list(self.row_addrs),
        }
        return dumps(result)

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """Parse what `json` returned."""
        with _reading("result of a compaction task"):
            found = loads(json)
            rows = found.get("row_addrs")
            return RewriteResult(
                found["read_version"],
                _parse_fragments(found["original_fragments"]),
                _parse_fragments(found["new_fragments"]),
                None if rows is None else bytes(rows),
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON."""
        return RewriteResult.from_json, (self.json(),)


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments to rewrite together."""

    read_version: int
    fragments: list[FragmentMetadata]
    options: CompactOptions = field(repr=False, default_factory=CompactOptions)

    @hands_over
    def execute(self, dataset: DatasetBase) -> RewriteResult:
        """Rewrite the fragments, as they were in the version of the plan; nothing is committed.

        Raises ArgumentError if that version has no such fragments: it is another table's.
        """
        snapshot = _snapshot_at(dataset.snapshot, self.read_version)
        old = _find(snapshot, self.fragments)
        return _result(task_of(snapshot, self.options, [old]).run(0))

    def json(self) -> str:
        """Return pylance's JSON."""
        task = {
            "task": {"fragments": list(map(_fragment_to_json, self.fragments))},
            "read_version": self.read_version,
            "options": _options_to_json(self.options),
        }
        return dumps(task)

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """Parse what `json` returned."""
        with _reading("compaction task"):
            found = loads(json)
            fragments = _parse_fragments(found["task"]["fragments"])
            options = _parse_options(found["options"])
            return CompactionTask(found["read_version"], fragments, options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON."""
        return CompactionTask.from_json, (self.json(),)


@dataclass(frozen=True, slots=True, repr=False)
class CompactionPlan:
    """The tasks of a compaction, planned on one version."""

    read_version: int
    tasks: list[CompactionTask]
    options: CompactOptions

    def num_tasks(self) -> int:
        """Return the number of tasks."""
        return len(self.tasks)

    def __repr__(self) -> str:
        """Return version and number of tasks."""
        tasks = f"<{len(self.tasks)} compaction tasks>"
        return f"CompactionPlan(read_version={self.read_version}, tasks={tasks})"

    def json(self) -> str:
        """Return pylance's JSON."""
        plan = {
            "tasks": [
                {"fragments": list(map(_fragment_to_json, task.fragments))} for task in self.tasks
            ],
            "read_version": self.read_version,
            "options": _options_to_json(self.options),
        }
        return dumps(plan)

    @classmethod
    def from_json(cls, json: str) -> Self:
        """Parse what `json` returned."""
        with _reading("compaction plan"):
            found = loads(json)
            version, options = found["read_version"], _parse_options(found["options"])
            tasks = [
                CompactionTask(version, _parse_fragments(task["fragments"]), options)
                for task in found["tasks"]
            ]
            return cls(version, tasks, options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON."""
        return CompactionPlan.from_json, (self.json(),)


class Compaction:
    """Compacts a table: in one call, or as plan, tasks and commit.

    >>> from pennon.optimize import Compaction
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=1)
    >>> plan = Compaction.plan(ds, {})
    >>> results = [task.execute(ds) for task in plan.tasks]
    >>> Compaction.commit(ds, results).fragments_removed
    3
    """

    @staticmethod
    def execute(
        dataset: DatasetBase, options: CompactionOptions | Mapping[str, Any]
    ) -> CompactionMetrics:
        """Compact a table, and turn the handle to the version made; no version if nothing is to do.

        Raises RetryableConflict if another writer changed a fragment meanwhile.
        """
        task = plan_compact(dataset.snapshot, _options(dataset, options))
        threads = task.options.num_threads
        rewritten = run_tasks(task, task.count, what="compacting", threads=threads)
        return _commit(dataset, rewritten)

    @staticmethod
    def plan(
        dataset: DatasetBase, options: CompactionOptions | Mapping[str, Any]
    ) -> CompactionPlan:
        """Choose what to rewrite of the version that the dataset stands at."""
        task = plan_compact(dataset.snapshot, _options(dataset, options))
        version = dataset.version
        chosen = _with_version(task)
        tasks = [
            CompactionTask(version, list(map(FragmentMetadata.from_fragment, old)), chosen)
            for old in task.bins
        ]
        return CompactionPlan(version, tasks, chosen)

    @staticmethod
    def commit(
        dataset: DatasetBase,
        rewrites: Iterable[RewriteResult],
        options: CompactionOptions | Mapping[str, Any] | None = None,
    ) -> CompactionMetrics:
        """Make the results of some tasks a version, and turn the handle to it.

        Results that are not given can be committed later, as long as nobody changed their fragments.
        Raises RetryableConflict if somebody did.
        """
        _options(dataset, options or {})
        return _commit(dataset, [_rewritten(result) for result in rewrites])


def _options(dataset: DatasetBase, given: Mapping[str, Any]) -> CompactOptions:
    return CompactOptions.of(given, dataset.snapshot.manifest.config)


def _with_version(task: CompactTask) -> CompactOptions:
    """Return the options with the file version that the table has now."""
    given = asdict(task.options)
    return CompactOptions(**{**given, "data_storage_version": str(task.write.version)})


def _commit(dataset: DatasetBase, rewritten: list[Rewritten]) -> CompactionMetrics:
    if not rewritten:
        return CompactionMetrics()
    made = dataset.snapshot.at(commit_compact(dataset.snapshot.store, rewritten))
    dataset._turn_to(with_statistics(made).manifest)  # noqa: SLF001 - its own
    return sum((_result(each).metrics for each in rewritten), CompactionMetrics())


def _snapshot_at(snapshot: Snapshot, version: int) -> Snapshot:
    if snapshot.manifest.version == version:
        return snapshot
    return snapshot.at(read_manifest(snapshot.store, version))


def _find(snapshot: Snapshot, metas: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    """Return the fragments of a version that a task names, with their counts."""
    known = by_id(snapshot.manifest.fragments)
    found = []
    for meta in metas:
        named, fragment = meta.to_fragment(), known.get(FragmentId(meta.id))
        if fragment is None or _places(named) != _places(fragment):
            message = f"version {snapshot.manifest.version} has no fragment {meta.id} as planned"
            raise ArgumentError(message)
        found.append(completed(snapshot, fragment))
    return tuple(found)


def _places(fragment: Fragment) -> tuple[object, ...]:
    deletion = fragment.deletion_file
    return (
        [(file.path, file.base_id) for file in fragment.files],
        None if deletion is None else deletion.store_path(fragment.id),
    )


def _result(rewritten: Rewritten) -> RewriteResult:
    return RewriteResult(
        rewritten.read_version,
        list(map(FragmentMetadata.from_fragment, rewritten.old)),
        list(map(FragmentMetadata.from_fragment, rewritten.new)),
        rewritten.kept,
    )


def _rewritten(result: RewriteResult) -> Rewritten:
    def parse(metas: list[FragmentMetadata]) -> tuple[Fragment, ...]:
        return tuple(meta.to_fragment() for meta in metas)

    old, new = parse(result.original_fragments), parse(result.new_fragments)
    return Rewritten(result.read_version, old, new, result.row_addrs)


def _count_files(fragments: Iterable[FragmentMetadata]) -> int:
    return sum(len(each.files) + (each.deletion_file is not None) for each in fragments)


# JSON


def _fragment_to_json(fragment: FragmentMetadata) -> dict[str, Any]:
    """Return a fragment; what it does not have is left out."""
    found = fragment.to_json()
    if not found["overlays"]:
        del found["overlays"]
    return {name: value for name, value in found.items() if value is not None}


def _parse_fragments(found: list[dict[str, Any]]) -> list[FragmentMetadata]:
    """Return the fragments of a list."""
    return [FragmentMetadata.from_json(dumps(each)) for each in found]


def _options_to_json(options: CompactOptions) -> dict[str, Any]:
    """Return options, each by its name there."""
    found = asdict(options)
    found["excluded_fragment_ids"] = list(options.excluded_fragment_ids)
    mode = found["compaction_mode"]
    found["compaction_mode"] = None if mode is None else _MODES[mode]
    return {**_UNUSED_OPTIONS, **found}


def _parse_options(found: Mapping[str, Any]) -> CompactOptions:
    """Return the options that mean something here; raises ArgumentError for one that makes no sense."""
    known = CompactOptions.__dataclass_fields__
    given = {name: value for name, value in found.items() if name in known}
    names = {theirs: ours for ours, theirs in _MODES.items()}
    if given.get("compaction_mode") is not None:
        given["compaction_mode"] = names.get(given["compaction_mode"], given["compaction_mode"])
    return CompactOptions.of(given, {})


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Raise ArgumentError for JSON that is no such thing."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"this text is no {what}: {error}"
        raise ArgumentError(message) from error
