"""Files that a release of pylance cannot read, its own among them; each by name.

A failure is known by the release, by what it says, and by the types for which it says so.  What the
same table reads like here is still compared with the table that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tests.interop.nested_arrays import is_packed
from tests.interop.oracle import NEWEST, OLDEST, OracleError
from tests.interop.random_tables import children_of
from tests.interop.random_types import has_dictionary


@dataclass(frozen=True, slots=True)
class Failure:
    """What one release of the oracle says of some types, and why that is no fault of the file."""

    release: str
    says: str
    concerns: Callable[[pa.Schema], bool]
    why: str


def why_it_fails(release: str, schema: pa.Schema, error: OracleError) -> str | None:
    """Return why the oracle fails, or None if that is not known."""
    for failure in FAILURES:
        if failure.release == release and failure.says in str(error) and failure.concerns(schema):
            return failure.why
    return None


def _ways_down(t: pa.DataType) -> Iterator[list[pa.DataType]]:
    """Yield the types from ``t`` down to each leaf."""
    below = [] if isinstance(t, pa.BaseExtensionType) else children_of(t)
    if not below:
        yield [t]
    for child in below:
        for way in _ways_down(child.type):
            yield [t, *way]


def _is_list(t: pa.DataType) -> bool:
    return pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t)


def has_small_dictionary(schema: pa.Schema) -> bool:
    """Say whether there is a dictionary with indices of 8 bits."""
    leaves = [way[-1] for t in schema.types for way in _ways_down(t)]
    return any(pa.types.is_dictionary(t) and t.index_type.bit_width == 8 for t in leaves)


def has_dictionaries(schema: pa.Schema) -> bool:
    """Say whether there is a dictionary at any level."""
    return any(map(has_dictionary, schema.types))


def has_lists_in_structs(schema: pa.Schema) -> bool:
    """Say whether a struct has a list below it."""
    return any(
        pa.types.is_struct(above) and any(map(_is_list, way[number:]))
        for t in schema.types
        for way in _ways_down(t)
        for number, above in enumerate(way)
    )


def has_nulls_in_structs(schema: pa.Schema) -> bool:
    """Say whether a list has a struct below it, and that a field of the type null."""
    return any(
        pa.types.is_null(way[-1]) and any(map(_is_list, way)) and any(map(pa.types.is_struct, way))
        for t in schema.types
        for way in _ways_down(t)
    )


def has_packed_text(schema: pa.Schema) -> bool:
    """Say whether there is a packed struct of values of any width."""
    return any(is_packed(above) for t in schema.types for way in _ways_down(t) for above in way)


def has_lists_of_structs(schema: pa.Schema) -> bool:
    """Say whether there is a fixed-size list of structs."""
    return any(
        pa.types.is_fixed_size_list(above) and pa.types.is_struct(above.value_type)
        for t in schema.types
        for way in _ways_down(t)
        for above in way
        if not isinstance(above, pa.BaseExtensionType)
    )


REFUSED_TO_WRITE = "rep/def levels in one chunk"
"""What the oracle says of a row with very many items and few values."""

NO_VALUES = "it does not read a dictionary of version 0.1 without values, where all rows are NULL"

FAILURES = [
    *(
        Failure(release, "Invalid dictionary key 0 at index 0", has_dictionaries, NO_VALUES)
        for release in (NEWEST, OLDEST)
    ),
    Failure(
        NEWEST,
        "Incorrect number of nulls for StructArray",
        has_lists_in_structs,
        "it counts items for structs in pages without NULL structs, next to pages that have some: "
        "ledger F-686",
    ),
    Failure(
        NEWEST,
        "Incorrect number of nulls for StructArray",
        has_nulls_in_structs,
        "the column of a field of the type null does not know the lists around it",
    ),
    Failure(
        NEWEST,
        "differing lengths",
        has_lists_of_structs,
        "it counts the items of fixed-size lists of structs as rows of the file",
    ),
    Failure(
        NEWEST,
        "Attempt to project incompatible fields",
        has_lists_of_structs,
        "it does not take a field of the structs in fixed-size lists",
    ),
    Failure(
        NEWEST,
        "Not yet supported FSL<...List<...>>",
        has_lists_of_structs,
        "it does not read lists in fixed-size lists of structs",
    ),
    Failure(
        NEWEST,
        "DataBlockBuilder didn't see any data",
        has_packed_text,
        "it does not read packed rows of any width if all of those wanted are NULL",
    ),
]
