"""Messages of tasks that change rows: the fragments that they wrote, and those that they took rows from.

Rows are counted and never named, so the driver's memory grows with fragments: which rows of a fragment went
its deletion file says (`pennon.table.commit.rebase.NewDeletions`).
"""

from __future__ import annotations

import pickle

from pennon.core.units import FragmentId
from pennon.ops.rows.change_rows import Changed
from pennon.ops.rows.deletion_vectors import Removal
from pennon.spark.messages import parse_fragments, serialize_fragments


def serialize_changed(changed: Changed) -> bytes:
    """Return the message that `parse_changed` takes."""
    left = [each.left for each in changed.removals if each.left is not None]
    counts = [(each.fragment_id, each.rows, each.left is None) for each in changed.removals]
    return pickle.dumps(
        (counts, serialize_fragments(left), serialize_fragments(changed.new), changed.rows)
    )


def parse_changed(message: bytes) -> Changed:
    """Return what became of the rows of a task.  Raises FormatError."""
    counts, left, new, rows = pickle.loads(message)  # noqa: S301 - of our executors
    remaining = iter(parse_fragments(left))
    removals = [
        Removal(FragmentId(number), count, None if is_gone else next(remaining))
        for number, count, is_gone in counts
    ]
    return Changed(tuple(removals), tuple(parse_fragments(new)), rows)
