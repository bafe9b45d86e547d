"""Names of ``lance._dataset.cache``: batches of a stream, kept in a file for the next pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pyarrow as pa

from pennon.errors import ArgumentError

__all__ = ["CachedDataset"]


class CachedDataset:
    """A stream of batches that can be read again: the first pass writes them into a temporary file.

    ``cache``: a folder for the file, or True for the system's.  The file is deleted by `close`, or with
    the object.  Raises ArgumentError for another kind of ``cache``, and in a pass that begins before the
    first has ended.

    >>> import pyarrow as pa
    >>> from pennon.as_lance.cache import CachedDataset
    >>> batches = CachedDataset(iter(pa.table({"id": [1, 2]}).to_batches()))
    >>> [batch.num_rows for batch in batches] + [batch.num_rows for batch in batches]
    [2, 2]
    """

    def __init__(
        self, stream: Iterable[pa.RecordBatch], cache: str | Path | bool | None = None
    ) -> None:
        if cache is False or not isinstance(cache, (str, Path, bool, type(None))):
            message = f"cache is a folder or True, got {cache!r}"
            raise ArgumentError(message)
        folder = cache if isinstance(cache, (str, Path)) else None
        self.cache_dir: TemporaryDirectory[str] | None = TemporaryDirectory(
            prefix="lance-torch-dataset", dir=folder
        )
        self.stream = stream
        self.cache_file: Path | None = None
        self.finished_origin_stream = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.cache_dir is None:
            message = "the cache is closed"
            raise ArgumentError(message)
        if self.cache_file is None:
            return self._first_pass(Path(self.cache_dir.name) / "batches.arrow")
        if not self.finished_origin_stream:
            message = (
                "the first pass over the stream has not ended: read it to its end before the next"
            )
            raise ArgumentError(message)
        return self._next_pass(self.cache_file)

    def _first_pass(self, file: Path) -> Iterator[pa.RecordBatch]:
        self.cache_file = file
        writer = None
        for batch in self.stream:
            writer = writer or pa.ipc.new_stream(str(file), batch.schema)
            writer.write_batch(batch)
            yield batch
        if writer is not None:
            writer.close()
        self.finished_origin_stream = True

    @staticmethod
    def _next_pass(file: Path) -> Iterator[pa.RecordBatch]:
        if file.exists():
            with pa.ipc.open_stream(str(file)) as reader:
                yield from reader

    def close(self) -> None:
        """Delete the file."""
        if self.cache_dir is not None:
            self.cache_dir.cleanup()
            self.cache_dir = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
