"""Arguments of the methods that make indices: the kind, its parameters, pylance's defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pennon.errors import ArgumentError

METRIC: Final = "L2"
ROW: Final = "row"
"""A document of a full-text index is a row, not an element of a list."""
_MEANT: Final = "max_token_length"
"""The one parameter of which None is a value: tokens may be of any length."""


@dataclass
class IndexConfig:
    """A kind of index, in any case, and its parameters.

    >>> from pennon.indices import IndexConfig
    >>> ds = pennon.write_dataset(pa.table({"text": ["a red fox", "a blue whale"]}), uri)
    >>> ds.create_scalar_index("text", IndexConfig("inverted", {"with_position": True}))
    >>> ds.to_table(full_text_query="'red fox'").num_rows
    1
    """

    index_type: str
    parameters: dict[str, Any] = field(default_factory=dict)


def one_column(column: str | Sequence[str]) -> str:
    """Return the name of the column of an index."""
    names = [column] if isinstance(column, str) else list(column)
    if len(names) != 1 or not isinstance(names[0], str):
        message = f"an index is of one column, got {names}"
        raise ArgumentError(message)
    return names[0]


def text_options(format_version: int | str | None, granularity: Any) -> dict[str, Any]:
    """Return the options of full-text indices that are not pylance's defaults."""
    is_row = getattr(granularity, "value", granularity) in {None, ROW}
    found = {} if is_row else {"document_granularity": granularity}
    return found if format_version is None else {**found, "format_version": format_version}


def present(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given: those that are not None."""
    return {name: value for name, value in parameters.items() if value is not None}


def chosen_kind(
    index_type: str | IndexConfig, parameters: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of an index and its parameters."""
    parameters = {
        name: value
        for name, value in parameters.items()
        if value is not None or name == _MEANT  # others are pylance's defaults
    }
    if isinstance(index_type, IndexConfig):
        return index_type.index_type, {**index_type.parameters, **parameters}
    return index_type, parameters
