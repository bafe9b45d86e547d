"""The indices of vectors as a kind; `pennon.index.vector.settings` tells them apart.

Its functions get ``{"settings": VectorSettings, "model": Model | None}`` as parameters; without a model an index covers
no row.
"""

from __future__ import annotations

from typing import Final

from pennon.index.kind import Kind, Parameters, RowNames, lazy

KIND: Final = Kind(
    name="IVF",
    details="VectorIndexDetails",
    package="lance.index.pb",
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
    writes=lazy("vector.build.kind_functions", "version_of"),
    rows_named=lazy("vector.layout", "rows_named"),
    finds=lazy("vector.build.sample", "finds"),
    statistics=lazy("vector.build.statistics", "vector_statistics"),
    takes=lazy("vector.rows", "is_vector"),
    types="a fixed-size list of numbers, or a list of such",
    build=lazy("vector.build.kind_functions", "write_vectors"),
    merge=lazy("vector.build.kind_functions", "rewrite_vectors"),
    parameters=Parameters(
        to_details=lazy("vector.build.kind_functions", "details_of"),
        shown=lazy("vector.build.statistics", "vector_details_of"),
    ),
)
