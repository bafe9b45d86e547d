"""Messages from tasks to the driver, as bytes: the fragments that they wrote.

A message is a pickled list of ``DataFragment`` messages of table.proto.  Pickle only frames them: a
fragment of a message is read as strictly as one of a manifest.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment
from pennon.table.message_wire import serialize_message


def serialize_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Return the message that `parse_fragments` takes."""
    return pickle.dumps([serialize_message(serialize_fragment(each)) for each in fragments])


def parse_fragments(message: bytes) -> list[Fragment]:
    """Return the fragments that a task wrote.  Raises FormatError."""
    return [parse_fragment_bytes(data) for data in pickle.loads(message)]  # noqa: S301 - of our executors
