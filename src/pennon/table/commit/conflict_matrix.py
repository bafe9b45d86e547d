"""The judgement whether a transaction may be committed on top of one that it did not know of.

The rules are a table: a row for each operation that this writer wants to commit, a column for each
that another may have committed since this one read the table.  `LETTERS`, at the end, says what a
letter means.  Of some, the two operations have to be looked at: whether they touch the same fragments,
fields, keys or names.

An operation that is not in the table, on either side, is incompatible, and so is one whose
transaction nobody kept: never guess.  Where a rule is stricter than Lance's, that is on purpose: a
writer may always be stricter.

docs/conflicts.md is made from this table.

Source: conflict_resolver.rs of the Lance repository; measured against pylance 14.0.2 (ledger F-364,
F-48, F-53).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from pennon.core.units import FieldId, FragmentId
from pennon.table.indices import FRAGMENT_REUSE
from pennon.table.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
    operation_name,
)

MATRIX = """
                   App  Del  Ovw  Idx  Rew  Mrg  Rst  Rsv  Upd  Prj  Cfg  DRp  Bas  Cln  Mem
append              .    .    X    .    .    p    X    .    .    p    .    .    .    .    X
delete              .    d    X    .    o    r    X    .    d    .    .    o    .    .    X
overwrite           .    .    kr   .    .    .    .    .    .    .    k    .    .    .    X
create_index        .    .    X    n    o1   g    X    .    u    g    .    o2   .    .    X
rewrite             .    o    X    o1   o    r    X    .    o    .    .    o    .    .    X
merge               r    r    X    .    r    r    X    .    r    X    m    r    .    .    X
restore             .    .    .    .    .    .    .    .    .    .    .    .    .    .    X
reserve_fragments   .    .    X    .    .    .    X    .    .    .    .    .    .    .    X
update              .    d    X    .    o    r    X    .    d    p    .    o    .    .    X
project             p    .    X    .    .    r    X    .    p    r    m    p    .    .    X
update_config       .    .    k2   .    .    .    k2   .    .    .    k2   .    .    .    X
data_replacement    .    o    X    o2   o    r    X    .    o    p    .    o3   .    .    X
update_bases        .    .    .    .    .    .    .    .    .    .    .    .    b    .    X
"""
"""A line for each operation of ours, a column for each of the other writer."""

COLUMNS: Mapping[str, str] = {
    "App": "append",
    "Del": "delete",
    "Ovw": "overwrite",
    "Idx": "create_index",
    "Rew": "rewrite",
    "Mrg": "merge",
    "Rst": "restore",
    "Rsv": "reserve_fragments",
    "Upd": "update",
    "Prj": "project",
    "Cfg": "update_config",
    "DRp": "data_replacement",
    "Bas": "update_bases",
    "Cln": "clone",
    "Mem": "update_mem_wal_state",
}


def _read_matrix(text: str) -> dict[tuple[str, str], str]:
    header, *lines = (line.split() for line in text.strip().splitlines())
    return {
        (mine, COLUMNS[other]): letter
        for mine, *letters in lines
        for other, letter in zip(header, letters, strict=True)
    }


RULES = _read_matrix(MATRIX)
"""(our operation, the other's) → the letter of the rule."""


class Verdict(Enum):
    """The relation of two transactions: compatible, or the kind of conflict."""

    COMPATIBLE = "."
    REBASE = "d"
    RETRYABLE = "r"
    INCOMPATIBLE = "X"


def touched(operation: Operation) -> frozenset[FragmentId]:
    """Return the fragments that an operation changes or takes away."""
    match operation:
        case Delete():
            return frozenset((*(f.id for f in operation.updated), *operation.deleted_ids))
        case Update():
            return frozenset((*(f.id for f in operation.updated), *operation.removed_ids))
        case Rewrite():
            return frozenset(f.id for group in operation.groups for f in group.old)
        case DataReplacement():
            return frozenset(each.fragment_id for each in operation.replacements)
        case _:
            return frozenset()


def _when(condition: bool, verdict: Verdict) -> Verdict:
    return verdict if condition else Verdict.COMPATIBLE


def _same_fragment(mine: Operation, other: Operation) -> Verdict:
    return _when(bool(touched(mine) & touched(other)), Verdict.RETRYABLE)


def _same_rows(mine: Operation, other: Operation) -> Verdict:
    """Judge changes of rows of one fragment: two deletions can be united, other changes cannot."""
    shared = touched(mine) & touched(other)
    if not shared:
        return Verdict.COMPATIBLE
    whole = _whole_fragments(mine) | _whole_fragments(other)
    return Verdict.RETRYABLE if shared & whole else Verdict.REBASE


def _whole_fragments(operation: Operation) -> frozenset[FragmentId]:
    """Return the fragments that go, or whose columns are written anew."""
    match operation:
        case Delete():
            return frozenset(operation.deleted_ids)
        case Update(mode=UpdateMode.REWRITE_COLUMNS):
            return touched(operation)
        case Update():
            return frozenset(operation.removed_ids)
        case _:
            return frozenset()


def _index_meets_rewrite(mine: Operation, other: Operation) -> Verdict:
    index, rewrite = (mine, other) if isinstance(mine, CreateIndex) else (other, mine)
    if not isinstance(index, CreateIndex) or not isinstance(rewrite, Rewrite):
        return Verdict.INCOMPATIBLE
    if rewrite.deferred is not None:
        return Verdict.COMPATIBLE
    old = touched(rewrite)
    unclear = any(i.fragment_ids is None or i.fragment_ids & old for i in index.new)
    return _when(unclear, Verdict.RETRYABLE)


def _index_meets_replacement(mine: Operation, other: Operation) -> Verdict:
    index, new = (mine, other) if isinstance(mine, CreateIndex) else (other, mine)
    return _when(bool(_indexed(index) & _replaced(new)), Verdict.RETRYABLE)


def _index_meets_update(mine: Operation, other: Operation) -> Verdict:
    if not isinstance(mine, CreateIndex) or not isinstance(other, Update):
        return Verdict.INCOMPATIBLE
    fields, fragments = set(other.fields_modified), touched(other)
    stale = any(
        fields.intersection(index.field_ids)
        and (index.fragment_ids is None or index.fragment_ids & fragments)
        for index in mine.new
    )
    return _when(stale, Verdict.RETRYABLE)


def _index_meets_schema(mine: Operation, other: Operation) -> Verdict:
    if not isinstance(other, (Merge, Project)):
        return Verdict.INCOMPATIBLE
    kept = {field.id for field in other.schema.walk()}
    return _when(not _indexed(mine) <= kept, Verdict.RETRYABLE)


def _same_index(mine: Operation, other: Operation) -> Verdict:
    if not isinstance(mine, CreateIndex) or not isinstance(other, CreateIndex):
        return Verdict.INCOMPATIBLE
    names = [{index.name for index in (*it.new, *it.removed)} for it in (mine, other)]
    return _when(bool(names[0] & names[1]), Verdict.RETRYABLE)


def _indexed(operation: Operation) -> frozenset[FieldId]:
    if not isinstance(operation, CreateIndex):
        return frozenset()
    usual = (index for index in operation.new if index.name != FRAGMENT_REUSE)
    return frozenset(field for index in usual for field in index.field_ids)


def _replaced(operation: Operation) -> frozenset[FieldId]:
    if not isinstance(operation, DataReplacement):
        return frozenset()
    return frozenset(field for it in operation.replacements for field in it.file.field_ids)


def _same_columns(mine: Operation, other: Operation) -> Verdict:
    fragments = touched(mine) & touched(other)
    fields = _replaced(mine) & _replaced(other)
    return _when(bool(fragments and fields), Verdict.RETRYABLE)


def _same_key(mine: Operation, other: Operation) -> Verdict:
    return _when(bool(config_keys(mine) & config_keys(other)), Verdict.INCOMPATIBLE)


def _same_key_or_again(mine: Operation, other: Operation) -> Verdict:
    same = _same_key(mine, other) is Verdict.INCOMPATIBLE
    return Verdict.INCOMPATIBLE if same else Verdict.RETRYABLE


def _same_metadata(mine: Operation, other: Operation) -> Verdict:
    if not isinstance(mine, UpdateConfig):
        return Verdict.INCOMPATIBLE
    if isinstance(other, UpdateConfig):
        both = mine.schema_metadata is not None and other.schema_metadata is not None
        tables = mine.table_metadata, other.table_metadata
        clash = (
            both
            or bool(mine.fields.keys() & other.fields.keys())
            or bool(_keys(tables[0]) & _keys(tables[1]))
        )
    else:
        clash = mine.schema_metadata is not None or bool(mine.fields)
    return Verdict.INCOMPATIBLE if clash else _same_key(mine, other)


def _schema_meets_metadata(mine: Operation, other: Operation) -> Verdict:
    """A new schema brings the metadata of fields, and a merge that of the schema."""
    if not isinstance(other, UpdateConfig):
        return Verdict.INCOMPATIBLE
    schema = isinstance(mine, Merge) and other.schema_metadata is not None
    return _when(schema or bool(other.fields), Verdict.RETRYABLE)


def _schema_meets_rows(mine: Operation, other: Operation) -> Verdict:
    """Rows were written for one schema, and another came, or comes, meanwhile."""
    schema, rows = (mine, other) if isinstance(mine, (Merge, Project)) else (other, mine)
    if not isinstance(schema, (Merge, Project)):
        return Verdict.INCOMPATIBLE
    fields = list(schema.schema.walk())
    never_null = not schema.preserves_nullability and any(not field.nullable for field in fields)
    lost = _written(rows) - {field.id for field in fields} if isinstance(schema, Merge) else ()
    return _when(never_null or bool(lost), Verdict.RETRYABLE)


def _written(operation: Operation) -> frozenset[FieldId]:
    """Return the fields that get new values from an operation."""
    match operation:
        case Append(fragments=fragments) | Update(new=fragments):
            files = (file for fragment in fragments for file in fragment.files)
            return frozenset(number for file in files for number in file.field_ids)
        case _:
            return _replaced(operation)


def _same_base(mine: Operation, other: Operation) -> Verdict:
    if not isinstance(mine, UpdateBases) or not isinstance(other, UpdateBases):
        return Verdict.INCOMPATIBLE
    clash = any(
        a.path == b.path or (a.name is not None and a.name == b.name) or a.id == b.id != 0
        for a in mine.new_bases
        for b in other.new_bases
    )
    return _when(clash, Verdict.INCOMPATIBLE)


def config_keys(operation: Operation) -> frozenset[str]:
    """Return the keys of the table's config that an operation sets or deletes."""
    if isinstance(operation, Overwrite):
        return frozenset(operation.config_upserts)
    if isinstance(operation, UpdateConfig):
        return _keys(operation.config)
    return frozenset()


def _keys(update: MapUpdate | None) -> frozenset[str]:
    return frozenset() if update is None else frozenset(update.entries)


def _always(verdict: Verdict) -> Callable[[Operation, Operation], Verdict]:
    return lambda _mine, _other: verdict


LETTERS: Mapping[str, tuple[str, Callable[[Operation, Operation], Verdict]]] = {
    ".": ("compatible: both make sense, one after the other", _always(Verdict.COMPATIBLE)),
    "r": (
        "retryable: to do the whole operation again on the newest version can succeed",
        _always(Verdict.RETRYABLE),
    ),
    "X": ("incompatible: the operation makes no sense any more", _always(Verdict.INCOMPATIBLE)),
    "d": (
        (
            "of a fragment that both change, the deleted rows are united; retryable where they meet, "
            "where one of the two took the whole fragment away or wrote its columns anew, and where "
            "nothing tells any more which rows this writer deleted"
        ),
        _same_rows,
    ),
    "o": ("retryable where both change or take away the same fragment", _same_fragment),
    "o1": (
        (
            "retryable where the index covers a fragment that was rewritten, or does not say what it "
            "covers, unless the rewrite leaves indices as they are and says where the rows are"
        ),
        _index_meets_rewrite,
    ),
    "o2": ("retryable where the index is on a field that was replaced", _index_meets_replacement),
    "o3": ("retryable where both replace the same field of the same fragment", _same_columns),
    "u": (
        (
            "retryable where the update wrote an indexed column anew in a fragment that the index "
            "covers"
        ),
        _index_meets_update,
    ),
    "g": ("retryable where the new schema lacks the field of an index", _index_meets_schema),
    "n": ("retryable where both make or drop an index of the same name", _same_index),
    "k": ("incompatible where both set or delete the same key of the config", _same_key),
    "kr": (
        "incompatible where both set the same key of the config, else retryable",
        _same_key_or_again,
    ),
    "k2": (
        (
            "incompatible where both change the same key of the config or of the table's metadata, or "
            "both the schema's metadata, or that of one field; against an overwrite or a restore, where the "
            "metadata of the schema or of a field is changed at all"
        ),
        _same_metadata,
    ),
    "p": (
        (
            "retryable where the new schema has a field that is never NULL, unless it promises to "
            "change nothing in that, and, of a merge, where it lacks a field of the new rows"
        ),
        _schema_meets_rows,
    ),
    "m": (
        (
            "retryable where the other changed the metadata of a field, or of the schema if this is a "
            "merge"
        ),
        _schema_meets_metadata,
    ),
    "b": ("incompatible where both add a base path of the same id, name or path", _same_base),
}
"""What a letter of the table means, in words and as a function of both operations."""


def judge(mine: Operation, other: Operation) -> Verdict:
    """Say whether ``mine`` can follow ``other``, which was committed after our read version."""
    letter = RULES.get((operation_name(mine), operation_name(other)), "X")
    return LETTERS[letter][1](mine, other)
