"""Statements about what stands beside a table's rows: indices, tags and branches."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import types as st

from pennon.errors import ArgumentError, RefExistsError
from pennon.ops.versions.branches import branches_of
from pennon.ops.versions.refs import Reference, tags_of
from pennon.scan.read.tasks import live_row_count
from pennon.schema.project import walk_paths
from pennon.spark.statements.commands import Changed, Command, refused, text_frame
from pennon.spark.statements.tables import Target, read_target
from pennon.spark.statements.words import Cursor, Statement
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import kind_of, parse_indices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot
    from pennon.spark.table.lance_table import LanceTable

Alter: TypeAlias = "Callable[[Changed, Cursor], Command]"

_KINDS: Final = {"FTS": "INVERTED", "ZONE_MAP": "ZONEMAP", "BLOOM_FILTER": "BLOOMFILTER"}
_UNUSED: Final = frozenset({"num_segments", "build_mode", "rows_per_range", "fts_version"})
"""Options of lance-spark that say how its tasks are cut; here the session says that."""
_PARAMETERS: Final = {"distance_type": "metric", "zone_size": "page_size"}
_INDICES: Final = st.StructType(
    [
        st.StructField("name", st.StringType()),
        st.StructField("fields", st.ArrayType(st.StringType())),
        st.StructField("index_type", st.StringType()),
        st.StructField("num_indexed_fragments", st.LongType()),
        st.StructField("num_indexed_rows", st.LongType()),
        st.StructField("num_unindexed_fragments", st.LongType()),
        st.StructField("num_unindexed_rows", st.LongType()),
    ]
)


# --- indices ---------------------------------------------------------------------------------------


def _create_index(changed: Changed, cursor: Cursor) -> Command:
    """Read ``CREATE INDEX [IF NOT EXISTS] name USING kind (column) [WITH (...)]`` behind ALTER TABLE."""
    exists_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    return _index_of(changed, cursor, name, exists_ok=exists_ok)


def create_index(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE INDEX [IF NOT EXISTS] name ON [TABLE] table [USING kind] (column) [OPTIONS (...)]``."""
    cursor = Cursor(statement)
    cursor.needs("CREATE", "INDEX")
    exists_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    target = _on(spark, cursor)
    if target is None:
        return None
    return _index_of(Changed(spark, statement, target), cursor, name, exists_ok=exists_ok)


def _on(spark: SparkSession, cursor: Cursor) -> Target | None:
    cursor.needs("ON")
    cursor.takes("TABLE")
    return read_target(spark, cursor)


def _index_of(changed: Changed, cursor: Cursor, name: str, *, exists_ok: bool) -> Command:
    kind = cursor.identifier() if cursor.takes("USING") else "BTREE"
    columns = cursor.names()
    if len(columns) != 1:
        raise changed.refused(
            f"an index is of one column, not of {len(columns)}; make one index for each"
        )
    if not kind.isidentifier():
        raise cursor.wrong("the kind of the index")
    options: dict[str, str] = {}
    while not cursor.is_done:
        if not cursor.takes_any("WITH", "OPTIONS", "PROPERTIES"):
            raise cursor.wrong("WITH (...) or OPTIONS (...)")
        options |= cursor.properties()
    asked = _KINDS.get(kind.upper(), kind.upper())
    parameters = {
        _PARAMETERS.get(key.lower(), key.lower()): _parameter(value)
        for key, value in options.items()
        if key.lower() not in _UNUSED
    }
    if asked == "BTREE":
        parameters.pop("page_size", None)  # the number of rows of a page is the writer's own

    def run() -> DataFrame:
        table = changed.table
        known = {each.name for each in parse_indices(table.snapshot().manifest.indices)}
        if not (exists_ok and name in known):
            table.createIndex(columns[0], asked, name, **parameters)
        indexed = _indexed_fragments(table.snapshot(), name)
        row = [(indexed, name)]
        return changed.spark.createDataFrame(row, "fragments_indexed bigint, index_name string")

    return changed.command(
        "CREATE INDEX", f"createIndex({columns[0]!r}, {asked!r}, {name!r}, {parameters})", run
    )


def _parameter(text: str) -> Any:
    """Return the value of an option: true or false, a number, or text."""
    lower = text.lower()
    if lower in ("true", "false"):
        return lower == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _drop_index(changed: Changed, cursor: Cursor) -> Command:
    missing_ok = cursor.takes("IF", "EXISTS")
    name = cursor.identifier()
    cursor.ends()
    return _dropped_index(changed, name, missing_ok=missing_ok)


def drop_index(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DROP INDEX [IF EXISTS] name ON [TABLE] table``."""
    cursor = Cursor(statement)
    cursor.needs("DROP", "INDEX")
    missing_ok = cursor.takes("IF", "EXISTS")
    name = cursor.identifier()
    target = _on(spark, cursor)
    if target is None:
        return None
    cursor.ends()
    return _dropped_index(Changed(spark, statement, target), name, missing_ok=missing_ok)


def _dropped_index(changed: Changed, name: str, *, missing_ok: bool) -> Command:
    def run() -> DataFrame:
        table = changed.table
        known = {each.name for each in parse_indices(table.snapshot().manifest.indices)}
        if name in known or not missing_ok:
            table.dropIndex(name)
        return text_frame(changed.spark, ["index_name", "status"], [(name, "dropped")])

    return changed.command("DROP INDEX", f"dropIndex({name!r})", run)


def _optimize_index(changed: Changed, cursor: Cursor) -> Command:
    return _updated_index(changed, cursor, "OPTIMIZE INDEX")


def _refresh_index(changed: Changed, cursor: Cursor) -> Command:
    return _updated_index(changed, cursor, "REFRESH INDEX")


def _updated_index(changed: Changed, cursor: Cursor, kind: str) -> Command:
    """Read ``name [WITH (num_indices_to_merge = 0, retrain = false)]``."""
    name = cursor.identifier()
    options = cursor.properties() if cursor.takes("WITH") else {}
    cursor.ends()
    merged = options.get("num_indices_to_merge")
    retrain = options.get("retrain", "false").lower() == "true"

    def run() -> DataFrame:
        table = changed.table
        before = _index_state(table.snapshot(), name)
        number = None if merged is None else int(merged)
        table.optimizeIndices(name, numIndicesToMerge=number, retrain=retrain)
        after = _index_state(table.snapshot(), name)
        indexed = max(after[0] - before[0], 0)
        if kind == "REFRESH INDEX":
            row: tuple[Any, ...] = (indexed, max(after[1] - before[1], 0), name)
            schema = "fragments_indexed bigint, segments_added bigint, index_name string"
        else:
            row = (name, indexed, before[1], after[1])
            schema = "index_name string, fragments_indexed bigint, segments_before bigint, segments_after bigint"
        return changed.spark.createDataFrame([row], schema)

    return changed.command(kind, f"optimizeIndices({name!r})", run)


def _index_state(snapshot: Snapshot, name: str) -> tuple[int, int]:
    """Return how many fragments an index covers, and how many segments it has.  Raises ArgumentError for an unknown one."""
    found = [each for each in parse_indices(snapshot.manifest.indices) if each.name == name]
    if not found:
        known = sorted(
            {each.name for each in parse_indices(snapshot.manifest.indices)} - set(SYSTEM)
        )
        message = f"the table has no index {name!r}; it has {', '.join(known) or 'none'}"
        raise ArgumentError(message)
    return _indexed_fragments(snapshot, name), len(found)


def _indexed_fragments(snapshot: Snapshot, name: str) -> int:
    known = {each.id for each in snapshot.manifest.fragments}
    found = [each for each in parse_indices(snapshot.manifest.indices) if each.name == name]
    return len(known & {number for each in found for number in each.fragment_ids or ()})


def show_indices(changed: Changed) -> DataFrame:
    """Return a row for each index: columns, kind, and what it covers, as lance-spark does."""
    snapshot = changed.table.snapshot()
    rows = {each.id: live_row_count(snapshot, each) for each in snapshot.manifest.fragments}
    names = {each.id: path for path, each in walk_paths(snapshot.manifest.schema)}
    by_name: dict[str, list[Index]] = {}
    for index in parse_indices(snapshot.manifest.indices):
        if index.name not in SYSTEM:
            by_name.setdefault(index.name, []).append(index)
    found = []
    for name, segments in sorted(by_name.items()):
        covered = {number for each in segments for number in each.fragment_ids or ()} & rows.keys()
        indexed = sum(rows[number] for number in covered)
        columns = [names.get(number, "") for number in segments[0].field_ids]
        kind = kind_of(segments[0])[1].lower()
        rest = len(rows) - len(covered), sum(rows.values()) - indexed
        found.append((name, columns, kind, len(covered), indexed, *rest))
    return changed.spark.createDataFrame(found, _INDICES)


# --- tags and branches -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewRef:
    """A tag or a branch that a statement makes: its name, what it names, and whether one of its name may be there."""

    name: str
    reference: Reference
    exists_ok: bool = False
    replaces: bool = False


def _new_ref(cursor: Cursor, *, replaces: bool = False) -> NewRef:
    """Read ``[IF NOT EXISTS] name [AS OF VERSION 3 | AS OF BRANCH b [VERSION 3] | AS OF TAG t]``."""
    exists_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.identifier_or_text()
    return NewRef(name, _reference(cursor), exists_ok, replaces)


def _reference(cursor: Cursor) -> Reference:
    found: Reference = None
    if cursor.takes("VERSION", "AS", "OF"):
        found = cursor.number()
    elif cursor.takes("AS", "OF"):
        if cursor.takes("VERSION"):
            found = cursor.number()
        elif cursor.takes("TAG"):
            found = cursor.identifier_or_text()
        elif cursor.takes("BRANCH"):
            branch = cursor.identifier_or_text()
            found = (branch, cursor.number() if cursor.takes("VERSION") else None)
        else:
            raise cursor.wrong("VERSION, TAG or BRANCH")
    if cursor.peek() in ("RETAIN", "WITH"):
        raise refused(
            cursor.statement, "tags and branches of Lance tables stay until they are dropped"
        )
    cursor.ends()
    return found


def _create_tag(changed: Changed, cursor: Cursor) -> Command:
    return _made_tag(changed, _new_ref(cursor))


def _replace_tag(changed: Changed, cursor: Cursor) -> Command:
    return _made_tag(changed, _new_ref(cursor, replaces=True))


def _made_tag(changed: Changed, asked: NewRef) -> Command:
    def run() -> DataFrame:
        table = changed.table
        is_there = asked.name in tags_of(table.snapshot())
        if is_there and asked.replaces:
            table.tags.update(asked.name, asked.reference)
        elif not (is_there and asked.exists_ok):
            table.tags.create(asked.name, asked.reference)
        return text_frame(changed.spark, ["name"], [(asked.name,)])

    return changed.command("CREATE TAG", f"tags.create({asked.name!r}, {asked.reference!r})", run)


def _create_branch(changed: Changed, cursor: Cursor) -> Command:
    return _made_branch(changed, _new_ref(cursor))


def _replace_branch(changed: Changed, cursor: Cursor) -> Command:
    return _made_branch(changed, _new_ref(cursor, replaces=True))


def _made_branch(changed: Changed, asked: NewRef) -> Command:
    def run() -> DataFrame:
        table = changed.table
        is_there = asked.name in branches_of(table.snapshot())
        if is_there and asked.replaces:
            message = (
                f"there is a branch {asked.name!r}: a branch has its own versions, so drop it first"
            )
            raise RefExistsError(message)
        if not (is_there and asked.exists_ok):
            table.branches.create(asked.name, asked.reference)
        return text_frame(changed.spark, ["name"], [(asked.name,)])

    return changed.command(
        "CREATE BRANCH", f"branches.create({asked.name!r}, {asked.reference!r})", run
    )


def _drop_tag(changed: Changed, cursor: Cursor) -> Command:
    return _dropped(changed, cursor, "TAG", tags_of, lambda table, name: table.tags.delete(name))


def _drop_branch(changed: Changed, cursor: Cursor) -> Command:
    return _dropped(
        changed, cursor, "BRANCH", branches_of, lambda table, name: table.branches.delete(name)
    )


def _dropped(
    changed: Changed,
    cursor: Cursor,
    kind: str,
    names_of: Callable[[Snapshot], Container[str]],
    delete: Callable[[LanceTable, str], None],
) -> Command:
    """Read ``[IF EXISTS] name`` of a tag or a branch, by its kind, that is dropped."""
    missing_ok = cursor.takes("IF", "EXISTS")
    name = cursor.identifier_or_text()
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table
        if not (missing_ok and name not in names_of(table.snapshot())):
            delete(table, name)
        return text_frame(changed.spark, ["name"], [(name,)])

    plural = {"TAG": "tags", "BRANCH": "branches"}[kind]
    return changed.command(f"DROP {kind}", f"{plural}.delete({name!r})", run)


def create_ref(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE TAG | BRANCH [IF NOT EXISTS] name ON [TABLE] table [AS OF ...]``."""
    cursor = Cursor(statement)
    cursor.needs("CREATE")
    kind = cursor.takes_any("TAG", "BRANCH")
    exists_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.identifier_or_text()
    target = _on(spark, cursor)
    if target is None:
        return None
    asked = NewRef(name, _reference(cursor), exists_ok)
    changed = Changed(spark, statement, target)
    return _made_tag(changed, asked) if kind == "TAG" else _made_branch(changed, asked)


def drop_ref(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DROP TAG | BRANCH [IF EXISTS] name ON [TABLE] table``."""
    cursor = Cursor(statement)
    cursor.needs("DROP")
    kind = cursor.takes_any("TAG", "BRANCH")
    missing_ok = cursor.takes("IF", "EXISTS")
    name = cursor.identifier_or_text()
    target = _on(spark, cursor)
    if target is None:
        return None
    cursor.ends()
    changed = Changed(spark, statement, target)
    shown = Statement.of(f"{'IF EXISTS ' if missing_ok else ''}`{name.replace('`', '``')}`")
    return (_drop_tag if kind == "TAG" else _drop_branch)(changed, Cursor(shown))


ALTER_REFS: Final[Mapping[tuple[str, ...], Alter]] = {
    ("CREATE", "INDEX"): _create_index,
    ("ADD", "INDEX"): _create_index,
    ("DROP", "INDEX"): _drop_index,
    ("OPTIMIZE", "INDEX"): _optimize_index,
    ("REFRESH", "INDEX"): _refresh_index,
    ("CREATE", "TAG"): _create_tag,
    ("CREATE", "OR", "REPLACE", "TAG"): _replace_tag,
    ("REPLACE", "TAG"): _replace_tag,
    ("CREATE", "BRANCH"): _create_branch,
    ("CREATE", "OR", "REPLACE", "BRANCH"): _replace_branch,
    ("DROP", "TAG"): _drop_tag,
    ("DROP", "BRANCH"): _drop_branch,
}
