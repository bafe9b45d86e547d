"""Names of ``lance.hf``: columns of a Hugging Face dataset, decoded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from typing import Any

import pyarrow as pa

from pennon.errors import UnsupportedError


class HuggingFaceConverter:
    """Decodes columns by the features that Hugging Face stores in a schema's metadata.

    ``ds_info``: the JSON value of the key ``huggingface``.
    """

    def __init__(self, ds_info: Mapping[str, Any]) -> None:
        self.ds_info = ds_info

    def to_pytorch(self, col: str, array: pa.Array[Any]) -> list[Any] | None:
        """Return the images of a column, as pillow has them; None for a column without a feature.

        Raises UnsupportedError for another feature.
        """
        try:
            feature = self.ds_info["info"]["features"][col]
        except (KeyError, TypeError):
            return None
        if feature["_type"] != "Image":
            message = f"the feature {feature['_type']} of the column {col!r} is not decoded; give a to_tensor_fn"
            raise UnsupportedError(message)
        pillow = import_module("PIL.Image")
        rows = array.to_pylist()
        return [
            pillow.open(row["path"] if row.get("bytes") is None else BytesIO(row["bytes"]))
            for row in rows
        ]
