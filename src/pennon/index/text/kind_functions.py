"""The settings of INVERTED: checks, details messages, versions, names; `pennon.index.text.kind` names these functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pennon.index.text.choices import TextChoices
from pennon.index.text.details_wire import inverted_details, parse_inverted_details
from pennon.index.text.queries import DocumentGranularity


def check_choices(chosen: Mapping[str, Any], column: str, kind: pa.DataType) -> None:
    """Raise what an index of a column cannot be made for; see `TextChoices.of`."""
    TextChoices.of(chosen).check_column(column, kind)


def name_ending(chosen: Mapping[str, Any]) -> str:
    """Return what the name of an index has between the column and ``_idx``."""
    return "_list_element" if TextChoices.of(chosen).by_item else ""


def details_of(chosen: Mapping[str, Any]) -> bytes:
    """Return the details of an index."""
    choices = TextChoices.of(chosen)
    return inverted_details(
        choices.parameters, by_item=choices.by_item, format_version=choices.format_version
    )


def version_of(chosen: Mapping[str, Any]) -> int:
    """Return the version of an index, which is that of the format of its files."""
    return TextChoices.of(chosen).format_version


def chosen_of(details: bytes) -> dict[str, Any]:
    """Return what has to be chosen for an index with some details; nothing if they are blank."""
    found = parse_inverted_details(details)
    if found is None:
        return {}
    parameters, by_item, version = found
    return TextChoices(parameters, by_item, version).to_chosen()


def shown_of(details: bytes) -> dict[str, Any]:
    """Return what `LanceDataset.describe_indices` shows of the details of an index."""
    found = parse_inverted_details(details)
    if found is None:
        return {}
    parameters, by_item, _ = found
    granularity = DocumentGranularity.LIST_ELEMENT if by_item else DocumentGranularity.ROW
    shown = parameters.to_dict() | {"lance_tokenizer": None}
    return shown | {"document_granularity": granularity.value}
