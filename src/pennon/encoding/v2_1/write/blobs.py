"""Blob pages: large values lie anywhere in the file, the page says where.

    an empty value  position 0, size 0
    NULL            position = definition level << 16, size 0

Source: ledger F-89.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.v2_0.blob import DESCRIPTION_TYPE, encode_blobs
from pennon.encoding.v2_1.layouts import BlobPage, Layer
from pennon.encoding.v2_1.leaf_values import leaf_values
from pennon.encoding.v2_1.page import Levels
from pennon.encoding.v2_1.shred import shred
from pennon.encoding.v2_1.values import RowValues
from pennon.encoding.v2_1.write.pages import EncodedPage, mini_block_page
from pennon.encoding.v2_1.write.rows import chunk_rows


def describe_blobs(array: pa.Array, write: Callable[[pa.Buffer], int]) -> pa.StructArray:
    """Write large binaries, each by itself, and return where they are; NULL where they are NULL."""
    described = encode_blobs(array, write)
    if array.null_count == 0:
        return described
    fields = [described.field(number) for number in range(2)]
    mask = array.is_null()
    return pa.StructArray.from_arrays(fields, fields=list(DESCRIPTION_TYPE), mask=mask)


def encode_blob_page(array: pa.Array, depth: int) -> EncodedPage | None:
    """Encode a page of descriptions, which lie under ``depth`` layers of structs."""
    shredded = shred(array, depth)
    layers, definition = shredded.levels.layers, shredded.levels.definition
    fields = [shredded.values.field(number) for number in range(2)]
    columns = [pc.fill_null(field, 0).to_numpy() for field in fields]  # NULL: outer structs are
    if definition is not None:
        columns[0] = np.where(definition, definition.astype(np.uint64) << 16, columns[0])
        columns[1] = np.where(definition, 0, columns[1])
    arrays = [pa.array(column, pa.uint64()) for column in columns]
    rows = leaf_values(pa.StructArray.from_arrays(arrays, fields=list(DESCRIPTION_TYPE)))
    assert isinstance(rows, RowValues)  # structs are
    plain = Levels(None, None, (Layer.ALL_VALID_ITEM,))
    chunks = chunk_rows(rows)
    page = None if chunks is None else mini_block_page(plain, chunks)
    return None if page is None else EncodedPage(BlobPage(page.layout, layers), page.buffers)
