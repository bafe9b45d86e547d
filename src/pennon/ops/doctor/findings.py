"""Findings: what a check found, where, how bad it is, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from pennon.errors import (
    Breadcrumb,
    FormatError,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    UntrustedPathError,
    printable,
)

MOST_TEXT: Final = 2000
"""A text in a finding is cut after so many characters: names come from the table."""


class Severity(StrEnum):
    """The severity of a finding.

    ``error``: rows or indices cannot be read, or are wrong.  ``warning``: it works here, but something is lost,
    cannot be checked, or fails elsewhere.  ``note``: nothing is wrong, and there is advice.

    >>> from pennon.doctor import Severity
    >>> [str(each) for each in Severity]
    ['error', 'warning', 'note']
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_ORDER: Final = {each: rank for rank, each in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a check.

    ``code`` names the kind of finding, ``what`` says what is wrong, ``advice`` what to do.  ``file`` is a path below
    the table's root, or the whole path of a file in another place; ``fragment``, ``column``, ``page``, ``byte_range`` and ``index``
    say where, as far as it is known.

    >>> from pennon.doctor import Finding
    >>> found = Finding("error", "missing-file", "the file is not there", file="data/a.lance", fragment=3)
    >>> found.where
    'fragment 3, file data/a.lance'
    """

    severity: Severity
    code: str
    what: str
    advice: str = ""
    file: str | None = None
    fragment: int | None = None
    column: str | None = None
    page: int | None = None
    byte_range: tuple[int, int] | None = None
    index: str | None = None

    @property
    def where(self) -> str:
        """Return the place in words.

        >>> from pennon.doctor import Finding
        >>> Finding("note", "old-files", "files of version 0.1", column="a").where
        "column 'a'"
        """
        place = Breadcrumb(self.file, self.column, self.page, self.byte_range)
        index = None if self.index is None else f"index {self.index!r}"
        fragment = None if self.fragment is None else f"fragment {self.fragment}"
        return printable(", ".join(filter(None, (index, fragment, str(place)))))

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values of JSON.

        >>> from pennon.doctor import Finding
        >>> Finding("note", "old-files", "files of version 0.1").to_dict()["code"]
        'old-files'
        """
        found = asdict(self) | {"severity": str(self.severity), "where": self.where}
        return found | {"byte_range": list(self.byte_range) if self.byte_range else None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_dict` was made of.  Raises FormatError.

        >>> from pennon.doctor import Finding
        >>> found = Finding("note", "old-files", "files of version 0.1")
        >>> Finding.from_dict(found.to_dict()) == found
        True
        """
        try:
            values = {name: given[name] for name in cls.__slots__}
            severity, extent = Severity(values["severity"]), values["byte_range"]
            byte_range = None if extent is None else (int(extent[0]), int(extent[1]))
            return cls(**values | {"severity": severity, "byte_range": byte_range})
        except (KeyError, TypeError, ValueError) as error:
            message = f"what came from a task is no finding: {error!r}"
            raise FormatError(message) from error

    def __str__(self) -> str:
        """Return the finding as one line without control characters."""
        place = self.where
        advice = f"; {self.advice}" if self.advice else ""
        return printable(
            f"{self.severity} {self.code}: {self.what}{f' [{place}]' if place else ''}{advice}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one version of a table, the worst first, and how much was looked at.

    ``rows`` are the live rows of the version; ``values`` the values that were decoded (``deep``), of all columns together.

    >>> from pennon import doctor
    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> report = doctor.examine(uri, deep=True)
    >>> report.is_sound, report.rows, report.values
    (True, 3, 3)
    """

    uri: str
    version: int | None
    findings: tuple[Finding, ...] = ()
    fragments: int = 0
    rows: int = 0
    values: int = 0
    deep: bool = False

    @property
    def is_sound(self) -> bool:
        """Return whether there is neither an error nor a warning.

        >>> from pennon import doctor
        >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> doctor.examine(uri).is_sound
        True
        """
        return all(each.severity is Severity.NOTE for each in self.findings)

    def count(self, severity: Severity) -> int:
        """Return how many findings have a severity.

        >>> from pennon import doctor
        >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> doctor.examine(uri).count(doctor.Severity.ERROR)
        0
        """
        return sum(each.severity is severity for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values of JSON.

        >>> from pennon import doctor
        >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> sorted(doctor.examine(uri).to_dict())[:4]
        ['deep', 'errors', 'findings', 'fragments']
        """
        return {
            "uri": self.uri,
            "version": self.version,
            "is_sound": self.is_sound,
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "notes": self.count(Severity.NOTE),
            "fragments": self.fragments,
            "rows": self.rows,
            "values": self.values,
            "deep": self.deep,
            "findings": [each.to_dict() for each in self.findings],
        }

    def __iter__(self) -> Iterator[Finding]:
        """Iterate over the findings."""
        return iter(self.findings)

    def __str__(self) -> str:
        """Return a line for each finding, and one about all."""
        return "\n".join([*map(str, self.findings), self.summary])

    @property
    def summary(self) -> str:
        """Return one line about all findings.

        >>> from pennon import doctor
        >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> doctor.examine(uri).summary
        'version 1: 0 errors, 0 warnings, 0 notes; 1 fragment, 3 rows'
        """
        counts = ", ".join(_plural(self.count(each), str(each)) for each in Severity)
        about = f"{_plural(self.fragments, 'fragment')}, {_plural(self.rows, 'row')}"
        decoded = f", {_plural(self.values, 'value')} decoded" if self.deep else ""
        version = "no version" if self.version is None else f"version {self.version}"
        return f"{version}: {counts}; {about}{decoded}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repeats, the worst first; those of one severity in the order they were made."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: _ORDER[each.severity]))


def codes(findings: Iterable[Finding]) -> Counter[str]:
    """Return how many findings of each code there are."""
    return Counter(each.code for each in findings)


# --- errors as findings -----------------------------------------------------------------------------

_REPAIR: Final = "`pennon doctor TABLE --repair` shows what a version without it would lose"
_TRUST: Final = "pass trusted_bases=[...] or set PENNON_TRUSTED_BASES if you trust the place"
_KINDS: Final[tuple[tuple[type[Exception], Severity, str, str], ...]] = (
    (UntrustedPathError, Severity.WARNING, "untrusted-place", _TRUST),
    (NotFoundError, Severity.ERROR, "missing-file", _REPAIR),
    (FormatError, Severity.ERROR, "damaged-file", _REPAIR),
    (UnsupportedError, Severity.WARNING, "not-readable-here", "read it with a newer release"),
    (StoreError, Severity.ERROR, "store-failed", "look again when the store answers"),
)

_FAILED: Final = (
    Severity.ERROR,
    "failed-check",
    "please report it: damage must give a typed error",
)


def finding_of(
    error: Exception,
    *,
    file: str | None = None,
    fragment: int | None = None,
    column: str | None = None,
    index: str | None = None,
    code: str | None = None,
    advice: str | None = None,
) -> Finding:
    """Return an error as a finding: its class says how bad it is, its breadcrumb where; ``file`` if that does not say.

    An error that is none of Pennon's own is a failed check, and no reason to stop.
    """
    severity, usual, usual_advice = next(
        (row[1:] for row in _KINDS if isinstance(error, row[0])), _FAILED
    )
    if isinstance(error, LanceError):
        where, text = error.where, error.message
        is_in_base = file is not None and file.startswith("@") and file.endswith(where.file or "")
        file, column = file if is_in_base else where.file or file, where.column or column
        page, byte_range = where.page, where.byte_range
    else:
        text, page, byte_range = f"{type(error).__name__}: {error}", None, None
    return Finding(
        severity,
        code or usual,
        printable(text)[:MOST_TEXT],
        usual_advice if advice is None else advice,
        file,
        fragment,
        column,
        page,
        byte_range,
        index,
    )
