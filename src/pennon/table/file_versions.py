"""Which file versions the data files of some fragments have."""

from __future__ import annotations

from collections.abc import Iterable

from pennon.schema.version import FileVersion
from pennon.table.fragment import Fragment
from pennon.table.fragments import Fragments


def file_versions(fragments: Iterable[Fragment]) -> frozenset[FileVersion]:
    """Return the versions of all data files.  Raises FormatError for numbers that never were."""
    if isinstance(fragments, Fragments):
        numbers = fragments.file_numbers()
    else:
        numbers = {(file.major, file.minor) for fragment in fragments for file in fragment.files}
    return frozenset(FileVersion.from_numbers(*each) for each in numbers)
