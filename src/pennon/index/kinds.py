"""The kinds of indices that there are, found by what an index says of itself and by what users call them."""

from __future__ import annotations

from typing import Final

from pennon.errors import UnsupportedError
from pennon.index.files import IndexFiles
from pennon.index.kind import Kind, RowNames
from pennon.index.row_set import RowSet
from pennon.index.scalar import bitmap, bloom_filter, btree, ngram, zone_map
from pennon.index.text import kind as text
from pennon.index.vector import kind as vector
from pennon.table.indices import Index
from pennon.table.json_index_wire import json_target

KINDS: Final[tuple[Kind, ...]] = (
    btree.KIND,
    bitmap.KIND,
    bitmap.LABEL_LIST_KIND,
    ngram.KIND,
    bloom_filter.KIND,
    zone_map.KIND,
    text.KIND,
    vector.KIND,
)
"""The order of preference: of several indices on a column, filters ask the first kind."""

_BY_DETAILS: Final = {kind.details: kind for kind in KINDS}
_BY_USER_NAME: Final = {name: kind for kind in KINDS for name in kind.user_names}


def kind_of_details(details: str) -> Kind:
    """Return the kind whose details are a message of that name; a KeyError is a bug."""
    return _BY_DETAILS[details]


def kind_called(name: str) -> Kind:
    """Return the kind that users call so, in any case.  Raises UnsupportedError."""
    found = _BY_USER_NAME.get(name.upper())
    if found is None:
        names = ", ".join(kind.user_names[0] for kind in KINDS if kind is not vector.KIND)
        message = f"Pennon makes no index of kind {name!r}; the kinds are {names}"
        raise UnsupportedError(message)
    return found


def is_vector_kind(name: str) -> bool:
    """Return whether users call a kind of vectors so, in any case."""
    return _BY_USER_NAME.get(name.upper()) is vector.KIND


def is_scalar_kind(name: str) -> bool:
    """Return whether users call a kind of anything but vectors so, in any case."""
    return name.upper() in _BY_USER_NAME and not is_vector_kind(name)


def kind_of(index: Index) -> Kind | None:
    """Return the kind of an index; None for one that is not asked: of another kind, or newer than this.

    The kind of one on a path of a JSON column is that of an index of the values there.
    """
    _, index = json_target(index)
    found = _BY_DETAILS.get(index.type_name)
    return found if found is not None and index.index_version <= found.reads else None


def kind_of_any_version(index: Index) -> Kind | None:
    """Return the kind of an index of any version; None for a kind that is not known."""
    _, index = json_target(index)
    return _BY_DETAILS.get(index.type_name)


def rows_named(index: Index, files: IndexFiles) -> RowSet:
    """Return all rows that the files of an index name, by its own numbers.

    Raises FormatError or NotFoundError if they cannot be read, UnsupportedError for a kind that is not known.
    """
    kind = kind_of(index)
    if kind is None:
        message = f"an index of {index.type_name or 'an unknown kind'}, whose rows nobody can tell"
        raise UnsupportedError(message)
    return kind.rows_named(files)


def stores_row_ids(index: Index) -> bool:
    """Return whether an index of a table with stable row ids names rows by these, and not by addresses.

    Source: reference index-scalar, 0.
    """
    _, index = json_target(index)
    kind = _BY_DETAILS.get(index.type_name)
    if kind is not None and kind.names_rows_by is RowNames.BY_VERSION:
        return index.index_version == 0
    return index.goes_by_row_ids
