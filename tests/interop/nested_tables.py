"""Random tables of nested columns for file versions 2.1 and 2.2; a seed names the same one for ever."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa

from tests.interop.nested_arrays import (
    NESTED_2_1,
    NESTED_2_2,
    field_of,
    is_packed,
    nested_array,
    nested_type,
)
from tests.interop.random_arrays import Rng, random_array
from tests.interop.random_tables import (
    PACKED,
    Case,
    random_chunks,
    random_columns,
    random_deep_columns,
    random_slices,
)
from tests.interop.random_types import packable_type

SIZES = [1, 7, 100, 1000, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 9000]
METADATA: list[dict[str, str]] = [
    *({}, {}, {}, {}),
    {"lance-encoding:structural-encoding": "fullzip"},
    {"lance-encoding:compression": "zstd"},
    {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"},
    {"lance-encoding:rle-threshold": "1.0"},
]
PAGE_BYTES = [1_000, 10_000, 50_000]


def nested_case(seed: int, version: str) -> Case:
    """Return the case of a seed at a version; 2.2 adds the types of `NESTED_2_2`."""
    rng, numbers = Random(f"{version} {seed}"), np.random.default_rng(seed)
    rows = rng.choice(SIZES)
    kinds = NESTED_2_2 if version == "2.2" else NESTED_2_1
    columns = [_column(rng, numbers, f"c{i}", kinds, rows) for i in range(rng.choice([1, 1, 2, 3]))]
    fields, chunks = zip(*columns, strict=True)
    schema = pa.schema(fields)
    return Case(
        seed=seed,
        table=pa.Table.from_arrays(chunks, schema=schema),
        max_rows_per_file=rng.choice([1 << 20, 1 << 20, max(1, rows // 2), max(1, rows // 7 + 1)]),
        batch_rows=rng.choice([1 << 20, 700, max(1, rows // 2)]),
        columns=random_columns(rng, schema),
        slices=random_slices(rng, rows),
        deep_columns=random_deep_columns(rng, schema),
        indices=[rng.randrange(rows) for _ in range(rng.choice([1, 3, 50, 500]))],
        version=version,
        page_bytes=rng.choice([None, *PAGE_BYTES]),
    )


def _column(
    rng: Random, numbers: Rng, name: str, kinds: tuple[str, ...], rows: int
) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a field, one in twelve a packed struct, and values for it."""
    before, after = (rng.choice([0, 1, 5, 8]), 3) if rng.random() < 0.4 else (0, 0)
    total = before + rows + after
    if rng.random() < 1 / 12:
        field = pa.field(name, packable_type(rng, lists=False), metadata=PACKED)
        array = random_array(numbers, field.type, total, "none")
    else:
        kind, metadata = nested_type(rng, kinds), rng.choice(METADATA) or None
        field = field_of(name, kind) if is_packed(kind) else pa.field(name, kind, metadata=metadata)
        array = nested_array(numbers, field.type, total)
    return field, random_chunks(rng, array.slice(before, rows))
