"""Small tables without data files, for tests of the table layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.units import FieldId, FragmentId
from pennon.proto import table_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.table.commit.clock import SYSTEM_CLOCK, Clock
from pennon.table.commit.loop import commit
from pennon.table.commit.options import DEFAULT_POLICY, CommitOptions, CommitPolicy
from pennon.table.commit.put_manifest import CommitStore
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Append, Overwrite
from pennon.table.roaring import serialize_roaring
from pennon.table.transaction import Transaction

_NUMBERS = count()

_COLUMNS: list[pa.Field] = [pa.field("a", pa.int64()), pa.field("s", pa.string())]

SCHEMA: Schema = schema_from_arrow(pa.schema(_COLUMNS))


def data_file(name: str | None = None, *, minor: int = 0) -> DataFileRef:
    return DataFileRef(
        path=name or f"{next(_NUMBERS)}.lance",
        field_ids=(FieldId(0), FieldId(1)),
        column_indices=(0, 1),
        major=2,
        minor=minor,
        size_bytes=100,
    )


def new_fragment(rows: int = 10, name: str | None = None, *, minor: int = 0) -> Fragment:
    return Fragment(FragmentId(0), (data_file(name, minor=minor),), rows)


def create_table(
    store: CommitStore, rows: int = 10, *, clock: Clock = SYSTEM_CLOCK, **policy: Any
) -> Manifest:
    operation = Overwrite((new_fragment(rows),), SCHEMA)
    options = CommitOptions(CommitPolicy(**policy), clock=clock)
    return commit(store, Transaction(0, operation), options)


def append(read_version: int, *fragments: Fragment) -> Transaction:
    return Transaction(read_version, Append(fragments or (new_fragment(),)))


def overwrite(read_version: int, *fragments: Fragment, **config: str) -> Transaction:
    return Transaction(read_version, Overwrite(fragments or (new_fragment(),), SCHEMA, config))


@dataclass
class FakeTime:
    """A clock that only sleeping moves, and that remembers the pauses."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> float:
        self.now += 0.01
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def options(
        self, *, planned_ns: int | None = None, policy: CommitPolicy = DEFAULT_POLICY, **others: Any
    ) -> CommitOptions:
        """Return the options of a commit; ``others`` are those of a `Clock`."""
        clock = Clock(seconds=self.clock, sleep=self.sleep, **others)
        return CommitOptions(policy, planned_ns=planned_ns, clock=clock)


def index_section(*indices: tuple[str, tuple[int, ...] | None]) -> bytes:
    """Return the IndexSection of indices: name, and fragments that the bitmap says are covered."""
    section = table_pb2.IndexSection()
    for number, (name, fragments) in enumerate(indices):
        message = section.indices.add(name=name)
        message.uuid.uuid = number.to_bytes(16, "big")
        if fragments is not None:
            message.fragment_bitmap = serialize_roaring(np.array(fragments, np.uint32))
    return section.SerializeToString(deterministic=True)
