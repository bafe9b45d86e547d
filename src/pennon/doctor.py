"""The doctor of tables: what is damaged, wrong or worth a change, where, and what to do about it.

`examine` looks at a version and at all around it, and writes nothing.  `repair` plans one new version without what is
broken; `Repair.apply` makes it.  The page [The doctor](../../docs/doctor.md) lists what is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pennon.io import open_store
from pennon.ops.doctor.examine import examine as _examine
from pennon.ops.doctor.examine import on_threads
from pennon.ops.doctor.findings import Finding, Report, Severity
from pennon.ops.doctor.repair import Choice, Repair, Step, plan_repair
from pennon.table.base_paths import Trust

if TYPE_CHECKING:
    from pennon.io.store import Store

__all__ = ["Finding", "Repair", "Report", "Severity", "Step", "examine", "repair"]


def examine(
    uri: str | os.PathLike[str],
    version: int | None = None,
    *,
    deep: bool = False,
    storage_options: Mapping[str, str] | None = None,
    trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
    threads: int | None = None,
) -> Report:
    """Examine a version of a table, the newest by default; nothing is written.

    The files that the manifest names are there, with their sizes, and fit one another; rows, deletions and row ids add
    up; indices open, and cover what they say.  ``deep``: every page of every column and every file of the indices is
    decoded, batch by batch, and indices are asked for a few rows of each fragment.  ``trusted_bases`` as in `pennon.dataset`.
    ``threads``: fragments looked at side by side, by default as many as processors.

    Damage is a finding, never an error.  Raises NotFoundError if there is no table, or no such version.

    >>> from pennon import doctor
    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> print(doctor.examine(uri, deep=True))
    version 1: 0 errors, 0 warnings, 0 notes; 1 fragment, 3 rows, 3 values decoded
    """
    store, trust = _place(uri, storage_options, trusted_bases)
    exam = _examine(store, version, deep=deep, trust=trust, run=on_threads(threads))
    return exam.report()


def repair(
    uri: str | os.PathLike[str],
    *,
    deep: bool = True,
    restore_deleted: bool = False,
    lost_columns: Literal["null", "drop"] = "null",
    storage_options: Mapping[str, str] | None = None,
    trusted_bases: Sequence[str | os.PathLike[str]] | None = None,
    threads: int | None = None,
) -> Repair:
    """Plan one new version of a table without what is broken; nothing is written until `Repair.apply`.

    A column whose data file or pages are lost becomes NULL in its fragment, or the fragment goes (``lost_columns="drop"``,
    and wherever the column must not be NULL).  A fragment whose deletion file is lost goes, for nobody knows which of its
    rows are deleted; with ``restore_deleted`` it stays, and its deleted rows come back.  Broken segments of indices go.
    No file is deleted or changed.  ``deep``: damage within pages is looked for, too.

    Raises NotFoundError if there is no table.

    >>> from pennon import doctor
    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> doctor.repair(uri).summary
    'nothing to repair'
    """
    store, trust = _place(uri, storage_options, trusted_bases)
    exam = _examine(store, deep=deep, trust=trust, run=on_threads(threads))
    return plan_repair(exam, Choice(restore_deleted, lost_columns))


def _place(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None,
    trusted_bases: Sequence[str | os.PathLike[str]] | None,
) -> tuple[Store, Trust]:
    """Return the store of a table, and the places outside of it that may be read."""
    options = dict(storage_options) if storage_options else None
    return open_store(uri, options, trusted_bases), Trust.given(trusted_bases, options)
