"""Choosing columns by name: ``"a"``, ``"point.x"``, ``"tags.item.name"``, ``"`a.b`.c"``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from pennon.core.near_names import did_you_mean
from pennon.core.units import FieldId
from pennon.errors import ArgumentError
from pennon.schema.check import is_blob, is_packed
from pennon.schema.field import Field, Schema

_SHOWN = 30


def parse_path(column: str) -> tuple[str, ...]:
    """Return the names along a dotted path.

    A name in back-ticks may hold dots; a doubled back-tick in it is one back-tick.
    Raises ArgumentError for an empty path or name, or an open back-tick.
    """
    names = []
    position = 0
    while True:
        name, position = _parse_name(column, position)
        names.append(name)
        if position == len(column):
            return tuple(names)
        position += 1


def _parse_name(column: str, position: int) -> tuple[str, int]:
    """Return the name at ``position`` and the position of the dot or end behind it."""
    if not column.startswith("`", position):
        end = column.find(".", position)
        end = len(column) if end < 0 else end
        if end == position and column:
            raise _bad_path(column)
        return column[position:end], end
    letters: list[str] = []
    position += 1
    while position < len(column):
        if column.startswith("``", position):
            letters.append("`")
            position += 2
        elif column[position] == "`":
            return _closed("".join(letters), column, position + 1)
        else:
            letters.append(column[position])
            position += 1
    raise _bad_path(column)


def _closed(name: str, column: str, position: int) -> tuple[str, int]:
    """Check that a dot or the end follows a closing back-tick."""
    if position < len(column) and column[position] != ".":
        raise _bad_path(column)
    return name, position


def _bad_path(column: str) -> ArgumentError:
    return ArgumentError(f"{column!r} is not a column path such as a, a.b or `a.b`.c")


def resolve(schema: Schema, column: str) -> tuple[Field, ...]:
    """Return the fields along a path, from the top-level field to the one it names.

    Names are compared as they are written, case and all.  A top-level field whose name is the
    whole string wins over the path that it would parse to.
    Raises ArgumentError that lists the columns that exist.
    """
    for top in schema.fields:
        if top.name == column:
            return (top,)
    found: list[Field] = []
    level = schema.fields
    for name in parse_path(column):
        match = next((f for f in level if f.name == name), None)
        if match is None:
            raise _not_found(schema, column)
        found.append(match)
        level = match.children
    return tuple(found)


def _not_found(schema: Schema, column: str) -> ArgumentError:
    names = sorted_paths(schema)
    listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    there = f"; the columns are: {listed or '(none)'}"
    hint = did_you_mean(column, names)
    return ArgumentError(f"no column named {column!r}{there}{hint}")


def sorted_paths(schema: Schema) -> list[str]:
    """Return the path of every field, in the schema's order; see `walk_paths`."""
    return [path for path, _ in walk_paths(schema)]


def walk_paths(schema: Schema) -> Iterator[tuple[str, Field]]:
    """Yield every field with its path, in the schema's order.

    `resolve` reads each path back to its field: names that need back-ticks have them.
    """
    top_names = frozenset(schema.names)
    for names, field in walk_names(schema):
        yield _path_among(top_names, names), field


def walk_names(schema: Schema) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield every field with the names that lead to it, in the schema's order."""
    waiting: list[tuple[tuple[str, ...], Field]] = [
        ((top.name,), top) for top in reversed(schema.fields)
    ]
    while waiting:
        names, field = waiting.pop()
        yield names, field
        waiting.extend(((*names, each.name), each) for each in reversed(field.children))


def _path_among(top_names: Collection[str], names: tuple[str, ...]) -> str:
    """Return a path that does not look like the name of another top-level field, see `resolve`."""
    path = join_path(names)
    if path not in top_names:
        return path
    return names[0] if len(names) == 1 else ".".join(map(quoted, names))


def join_path(names: Iterable[str]) -> str:
    """Return names as a path that `parse_path` reads back: those with dots or back-ticks are quoted."""
    return ".".join(name if _is_plain(name) else quoted(name) for name in names)


def _is_plain(name: str) -> bool:
    return bool(name) and "." not in name and "`" not in name


def quoted(name: str) -> str:
    """Return a name as one step of a path, in back-ticks."""
    return "`" + name.replace("`", "``") + "`"


def find_path(schema: Schema, column: str) -> tuple[Field, ...]:
    """Return the fields along a path as `resolve` does, or those whose names differ in case alone.

    Raises ArgumentError if no column has that name, or only several that differ in case.
    """
    try:
        return resolve(schema, column)
    except ArgumentError:
        found = _in_any_case(schema, column)
    if not found:
        raise _not_found(schema, column)
    if len(found) > 1:
        paths = ", ".join(join_path(each.name for each in path) for path in found)
        message = f"no column named {column!r}; several are named so in another case: {paths}"
        raise ArgumentError(message)
    return found[0]


def _in_any_case(schema: Schema, column: str) -> list[tuple[Field, ...]]:
    """Return the paths whose names are those of a path, but for case; an equal name wins over the others."""
    found: list[tuple[Field, ...]] = [()]
    for name in parse_path(column):
        found = [
            (*path, each)
            for path in found
            for each in _named(path[-1].children if path else schema.fields, name)
        ]
    return found


def _named(fields: Sequence[Field], name: str) -> list[Field]:
    equal = [each for each in fields if each.name == name]
    return equal or [each for each in fields if each.name.lower() == name.lower()]


def project(schema: Schema, columns: Sequence[str]) -> Schema:
    """Return the schema of the named columns only; ids, types and metadata stay.

    A path into a struct or list keeps its ancestors, with only the named children, in the schema's
    order.  Top-level fields stand in the order in which they are first named.  The description of a
    blob is never cut.
    Raises ArgumentError for a name that does not exist.
    """
    chosen: dict[FieldId, list[tuple[Field, ...]]] = {}
    for column in columns:
        path = resolve(schema, column)
        chosen.setdefault(path[0].id, []).append(path)
    return Schema(tuple(_prune(paths, 0) for paths in chosen.values()), schema.metadata)


def _prune(paths: Sequence[tuple[Field, ...]], depth: int) -> Field:
    """Return the field at ``depth`` of all ``paths`` with only the children that they name."""
    whole = paths[0][depth]
    if any(len(path) == depth + 1 for path in paths) or is_blob(whole):
        return whole
    below: dict[FieldId, list[tuple[Field, ...]]] = {}
    for path in paths:
        below.setdefault(path[depth + 1].id, []).append(path)
    children = tuple(_prune(below[c.id], depth + 1) for c in whole.children if c.id in below)
    return replace(whole, children=children)


def is_leaf(field: Field) -> bool:
    """Return whether a field is stored as one: packed structs and descriptions of blobs are."""
    return not field.children or is_packed(field) or is_blob(field)


def leaves(field: Field) -> Iterator[FieldId]:
    """Yield the ids of the leaves of a field."""
    if is_leaf(field):
        yield field.id
        return
    for child in field.children:
        yield from leaves(child)


def held_part(field: Field, columns: Collection[FieldId]) -> Field | None:
    """Return what a file with these columns has of a field; None if that is nothing.

    Files of 2.1 and later list leaves only, so structs and lists are judged by their leaves.
    """
    if is_leaf(field):
        return field if field.id in columns else None
    found = [held_part(child, columns) for child in field.children]
    held = tuple(child for child in found if child is not None)
    if not held:
        return None
    return field if held == field.children else replace(field, children=held)
