"""Results of a clean-up: the files and versions removed, or to be removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.ops.cleanup.file_kinds import Kind
from pennon.ops.cleanup.run import Removed, preview

if TYPE_CHECKING:
    from pennon.ops.cleanup.plan import Doomed
    from pennon.ops.cleanup.policy import Policy
    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """The number of files and bytes that a clean-up removed; manifests count among the bytes.

    >>> from datetime import timedelta
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.delete("id > 0")
    >>> stats = ds.cleanup_old_versions(timedelta(0))
    >>> stats.old_versions, stats.data_files_removed
    (1, 1)
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0

    @classmethod
    def of(cls, files: Iterable[Doomed], failed: int = 0) -> CleanupStats:
        """Return the numbers of files that went, or would go."""
        listed = list(files)
        kinds = Counter(each.kind for each in listed)
        return cls(
            bytes_removed=sum(each.info.size_bytes for each in listed),
            old_versions=kinds[Kind.MANIFEST],
            data_files_removed=kinds[Kind.DATA],
            transaction_files_removed=kinds[Kind.TRANSACTION],
            index_files_removed=kinds[Kind.INDEX],
            deletion_files_removed=kinds[Kind.DELETION],
            failed_deletes=failed,
        )


@dataclass(frozen=True, slots=True)
class CleanupCandidateFile:
    """A file that would go; ``path`` is relative to the table.

    ``kind``: data, deletion, index, transaction, manifest, or temporary (what a writer that was cut
    short left).  ``unverified``: no version is known to have named it.

    >>> from datetime import timedelta
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.delete("id > 0")
    >>> plan = ds.explain_cleanup_old_versions(timedelta(0), include_files=True)
    >>> sorted(file.kind for file in plan.candidate_files)
    ['data', 'manifest', 'transaction']
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch that left one of the table's versions, which stays for it.

    >>> from datetime import timedelta
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.create_branch("trial")
    >>> _ = ds.delete("id = 1")
    >>> ds.explain_cleanup_old_versions(timedelta(0)).referenced_branches
    [CleanupReferencedBranch(name='trial', referenced_version=1, cleanup_candidate=False)]
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True, slots=True)
class CleanupExplanation:
    """A dry run of `LanceDataset.cleanup_old_versions`.

    >>> from datetime import timedelta
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> _ = ds.delete("id = 1")
    >>> plan = ds.explain_cleanup_old_versions(timedelta(0))
    >>> plan.read_version, plan.stats.old_versions
    (2, 1)
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]


def stats_of(removed: Removed) -> CleanupStats:
    """Return the numbers of a clean-up."""
    return CleanupStats.of(removed.files, removed.failed)


def explain(
    snapshot: Snapshot, policy: Policy, max_files: int, *, include_files: bool
) -> CleanupExplanation:
    """Return what a clean-up would do now; nothing is written."""
    plan, view = preview(snapshot, policy)
    doomed = [*plan.files, *plan.manifests]
    shown = [
        CleanupCandidateFile(each.path, each.kind.value, each.unverified, each.info.size_bytes)
        for each in doomed[: max_files if include_files else 0]
    ]
    truncated = include_files and len(doomed) > max_files
    return CleanupExplanation(
        read_version=snapshot.manifest.version,
        stats=CleanupStats.of(doomed),
        candidate_files=shown,
        candidate_files_truncated=truncated,
        candidate_file_limit=max_files,
        referenced_branches=[
            CleanupReferencedBranch(name, version)
            for name, version in sorted(view.children.items())
        ],
        warnings=[f"candidate_files truncated to {max_files} entries"] if truncated else [],
    )
