"""The files of a table: those that are there, and those that its versions name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from pennon.io.store import ObjectInfo
from pennon.ops.cleanup.file_kinds import Kind, kind_of
from pennon.ops.cleanup.survey import Survey

T = TypeVar("T")
Progress = Callable[[int, int | None], object]

ALL_FILES: Final = pa.schema(
    [
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
TRACKED_FILES: Final = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)
_ROWS: Final = 8192
_TYPES: Final = {
    Kind.DATA: "data file",
    Kind.DELETION: "deletion file",
    Kind.INDEX: "index file",
    Kind.TRANSACTION: "transaction file",
}


def all_files(survey: Survey, uri: str) -> pa.RecordBatchReader:
    """Return all files below the table's folder, as a stream of batches."""
    batches = (
        pa.RecordBatch.from_arrays(
            [
                _same(uri, len(infos), pa.int32()),
                pa.array([info.path for info in infos], pa.string()),
                pa.array([info.size_bytes for info in infos], pa.int64()),
                pa.array([info.modified for info in infos], pa.timestamp("us", "UTC")),
            ],
            schema=ALL_FILES,
        )
        for infos in _pieces(survey.home.list(""))
    )
    return pa.RecordBatchReader.from_batches(ALL_FILES, batches)


def tracked_files(
    survey: Survey, uri: str, min_version: int | None, progress: Progress | None
) -> pa.RecordBatchReader:
    """Return the files that each version names, as a stream of batches, a version after another.

    Files in other base paths are left out.
    """
    batches = _tracked(survey, uri, min_version or 0, progress)
    return pa.RecordBatchReader.from_batches(TRACKED_FILES, batches)


def _tracked(
    survey: Survey, uri: str, min_version: int, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    versions = sorted(
        (version, info)
        for version, info in survey.look().versions.items()
        if version >= min_version
    )
    indices = [info.path for info in survey.home.list("_indices")]
    for number, (version, info) in enumerate(versions):
        for rows in _pieces(_named(survey, info, indices)):
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([version] * len(rows), pa.int64()),
                    _same(uri, len(rows), pa.int32()),
                    pa.array([path for path, _ in rows], pa.string()),
                    pa.array([kind for _, kind in rows])
                    .dictionary_encode()
                    .cast(TRACKED_FILES.field("type").type),
                ],
                schema=TRACKED_FILES,
            )
        if progress is not None:
            progress(number + 1, len(versions))


def _named(survey: Survey, info: ObjectInfo, indices: list[str]) -> Iterator[tuple[str, str]]:
    yield info.path, "manifest"
    names = survey.named_by([info])
    folders = {path for path in indices if names.name(path)}
    for path in sorted(names.paths | folders):
        kind = kind_of(path)
        if kind in _TYPES:
            yield path, _TYPES[kind]


def _same(text: str, count: int, index: pa.DataType) -> pa.DictionaryArray[Any, Any]:
    zeros = pa.array([0] * count, index)
    return pa.DictionaryArray.from_arrays(zeros, pa.array([text]))


def _pieces(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while piece := list(islice(left, _ROWS)):
        yield piece
