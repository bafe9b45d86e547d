"""Checks of one segment of an index: its entry, its files, and (deep) all that is in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.rows import Rows
from pennon.errors import (
    Breadcrumb,
    FormatError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.index.files import IndexFile, made_now
from pennon.index.kinds import kind_of, kind_of_any_version
from pennon.index.vector.search.open import open_vector_index
from pennon.ops.doctor.findings import Finding, Severity, finding_of
from pennon.ops.index.check import wrong_segments
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import covered_now, moved_rows, read_reuse
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.table.indices import FRAGMENT_REUSE, SYSTEM, Index
from pennon.table.json_index_wire import json_target

_REBUILD: Final = (
    "drop the index and create it again; `pennon doctor TABLE --repair --apply` drops the segment"
)
_OPTIMIZE: Final = "`LanceDataset.optimize.optimize_indices()` makes the index anew"
_BATCH_ROWS: Final = 1 << 14
_DATA_FILES: Final = (".lance", ".idx")
_FOOTER: Final = struct.Struct("<HH4s")
_OLD_LAYOUTS: Final = {(0, 1), (0, 2)}


@dataclass(slots=True)
class SegmentState:
    """The findings about a segment of an index; ``is_broken``: a repair takes it out of the table."""

    uuid: str
    findings: list[Finding] = field(default_factory=list)
    is_broken: bool = False
    values: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the state as values of JSON."""
        return {
            "uuid": self.uuid,
            "findings": [each.to_dict() for each in self.findings],
            "is_broken": self.is_broken,
            "values": self.values,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the state that `to_dict` was made of.  Raises FormatError."""
        try:
            findings = [Finding.from_dict(each) for each in given["findings"]]
            return cls(given["uuid"], findings, bool(given["is_broken"]), int(given["values"]))
        except (KeyError, TypeError, ValueError) as error:
            message = f"what came from a task is no state of an index: {error!r}"
            raise FormatError(message) from error


def examine_segment(snapshot: Snapshot, uuid: str, *, deep: bool) -> SegmentState:
    """Look at one segment; ``deep``: decode its files, and ask it for some rows.  Raises nothing for damage."""
    state = SegmentState(uuid)
    try:
        index = next(each for each in known_indices(snapshot) if each.uuid == uuid)
        _Exam(snapshot, index, state).look(deep=deep)
    except Exception as error:  # noqa: BLE001 - damage must never end the examination
        found = finding_of(error, index=uuid)
        state.findings.append(found)
        state.is_broken = isinstance(error, LanceError) and found.severity is Severity.ERROR
    return state


@dataclass(slots=True)
class _Exam:
    snapshot: Snapshot
    index: Index
    state: SegmentState

    def look(self, *, deep: bool) -> None:
        if self.index.name in SYSTEM:
            self._look_at_system()
            return
        known = {each.id for each in self.snapshot.manifest.schema.walk()}
        gone = [each for each in self.index.field_ids if each not in known]
        if gone or not self.index.field_ids:
            what = (
                f"the index is of field {gone[0]}, which the schema does not have"
                if gone
                else "the index names no field"
            )
            self._break("index-of-missing-field", what, Severity.WARNING)
            return
        if kind_of(self.index) is None and not self._may_be_vectors:
            self._say_unknown()
            return
        if not self._look_at_files():
            return
        try:
            self._open()
        except LanceError as error:
            self._fail(error)
            return
        self._look_at_coverage()
        if deep:
            self._walk()
            if not self.state.is_broken:
                self._ask()

    @property
    def _may_be_vectors(self) -> bool:
        """Return whether it is an index of vectors, or does not say its kind, as those of old releases."""
        return self.index.details is None or self.index.is_vector

    # --- findings ---------------------------------------------------------------------------------

    def _say(
        self, code: str, what: str, severity: Severity, advice: str, file: str | None = None
    ) -> None:
        found = Finding(severity, code, what, advice, file, index=self.index.name)
        self.state.findings.append(found)

    def _break(
        self, code: str, what: str, severity: Severity = Severity.ERROR, file: str | None = None
    ) -> None:
        self.state.is_broken = True
        self._say(code, what, severity, _REBUILD, file)

    def _fail(self, error: Exception, file: str | None = None) -> None:
        found = finding_of(error, file=file or self.index.folder, index=self.index.name)
        if found.severity is Severity.ERROR:
            self.state.is_broken = True
            code = "missing-index-file" if isinstance(error, NotFoundError) else "damaged-index"
            text = found.what
            self._say(code, text, Severity.ERROR, _REBUILD, found.file)
            return
        if not isinstance(error, UnsupportedError):
            self.state.findings.append(found)
            return
        what = f"filters scan its rows instead, and other readers may miss some: {found.what}"
        self._say("unusable-index", what, Severity.WARNING, _OPTIMIZE, found.file)

    def _say_unknown(self) -> None:
        newest = kind_of_any_version(self.index)
        _, target = json_target(self.index)
        name = target.type_name or "an unknown kind"
        what = f"Pennon does not read indices of {name}, so this one was not looked at"
        if newest is not None:
            what = (
                f"the index is of version {self.index.index_version}, and Pennon knows {newest.name} up to "
                f"{newest.reads}"
            )
        self._say("unknown-index", what, Severity.NOTE, "filters scan its rows instead")

    # --- files ------------------------------------------------------------------------------------

    def _files(self) -> dict[str, int]:
        """Return the files of the segment that are there, by their paths, with sizes."""
        index, store = self.index, self.snapshot.store
        found = {info.path: info.size_bytes for info in store.list(index.folder)}
        if (
            not found and index.base_id is not None
        ):  # where pylance puts them when it compacts a branch
            found = {info.path: info.size_bytes for info in store.list(index.own_folder)}
        return found

    def _look_at_files(self) -> bool:
        """Return whether there are files to open."""
        there = self._files()
        names = {path.split(f"{self.index.uuid}/", 1)[-1]: size for path, size in there.items()}
        if not there and not self.index.fragment_ids and not self.index.files:
            return False  # an index of no rows may have no files
        if not there and not self.index.files:
            what = "the folder of the index has no files"
            self._break("missing-index-file", what, file=self.index.folder)
            return False
        for each in self.index.files:
            path = f"{self.index.folder}/{each.path}"
            if each.path not in names:
                self._break("missing-index-file", "a file of the index is not there", file=path)
            elif each.size_bytes and names[each.path] != each.size_bytes:
                what = f"the file has {names[each.path]} bytes, the index's entry says {each.size_bytes}"
                self._break("wrong-index-size", what, file=path)
        return not self.state.is_broken

    def _open(self) -> None:
        kind, files = kind_of(self.index), self.snapshot.index_files(self.index, made_now)
        fields = {each.id: each for each in self.snapshot.manifest.schema.walk()}
        if len(self.index.field_ids) != 1:
            return
        column = field_to_arrow(fields[self.index.field_ids[0]]).type
        if kind is None or self.index.is_vector:
            if self.index.fragment_ids or self.index.files:
                open_vector_index(files)
        elif kind.open is not None:
            kind.open_segment(files, column)

    def _name_rows(self) -> None:
        """Read the rows that the segment names, by its kind."""
        kind = kind_of(self.index)
        has_layout = not self.index.is_vector or any(
            path.endswith("auxiliary.idx") for path in self._files()
        )
        if kind is not None and has_layout and (self.index.fragment_ids or self.index.files):
            kind.rows_named(self.snapshot.index_files(self.index, made_now))

    def _look_at_coverage(self) -> None:
        if self.index.fragment_ids is None:
            what = "the entry does not say which fragments the index covers, so no filter asks it"
            self._say("index-without-coverage", what, Severity.WARNING, _OPTIMIZE)
            return
        moved = moved_rows(self.snapshot)
        if not moved.maps:
            return
        lost = moved.covered(self.index.fragment_ids) - covered_now(self.snapshot, self.index)
        if lost:
            what = (
                f"the entry covers fragments {sorted(lost)[:20]}, whose rows the index lost in a compaction by another "
                "release; they are scanned here, and other readers miss them"
            )
            self._say("index-lost-rows", what, Severity.WARNING, _OPTIMIZE)

    def _look_at_system(self) -> None:
        if self.index.name != FRAGMENT_REUSE:
            return
        try:
            read_reuse(self.snapshot, self.index)
        except LanceError as error:
            self._fail(error)

    # --- deep -------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Decode all columns of all data files of the segment."""
        for path in self._files():
            try:
                if path.endswith(_DATA_FILES) and self._is_data_file(path):
                    self._decode(path)
            except (LanceError, pa.ArrowException, MemoryError) as error:
                self._fail(_typed(error), path)
        try:
            self._name_rows()
        except (LanceError, pa.ArrowException, MemoryError) as error:
            self._fail(_typed(error))

    def _is_data_file(self, path: str) -> bool:
        """Return whether a file is a data file: the first indices of vectors have layouts of their own."""
        source = self.snapshot.store.open(path)
        if source.size_bytes < _FOOTER.size:
            return True
        (data,) = source.read([ByteRange(source.size_bytes - _FOOTER.size, _FOOTER.size)])
        numbers, magic = _FOOTER.unpack(data)[:2], _FOOTER.unpack(data)[2]
        return not (path.endswith(".idx") and magic == b"LANC" and numbers in _OLD_LAYOUTS)

    def _decode(self, path: str) -> None:
        opened = self.snapshot.open_index_file(path)
        file = IndexFile(opened.data, opened.source)
        for name in file.names:
            for start in range(0, file.rows, _BATCH_ROWS):
                rows = Rows.between(start, min(start + _BATCH_ROWS, file.rows))
                try:
                    (array,) = file.read([name], rows)
                    array.validate(full=True)
                except LanceError as error:
                    raise error.located(Breadcrumb(path, name)) from error.__cause__
                self.state.values += rows.count

    def _ask(self) -> None:
        for wrong in wrong_segments(self.snapshot, [self.index]):
            what = f"the index is wrong: {wrong.why}"
            self.state.is_broken = True
            self._say("wrong-index", what, Severity.ERROR, _OPTIMIZE, self.index.folder)


def _typed(error: Exception) -> LanceError:
    """Return what Arrow says of an array as an error of the bytes."""
    if isinstance(error, LanceError):
        return error
    return FormatError(f"the values break Arrow's rules: {error}")


def uncovered(snapshot: Snapshot, indices: tuple[Index, ...]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each index, and how many fragments and rows it does not cover."""
    named: dict[str, set[int]] = {}
    for index in indices:
        if index.name in SYSTEM:
            continue
        covered = named.setdefault(index.name, set())
        covered |= set() if index.fragment_ids is None else covered_now(snapshot, index)
    for name, covered in named.items():
        rest = [each for each in snapshot.manifest.fragments if each.id not in covered]
        yield name, len(rest), sum(each.num_rows or 0 for each in rest)
