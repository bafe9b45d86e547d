"""The steps of an IVF_PQ build one by one, with files between them, for builds on many machines.

::

    train_centroids, train_codebook     a sample of the table       -> two matrices
    write_codes                         some fragments, the model   -> a file: _rowid, __ivf_part_id, __pq_code
    sort_codes                          such files                  -> files whose rows are sorted by partition
    load_codes                          sorted files                -> the index, committed

The files are those of pylance's `IndicesBuilder`: codes row by row, not yet transposed.  No step holds more than a
segment's vectors, or the codes of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId
from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, FormatError
from pennon.file.container.writer import DataFileWriter
from pennon.file.facade import split_path
from pennon.file.open import create_container_file, open_data_file
from pennon.index.files import IndexFile, whole_numbers
from pennon.index.vector.build.merge import windows
from pennon.index.vector.build.new_index import batch_of, write_index
from pennon.index.vector.build.partitions import coder_of, sorted_by_partition
from pennon.index.vector.code_columns import matrix_of
from pennon.index.vector.layout import ROWS
from pennon.index.vector.model import Coded, Model
from pennon.index.vector.rows import Matrix
from pennon.io import open_store
from pennon.io.store import Store
from pennon.ops.commit import commit_on
from pennon.ops.index.builders import THREADS
from pennon.ops.index.create import check_name
from pennon.ops.index.request import IndexRequest
from pennon.ops.index.vector_build import VectorBuild
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_1
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

_PARTITION: Final = "__ivf_part_id"
_CODES: Final = "__pq_code"
_RUN_ROWS: Final = 1 << 21
"""Rows whose codes are sorted at once."""


def train_centroids(
    snapshot: Snapshot,
    column: str,
    arguments: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> Matrix:
    """Return centroids of a sample of a column, one a row; the arguments are those of `create_index`.

    Raises ArgumentError where the column has no vectors, and what `vector_arguments` does.
    """
    return _trained(snapshot, column, "IVF_FLAT", arguments, fragments).centroids


def train_codebook(
    snapshot: Snapshot,
    column: str,
    arguments: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> Matrix:
    """Return code words for a sample of a column, ``[sub-vector, word, number]``.

    Raises ArgumentError where the column has fewer vectors than there are words, and what `vector_arguments` does.
    """
    found = _trained(snapshot, column, "IVF_PQ", arguments, fragments)
    return cast("Matrix", found.codebook)


def _trained(
    snapshot: Snapshot,
    column: str,
    kind: str,
    arguments: Mapping[str, Any],
    fragments: Sequence[Fragment] | None,
) -> Model:
    wanted = IndexRequest(snapshot, column, kind, "", arguments, fragments)
    model = VectorBuild.plan(wanted).trained_model(THREADS)
    if model is None:
        message = f"column {column} has too few vectors to train {kind} on"
        raise ArgumentError(message)
    return model


def plan_codes(
    snapshot: Snapshot,
    column: str,
    name: str | None,
    arguments: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> VectorBuild:
    """Plan an IVF_PQ index of given centroids and codebook; raises as `vector_arguments` does."""
    build = VectorBuild.plan(IndexRequest(snapshot, column, "IVF_PQ", name, arguments, fragments))
    given = build.given
    if given.centroids is None or given.codebook is None:
        message = "codes are made with centroids and a codebook"
        raise ArgumentError(message)
    return replace(build, model=Model(build.settings, given.centroids, given.codebook))


def write_codes(
    build: VectorBuild, uri: str, storage_options: Mapping[str, str] | None = None
) -> int:
    """Write the codes of the vectors of a plan's fragments to a file, and return how many there are."""
    model = _model_of(build)
    coder = coder_of(model)
    schema = _schema_of(model)
    count = 0
    with _file(uri, schema, storage_options) as writer:
        for group in build.groups:
            coded = sorted_by_partition(build.values(group), model)
            parts = np.repeat(np.arange(model.partitions, dtype=np.uint32), np.diff(coded.ends))
            rows, codes = batch_of([coded.coded], coder).columns
            batch = pa.RecordBatch.from_arrays([rows, pa.array(parts), codes], schema=schema)
            writer.write(batch)
            count += batch.num_rows
    return count


def sort_codes(
    names: Sequence[str],
    folder: str,
    partitions: int,
    root: str,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Sort the rows of files in a folder by partition, into files ``root_N.lance`` there; return their names.

    Raises FormatError for a file that has no codes, ArgumentError for a partition that is not there.
    """
    made: list[str] = []
    for name in names:
        file = _opened(folder, name, storage_options)
        columns = [ROWS, _PARTITION, _CODES]
        schema = pa.schema([pa.field(each, file.type_of(each)) for each in columns])
        for start in range(0, file.rows, _RUN_ROWS):
            some = Rows.between(start, min(start + _RUN_ROWS, file.rows))
            batch = pa.RecordBatch.from_arrays(file.read(columns, some), schema=schema)
            parts = _checked_parts(batch.column(1), partitions, file)
            made.append(f"{root}_{len(made)}.lance")
            with _file(f"{folder}/{made[-1]}", schema, storage_options) as writer:
                writer.write(batch.take(pa.array(np.argsort(parts, kind="stable"))))
    return made


def load_codes(
    build: VectorBuild,
    names: Sequence[str],
    folder: str,
    storage_options: Mapping[str, str] | None = None,
) -> Manifest:
    """Make an index of files whose rows are sorted by partition, commit it, and return the version that has it.

    It covers the fragments that have rows in the files, and stands for an index of that name on that column.
    Raises ArgumentError for no files, and for one that is not sorted; FormatError for one that has no codes.
    """
    if not names:
        message = (
            "no files of sorted codes were given, so that there is nothing to make an index of"
        )
        raise ArgumentError(message)
    model = _model_of(build)
    runs = [_Run.of(_opened(folder, name, storage_options), model) for name in names]
    removed = check_name(build.snapshot, build, replace=True)
    seen = _Seen(build)
    new = build.new_files()
    write_index(model, seen.watching(_partitions(runs)), new)
    return commit_on(build.snapshot, CreateIndex((build.entry(new, seen.fragment_ids),), removed))


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A file of codes by partition: those of partition p are rows ``ends[p]`` to ``ends[p + 1]``."""

    file: IndexFile
    ends: Any

    @classmethod
    def of(cls, file: IndexFile, model: Model) -> _Run:
        """Find out where partitions begin.  Raises FormatError unless they ascend, and codes are of the model."""
        (codes,) = coder_of(model).fields
        if file.type_of(_CODES) != codes.type:
            message = f"{file.source.path} has codes of {file.type_of(_CODES)}, and its model is of {codes.type}"
            raise FormatError(message)
        parts = _checked_parts(file.read([_PARTITION])[0], model.partitions, file)
        if (parts[1:] < parts[:-1]).any():
            message = f"{file.source.path} is not sorted by partition: shuffle_transformed_vectors sorts it"
            raise ArgumentError(message)
        return cls(file, np.searchsorted(parts, np.arange(model.partitions + 1)))

    def read(self, first: int, end: int) -> list[Coded]:
        """Return the rows of partitions ``first`` to ``end``."""
        low, high = int(self.ends[first]), int(self.ends[end])
        rows, codes = self.file.read([ROWS, _CODES], Rows.between(low, high))
        whole = Coded(whole_numbers(rows, "row numbers of codes"), (matrix_of(codes),))
        return [
            whole.at(slice(int(self.ends[n]) - low, int(self.ends[n + 1]) - low))
            for n in range(first, end)
        ]


def _partitions(runs: Sequence[_Run]) -> Iterator[Coded]:
    counts = np.sum([np.diff(each.ends) for each in runs], axis=0).tolist()
    for first, end in windows(counts):
        read = [each.read(first, end) for each in runs]
        for number in range(end - first):
            whole = Coded.joined([mine[number] for mine in read])
            yield whole.at(np.argsort(whole.rows, kind="stable"))


class _Seen:
    """The fragments of the rows that passed by."""

    def __init__(self, build: VectorBuild) -> None:
        self._unseen = {each.id: build.rows_of(each) for each in build.snapshot.manifest.fragments}
        self.fragment_ids: set[FragmentId] = set()

    def watching(self, parts: Iterator[Coded]) -> Iterator[Coded]:
        """Pass partitions on."""
        for coded in parts:
            found = {n for n, rows in self._unseen.items() if rows.contains(coded.rows).any()}
            self._unseen = {n: rows for n, rows in self._unseen.items() if n not in found}
            self.fragment_ids |= found
            yield coded


def _checked_parts(column: pa.Array[Any], partitions: int, file: IndexFile) -> Any:
    parts = whole_numbers(column, "partitions of codes")
    if len(parts) and int(parts.max()) >= partitions:
        message = f"{file.source.path} has rows of partition {int(parts.max())}, and there are {partitions} centroids"
        raise ArgumentError(message)
    return parts


def _schema_of(model: Model) -> pa.Schema:
    (codes,) = coder_of(model).fields
    return pa.schema([(ROWS, pa.uint64()), (_PARTITION, pa.uint32()), (_CODES, codes.type)])


def _model_of(build: VectorBuild) -> Model:
    if build.model is None:
        message = f"the plan of index {build.name!r} has no model"
        raise ArgumentError(message)
    return build.model


def _opened(folder: str, name: str, options: Mapping[str, str] | None) -> IndexFile:
    source = _store(folder, options).open(name)
    return IndexFile(open_data_file(source), source)


@contextmanager
def _file(
    uri: str, schema: pa.Schema, options: Mapping[str, str] | None
) -> Iterator[DataFileWriter]:
    """Give a file whose columns have names that no column of a table has; it is finished at the end of the block."""
    folder, name = split_path(uri)
    sink = _store(folder, options).open_writer(name)
    fields = schema_from_arrow(schema)
    with create_container_file(sink, fields, V2_1, may_be_reserved=True) as writer:
        yield writer
        writer.finish()


def _store(folder: str, options: Mapping[str, str] | None) -> Store:
    return open_store(folder, None if options is None else dict(options))
