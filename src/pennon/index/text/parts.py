"""Parts of a full-text index that were made in one folder, by as many processes as like, and are merged there.

::

    _indices/{uuid}/staging/part_{number}_metadata.lance     settings; partitions: [number]
                            part_{number}_docs.lance, part_{number}_tokens.lance, part_{number}_invert.lance
    _indices/{uuid}/metadata.lance, part_0_docs.lance, …     what becomes of them

A number is that of the first fragment of the part, times 2^32, and on from there, so that no two makers of
different fragments write the same file.  Source: ledger F-600.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from pennon.core.units import FragmentId
from pennon.index.text.parameters import METADATA

STAGING: Final = "staging"
"""The folder of the parts, in that of the index."""


def first_partition(fragment_id: FragmentId) -> int:
    """Return the number of the first partition of a part whose first fragment is this."""
    return fragment_id << 32


def settings_of_parts(names: Iterable[str]) -> list[str]:
    """Return which names of files, in a folder of parts, are those of settings: the parts, in order."""
    ends = f"_{METADATA}"
    found = (PurePosixPath(name).name for name in names)
    numbers = (
        name.removeprefix("part_").removesuffix(ends) for name in found if name.endswith(ends)
    )
    return [
        f"part_{number}{ends}" for number in sorted(int(each) for each in numbers if each.isdigit())
    ]
