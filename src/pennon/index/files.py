"""The files of one index: data files of their own, read by columns and rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.encoding.read_protocol import run, together
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.file.container.file import DataFile
from pennon.file.container.opened_file import OpenedFile
from pennon.index.column_types import check_column
from pennon.index.row_set import RowSet
from pennon.index.row_sets_wire import parse_address_sets
from pennon.io.store import ObjectReader
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.version import V0_1

S = TypeVar("S")
T = TypeVar("T")

_ROWS_PER_BYTE: Final = 64
"""A file of an index has no more rows than this for each of its bytes; one that says so is damaged."""


class Opened(Protocol):
    """An open data file, and the object that its bytes come from."""

    @property
    def data(self) -> OpenedFile:
        """Return the file."""

    @property
    def source(self) -> ObjectReader:
        """Return the object."""


class Remember(Protocol):
    """A memory."""

    def __call__(self, key: Hashable, make: Callable[[], T], weigh: Callable[[T], int], /) -> T:
        """Return what ``make`` gives for a key, made now or before; ``weigh`` says how large it is.

        None is not remembered.
        """


class Parts(Protocol):
    """A cache of index parts, as `pennon.core.cache.Cache` is one."""

    def get_each(self, keys: Sequence[Hashable], /) -> list[Any | None]:
        """Return the values of keys, None for each that is not known."""

    def put(self, key: Hashable, value: T, size_bytes: int, /) -> T:
        """Remember a value, and return it; or the one that the key has already."""


def made_now(_key: object, make: Callable[[], T], _weigh: object) -> T:
    """Remember nothing: make a part whenever it is asked for."""
    return make()


def _nothing() -> Any:
    """Make nothing: what is known is returned, or None."""
    return None


def _no_bytes(_: object) -> int:
    return 0


class Watch(Protocol):
    """A callback for the reads and comparisons of an index."""

    def count(self, path: str, requests: Sequence[ByteRequest]) -> None:
        """Take note of one round of reads."""

    def part(
        self,
        remember: Remember,
        key: tuple[object, ...],
        make: Callable[[], T],
        weigh: Callable[[T], int],
    ) -> T:
        """Return a part of an index, and take note whether it was known; it may be made anew all the same."""


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)
"""Indices are shared by all who ask them, so who watches is known by who asks."""


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Report index reads within the block to a watch; None: to the current one."""
    token = _WATCH.set(watch or _WATCH.get())
    try:
        yield
    finally:
        _WATCH.reset(token)


def remembering(remember: Remember) -> Remember:
    """Return a memory that tells who watches which parts were known."""

    def get_or_make(key: Any, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
        watch = _WATCH.get()
        if watch is None:
            return remember(key, make, weigh)
        return watch.part(remember, key, make, weigh)

    return get_or_make


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """The folder of an index; what is read of it is remembered, for it never changes."""

    folder: str
    open: Callable[[str], Opened]
    remember: Remember
    open_object: Callable[[str], ObjectReader] | None = None
    """Opens a file that is no data file, as the first vector indices are."""
    pool_spec: PoolSpec | None = None
    """Who reads side by side; None where to read is not to wait."""
    parts: Callable[[], Parts | None] | None = None
    """Returns where ``remember`` keeps what it remembers, None where that is gone."""

    def file(self, name: str) -> IndexFile:
        """Open a file.  Raises NotFoundError, FormatError."""
        opened = self.open(f"{self.folder}/{name}")
        return IndexFile(opened.data, opened.source)

    def side_by_side(self, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """Return the results of a function for items that each read; a remote store reads all of them at once."""
        if self.pool_spec is None:
            return [work(item) for item in items]
        contexts = [copy_context() for _ in items]  # a thread of a pool does not know who watches
        return map_all(
            lambda at: contexts[at].run(work, items[at]), range(len(items)), self.pool_spec
        )

    def known(self, key: Hashable) -> Any | None:
        """Return the part of a key if it is remembered, None if it is not."""
        return self.remember(key, _nothing, _no_bytes)

    def known_each(self, keys: Sequence[Hashable]) -> list[Any | None]:
        """Return the parts of keys, None for each that is not remembered."""
        parts = self._parts
        return [self.known(key) for key in keys] if parts is None else parts.get_each(keys)

    def keep(self, key: Hashable, made: T, size_bytes: int) -> T:
        """Remember a part that was made, and return it; or the one of that key that is remembered."""
        parts = self._parts
        if parts is None:
            return self.remember(key, lambda: made, lambda _: size_bytes)
        return parts.put(key, made, size_bytes)

    @property
    def _parts(self) -> Parts | None:
        """Return what is remembered, unless somebody counts what is asked of it."""
        return None if self.parts is None or _WATCH.get() is not None else self.parts()

    def object(self, name: str) -> ObjectReader | None:
        """Return the bytes of a file, None where only data files are opened.  Raises NotFoundError."""
        return None if self.open_object is None else self.open_object(f"{self.folder}/{name}")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index."""

    data: OpenedFile
    source: ObjectReader

    @property
    def rows(self) -> int:
        """Return the number of rows.  Raises FormatError if the file cannot have so many."""
        rows = self.data.num_rows
        if rows > _ROWS_PER_BYTE * self.source.size_bytes:
            message = f"{self.source.path} has {self.source.size_bytes} bytes and says {rows} rows"
            raise FormatError(message)
        return rows

    @property
    def loses_nulls(self) -> bool:
        """Return whether values that look like 0 or an empty text may be NULLs: in files of version 0.1."""
        return self.data.version == V0_1

    def global_buffer(self, number: int) -> pa.Buffer:
        """Return a buffer that belongs to no column.  Raises FormatError if there is none."""
        if not isinstance(self.data, DataFile) or not 0 < number < len(self.data.global_buffers):
            message = f"{self.source.path} has no global buffer {number}"
            raise FormatError(message)
        return self.data.global_buffer(number)

    def number(self, key: str, default: int) -> int:
        """Return a number of the file's metadata, at least 1."""
        text = self.data.schema_metadata.get(key, str(default).encode())
        if not text.isdigit() or not 0 < int(text) < 1 << 32:
            message = f"{self.source.path}: {key} must be a size, and is {text!r}"
            raise FormatError(message)
        return int(text)

    def row_set(self, key: str) -> RowSet | None:
        """Return the address set in the global buffer whose number the metadata tells; None without it."""
        number = self.data.schema_metadata.get(key)
        if number is None:
            return None
        if not number.isdigit():
            message = f"{self.source.path}: {key} is buffer {number!r}, which is not there"
            raise FormatError(message)
        return parse_address_sets([self.global_buffer(int(number)).to_pybytes()])

    def read(self, names: Sequence[str], rows: Rows | None = None) -> list[pa.Array[Any]]:
        """Return columns at some rows, by default all; side by side, in as few rounds as that takes."""
        if rows is None:
            rows = Rows.between(0, self.rows)
        return self.read_each([(name, rows) for name in names])

    def read_each(self, wanted: Sequence[tuple[str, Rows]]) -> list[pa.Array[Any]]:
        """Return columns, each at rows of its own; side by side, in as few rounds as that takes.

        Raises FormatError for values that the column cannot have, see `pennon.index.column_types`.
        """
        columns = self.data.column_of
        fields = {name: self._field(name) for name in dict(wanted)}
        readers = {name: self.data.field_reader(fields[name], columns) for name in fields}
        found = run(together([readers[name](rows) for name, rows in wanted]), self._answer)
        arrays = []
        for chunks, (name, rows) in zip(found, wanted, strict=True):
            array = _one(chunks, fields[name])
            if len(array) != rows.count:
                message = f"{self.source.path}: {rows.count} rows of {name} are {len(array)}"
                raise FormatError(message)
            check_column(self.source.path, name, array)
            arrays.append(array)
        return arrays

    def _answer(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        watch = _WATCH.get()
        if watch is not None:
            watch.count(self.source.path, requests)
        return self.source.read(requests)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return field_to_arrow(self._field(name)).type

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [field.name for field in self.data.schema.fields]

    def _field(self, name: str) -> Field:
        for field in self.data.schema.fields:
            if field.name == name:
                return field
        message = (
            f"{self.source.path} has no column {name!r}, as a file of an index of its kind has"
        )
        raise FormatError(message)


def whole_numbers(array: pa.Array[Any], of: str) -> npt.NDArray[np.uint64]:
    """Return the values of a column of unsigned numbers without NULLs.  Raises FormatError for others."""
    if not pa.types.is_unsigned_integer(array.type) or array.null_count:
        message = f"{of} are {array.type} with {array.null_count} NULLs, and no row numbers"
        raise FormatError(message)
    values = np.asarray(array.to_numpy(zero_copy_only=False))
    found: npt.NDArray[np.uint64] = values.astype(np.uint64, copy=False)
    return found


def _one(chunks: list[pa.Array[Any]], field: Field) -> pa.Array[Any]:
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, field_to_arrow(field).type)
