"""Making an index of vectors on many machines: coded where they are read, written where their partition is.  The tasks pickle.

::

    split    rows of the table, in shares          -> (partition, block): coded rows of one partition
    write    all blocks of a run of partitions     -> a part: an index that has these partitions alone
    join     the parts                             -> the index

Whoever runs the tasks carries the blocks from one to the other, in the order of the partitions.  So the codes of
one partition are what a task holds at most, but for a few that go side by side.  A file has one writer, so that more parts than one are more work; they are
worth it where each partition gets a graph, which takes longer than all the rest.

A vector goes to its partition whoever codes it: a task that runs twice sends the same rows to the same partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

from pennon.index.vector.build.concatenate import join_parts
from pennon.index.vector.build.new_index import write_index
from pennon.index.vector.build.shuffle_blocks import cut_blocks, gathered
from pennon.ops.index.vector_build import VectorBuild
from pennon.ops.task_wire import parse_numbered_index, serialize_numbered_index
from pennon.scan.read.tasks import ScanTask
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_index_bytes, serialize_index_bytes

_PARTS_OF_WRITER: Final = 4
"""So that a writer whose partitions are small goes on with others."""

Share: TypeAlias = tuple[ScanTask, ...]
"""Rows that one task reads."""


@dataclass(frozen=True, slots=True)
class VectorShuffle:
    """The steps of a build after training: shuffle rows to parts, each with a number of partitions."""

    build: VectorBuild
    shares: tuple[Share, ...]
    partitions_per_part: int

    @classmethod
    def of(cls, build: VectorBuild, shares: Sequence[Share], writers: int) -> VectorShuffle:
        """Plan it for so many writers, which only graphs have work for."""
        parts = _PARTS_OF_WRITER * writers if build.settings.graph is not None else 1
        return cls(build, tuple(shares), -(-build.trained.partitions // parts))

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return -(-self.build.trained.partitions // self.partitions_per_part)

    @property
    def split(self) -> SplitTask:
        """Return what codes the rows of each share."""
        return SplitTask(self.build, self.shares)

    @property
    def write(self) -> WriteTask:
        """Return what writes a part."""
        return WriteTask(self.build, self.partitions_per_part)

    def join(self, parts: Mapping[int, Index]) -> JoinTask:
        """Return what makes the index of parts, each known by its first partition."""
        return JoinTask(self.build, dict(parts))


@dataclass(frozen=True, slots=True)
class SplitTask:
    """Reads rows, codes their vectors, and cuts these into blocks by the partitions that they belong to."""

    build: VectorBuild
    shares: tuple[Share, ...]

    def run(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a share: the number of a partition, and rows of it."""
        return cut_blocks(self.build.read(self.shares[number]), self.build.trained)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the partitions of one part."""

    build: VectorBuild
    partitions_per_part: int

    def run(self, blocks: Iterable[tuple[int, bytes]]) -> tuple[int, Index] | None:
        """Write blocks that come partition by partition; return the first partition of the part, and its entry.

        None if there are no blocks.
        """
        coming = iter(blocks)
        for one in coming:
            model = self.build.trained
            first = one[0] - one[0] % self.partitions_per_part
            end = min(first + self.partitions_per_part, model.partitions)
            mine = replace(model, centroids=model.centroids[first:end])
            new = self.build.new_files()
            write_index(mine, gathered(chain([one], coming), mine, first, end), new)
            return first, self.build.entry(new, [each.id for each in self.build.fragments])
        return None

    def to_bytes(self, answer: tuple[int, Index] | None) -> bytes:
        """Return an answer as a message."""
        return serialize_numbered_index(answer)

    def from_bytes(self, message: bytes) -> tuple[int, Index] | None:
        """Return the answer of a message; raises FormatError."""
        return parse_numbered_index(message)


@dataclass(frozen=True, slots=True)
class JoinTask:
    """Makes one index of its parts."""

    to_bytes = staticmethod(serialize_index_bytes)
    from_bytes = staticmethod(parse_index_bytes)

    build: VectorBuild
    parts: dict[int, Index]

    def run(self, _number: int = 0) -> Index:
        """Write the index, and return its entry, which is not committed."""
        new = self.build.new_files()
        files = {first: self.build.files(part) for first, part in self.parts.items()}
        join_parts(files, self.build.trained, new)
        return self.build.entry(new, [each.id for each in self.build.fragments])
