"""Tables for the tests of the page: pictures and sounds, every type, hostile texts, very many fragments."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import pennon
from pennon.dataset import LanceDataset

PLACES = [
    (
        "Lofoten",
        "Norway",
        "islands",
        "Red cabins under steep granite, boats on a green fjord at midnight",
    ),
    (
        "Atacama",
        "Chile",
        "desert",
        "Salt flats without rain, flamingos on a pink lagoon below volcanoes",
    ),
    (
        "Hokkaido",
        "Japan",
        "forest",
        "Powder snow on birch trees, steam over hot springs in the evening",
    ),
    (
        "Namib",
        "Namibia",
        "desert",
        "Orange dunes beside the sea, fog that reaches the dead acacias",
    ),
    (
        "Dolomites",
        "Italy",
        "mountains",
        "Pale towers of limestone that glow red when the sun goes down",
    ),
    (
        "Faroe",
        "Denmark",
        "islands",
        "Grass roofs, waterfalls that end in the sea, puffins on the cliffs",
    ),
    ("Zhangjiajie", "China", "forest", "Columns of sandstone in the clouds, pines on every ledge"),
    (
        "Serengeti",
        "Tanzania",
        "savanna",
        "Herds on the move through yellow grass, one acacia, a far storm",
    ),
    (
        "Yukon",
        "Canada",
        "forest",
        "A brown river between gold spruces, northern lights on a still night",
    ),
    (
        "Wadi Rum",
        "Jordan",
        "desert",
        "Red sand between walls of rock, stars without end over black tents",
    ),
]
HUES = {"islands": 200, "desert": 28, "forest": 130, "mountains": 260, "savanna": 48}
SCRIPT = "<script>window['pwned']=1</script><img src=x onerror='pwned=2'>"
"""A name of a column cannot have a dot."""
BIDI = "abc\u202egnp exe\u2066"
CONTROL = "a\x00b\x1b[31m\x07\r\n\u2028c"


def png(pixels: Any) -> bytes:
    """Return an image of uint8 of shape (height, width, 3) as PNG."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + line.tobytes() for line in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def scene(seed: int, hue: int, width: int = 120, height: int = 80) -> bytes:
    """Return a picture of hills under a sky."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / height
    sky = np.clip(1 - y[..., None] * np.array([0.25, 0.45, 0.7]) + 0.05, 0, 1)
    tint = np.array([np.cos(np.radians(hue - a)) for a in (0, 120, 240)]) * 0.35 + 0.55
    image = sky * (0.55 + 0.45 * tint)
    sun = ((x - random.uniform(0.2, 1.3)) ** 2 + (y - random.uniform(0.15, 0.4)) ** 2) < 0.012
    image[sun] = [1.0, 0.95, 0.75]
    for layer in range(4):
        base = 0.42 + 0.15 * layer
        line = base + 0.09 * np.sin(x[0] * random.uniform(2, 7) + random.uniform(0, 6))
        line = line + 0.03 * np.sin(x[0] * random.uniform(9, 20) + random.uniform(0, 6))
        image[y > line[None, :]] = tint * (0.85 - 0.18 * layer)
    return png((np.clip(image, 0, 1) * 255).astype(np.uint8))


def wav(seconds: float, pitch: float) -> bytes:
    """Return a tone as WAV."""
    rate = 8000
    time = np.arange(int(rate * seconds)) / rate
    tone = (np.sin(2 * np.pi * pitch * time) * np.exp(-3 * time) * 20000).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(tone.tobytes())
    return out.getvalue()


def gallery_rows(count: int, first: int = 0) -> pa.Table:
    """Return rows of places: a picture, a sound, texts, tags, a struct, and a vector."""
    numbers = range(first, first + count)
    chosen = [PLACES[n * 7 % len(PLACES)] for n in numbers]
    curves = np.linspace(0, 1, 96)
    vectors = [
        np.sin(curves * (4 + HUES[p[2]] / 20) + n % 7) * np.exp(-curves * (n % 3 + n % 31 / 40))
        for n, p in zip(numbers, chosen, strict=True)
    ]
    flat = pa.array(np.concatenate(vectors).astype(np.float32))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "picture": [scene(n, HUES[p[2]]) for n, p in zip(numbers, chosen, strict=True)],
            "place": [p[0] for p in chosen],
            "country": [p[1] for p in chosen],
            "kind": [p[2] for p in chosen],
            "caption": [p[3] for p in chosen],
            "rating": pa.array(
                [None if n % 11 == 5 else round(3 + (n * 37 % 20) / 10, 1) for n in numbers],
                pa.float32(),
            ),
            "embedding": pa.FixedSizeListArray.from_arrays(flat, 96),
            "sound": [wav(0.4, 220 + 40 * (n % 8)) if n % 2 == 0 else None for n in numbers],
            "tags": [
                [p[2], p[1].lower(), f"album-{n % 4}"] for n, p in zip(numbers, chosen, strict=True)
            ],
            "camera": [
                {
                    "iso": 100 << n % 5,
                    "lens": f"{24 + n % 4 * 12} mm",
                    "exposure": {"f": 2.8, "s": 0.01},
                }
                for n in numbers
            ],
            "taken": pa.array(
                [
                    datetime(2026, 1 + n % 9, 1 + n % 27, 6 + n % 12, 30, tzinfo=UTC)
                    for n in numbers
                ],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


def gallery(path: str, rows: int = 480) -> LanceDataset:
    """Write a table with a history: appends, an update, a deletion, a new column, indices."""
    part = rows // 8
    ds = pennon.write_dataset(
        gallery_rows(part * 2),
        path,
        max_rows_per_file=part,
        data_storage_version="2.2",
        enable_stable_row_ids=True,
    )
    for first in range(part * 2, part * 6, part):
        ds.insert(gallery_rows(part, first))
    ds.update({"rating": "rating + 0.1"}, where="country = 'Norway'")
    ds.delete("id % 13 = 4")
    ds.add_columns({"title": "place || ', ' || country"})
    ds.create_scalar_index("caption", "INVERTED")
    ds.create_scalar_index("id", "BTREE")
    for first in range(part * 6, part * 8, part):
        ds.insert(
            gallery_rows(part, first).append_column(
                "title", pa.array([f"photo {n}" for n in range(part)])
            )
        )
    ds.create_index("embedding", "IVF_FLAT", num_partitions=4)
    ds.tags.create("spring")
    return ds


def every_type(path: str, version: str = "2.2") -> LanceDataset:
    """Write one row of values and one of NULLs for each kind of type."""
    columns: dict[str, Any] = {
        "bool": pa.array([True, None]),
        "int8": pa.array([-1, None], pa.int8()),
        "uint64": pa.array([2**64 - 1, None], pa.uint64()),
        "half": pa.array(np.array([1.5, 0], np.float16), mask=np.array([False, True])),
        "double": pa.array([float("nan"), None]),
        "decimal": pa.array([Decimal("12345678901234567890.123"), None], pa.decimal128(38, 3)),
        "date": pa.array([date(2026, 11, 29), None]),
        "time": pa.array([1, None], pa.time64("ns")),
        "timestamp": pa.array([2**62, None], pa.timestamp("us")),
        "duration": pa.array([5, None], pa.duration("ms")),
        "text": pa.array(["ü€𝄞 " * 80, None]),
        "large_text": pa.array(["x" * 5000, None], pa.large_string()),
        "bytes": pa.array([bytes(range(256)), None]),
        "fixed": pa.array([b"12345678", None], pa.binary(8)),
        "list": pa.array([[1, None, 3], None]),
        "nested": pa.array([[{"a": [1, 2], "b": "x"}], None]),
        "struct": pa.array(
            [{"a": 1, "b": None}, {"a": None, "b": None}],
            pa.struct({"a": pa.int32(), "b": pa.string()}),
        ),
        "vector": pa.array([[1.0, float("inf"), -2.0], None], pa.list_(pa.float32(), 3)),
        "bytes_vector": pa.array([[1, 2], None], pa.list_(pa.uint8(), 2)),
        "svg": pa.array([b"<svg onload='alert(1)'><script>alert(2)</script></svg>", None]),
        "png": pa.array([png(np.zeros((2, 3, 3), np.uint8)), None]),
    }
    fields = None
    if version == "2.2":
        columns["map"] = pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))
        columns["blob"] = pennon.blob_array([png(np.zeros((4, 5, 3), np.uint8)), None])
        fields = [
            pennon.blob_field("blob") if k == "blob" else pa.field(k, v.type)
            for k, v in columns.items()
        ]
    rows = pa.table(list(columns.values()), pa.schema(fields)) if fields else pa.table(columns)
    return pennon.write_dataset(rows, path, data_storage_version=version)


def hostile(path: str) -> LanceDataset:
    """Write a table whose names, values, settings and filters hold markup, scripts and signs that turn text around."""
    rows = pa.table(
        {
            SCRIPT: [
                SCRIPT,
                "</script><script>window.pwned = 3</script>",
                "--><svg/onload=window.pwned=4>",
            ],
            "javascript:alert(1)": [
                "javascript:window.pwned=5",
                "http://example.com/x.png",
                "data:text/html,<script>1</script>",
            ],
            BIDI: [BIDI, CONTROL, "{{constructor.constructor('window.pwned=6')()}}"],
            "__proto__": ["constructor", "__proto__", "toString"],
            "svg": [b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=7'/>"] * 3,
            "png": [
                b"\x89PNG\r\n\x1a\n" + b"\0" * 11 + b"\1" + b"\0" * 3 + b"\1" + b"\xff" * 60,
                b"GIF89a\1\0\1\0<script>pwned=8</script>",
                b"\xff\xd8\xff" + SCRIPT.encode(),
            ],
            "nested": [[{SCRIPT: SCRIPT, "b": [BIDI]}]] * 3,
        }
    )
    ds = pennon.write_dataset(rows, path)
    ds.update_config({SCRIPT: SCRIPT, BIDI: CONTROL})
    ds.delete(f"`__proto__` = '{SCRIPT.replace(chr(39), chr(39) * 2)}'")
    ds.create_scalar_index("__proto__", "BTREE", name="</style><script>window.pwned=9</script>")
    return ds


def many_fragments(path: Path, count: int) -> LanceDataset:
    """Write a fragment of 200 rows, and commit it ``count`` times, each time with a copy of its data file."""
    rows = pa.table({"id": range(200), "name": [f"n{n}" for n in range(200)]})
    one = pennon.write_dataset(rows, str(path)).get_fragments()[0].metadata
    (file,) = one.files
    data = (path / "data" / file.path).read_bytes()
    fragments = []
    for number in range(1, count):
        name = f"{number:05}-{file.path}"
        (path / "data" / name).write_bytes(data)
        fragments.append(replace(one, id=0, files=[replace(file, path=name)]))
    return LanceDataset.commit(str(path), pennon.LanceOperation.Append(fragments), read_version=1)
