"""The indices of vectors as a kind; `pennon.index.vector.settings` tells them apart."""

from __future__ import annotations

from typing import Final

from pennon.index.kind import Kind, RowNames, lazy

KIND: Final = Kind(
    details="VectorIndexDetails",
    user_names=(
        "IVF_FLAT",
        "IVF_PQ",
        "IVF_SQ",
        "IVF_HNSW_FLAT",
        "IVF_HNSW_PQ",
        "IVF_HNSW_SQ",
        "IVF_RQ",
    ),
    names_rows_by=RowNames.ROW_IDS,
    reads=2,
    rows_named=lazy("vector.layout", "rows_named"),
)
