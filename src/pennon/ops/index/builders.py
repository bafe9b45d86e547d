"""The runners of the tasks of a build: threads of this machine, and what reports another one's progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pennon.index.vector.build.train import Done
from pennon.ops.bars import bar, counted
from pennon.ops.index.build import Builder, IndexBuild
from pennon.ops.index.progress import Watch, with_progress
from pennon.ops.run_tasks import run_tasks
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_index_bytes, serialize_index_bytes


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Makes one segment of several; it pickles."""

    to_bytes = staticmethod(serialize_index_bytes)
    from_bytes = staticmethod(parse_index_bytes)

    build: IndexBuild
    segments: tuple[Index, ...]

    def run(self, _number: int) -> Index:
        """Return the entry of the segment, which is not committed; raises as `IndexBuild.merge` does."""
        return self.build.merge(self.segments)


class ThreadBuilder:
    """This machine's threads."""

    @contextmanager
    def stage(self, build: IndexBuild, name: str, total: int, unit: str) -> Iterator[Done]:  # noqa: ARG002 - a bar has no unit
        """See `Builder.stage`."""
        with bar(f"index {build.name}: {name.replace('_', ' ')}") as tell:
            yield counted(tell, total)

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `Builder.segments`."""
        return run_tasks(build, len(build.groups), what=f"index {build.name}")

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `Builder.merge`."""
        return build.merge(segments)


THREADS: Final = ThreadBuilder()


@dataclass(frozen=True, slots=True)
class Watched:
    """Tells of what another builder does."""

    builder: Builder
    watch: Watch

    @contextmanager
    def stage(self, build: IndexBuild, name: str, total: int, unit: str) -> Iterator[Done]:
        """See `Builder.stage`."""
        with (
            self.builder.stage(build, name, total, unit) as show,
            with_progress(self.watch, name, total, unit) as tell,
        ):

            def done() -> None:
                show()
                tell()

            yield done

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `Builder.segments`."""
        with with_progress(self.watch, "shuffle"):
            return self.builder.segments(build)

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `Builder.merge`."""
        with with_progress(self.watch, "merge_partitions"):
            return self.builder.merge(build, segments)
