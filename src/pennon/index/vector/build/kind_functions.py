"""Build, merge and describe vector indices; `pennon.index.vector.kind` names these functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from pennon.index.base import Values
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.vector.build.merge import merge_indices
from pennon.index.vector.build.new_index import write_index
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.index.vector.details_wire import vector_details

_RQ_VERSION: Final = 2


def write_vectors(values: Iterable[Values], _: pa.DataType, new: NewFiles) -> None:
    """Write the vectors of some rows, coded by a model; nothing without one.

    A segment has no graphs: the index that it is merged into gets them.
    """
    model = new.parameters["model"]
    if model is None:
        return
    coded = sorted_by_partition(iter(values), model)
    parts = (coded.partition(each) for each in range(model.partitions))
    write_index(model, parts, new, with_graphs=not new.is_segment)


def rewrite_vectors(olds: Sequence[OldIndex], _: pa.DataType, new: NewFiles) -> None:
    """Write the rows of several indices that are there yet; raises ArgumentError if they were trained apart."""
    merge_indices(olds, new.parameters["settings"], new)


def details_of(chosen: Mapping[str, Any]) -> bytes:
    """Return the details of an index."""
    return vector_details(chosen["settings"])


def version_of(chosen: Mapping[str, Any]) -> int:
    """Return the version of an index."""
    return _RQ_VERSION if chosen["settings"].quantizer == "RQ" else 1
