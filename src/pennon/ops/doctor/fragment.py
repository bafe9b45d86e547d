"""Checks of one fragment: its files are there, fit one another and the manifest, and can be decoded.

A check that fails leaves a finding, and what a repair must know: which files or columns are lost, and which
counts the manifest says wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pennon.core.units import FieldId
from pennon.errors import FormatError, LanceError
from pennon.ops.commit_checks.contents import contents_of
from pennon.ops.doctor.blobs import check_blobs
from pennon.ops.doctor.decode import DecodedColumn, decode_column
from pennon.ops.doctor.findings import Finding, Severity, finding_of
from pennon.ops.doctor.fragment_state import FragmentState
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import OpenFile, Snapshot
from pennon.schema.arrow import storage_field
from pennon.schema.blob import holds_blobs_v2
from pennon.schema.field import Field
from pennon.schema.named_fields import named_fields
from pennon.table.apply.checks import missing_field
from pennon.table.deletion import parse_deletions
from pennon.table.fragment import (
    MAX_ROWS,
    NO_COLUMN,
    DataFileRef,
    DeletionFileRef,
    Fragment,
    Sequence,
)
from pennon.table.row_ids.decode_wire import (
    count_row_ids,
    decode_row_ids,
    decode_row_versions,
    read_sequence,
    row_id_bounds,
)

_REPAIR: Final = "`pennon doctor TABLE --repair` shows what a version without it would lose"
_COUNTS: Final = "`pennon doctor TABLE --repair` corrects the manifest"
_RENUMBER: Final = "write the rows into a new table"
_REPAIR_0_1: Final = "`LanceDataset.validate(repair=True)` corrects the manifest"


def examine_fragment(snapshot: Snapshot, fragment: Fragment, *, deep: bool) -> FragmentState:
    """Look at one fragment; ``deep``: decode all of its columns.  Raises nothing for what is damaged."""
    exam = _Exam(snapshot, fragment, FragmentState(fragment.id))
    with exam.guarded():
        exam.look(deep=deep)
    return exam.state


@dataclass(slots=True)
class _Exam:
    snapshot: Snapshot
    fragment: Fragment
    state: FragmentState
    opened: dict[str, OpenFile] = field(default_factory=dict)

    def look(self, *, deep: bool) -> None:
        self._open_files()
        rows = self._check_rows()
        for ref in self.fragment.files:
            if ref.store_path in self.opened:
                self._check_fields(ref)
                self._check_types(ref)
                self._check_files_0_1(ref)
        self._check_held_once()
        self._check_required()
        dead = self._check_deletions(rows)
        self.state.live = None if dead is None else max(rows - dead, 0)
        self._check_row_ids(rows)
        if self.fragment.files and not self.opened:
            return
        fragment = replace(self.fragment, physical_rows=rows or None)
        reader = FragmentReader(self.snapshot, fragment)
        for top in self.snapshot.manifest.schema.fields:
            if holds_blobs_v2(top) and not self._is_in_lost_file(top):
                self._check_blobs(reader, top, rows)
        for top in self.snapshot.shown_schema.fields if deep else ():
            if not self._is_in_lost_file(top):
                self._decode(reader, top, rows)

    # --- findings ---------------------------------------------------------------------------------

    @contextmanager
    def guarded(self, file: str | None = None, code: str | None = None) -> Iterator[None]:
        """Turn an error of the block into a finding."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - damage must never end the examination
            found = finding_of(error, file=file, fragment=self.fragment.id, code=code)
            self.state.findings.append(found)

    def _say(
        self,
        code: str,
        what: str,
        advice: str,
        file: str | None = None,
        severity: Severity = Severity.ERROR,
        column: str | None = None,
    ) -> None:
        found = Finding(severity, code, what, advice, file, self.fragment.id, column)
        self.state.findings.append(found)

    def _lose_file(self, path: str) -> None:
        self.opened.pop(path, None)
        if path not in self.state.lost_files:
            self.state.lost_files.append(path)

    def _is_in_lost_file(self, top: Field) -> bool:
        ids = {each.id for each in self._known(top).walk()}
        return any(
            not ids.isdisjoint(ref.field_ids)
            for ref in self.fragment.files
            if ref.store_path not in self.opened
        )

    def _known(self, top: Field) -> Field:
        """Return a top field of the schema that scans show as the manifest has it, with the ids of all below."""
        fields = self.snapshot.manifest.schema.fields
        return next((each for each in fields if each.id == top.id), top)

    # --- data files -------------------------------------------------------------------------------

    def _open_files(self) -> None:
        for ref in self.fragment.files:
            before = len(self.state.findings)
            with self.guarded(ref.store_path):
                self._open_file(ref)
            new = self.state.findings[before:]
            if ref.store_path not in self.opened and _are_damage(new):
                self._lose_file(ref.store_path)

    def _open_file(self, ref: DataFileRef) -> None:
        path = ref.store_path
        FileColumns.of(ref)
        size_bytes = self.snapshot.store.info(path).size_bytes
        opened = self.snapshot.open_file(replace(ref, size_bytes=size_bytes))
        opened.data.num_rows  # noqa: B018 - some versions look at their footers here
        self.opened[path] = opened
        if not ref.size_bytes or ref.size_bytes == size_bytes:
            return
        what = f"the file has {size_bytes} bytes, the manifest says {ref.size_bytes}"
        self.state.sizes[path] = size_bytes
        if ref.has_page_table:
            what += (
                "; pylance 1.0.4 states wrong sizes of files of version 0.1, which no reader minds"
            )
            self._say("wrong-size-0.1", what, _REPAIR_0_1, path, Severity.NOTE)
            return
        self._say("wrong-size", what, _COUNTS, path)

    def _check_rows(self) -> int:
        """Return the number of rows; losing files that have another one than the others."""
        stated = self.fragment.physical_rows
        counts = {path: opened.data.num_rows for path, opened in self.opened.items()}
        if not counts or set(counts.values()) == {stated}:
            return stated or 0
        if not stated:
            if len(set(counts.values())) == 1 and max(counts.values()) <= MAX_ROWS:
                return next(iter(counts.values()))
            listed = ", ".join(f"{path}: {count}" for path, count in counts.items())
            what = f"the data files have different numbers of rows: {listed}"
            for path in counts:
                self._say("wrong-rows", what, _REPAIR, path)
                self._lose_file(path)
            return 0
        others = {path: count for path, count in counts.items() if count != stated}
        for path, count in others.items():
            what = f"the file has {count} rows, the manifest says {stated}"
            self._say("wrong-rows", what, _REPAIR, path)
        found = set(counts.values())
        may_correct = not self.state.lost_files and self._fits_row_ids(max(found))
        if len(found) == 1 and len(others) == len(self.fragment.files) and may_correct:
            self.state.rows = found.pop()
            return self.state.rows
        for path in others:
            self._lose_file(path)
        return stated

    def _fits_row_ids(self, rows: int) -> bool:
        """Return whether a fragment may have so many rows: its sequence of row ids has as many."""
        sequence = self.fragment.row_ids
        if sequence is None:
            return rows <= MAX_ROWS
        try:
            return count_row_ids(read_sequence(self.snapshot.store, sequence)) == rows
        except LanceError:
            return False

    def _check_fields(self, ref: DataFileRef) -> None:
        path, opened = ref.store_path, self.opened[ref.store_path]
        last = opened.data.num_columns
        wrong = {
            number: column
            for number, column in FileColumns.of(ref).column_of.items()
            if column >= last or (column < NO_COLUMN)
        }
        if wrong:
            number, column = next(iter(wrong.items()))
            what = f"field {number} is said to lie in column {column} of {last} that the file has"
            self._say("no-such-column", what, _REPAIR, path)
            self.state.lost_fields[path] = sorted(wrong)

    def _check_types(self, ref: DataFileRef) -> None:
        """Compare the types of the file's own schema with the manifest's; names may differ, by renames."""
        if ref.base_id is not None:
            ref = replace(ref, written=None)
        wanted = named_fields(self.snapshot.manifest.schema)
        try:
            contents = contents_of(self.snapshot, ref)
        except LanceError:
            return  # the file's own schema is of no use to readers, and need not be whole
        if contents is None:
            return
        for number, held in contents.named.items():
            want = wanted.get(number)
            if want is None or _alike(held.logical_type, want.logical_type):
                continue
            what = (
                f"the file holds field {number} as {held.logical_type}, the table's schema says "
                f"{want.logical_type}"
            )
            self._say("wrong-type", what, _REPAIR, ref.store_path, column=want.text)
            self.state.lost_fields.setdefault(ref.store_path, []).append(number)

    def _check_files_0_1(self, ref: DataFileRef) -> None:
        if not ref.has_page_table:
            return
        path = ref.store_path
        if not ref.has_ascending_ids:
            what = f"the field ids {list(ref.field_ids)[:20]} do not ascend, as those of version 0.1 must"
            self._say("unordered-fields", what, _REPAIR_0_1, path, Severity.WARNING)
        known, held = self.snapshot.manifest.dictionaries, FileColumns.of(ref).column_of
        for each in self.snapshot.manifest.schema.walk():
            if not each.logical_type.startswith("dict:") or each.id in known or each.id not in held:
                continue
            with self.guarded(path):
                value_type = storage_field(each).type.value_type
                values = self.opened[path].data.dictionary_values(each, value_type)
                if values is not None and len(values):
                    what = "the manifest lacks the column's dictionary, which the file has"
                    name = each.name
                    self._say("missing-dictionary", what, _REPAIR_0_1, path, Severity.WARNING, name)

    def _check_held_once(self) -> None:
        seen: dict[FieldId, str] = {}
        for ref in self.fragment.files:
            for number in ref.field_ids:
                if number < 0:
                    continue
                if number in seen:
                    what = f"field {number} is held twice, by {seen[number]} and {ref.store_path}"
                    self._say("field-held-twice", what, _RENUMBER, ref.store_path)
                seen[number] = ref.store_path

    def _check_required(self) -> None:
        missing = missing_field(self.snapshot.manifest.schema, [self.fragment])
        if missing is not None and self.fragment.files:
            what = "no data file holds the column, which must not be NULL"
            self._say("required-column-missing", what, _RENUMBER, column=missing.name)

    # --- deleted rows, row ids ----------------------------------------------------------------------

    def _check_deletions(self, rows: int) -> int | None:
        """Return how many rows are deleted; None if the deletion file cannot be read."""
        deletion = self.fragment.deletion_file
        if deletion is None:
            return 0
        path = deletion.store_path(self.fragment.id)
        before = len(self.state.findings)
        found: list[int] = []
        with self.guarded(path):
            found.append(self._count_deleted(path, deletion, rows))
        if not found and _are_damage(self.state.findings[before:]):
            self.state.deletions = -1
        return found[0] if found else None

    def _count_deleted(self, path: str, deletion: DeletionFileRef, rows: int) -> int:
        offsets = parse_deletions(self.snapshot.store.read_whole(path), deletion.kind)
        last = int(offsets[-1]) if len(offsets) else -1
        if last >= rows and self.opened:
            message = f"row {last} is deleted of a fragment that has {rows} rows"
            raise FormatError(message)
        stated = deletion.num_deleted_rows
        if stated is not None and stated != len(offsets):
            what = f"the deletion file names {len(offsets)} rows, the manifest says {stated}"
            advice = _COUNTS if len(offsets) > stated else _REPAIR
            self._say("wrong-deletions", what, advice, path)
            self.state.deletions = len(offsets) if len(offsets) > stated else -1
        return len(offsets)

    def _check_row_ids(self, rows: int) -> None:
        manifest, fragment = self.snapshot.manifest, self.fragment
        if not manifest.has_stable_row_ids:
            return
        if fragment.row_ids is None:
            what = "the fragment has no row ids, as all of a table with stable row ids must have"
            self._say("missing-row-ids", what, _REPAIR)
            self.state.row_ids_lost = True
            return
        before = len(self.state.findings)
        with self.guarded(_file_of(fragment.row_ids), "damaged-row-ids"):
            data = read_sequence(self.snapshot.store, fragment.row_ids)
            decode_row_ids(data, rows)
            self.state.ids = row_id_bounds(data)
            low, high = self.state.ids
            if low <= high and high >= manifest.next_row_id:
                what = f"row id {high} is not below {manifest.next_row_id}, which the next row would get"
                self._say("next-row-id", what, _REPAIR)
        self.state.row_ids_lost = _are_damage(self.state.findings[before:], "damaged-row-ids")
        for sequence in (fragment.created_at_versions, fragment.last_updated_at_versions):
            if sequence is not None:
                with self.guarded(_file_of(sequence), "damaged-row-versions"):
                    decode_row_versions(read_sequence(self.snapshot.store, sequence), rows)
        new = self.state.findings[before:]
        self.state.row_versions_lost = _are_damage(new, "damaged-row-versions")

    # --- values -----------------------------------------------------------------------------------

    def _check_blobs(self, reader: FragmentReader, top: Field, rows: int) -> None:
        with self.guarded(self._file_with(top)):
            for found in check_blobs(self.snapshot, reader, top, rows):
                self.state.findings.append(replace(found, fragment=self.fragment.id))

    def _decode(self, reader: FragmentReader, top: Field, rows: int) -> None:
        decoded = DecodedColumn()
        with self.guarded(self._file_with(top)):
            decode_column(reader, top, rows, decoded)
        self.state.values += decoded.rows
        for error, failed in decoded.errors.items():
            self._lose_field(top, decoded, error, failed, rows)

    def _lose_field(
        self, top: Field, decoded: DecodedColumn, text: str, failed: int, rows: int
    ) -> None:
        found = finding_of(
            decoded.first[text],
            file=self._file_with(top),
            fragment=self.fragment.id,
            column=top.name,
        )
        what = f"{found.what} ({failed:,} of {rows:,} rows were read with it)"
        self.state.findings.append(replace(found, what=what))
        if not _are_damage([found]):
            return
        ids = {each.id for each in self._known(top).walk()}
        for ref in self.fragment.files:
            mine = sorted(ids.intersection(ref.field_ids))
            if mine and found.file in {ref.store_path, None}:
                lost = self.state.lost_fields.setdefault(ref.store_path, [])
                lost += [each for each in mine if each not in lost]

    def _file_with(self, top: Field) -> str | None:
        """Return the file that a column lies in, None if it is not one."""
        ids = {each.id for each in self._known(top).walk()}
        found = [ref for ref in self.fragment.files if not ids.isdisjoint(ref.field_ids)]
        return found[0].store_path if len(found) == 1 else None


def _are_damage(findings: list[Finding], code: str | None = None) -> bool:
    """Return whether findings say that something is missing or damaged, and not that it could not be looked at."""
    wanted = {code} if code else {"missing-file", "damaged-file"}
    return any(each.code in wanted for each in findings)


def _file_of(sequence: Sequence) -> str | None:
    with suppress(AttributeError):
        return sequence.path  # type: ignore[union-attr] # of one that lies in a file
    return None


def _alike(held: str, wanted: str) -> bool:
    """Return whether logical types are stored in one way: blobs are described, and `json` is binary."""
    if held == wanted:
        return True
    described = {"struct", "blob", "large_binary", "binary"}
    is_text = {held, wanted} <= {"json", "large_binary", "binary"}
    return is_text or {held, wanted} <= described or "dict:" in f"{held}{wanted}"
