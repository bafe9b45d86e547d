"""INVERTED, the index of the words of texts, as a kind; few tables have one, so its modules are imported when called."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import types as t

from pennon.index.kind import Kind, Parameters, RowNames, is_text, lazy


def _is_text_or_texts(kind: pa.DataType) -> bool:
    """Return whether a column has texts, or lists of texts; JSON is text here."""
    if t.is_list(kind) or t.is_large_list(kind):
        kind = kind.value_type
    return is_text(kind) or bool(t.is_string_view(kind))


_open = lazy("text.inverted", "Inverted")

KIND: Final = Kind(
    name="Inverted",
    details="InvertedIndexDetails",
    user_names=("INVERTED", "FTS"),
    names_rows_by=RowNames.ROW_IDS,
    reads=3,
    writes=lazy("text.kind_functions", "version_of"),
    open=lambda files, _: _open(files),
    finds=lazy("text.sample", "finds"),
    rows_named=lazy("text.inverted", "rows_named"),
    takes=_is_text_or_texts,
    types="string, large string or list of strings, or json",
    build=lazy("text.build", "write_inverted"),
    merge=lazy("text.merge", "rewrite_inverted"),
    parameters=Parameters(
        check=lazy("text.kind_functions", "check_choices"),
        of_files=lazy("text.merge", "inverted_parameters"),
        of_details=lazy("text.kind_functions", "chosen_of"),
        to_details=lazy("text.kind_functions", "details_of"),
        shown=lazy("text.kind_functions", "shown_of"),
        name_ending=lazy("text.kind_functions", "name_ending"),
    ),
)
