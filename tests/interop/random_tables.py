"""Random tables from seeds: a seed always gives the same table, so a failure can be named by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.interop.equality import unsliced
from tests.interop.random_arrays import NULLS, random_array
from tests.interop.random_types import (
    VIEWS,
    has_dictionary,
    packable_type,
    random_type,
    refused_by_oldest,
)

SIZES = [0, 1, 2, 7, 8, 9, 63, 64, 65, 100, 1000, 1023, 1024, 1025, 4096, 10_000]
LARGE = 100_000
LARGE_EVERY = 40
PACKED = {"packed": "true"}


@dataclass(frozen=True, slots=True)
class Case:
    """One random table, and how to write it and what to read of it."""

    seed: int
    table: pa.Table
    max_rows_per_file: int
    batch_rows: int
    columns: list[str]
    slices: list[tuple[int, int]]
    indices: list[int]
    deep_columns: list[str] | None = None
    """Columns for a take, which may lead through lists as well as structs."""
    version: str = "2.0"
    page_bytes: int | None = None
    """How large a page of ours, or of the oracle's, may be; None for as large as it likes."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``write_dataset``."""
        return {"max_rows_per_file": self.max_rows_per_file, "data_storage_version": self.version}


def random_case(seed: int, *, for_oldest: bool = False) -> Case:
    """Return the case of a seed; ``for_oldest`` leaves out what pylance 0.19.2 cannot take."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    rows = LARGE if seed % LARGE_EVERY == LARGE_EVERY - 1 else rng.choice(SIZES)
    fields = _random_fields(rng, 2 if rows == LARGE else rng.randint(1, 6))
    table = _random_table(rng, numbers, fields, rows)
    if for_oldest:
        table = _for_oldest(table)
    return Case(
        seed,
        table,
        rng.choice([1 << 20, max(1, rows), max(1, rows // 3), max(1, rows // 7 + 1)]),
        rng.choice([1 << 20, max(1, rows // 2), max(1, rows // 5 + 1)]),
        random_columns(rng, table.schema),
        random_slices(rng, rows),
        [rng.randrange(rows) for _ in range(rng.choice([1, 3, 50, 500]))] if rows else [],
    )


def _for_oldest(table: pa.Table) -> pa.Table:
    """Return the columns that pylance 0.19.2 takes; without rows it misses dictionaries."""
    kept = [
        f.name
        for f in table.schema
        if refused_by_oldest(f.type) is None and (table.num_rows or not has_dictionary(f.type))
    ]
    return table.select(kept) if kept else pa.table({"only": np.arange(table.num_rows)})


def _random_fields(rng: Random, count: int) -> list[pa.Field]:
    """Return fields with and without metadata, one in eight a packed struct."""
    fields = []
    for number in range(count):
        if rng.random() < 0.125:
            fields.append(pa.field(f"c{number}", packable_type(rng), metadata=PACKED))
            continue
        metadata = {"note": f"of {number}"} if rng.random() < 0.3 else None
        fields.append(pa.field(f"c{number}", random_type(rng), metadata=metadata))
    return fields


def _random_table(
    rng: Random, numbers: np.random.Generator, fields: list[pa.Field], rows: int
) -> pa.Table:
    """Return a table of arrays that are whole, or slices of longer ones, in one or more chunks."""
    columns = []
    for f in fields:
        nulls = "none" if f.metadata == {b"packed": b"true"} else rng.choice(NULLS)
        before, after = (rng.choice([0, 1, 5, 8]), 3) if rng.random() < 0.4 else (0, 0)
        array = random_array(numbers, f.type, before + rows + after, nulls)
        columns.append(random_chunks(rng, array.slice(before, rows)))
    metadata = {"about": "random"} if rng.random() < 0.3 else None
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=metadata))


def random_chunks(rng: Random, array: pa.Array) -> pa.ChunkedArray:
    """Return the array as one chunk, or cut at random places, empty chunks among them."""
    if rng.random() < 0.5:
        return pa.chunked_array([array])
    cuts = sorted(rng.randint(0, len(array)) for _ in range(rng.randint(1, 4)))
    edges = [0, *cuts, len(array)]
    return pa.chunked_array([array[a:b] for a, b in pairwise(edges)], array.type)


def random_columns(rng: Random, schema: pa.Schema) -> list[str]:
    """Return some columns in random order, structs sometimes only in part."""
    chosen = rng.sample(schema.names, rng.randint(1, len(schema.names)))
    return [_random_path(rng, schema.field(name), pa.types.is_struct) for name in chosen]


def random_deep_columns(rng: Random, schema: pa.Schema) -> list[str]:
    """Return some columns in random order, structs and lists of structs sometimes only in part."""
    chosen = rng.sample(schema.names, rng.randint(1, len(schema.names)))
    return [_random_path(rng, schema.field(name), _has_structs) for name in chosen]


def _random_path(rng: Random, f: pa.Field, can_enter: Callable[[pa.DataType], bool]) -> str:
    """Return the path of a field or sometimes of one below it."""
    path = f.name
    while can_enter(f.type) and f.type.num_fields and not _is_packed(f) and rng.random() < 0.7:
        f = f.type.field(rng.randrange(f.type.num_fields))
        path += f".{f.name}"
    return path


def _is_packed(f: pa.Field) -> bool:
    return f.metadata == {b"packed": b"true"}


def _has_structs(t: pa.DataType) -> bool:
    """Say whether a type is a struct, or a list that has one in it."""
    if isinstance(t, pa.BaseExtensionType) or pa.types.is_map(t):
        return False
    return pa.types.is_struct(t) or any(_has_structs(child.type) for child in children_of(t))


def random_slices(rng: Random, rows: int) -> list[tuple[int, int]]:
    """Return (offset, limit) pairs, some of them past the end."""
    if not rows:
        return [(0, 5)]
    starts = [rng.randrange(rows), 0, max(0, rows - 3)]
    return [(start, rng.choice([1, 2, 9, rows // 2 + 1, rows + 10])) for start in starts]


def as_lance_reads(table: pa.Table) -> pa.Table:
    """Return the table with the types that a Lance file keeps: views become plain."""
    plain = {VIEWS[0]: pa.string(), VIEWS[1]: pa.binary()}
    for number, f in enumerate(table.schema):
        if f.type in plain:
            column = table.column(number).cast(plain[f.type])
            table = table.set_column(number, f.with_type(plain[f.type]), column)
    return table


def project(table: pa.Table, columns: list[str]) -> pa.Table:
    """Return the columns that a scan gives for these paths: nested ones flat, named by path."""
    return pa.table([_column(table, path) for path in columns], names=columns)


def _column(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return a top-level column, or a field below structs, NULL where one of these is."""
    first, *rest = path.split(".")
    column = table.column(first)
    for name in rest:
        t = column.type.field(name).type
        column = pa.chunked_array([pc.struct_field(c, name) for c in column.chunks], t)
    return column


def prune(table: pa.Table, columns: list[str]) -> pa.Table:
    """Return the columns that a take gives for these paths: structs with only the fields named."""
    paths = [path.split(".") for path in columns]
    pruned = {}
    for name in dict.fromkeys(path[0] for path in paths):
        below = [path[1:] for path in paths if path[0] == name]
        chunks = [_pruned(unsliced(chunk), below) for chunk in table.column(name).chunks]
        pruned[name] = pa.chunked_array(chunks)
    return pa.table(pruned)


def _pruned(array: pa.Array, paths: list[list[str]]) -> pa.Array:
    """Return an array without offset with only those fields below it that a path leads to."""
    if [] in paths:
        return array
    fields, children = [], []
    for number, field in enumerate(children_of(array.type)):
        if below := [path[1:] for path in paths if path[0] == field.name]:
            is_struct = pa.types.is_struct(array.type)
            children.append(_pruned(array.field(number) if is_struct else array.values, below))
            fields.append(field.with_type(children[-1].type))
    t, own = with_children(array.type, fields), array.type.num_buffers
    return pa.Array.from_buffers(t, len(array), array.buffers()[:own], children=children)


def children_of(t: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, or the item of a list."""
    return [t.field(number) for number in range(t.num_fields)]


def with_children(t: pa.DataType, children: list[pa.Field]) -> pa.DataType:
    """Return a struct or list type with other children."""
    if pa.types.is_struct(t):
        return pa.struct(children)
    if pa.types.is_large_list(t):
        return pa.large_list(children[0])
    return pa.list_(children[0], t.list_size if pa.types.is_fixed_size_list(t) else -1)
