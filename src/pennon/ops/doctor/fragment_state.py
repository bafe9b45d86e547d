"""The state of one fragment after its examination: findings, and what a repair must know.  It goes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pennon.errors import FormatError
from pennon.ops.doctor.findings import Finding


@dataclass(slots=True)
class FragmentState:
    """The findings about a fragment, and what a repair of it must know.

    ``lost_files``: data files (as `DataFileRef.store_path`) that cannot be used; ``lost_fields``: fields of others, by
    file, that cannot be decoded.  ``sizes`` and ``rows``: what the manifest should say.  ``deletions``: how many rows the
    deletion file names if it is another number than stated, -1 if the file is lost.  ``ids``: bounds of stable row ids.
    """

    id: int
    findings: list[Finding] = field(default_factory=list)
    lost_files: list[str] = field(default_factory=list)
    lost_fields: dict[str, list[int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    rows: int | None = None
    deletions: int | None = None
    row_ids_lost: bool = False
    row_versions_lost: bool = False
    ids: tuple[int, int] | None = None
    live: int | None = None
    values: int = 0

    @property
    def is_damaged(self) -> bool:
        """Return whether a repair has something to do here."""
        return bool(
            self.lost_files
            or self.lost_fields
            or self.sizes
            or self.row_ids_lost
            or self.row_versions_lost
            or self.rows is not None
            or self.deletions is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the state as values of JSON."""
        return {
            "id": self.id,
            "findings": [each.to_dict() for each in self.findings],
            "lost_files": self.lost_files,
            "lost_fields": self.lost_fields,
            "sizes": self.sizes,
            "rows": self.rows,
            "deletions": self.deletions,
            "row_ids_lost": self.row_ids_lost,
            "row_versions_lost": self.row_versions_lost,
            "ids": self.ids,
            "live": self.live,
            "values": self.values,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the state that `to_dict` was made of.  Raises FormatError."""
        try:
            values = {name: given[name] for name in cls.__slots__}
            findings = [Finding.from_dict(each) for each in values["findings"]]
            ids = None if values["ids"] is None else (int(values["ids"][0]), int(values["ids"][1]))
        except (KeyError, TypeError, ValueError) as error:
            message = f"what came from a task is no state of a fragment: {error!r}"
            raise FormatError(message) from error
        return cls(**values | {"findings": findings, "ids": ids})
