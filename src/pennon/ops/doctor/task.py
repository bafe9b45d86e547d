"""The task of an examination: a piece for each fragment, and one for each segment of an index; it pickles."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

from pennon.errors import FormatError, LanceError
from pennon.ops.doctor.fragment import examine_fragment
from pennon.ops.doctor.fragment_state import FragmentState
from pennon.ops.doctor.indices import SegmentState, examine_segment
from pennon.scan.snapshot import Snapshot
from pennon.table.indices_wire import parse_indices

State: TypeAlias = FragmentState | SegmentState


@dataclass(frozen=True, slots=True)
class ExamineTask:
    """Examines a fragment, or a segment of an index, by its number: fragments come first."""

    snapshot: Snapshot
    segments: tuple[str, ...]
    deep: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot, *, deep: bool) -> ExamineTask:
        """Plan to examine a version; indices that cannot be listed are left out."""
        try:
            indices = parse_indices(snapshot.manifest.indices)
        except LanceError:
            indices = ()
        return cls(snapshot, tuple(each.uuid for each in indices), deep)

    @property
    def count(self) -> int:
        """Return how many pieces there are."""
        return len(self.snapshot.manifest.fragments) + len(self.segments)

    def run(self, number: int) -> State:
        """Examine the piece of that number; damage is a finding, never an error."""
        fragments = self.snapshot.manifest.fragments
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is worth a warning is a finding
            if number < len(fragments):
                return examine_fragment(self.snapshot, fragments[number], deep=self.deep)
            uuid = self.segments[number - len(fragments)]
            return examine_segment(self.snapshot, uuid, deep=self.deep)

    @staticmethod
    def to_bytes(state: State) -> bytes:
        """Return what was found as the bytes that come to the driver."""
        kind = "fragment" if isinstance(state, FragmentState) else "segment"
        return json.dumps({kind: state.to_dict()}).encode()

    @staticmethod
    def from_bytes(message: bytes) -> State:
        """Return what was found; raises FormatError."""
        try:
            given: dict[str, Any] = json.loads(message)
            if "fragment" in given:
                return FragmentState.from_dict(given["fragment"])
            return SegmentState.from_dict(given["segment"])
        except (ValueError, KeyError, TypeError) as error:
            text = f"what came from a task is no finding: {error!r}"
            raise FormatError(text) from error
