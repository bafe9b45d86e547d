"""The catalogs of a Spark session: `attach`, the names that they give to tables, and ``USE``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.directory import DirectoryCatalog
from pennon.catalog.named import NamedTables
from pennon.catalog.table_names import join_name, split_name
from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError, NotFoundError, UnsupportedError
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.scan_task import open_snapshot
from pennon.spark.statements.words import Name
from pennon.spark.table.functions import read
from pennon.spark.table.lance_table import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATHS: Final = "lance"
"""``lance.`/path/to/table.lance``` is the table at a path."""
_ROOT_ALIAS: Final = "default"
"""Spark's name for the namespace of a catalog that has none."""


@dataclass(slots=True, eq=False)
class Attached:
    """A catalog that a session has under a name.

    ``fresh``: each statement reads the newest versions; else the version that was newest at the first use.
    ``views``: names without the catalog's name find its tables, too.
    """

    name: str
    catalog: Catalog
    fresh: bool = True
    views: bool = True
    pinned: dict[TableName, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class SessionCatalogs:
    """The catalogs of a session by their names, and the namespace that ``USE`` chose (None: Spark's own)."""

    attached: dict[str, Attached] = field(default_factory=dict)
    current: tuple[Attached, TableName] | None = None

    def named(self, name: str) -> Attached | None:
        """Return the catalog of a name; one of another case counts if no other is there."""
        found = self.attached.get(name)
        if found is not None:
            return found
        lower = name.lower()
        return next((each for each in self.attached.values() if each.name.lower() == lower), None)


@dataclass(frozen=True, slots=True)
class Place:
    """A table that a name means.

    ``attached`` is None for a path.  ``ref`` is a tag or a branch that stands in the name.
    """

    title: str
    entry: TableEntry
    attached: Attached | None = None
    ref: str | None = None

    @property
    def name(self) -> TableName:
        """Return the name in the catalog."""
        return self.entry.name

    @property
    def pin(self) -> int | None:
        """Return the version that is read where none is said; None: the newest."""
        if self.attached is None or self.attached.fresh or self.ref is not None:
            return None
        pinned = self.attached.pinned
        if self.name not in pinned:
            newest = open_snapshot(self.entry.location, self.entry.storage_options)
            pinned[self.name] = newest.manifest.version
        return pinned[self.name]


_SESSIONS: Final[WeakKeyDictionary[Any, SessionCatalogs]] = WeakKeyDictionary()


def catalogs_of(spark: SparkSession) -> SessionCatalogs:
    """Return the catalogs of a session."""
    found = _SESSIONS.get(spark)
    if found is None:
        found = _SESSIONS[spark] = SessionCatalogs()
    return found


# --- names ----------------------------------------------------------------------------------------


def is_path(parts: Sequence[str]) -> bool:
    """Return whether a name is that of a path: ``lance.`/path/to/table.lance```."""
    return len(parts) == 2 and parts[0].lower() == PATHS and ("/" in parts[1] or ":" in parts[1])


def places_of(
    catalogs: SessionCatalogs, parts: TableName
) -> Iterator[tuple[Attached, TableName, bool]]:
    """Yield the names in catalogs that a name may mean, the likeliest first; and whether the user chose the catalog."""
    named = catalogs.named(parts[0]) if len(parts) > 1 else None
    if named is not None:
        yield named, parts[1:], True
        if len(parts) == 3 and parts[1].lower() == _ROOT_ALIAS:
            yield named, parts[2:], True
        return
    if catalogs.current is not None:
        attached, namespace = catalogs.current
        yield attached, (*namespace, *parts), True
        if namespace and len(parts) > 1:
            yield attached, parts, True
    for attached in catalogs.attached.values():
        if attached.views and (catalogs.current is None or catalogs.current[0] is not attached):
            yield attached, parts, False


def find_place(spark: SparkSession, name: Name) -> Place | None:
    """Return the table of a name; None if no catalog of the session has it.

    The name of a tag or a branch may stand behind it: ``t.tag_x``, ``t.branch_x``.
    """
    if is_path(name.parts):
        return Place(str(name), TableEntry((), name.parts[1]))
    catalogs = catalogs_of(spark)
    for attached, inner, is_chosen in places_of(catalogs, name.parts):
        entry = _described(spark, attached, inner, any_case=is_chosen)
        if entry is not None:
            return Place(".".join((attached.name, *entry.name)), entry, attached)
    return _place_of_ref(spark, name)


def _place_of_ref(spark: SparkSession, name: Name) -> Place | None:
    kind, _, ref = name.parts[-1].partition("_")
    if len(name.parts) < 2 or not ref or kind.lower() not in ("tag", "branch"):
        return None
    found = find_place(spark, Name(name.parts[:-1], name.first, name.after))
    if found is None or found.ref is not None:
        return None
    return Place(found.title, found.entry, found.attached, ref)


def _described(
    spark: SparkSession, attached: Attached, name: TableName, *, any_case: bool
) -> TableEntry | None:
    """Return a table of a catalog; ``any_case``: also one whose name differs in case alone, if there is no other."""
    try:
        return attached.catalog.describe_table(name)
    except (NotFoundError, ArgumentError):
        pass
    if not any_case or is_case_sensitive(spark):
        return None
    try:
        known = attached.catalog.list_tables(name[:-1])
    except (NotFoundError, ArgumentError, UnsupportedError):
        return None
    same = [each for each in known if each.lower() == name[-1].lower()]
    return attached.catalog.describe_table((*name[:-1], same[0])) if len(same) == 1 else None


def check_known(spark: SparkSession, name: Name) -> None:
    """Raise NotFoundError for a name that begins with a catalog of the session, which does not have it."""
    attached = catalogs_of(spark).named(name.parts[0]) if len(name.parts) > 1 else None
    if attached is None:
        return
    try:
        known = attached.catalog.list_tables(name.parts[1:-1])
    except (NotFoundError, ArgumentError, UnsupportedError):
        known = []
    message = f"catalog {attached.name} has no table {'.'.join(name.parts[1:])}{did_you_mean(name.parts[-1], known)}"
    raise NotFoundError(message)


def new_place(spark: SparkSession, name: Name) -> tuple[Attached, TableName] | None:
    """Return the catalog, and the name in it, for a table or a namespace that is to be made; None: Spark's."""
    catalogs = catalogs_of(spark)
    named = catalogs.named(name.parts[0]) if len(name.parts) > 1 else None
    if named is not None:
        inner = name.parts[1:]
        if len(inner) == 2 and inner[0].lower() == _ROOT_ALIAS and not _has(named, inner[:1]):
            inner = inner[1:]
        return named, inner
    if catalogs.current is None:
        return None
    attached, namespace = catalogs.current
    return attached, (*namespace, *name.parts)


def _has(attached: Attached, namespace: TableName) -> bool:
    try:
        attached.catalog.describe_namespace(namespace)
    except (NotFoundError, ArgumentError, UnsupportedError):
        return False
    return True


# --- attaching ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttachedCatalog:
    """A catalog that a session has under a name; `attach` returns it.

    >>> lake = pennon.spark.attach(spark, {"small": path})
    >>> lake.tables()
    ['small']
    """

    spark: SparkSession
    attached: Attached = field(repr=False)

    @property
    def name(self) -> str:
        """Return the catalog's name in SQL.

        >>> pennon.spark.attach(spark, {"small": path}).name
        'lake'
        """
        return self.attached.name

    @property
    def catalog(self) -> Catalog:
        """Return the catalog.

        >>> pennon.spark.attach(spark, {"small": path}).catalog.list_namespaces()
        []
        """
        return self.attached.catalog

    def tables(self, pattern: str = "*") -> list[str]:
        """Return the names of tables, with dots between namespaces; no table is opened.

        ``pattern`` has ``*`` for some characters and ``?`` for one.

        >>> pennon.spark.attach(spark, {"small": path}).tables("sm*")
        ['small']
        """
        return sorted(name for name in map(join_name, self._all(())) if fnmatchcase(name, pattern))

    def _all(self, namespace: TableName) -> Iterator[TableName]:
        catalog = self.attached.catalog
        for table in catalog.list_tables(namespace):
            yield (*namespace, table)
        for inner in catalog.list_namespaces(namespace):
            yield from self._all((*namespace, inner))

    def table(self, name: str | Sequence[str]) -> LanceTable:
        """Return a table; namespaces stand before dots.  Raises NotFoundError if there is none.

        >>> pennon.spark.attach(spark, {"small": path}).table("small").count()
        3
        """
        entry = self._entry(name)
        return LanceTable.forPath(self.spark, entry.location, entry.storage_options)

    def toDF(self, name: str | Sequence[str]) -> DataFrame:  # noqa: N802 - as LanceTable.toDF
        """Return a DataFrame of a table: of its newest version, or of the one that ``fresh=False`` pinned.

        >>> pennon.spark.attach(spark, {"small": path}).toDF("small").columns
        ['key', 'value']
        """
        entry = self._entry(name)
        place = Place(".".join(entry.name), entry, self.attached)
        return read(
            self.spark, entry.location, version=place.pin, storage_options=entry.storage_options
        )

    def view(self, name: str | Sequence[str], view: str | None = None) -> str:
        """Make a temporary view of a table for ``spark.sql``, and return the view's name.

        By default that is the table's own name.  The table is opened for it, as Spark asks for its columns.

        >>> name = pennon.spark.attach(spark, {"small": path}).view("small")
        >>> spark.sql(f"SELECT count(*) AS n FROM {name}").first()
        Row(n=3)
        """
        shown = self._parts(name)[-1] if view is None else view
        self.toDF(name).createOrReplaceTempView("`" + shown.replace("`", "``") + "`")
        return shown

    def views(self, pattern: str = "*") -> list[str]:
        """Make a temporary view of each table whose name has a pattern; return the names of the views.

        >>> pennon.spark.attach(spark, {"small": path}).views("s*")
        ['small']
        """
        return [self.view(name) for name in self.tables(pattern)]

    def detach(self) -> None:
        """Take the catalog out of the session; tables stay as they are.

        >>> pennon.spark.attach(spark, {"small": path}).detach()
        """
        catalogs = catalogs_of(self.spark)
        catalogs.attached.pop(self.name, None)
        if catalogs.current is not None and catalogs.current[0] is self.attached:
            catalogs.current = None

    def _entry(self, name: str | Sequence[str]) -> TableEntry:
        return self.attached.catalog.describe_table(self._parts(name))

    @staticmethod
    def _parts(name: str | Sequence[str]) -> TableName:
        return split_name(name) if isinstance(name, str) else tuple(name)


def attach(
    spark: SparkSession,
    root_or_catalog: str | Catalog | Mapping[str, str],
    name: str = "lake",
    *,
    storage_options: Mapping[str, str] | None = None,
    fresh: bool = True,
    views: bool = True,
) -> AttachedCatalog:
    """Give a session the tables of a catalog under a name, for `pennon.spark.sql`: ``SELECT * FROM lake.flights``.

    ``root_or_catalog`` is the folder of the tables, a dict of names and paths, or a catalog of `pennon.catalog`.  Nothing
    is listed or opened: a name is looked up when a statement uses it.  ``fresh``: each statement reads the newest
    version of a table; else the version that was newest at the first use.  ``views``: names find tables without
    the catalog's name, too.  ``storage_options`` are those of a folder's store.

    A catalog that has the name already is replaced.  Raises ArgumentError for a name that is none.

    >>> lake = pennon.spark.attach(spark, {"small": path})
    >>> pennon.spark.sql(spark, "SELECT max(value) AS most FROM lake.small").first()
    Row(most=3)
    """
    if not name.isidentifier():
        message = f"the name of a catalog is a word of letters, digits and _, not {name!r}"
        raise ArgumentError(message)
    attached = Attached(name, _catalog(root_or_catalog, storage_options), fresh, views)
    catalogs = catalogs_of(spark)
    old = catalogs.attached.get(name)
    catalogs.attached[name] = attached
    if catalogs.current is not None and catalogs.current[0] is old:
        catalogs.current = None
    return AttachedCatalog(spark, attached)


def _catalog(
    given: str | Catalog | Mapping[str, str], storage_options: Mapping[str, str] | None
) -> Catalog:
    if isinstance(given, Mapping):
        return NamedTables(cast("Mapping[str | TableName, str]", given))
    if isinstance(given, str):
        return DirectoryCatalog(given, storage_options)
    if storage_options is not None:
        message = "storage_options are for a folder; a catalog has its own"
        raise ArgumentError(message)
    return given
