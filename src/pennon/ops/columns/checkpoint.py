"""Results of a function that makes columns, kept in a file until all of them are committed.

It is an SQLite database.  Whoever adds columns with it again, after a crash, calls the function only
for batches that are not there, and writes no fragment twice::

    batches     fragment_id, batch_index, result     a result, as an Arrow IPC stream
    fragments   fragment_id, data                    a fragment with its new file, as in a manifest
    plans       fragment_id, plan                    what the rows above are good for

The tables ``batches`` and ``fragments`` are pylance's, which has no ``plans`` and pickles results:
what it kept is forgotten, for nothing that is read here may be executed.  A row is believed only if
the fragment is what it was when the row was made, files, deleted rows and all, and the same columns
are made of the same batches.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from pennon.core.units import FragmentId
from pennon.errors import ArgumentError, Breadcrumb, FormatError, NotFoundError
from pennon.ops.columns.task import ColumnsTask, Maker, Place
from pennon.scan.projection import Projection
from pennon.schema.wire import serialize_schema
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment_bytes
from pennon.table.message_wire import serialize_message

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB)",
    "CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB)",
    "CREATE TABLE IF NOT EXISTS plans (fragment_id INT, plan TEXT)",
)
_FORGET: Final = (
    "DELETE FROM batches WHERE fragment_id = ?",
    "DELETE FROM fragments WHERE fragment_id = ?",
    "DELETE FROM plans WHERE fragment_id = ?",
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file.  Every call has a connection of its own."""

    path: str | os.PathLike[str]

    def prepare(self) -> None:
        """Make the tables unless they are there.  Raises ArgumentError if the file is no database."""
        with self._connect() as connection:
            for statement in _TABLES:
                connection.execute(statement)

    def clear(self) -> None:
        """Delete the file: all is committed."""
        Path(self.path).unlink()

    def begin(self, fragment: FragmentId, plan: str) -> None:
        """Forget what is known of a fragment unless it was made by the same plan."""
        with self._connect() as connection:
            query = "SELECT plan FROM plans WHERE fragment_id = ?"
            if connection.execute(query, (fragment,)).fetchone() == (plan,):
                return
            for statement in _FORGET:
                connection.execute(statement, (fragment,))
            connection.execute("INSERT INTO plans VALUES (?, ?)", (fragment, plan))

    def batch(self, place: Place) -> pa.RecordBatch | None:
        """Return the result for a batch, if it is there and whole."""
        query = "SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ?"
        with self._connect() as connection:
            row = connection.execute(query, (place.fragment, place.batch)).fetchone()
        if row is None:
            return None
        try:
            found: pa.RecordBatch = pa.ipc.open_stream(row[0]).read_next_batch()
            found.validate(full=True)
        except (pa.ArrowInvalid, StopIteration, OSError):
            return None
        return found

    def keep_batch(self, place: Place, result: pa.RecordBatch) -> None:
        """Keep the result for a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_batch(result)
        row = (place.fragment, place.batch, sink.getvalue().to_pybytes())
        with self._connect() as connection:
            connection.execute("INSERT INTO batches VALUES (?, ?, ?)", row)

    def fragment(self, fragment: FragmentId) -> Fragment | None:
        """Return a fragment as it was kept, if it is there and whole."""
        query = "SELECT data FROM fragments WHERE fragment_id = ?"
        with self._connect() as connection:
            row = connection.execute(query, (fragment,)).fetchone()
        try:
            return None if row is None else parse_fragment_bytes(row[0])
        except FormatError:
            return None

    def keep_fragment(self, fragment: Fragment) -> None:
        """Keep a fragment that is written; results for its batches are not needed any more."""
        data = serialize_fragment_bytes(fragment)
        with self._connect() as connection:
            connection.execute("INSERT INTO fragments VALUES (?, ?)", (fragment.id, data))
            connection.execute(_FORGET[0], (fragment.id,))

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """Open the file; what is done within is kept as a whole."""
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            message = f"the checkpoint file cannot be used: {error}"
            raise ArgumentError(message, where=Breadcrumb(str(self.path))) from error


def checkpoint_in(path: str | os.PathLike[str] | None) -> Checkpoint | None:
    """Return the checkpoint in a file, ready for use; None for no file.  Raises ArgumentError if the file is no database."""
    if path is None:
        return None
    made = Checkpoint(path)
    made.prepare()
    return made


@dataclass(frozen=True, slots=True)
class CheckpointedTask:
    """Writes new columns for each fragment, as a task does, but nothing twice."""

    task: ColumnsTask
    checkpoint: Checkpoint

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return self.task.count

    def run(self, number: int) -> Fragment:
        """Return the fragment of that number with its new file, written now or before."""
        fragment = self.task.snapshot.manifest.fragments[number]
        self.checkpoint.begin(fragment.id, _plan(self.task, fragment))
        kept = self.checkpoint.fragment(fragment.id)
        if kept is not None and self._is_there(kept):
            return kept
        maker = CheckpointedMaker(self.task.maker, self.checkpoint)
        made = replace(self.task, maker=maker).run(number)
        self.checkpoint.keep_fragment(made)
        return made

    def _is_there(self, fragment: Fragment) -> bool:
        """Tell whether the newest file of a fragment has not been cleaned up."""
        try:
            self.task.snapshot.open_file(fragment.files[-1])
        except NotFoundError:
            return False
        return True


def _plan(task: ColumnsTask, fragment: Fragment) -> str:
    """Return a digest of all that the results for a fragment depend on, but for the function."""
    parts = (
        serialize_fragment_bytes(fragment),
        serialize_message(serialize_schema(task.files.schema)),
        repr((task.maker.inputs.names, task.batch_rows, str(task.files.version))).encode(),
    )
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class CheckpointedMaker:
    """Makes columns as another maker does, and keeps the results."""

    maker: Maker
    checkpoint: Checkpoint

    @property
    def inputs(self) -> Projection:
        """Return what the other maker needs."""
        return self.maker.inputs

    @property
    def in_order(self) -> bool:
        """Tell what the other maker does."""
        return self.maker.in_order

    def make(self, batch: pa.RecordBatch, place: Place) -> pa.RecordBatch:
        """Return the result that was kept, or make and keep it."""
        known = self.checkpoint.batch(place)
        if known is not None and known.num_rows == batch.num_rows:
            return known
        made = self.maker.make(batch, place)
        self.checkpoint.keep_batch(place, made)
        return made
