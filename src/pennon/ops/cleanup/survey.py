"""A survey of a table: manifests, tags and branches, and the files that they need.

Other lines (branches, or the main line for a branch) may name files of this one, so all their
manifests are read, too.  A manifest that cannot be read ends the clean-up: what it names would look
as if nobody needed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError
from pennon.io.store import ObjectInfo, Store
from pennon.ops.cleanup.file_kinds import DETACHED
from pennon.table.base_paths import branch_store, root_of
from pennon.table.cleanup_notes import Hold, parse_hold
from pennon.table.flags import check_readable
from pennon.table.manifest_wire import parse_messages
from pennon.table.named_files_wire import Names, read_names
from pennon.table.naming import VERSIONS, parse_manifest_name
from pennon.table.refs.tags_and_branches import TREE, branch_folder, list_branches, list_tags

_ANY_MANIFEST = re.compile(r"(?:.*/)?_versions/[^/]+\.manifest")


@dataclass(frozen=True, slots=True)
class View:
    """A table as it was at one look.

    ``versions``: this line's manifests by version.  ``tags`` and ``children``: the versions of this
    line that tags name and branches left, by their names.  ``kept_from``: the oldest version that is kept
    with all later ones, for readers that have still to come there.  ``held``: the versions that somebody
    is about to restore, to tag or to branch from.  ``others``: manifests that stay whatever happens, detached ones and those of other lines,
    by path from the table's root.
    """

    versions: dict[int, ObjectInfo]
    tags: dict[str, int]
    children: dict[str, int]
    others: dict[str, ObjectInfo]
    files: list[ObjectInfo]
    """All that lies in ``_versions/``."""
    kept_from: int | None = None
    holds: tuple[Hold, ...] = ()

    def stored(self) -> dict[int, datetime]:
        """Return when each version was stored."""
        return {version: info.modified for version, info in self.versions.items()}


@dataclass(slots=True)
class Survey:
    """Looks at a table, or a branch of it; what a manifest names is read once."""

    store: Store
    branch: str | None = None
    _known: dict[tuple[str, int, datetime], Names | None] = field(default_factory=dict)

    @property
    def root(self) -> Store:
        """Return the store of the table's root."""
        return root_of(self.store)

    @property
    def home(self) -> Store:
        """Return the store of the folder that this line's own files lie in."""
        return branch_store(self.root, self.branch)

    def look(self) -> View:
        """Look at the manifests, then the tags, then the branches.

        In that order: a tag is made after the version that it names.
        """
        files = list(self.home.list(VERSIONS))
        versions = self._versions(files)
        detached = [info for info in files if DETACHED.fullmatch(info.path)]
        tags = list_tags(self.root)
        branches = list_branches(self.root)
        others = {self._absolute(info.path): info for info in detached}
        others.update((info.path, info) for info in self._other_lines())
        mine = {name: tag for name, tag in tags.items() if tag.branch == self.branch}
        return View(
            versions,
            {name: tag.version for name, tag in mine.items()},
            {n: b.parent_version for n, b in branches.items() if b.parent_branch == self.branch},
            others,
            files,
            min((tag.version for tag in mine.values() if tag.keeps_later), default=None),
            tuple(filter(None, (parse_hold(info.path) for info in files))),
        )

    def _versions(self, files: Iterable[ObjectInfo]) -> dict[int, ObjectInfo]:
        """Return the manifests by version.

        Raises NotFoundError if there is none, for then nothing could be kept, and FormatError for a
        table in the middle of a change of names.
        """
        found, namings = {}, set()
        for info in files:
            parsed = parse_manifest_name(info.path)
            if parsed is not None:
                naming, version = parsed
                found[int(version)] = info
                namings.add(naming)
        if len(namings) > 1:
            message = (
                "manifests of both naming schemes (V1 and V2) lie here: migrate the table first"
            )
            raise FormatError(message, where=Breadcrumb(file=VERSIONS))
        if not found:
            message = f"there is no manifest under {VERSIONS}/ of {self.home.uri!r} to go by"
            raise NotFoundError(message)
        return found

    def named_by(self, infos: Iterable[ObjectInfo]) -> Names:
        """Return all files that these manifests of this line name."""
        found = Names()
        for info in infos:
            self._add(found, self.home, info)
        return found

    def named_elsewhere(self, view: View) -> Names:
        """Return all files that manifests of other lines, and detached ones, name."""
        found = Names()
        for path, info in view.others.items():
            at = ObjectInfo(path, info.size_bytes, info.modified)
            self._add(found, self.root, at)
        return found

    def _add(self, found: Names, store: Store, info: ObjectInfo) -> None:
        key = (f"{store.uri}/{info.path}", info.size_bytes, info.modified)
        if key not in self._known:
            self._known[key] = _read(store, info)
        names = self._known[key]
        if names is not None:
            found.add(names)

    def _other_lines(self) -> Iterator[ObjectInfo]:
        """Yield the manifests of all lines but this one."""
        mine = None if self.branch is None else f"{branch_folder(self.branch)}/{VERSIONS}/"
        for info in self.root.list(TREE):
            if _ANY_MANIFEST.fullmatch(info.path) and not (mine and info.path.startswith(mine)):
                yield info
        if self.branch is not None:
            main = self.root.list(VERSIONS)
            yield from (info for info in main if _ANY_MANIFEST.fullmatch(info.path))

    def _absolute(self, path: str) -> str:
        return path if self.branch is None else f"{branch_folder(self.branch)}/{path}"


def _read(store: Store, info: ObjectInfo) -> Names | None:
    """Return what a manifest names; None if it is gone, as when two clean up at once."""
    try:
        proto, indices = parse_messages(store.read_whole(info.path))
        check_readable(proto.writer_feature_flags)
        return read_names(proto, indices)
    except NotFoundError:
        return None
    except LanceError as error:
        raise error.located(Breadcrumb(file=info.path)) from error.__cause__
