"""Answers of tasks that change rows: the fragments that they wrote, and those that they deleted rows of.

Rows are counted and never named, so the driver's memory grows with fragments.  The deletion file of a fragment
says which of its rows were deleted (`pennon.table.commit.rebase.NewDeletions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pennon.core.units import FragmentId
from pennon.ops.rows.deletion_vectors import Removal
from pennon.proto import task_answers_pb2
from pennon.table.fragment import MAX_FRAGMENT_ID, Fragment
from pennon.table.fragment_wire import out_of_bounds, parse_fragment, serialize_fragment
from pennon.table.message_wire import parse_message, serialize_message


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of row changes: removed rows, new fragments, the number of rows of each clause."""

    removals: tuple[Removal, ...]
    new: tuple[Fragment, ...] = ()
    rows: tuple[int, ...] = ()


def serialize_changed(changed: Changed) -> bytes:
    """Return the message that `parse_changed` takes."""
    message = task_answers_pb2.Changed(
        removals=map(_serialize_removal, changed.removals),
        new=map(serialize_fragment, changed.new),
        rows=changed.rows,
    )
    return serialize_message(message)


def parse_changed(data: bytes) -> Changed:
    """Return what became of the rows of a task; raises FormatError."""
    message = parse_message(task_answers_pb2.Changed, data)
    return Changed(
        tuple(map(_parse_removal, message.removals)),
        tuple(map(parse_fragment, message.new)),
        tuple(message.rows),
    )


def serialize_removals(removals: Iterable[Removal]) -> bytes:
    """Return the message that `parse_removals` takes."""
    return serialize_changed(Changed(tuple(removals)))


def parse_removals(data: bytes) -> list[Removal]:
    """Return the removals of a task; raises FormatError."""
    return list(parse_changed(data).removals)


def _serialize_removal(removal: Removal) -> task_answers_pb2.Removal:
    left = None if removal.left is None else serialize_fragment(removal.left)
    return task_answers_pb2.Removal(fragment_id=removal.fragment_id, rows=removal.rows, left=left)


def _parse_removal(message: task_answers_pb2.Removal) -> Removal:
    if message.fragment_id > MAX_FRAGMENT_ID:
        raise out_of_bounds(message.fragment_id, message.rows)
    left = parse_fragment(message.left) if message.HasField("left") else None
    return Removal(FragmentId(message.fragment_id), message.rows, left)
