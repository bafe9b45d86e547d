"""A table with a column of storage class blob, which pylance 0.19.2 writes.

Run by its interpreter: ``python storage_class_tables.py URI [delete] [add] [compact] [index]``.
"""

from __future__ import annotations

import sys

import lance
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("b", pa.large_binary(), metadata={"lance-schema:storage-class": "blob"}),
        pa.field("t", pa.string()),
    ]
)
BLOBS = [b"one", None, b"", b"four" * 100, b"five", b"six", None]


def rows(start: int, end: int) -> pa.Table:
    """Return the rows with the ids after ``start``, up to ``end``."""
    ids = range(start + 1, end + 1)
    return pa.table([list(ids), BLOBS[start:end], [f"t{n}" for n in ids]], schema=SCHEMA)


def main(uri: str, steps: list[str]) -> None:
    """Write 7 rows in 3 fragments, and change them."""
    lance.write_dataset(rows(0, 4), uri, max_rows_per_file=2)
    lance.write_dataset(rows(4, 7), uri, mode="append")
    for step in steps:
        table = lance.dataset(uri)
        if step == "delete":
            table.delete("id in (1, 6)")
        elif step == "add":
            table.add_columns({"u": "id * 2"})
        elif step == "compact":
            table.optimize.compact_files()
        elif step == "index":
            table.create_scalar_index("id", "BTREE")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
