"""The table of a random program as plain Python: columns, rows, and the effect of each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pyarrow as pa

from tests.property.programs.filters import Tree, columns_of, evaluate, holds, names_in
from tests.property.programs.kinds import CASTS, INTEGERS, KINDS
from tests.property.programs.steps import Step

Cells = dict[int, Any]
"""Values of a row by the numbers of columns, which renaming does not change."""


class NotApplicableError(Exception):
    """A step makes no sense for the table as it is: a program that shrinks leaves it out."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a cast gives it another number."""

    number: int
    name: str
    kind: str
    nullable: bool
    origin: int
    """The number that it was made with."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a column."""

    name: str
    column: int
    """The number of the column."""
    kind: str
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A version of the table."""

    columns: tuple[Column, ...]
    rows: dict[int, Cells]
    """By numbers of the model's own, which a row keeps when it is updated."""
    ordered: bool = True
    """Whether scans find the rows in this order."""
    ids: dict[int, int] = field(default_factory=dict)
    """What is known of row ids, where they are stable."""
    indices: tuple[Index, ...] = ()

    def column(self, name: str) -> Column:
        """Return a column by name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise NotApplicableError(name)

    def named(self, row: Cells) -> dict[str, Any]:
        """Return a row by the names of columns."""
        return {column.name: row.get(column.number) for column in self.columns}

    def seen(self) -> dict[int, list[tuple[str, int]]]:
        """Return the rows by key: what each looks like, and its number."""
        found: dict[int, list[tuple[str, int]]] = {}
        for number, row in self.rows.items():
            named = self.named(row)
            found.setdefault(named["k"], []).append((text_of(named), number))
        return found

    def names(self) -> list[tuple[str, str]]:
        """Return names and kinds."""
        return [(column.name, column.kind) for column in self.columns]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a step does to the rows that it sees."""

    gone: frozenset[int] = frozenset()
    changed: dict[int, Cells] = field(default_factory=dict)
    new: tuple[Cells, ...] = ()
    counts: dict[str, int] | None = None
    refused: bool = False
    moves: bool = False
    """Whether rows may stand elsewhere afterwards."""


def text_of(row: dict[str, Any]) -> str:
    """Return a row as text: equal for equal rows, whatever class their time zones are of."""
    return repr({name: _plain(value) for name, value in row.items()})


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


class Numbers:
    """Numbers for rows and columns."""

    def __init__(self) -> None:
        self.rows: Iterator[int] = count()
        self.columns: Iterator[int] = count()


def made_state(step: Step, numbers: Numbers) -> State:
    """Return the table that a step makes anew."""
    columns = []
    for name, kind, nullable in step.args["columns"]:
        number = next(numbers.columns)
        columns.append(Column(number, name, kind, nullable, number))
    order = [column.number for column in columns]
    rows = {next(numbers.rows): dict(zip(order, row, strict=True)) for row in step.args["rows"]}
    return State(tuple(columns), rows)


# --- rows -----------------------------------------------------------------------------------------


def effect(step: Step, state: State, version: str) -> Effect:
    """Return what a step does to rows."""
    match step.op:
        case "append":
            return Effect(new=tuple(_cells(step, state, version, inserts=True)))
        case "delete":
            gone = frozenset(_found(step.args["where"], state))
            return Effect(gone=gone, counts={"num_deleted_rows": len(gone)})
        case "update":
            return _update(step, state)
        case "merge":
            return _merge(step, state, version)
    raise ValueError(step.op)


def _found(tree: Any, state: State) -> list[int]:
    """Return the numbers of the rows for which a filter holds."""
    _check_kinds(tree, state)
    return [n for n, row in state.rows.items() if holds(tree, state.named(row))]


def _check_kinds(tree: Any, state: State) -> None:
    """Raise unless the columns of a filter are there, of their kinds or cast from them."""
    for name, kind in columns_of(tree):
        found = state.column(name).kind
        if kind and found not in {kind, *CASTS.get(kind, ())}:
            raise NotApplicableError(name)


def _cells(step: Step, state: State, version: str, *, inserts: bool) -> list[Cells]:
    """Return the rows of a step's data by the table's columns."""
    order = []
    for name, kind, _ in step.args["columns"]:
        if state.column(name).kind != kind:
            raise NotApplicableError(name)
        order.append(state.column(name))
    for column in state.columns:
        may_lack = column.nullable and KINDS[column.kind].holds_null(version)
        if inserts and column not in order and not may_lack:
            raise NotApplicableError(column.name)
    for column, *values in zip(order, *step.args["rows"], strict=True):
        if not column.nullable and None in values:
            raise NotApplicableError(column.name)
    numbers = [column.number for column in order]
    return [dict(zip(numbers, row, strict=True)) for row in step.args["rows"]]


def _update(step: Step, state: State) -> Effect:
    where = step.args["where"]
    found = _found(("constant", True) if where is None else where, state)
    changed: dict[int, Cells] = {number: {} for number in found}
    for name, tree in step.args["values"].items():
        target = state.column(name)
        made = _kind_made(tree, state) or target.kind
        if found and target.kind not in {made, *CASTS.get(made, ())}:
            raise NotApplicableError(name)
        for number in found:
            value = _computed(tree, made, state.named(state.rows[number]))
            if value is None and not target.nullable:
                raise NotApplicableError(name)
            if not _in_range(value, target.kind):
                return Effect(refused=True)
            changed[number][target.number] = value
    return Effect(changed=changed, counts={"num_rows_updated": len(found)}, moves=bool(found))


def _kind_made(tree: Tree, state: State) -> str | None:
    """Return the kind of what an expression makes of the columns as they are, None of NULL."""
    kinds = [state.column(name).kind for name in names_in(tree)]
    match tree:
        case ("literal", _, None):
            return None
        case ("literal", kind, _):
            return str(kind)
        case ("text", _):
            return "string"
        case ("plus", name, _) if not _is_number(KINDS[kinds[0]].type):
            raise NotApplicableError(name)
    return kinds[0]


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _computed(tree: Tree, kind: str, row: dict[str, Any]) -> Any:
    """Return the value of an expression; a sum too large for its kind wraps around."""
    value = evaluate(tree, row)
    if tree[0] != "plus" or value is None or _in_range(value, kind):
        return value
    every = 1 << KINDS[kind].type.bit_width
    return (value + every // 2) % every - every // 2


def _in_range(value: Any, kind: str) -> bool:
    """Tell whether a value fits in a kind, other kinds than integers hold what is cast to them."""
    if value is None or kind not in INTEGERS:
        return True
    half = 1 << (KINDS[kind].type.bit_width - 1)
    return bool(-half <= value < half)


def _merge(step: Step, state: State, version: str) -> Effect:
    args = step.args
    key = state.column("k").number
    data = _cells(step, state, version, inserts=args["inserts"])
    by_key = {row[key]: row for row in data}
    known = {row[key] for row in state.rows.values()}
    matching = {n: by_key[row[key]] for n, row in state.rows.items() if row[key] in by_key}
    if args["matched"] == "fail" and matching:
        return Effect(refused=True)
    gone: set[int] = set()
    changed: dict[int, Cells] = {}
    if args["matched"] == "delete":
        gone = set(matching)
    elif args["matched"] == "update":
        side, tree = args["condition"] or (None, None)
        _check_condition(step, side, tree, state)
        for number, row in matching.items():
            judged = state.rows[number] if side == "target" else row
            if tree is None or holds(tree, state.named(judged)):
                changed[number] = row
    if args["deletes"] is not None:
        gone |= set(_found(args["deletes"], state)) - set(matching)
    new = [row for row in data if row[key] not in known] if args["inserts"] else []
    counts = {
        "num_inserted_rows": len(new),
        "num_updated_rows": len(changed),
        "num_deleted_rows": len(gone),
    }
    return Effect(frozenset(gone), changed, tuple(new), counts, moves=bool(changed or new))


def keys_alone(step: Step) -> Step:
    """Return a merge that writes no rows with its keys alone, any other step as it is.

    What else such a merge brings is of no matter, so its columns need not be the table's any more.
    """
    args = step.args
    if step.op != "merge" or args["inserts"] or args["matched"] == "update":
        return step
    at = [name for name, _, _ in args["columns"]].index("k")
    rows = tuple((row[at],) for row in args["rows"])
    return replace(step, args={**args, "columns": (args["columns"][at],), "rows": rows})


def _check_condition(step: Step, side: str | None, tree: Any, state: State) -> None:
    """Raise unless the columns of a condition are there, on its side."""
    given = {name for name, _, _ in step.args["columns"]}
    _check_kinds(tree or ("constant", True), state)
    for name, _ in columns_of(tree or ("constant", True)):
        if side == "source" and name not in given:
            raise NotApplicableError(name)


def follow(state: State, effect: Effect, numbers: Numbers) -> State:
    """Return a version after an effect."""
    mine = {column.number for column in state.columns}
    rows = {
        number: {**row, **{c: v for c, v in effect.changed.get(number, {}).items() if c in mine}}
        for number, row in state.rows.items()
        if number not in effect.gone
    }
    for row in effect.new:
        rows[next(numbers.rows)] = {c: v for c, v in row.items() if c in mine}
    return replace(state, rows=rows, ordered=state.ordered and not effect.moves)


def can_follow(base: State, head: State, effect: Effect) -> bool:
    """Tell whether what was decided on an older version makes sense on the newest one."""
    common = {c.number for c in base.columns} & {c.number for c in head.columns}
    for number in {*effect.gone, *effect.changed}:
        if number not in head.rows:
            return False
        then, now = base.rows[number], head.rows[number]
        if any(then.get(c) != now.get(c) for c in common):
            return False
    was_cast = {c.origin for c in base.columns if c.number not in common}
    is_cast = {c.origin for c in head.columns if c.number not in common}
    return not ((effect.new or effect.changed) and was_cast & is_cast)


# --- columns --------------------------------------------------------------------------------------


def evolve(step: Step, state: State, numbers: Numbers) -> State:
    """Return a version after a step that changes columns; indices of those that are gone go, too."""
    made = _evolved(step, state, numbers)
    left = {column.number for column in made.columns}
    return replace(made, indices=tuple(i for i in made.indices if i.column in left))


def _evolved(step: Step, state: State, numbers: Numbers) -> State:
    args = step.args
    match step.op:
        case "add_sql":
            return _add_sql(state, args["values"], numbers)
        case "add_data":
            return _add_data(state, args, numbers)
        case "add_nulls":
            nothing = [None] * len(state.rows)
            return _with_column(state, args["name"], args["kind"], nothing, numbers)
        case "drop":
            gone = {state.column(name) for name in args["columns"]}
            return replace(state, columns=tuple(c for c in state.columns if c not in gone))
        case "rename":
            return _rename(state, args["names"])
        case "nullable":
            return _with_nullable(state, state.column(args["name"]), args["nullable"])
        case "cast":
            return _cast(state, state.column(args["name"]), args["kind"], numbers)
    raise ValueError(step.op)


def _add_sql(state: State, values: dict[str, Any], numbers: Numbers) -> State:
    old = state
    for name, (tree, kind) in values.items():
        for other in names_in(tree):
            if old.column(other).kind != kind and tree[0] == "column":
                raise NotApplicableError(name)
        made = [evaluate(tree, old.named(row)) for row in old.rows.values()]
        state = _with_column(state, name, kind, made, numbers)
    return state


def _add_data(state: State, args: dict[str, Any], numbers: Numbers) -> State:
    if len(args["rows"]) != len(state.rows):
        raise NotApplicableError("rows")
    for at, (name, kind, _) in enumerate(args["columns"]):
        values = [row[at] for row in args["rows"]]
        state = _with_column(state, name, kind, values, numbers)
    return state


def _rename(state: State, names: dict[str, str]) -> State:
    for name in names:
        state.column(name)
    columns = [replace(c, name=names.get(c.name, c.name)) for c in state.columns]
    return _checked(replace(state, columns=tuple(columns)))


def _checked(state: State) -> State:
    if len({column.name for column in state.columns}) < len(state.columns):
        raise NotApplicableError("two columns of one name")
    return state


def _with_column(state: State, name: str, kind: str, values: list[Any], numbers: Numbers) -> State:
    number = next(numbers.columns)
    column = Column(number, name, kind, nullable=True, origin=number)
    rows = {
        n: {**row, number: value}
        for (n, row), value in zip(state.rows.items(), values, strict=True)
    }
    return _checked(replace(state, columns=(*state.columns, column), rows=rows))


def _with_nullable(state: State, old: Column, nullable: bool) -> State:
    if not nullable and any(row.get(old.number) is None for row in state.rows.values()):
        raise NotApplicableError(old.name)
    return _replaced(state, old, replace(old, nullable=nullable))


def _cast(state: State, old: Column, kind: str, numbers: Numbers) -> State:
    if kind not in CASTS.get(old.kind, ()):
        raise NotApplicableError(old.name)
    new = replace(old, kind=kind, number=next(numbers.columns))
    rows = {n: {**row, new.number: row.get(old.number)} for n, row in state.rows.items()}
    if not all(_in_range(row[new.number], kind) for row in rows.values()):
        raise NotApplicableError(old.name)
    return _replaced(replace(state, rows=rows), old, new)


def _replaced(state: State, old: Column, new: Column) -> State:
    return replace(state, columns=tuple(new if c is old else c for c in state.columns))


# --- indices --------------------------------------------------------------------------------------


def with_index(step: Step, base: State, head: State) -> State:
    """Return a version after a step that makes an index of a column as an older version has it."""
    args = step.args
    column = base.column(args["column"])
    if column.kind != args["column_kind"]:
        raise NotApplicableError(column.name)
    same = [index for index in base.indices if index.name == args["name"]]
    if any(index.column != column.number for index in same) or (same and not args["replace"]):
        raise NotApplicableError(args["name"])
    if args["alone"] and any(
        _rivals(index, column, args["kind"]) for index in base.indices if index not in same
    ):
        raise NotApplicableError(args["name"])
    others = tuple(index for index in head.indices if index.name != args["name"])
    if _values(base, column) < args["fewest"] or column.number not in {
        other.number for other in head.columns
    }:
        raise NotApplicableError(column.name)
    made = Index(args["name"], column.number, args["kind"], tuple(args["parameters"].items()))
    return replace(head, indices=(*others, made))


def _rivals(index: Index, column: Column, kind: str) -> bool:
    return index.column == column.number and (index.kind == "INVERTED") == (kind == "INVERTED")


def _values(state: State, column: Column) -> int:
    return sum(row.get(column.number) is not None for row in state.rows.values())


def without_index(step: Step, base: State, head: State) -> State:
    """Return a version after a step that drops an index."""
    for state in (base, head):
        if step.args["name"] not in {index.name for index in state.indices}:
            raise NotApplicableError(step.args["name"])
    left = tuple(index for index in head.indices if index.name != step.args["name"])
    return replace(head, indices=left)
