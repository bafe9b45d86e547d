"""Values as cells, and images and sounds among them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.view import rows
from pennon.view.cells import cell, full_cell
from pennon.view.media import Media, is_svg, sniff
from tests.unit.view import tables
from tests.unit.view.conftest import Client, serving

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x11\x08\x00\x20\x00\x40\x03"


@pytest.mark.parametrize(
    ("head", "media"),
    [
        (tables.png(np.zeros((2, 3, 3), np.uint8)), Media("image/png", 3, 2)),
        (JPEG, Media("image/jpeg", 64, 32)),
        (b"\xff\xd8\xff", Media("image/jpeg")),
        (b"\xff\xd8\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Media("image/jpeg")),
        (b"GIF89a\x05\x00\x06\x00", Media("image/gif", 5, 6)),
        (
            b"RIFF\x00\x00\x00\x00WEBPVP8X" + bytes(8) + b"\x09\x00\x00\x04\x00\x00",
            Media("image/webp", 10, 5),
        ),
        (
            b"RIFF\x00\x00\x00\x00WEBPVP8L" + bytes(5) + b"\x09\x00\x01\x00",
            Media("image/webp", 10, 5),
        ),
        (
            b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(10) + b"\x0a\x00\x05\x00",
            Media("image/webp", 10, 5),
        ),
        (tables.wav(0.01, 440)[:64], Media("audio/wav")),
        (b"OggS", Media("audio/ogg")),
        (b"fLaC", Media("audio/flac")),
        (b"ID3\x04", Media("audio/mpeg")),
        (b"\xff\xfb\x90", Media("audio/mpeg")),
        (b"<svg xmlns='x'/>", None),
        (b"\xff", None),
        (b"", None),
        (b"RIFF\x00\x00\x00\x00AVI ", None),
    ],
)
def test_sniff_names_format_and_pixels(head: bytes, media: Media | None) -> None:
    assert sniff(head) == media


@pytest.mark.parametrize(
    "data",
    [
        b"<svg/>",
        b" \n<SVG>",
        b"<?xml version='1.0'?><svg>",
        b"<!-- x --><svg>",
        b"\xef\xbb\xbf<svg>",
    ],
)
def test_svg_is_named_and_never_an_image(data: bytes) -> None:
    assert is_svg(data)
    assert cell(pa.scalar(data)) == {
        "kind": "bytes",
        "text": "SVG document, not drawn",
        "size": f"{len(data)} bytes",
    }


def test_image_of_too_many_pixels_is_not_shown() -> None:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\xff\xff\x00\x00\xff\xff"
    shown = cell(pa.scalar(head))["text"]
    assert shown.startswith("PNG, 65,535")
    assert shown.endswith(": too many pixels to show")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pa.scalar(None, pa.int64()), {"kind": "null"}),
        (pa.scalar(None, pa.null()), {"kind": "null"}),
        (pa.scalar(2**63 - 1), {"kind": "number", "text": "9223372036854775807"}),
        (pa.scalar(4.7, pa.float32()), {"kind": "number", "text": "4.7"}),
        (pa.scalar("a\x1b[31m\u202eb\n"), {"kind": "text", "text": "a\\x1b[31m\\u202eb\\n"}),
        (pa.scalar("x" * 500), {"kind": "text", "text": "x" * 160, "more": "500 bytes"}),
        (pa.scalar([1, None, 2]), {"kind": "nested", "text": "[1, NULL, 2]"}),
        (pa.scalar([("k", [1])], pa.map_(pa.string(), pa.list_(pa.int8()))), {"kind": "nested", "text": "{k: [1]}"}),
        (pa.scalar({"a": {"b": "\u202e"}}), {"kind": "nested", "text": "{a: {b: \\u202e}}"}),
        (pa.scalar([{"a": b"xyz"}]), {"kind": "nested", "text": "[{a: <3 bytes>}]"}),
        (pa.array(["x", "y"]).dictionary_encode()[1], {"kind": "text", "text": "y"}),
        (pa.scalar(b"\x00\x01"), {"kind": "bytes", "text": "00 01", "size": "2 bytes"}),
        (pa.scalar([1.0, 2.0], pa.list_(pa.float16(), 2)), {"kind": "vector", "dim": 2, "norm": "2.236", "values": [1.0, 2.0]}),
        (pa.scalar([float("nan"), 2.0], pa.list_(pa.float32(), 2)), {"kind": "vector", "dim": 2, "norm": "nan", "values": [None, 2.0]}),
    ],
)  # fmt: skip
def test_cell_of_a_value(value: pa.Scalar, expected: dict[str, object]) -> None:
    assert cell(value) == expected


def test_text_of_invalid_utf_8_is_escaped() -> None:
    broken = pa.StringArray.from_buffers(
        1, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"a\xffb")
    )
    assert cell(broken[0]) == {"kind": "text", "text": "a\\xffb"}


def test_cells_of_very_long_lists_look_at_few_items() -> None:
    value = pa.ListArray.from_arrays([0, 1_000_000], pa.array(range(1_000_000)))[0]
    assert len(cell(value)["text"]) == 100
    found = full_cell(value)
    assert len(found["tree"]["children"]) == 100
    assert found["tree"]["hidden"] == 999_900


def test_tree_of_a_deep_value_ends() -> None:
    kind: pa.DataType = pa.int8()
    value: object = 1
    for _ in range(60):
        kind, value = pa.list_(kind), [value]
    found = full_cell(pa.scalar(value, kind))
    assert len(json.dumps(found)) < 20_000


def test_full_text_holds_lines_and_tabs_and_escapes_the_rest() -> None:
    text = "a\n\tb\r\u202e" + "x" * 300
    assert full_cell(pa.scalar(text))["text"] == "a\n\tb\\r\\u202e" + "x" * 300


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_rows_of_every_type_are_shown_in_every_file_version(tmp_path: Path, version: str) -> None:
    if version == "0.1":
        table = pa.table(
            {
                "id": [1, 2],
                "text": ["a", "b"],
                "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            }
        )
        ds = pennon.write_dataset(table, tmp_path / "t", data_storage_version="0.1")
    else:
        ds = tables.every_type(str(tmp_path / "t"), version)
    with serving(ds) as client:
        found = client.load("/api/rows")
        assert found["columns"] == ds.schema.names
        kinds = dict(
            zip(found["columns"], (each["kind"] for each in found["rows"][0]), strict=True)
        )
        assert "error" not in kinds.values()
        assert {each["kind"] for each in found["rows"][1]} <= {
            "null",
            "nested",
            "vector",
            "number",
            "text",
        }
        for column, address in [(c, a) for c in found["fields"] for a in found["addresses"]]:
            assert client.load("/api/cell", column=column, row=address)["kind"] != "error"
        if version == "2.2":
            assert (kinds["png"], kinds["blob"], kinds["svg"], kinds["map"]) == (
                "image",
                "image",
                "bytes",
                "nested",
            )
        for path in ("/api/columns", "/api/health", "/api/grid", "/api/strip"):
            client.load(path)
        for column in found["fields"]:
            assert client.load("/api/pages", fragment=0, column=column)["parts"]


def test_media_have_their_sniffed_type_and_a_closed_policy(gallery: Client) -> None:
    found = gallery.load("/api/rows", limit=1)
    status, headers, body = gallery.ask(f"/api/media?column=picture&row={found['addresses'][0]}")
    assert (status, headers["Content-Type"]) == (200, "image/png")
    assert body.startswith(b"\x89PNG")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; sandbox")
    row = gallery.load("/api/rows", filter="sound IS NOT NULL", limit=1)["addresses"][0]
    assert gallery.ask(f"/api/media?column=sound&row={row}")[1]["Content-Type"] == "audio/wav"


def test_media_of_a_blob_column_are_read_from_their_place(tmp_path: Path) -> None:
    picture = tables.scene(1, 30)
    table = pa.table(
        [pennon.blob_array([picture, None, b"plain"])], pa.schema([pennon.blob_field("b")])
    )
    with serving(pennon.write_dataset(table, tmp_path / "t", data_storage_version="2.2")) as client:
        kinds = [row[0]["kind"] for row in client.load("/api/rows")["rows"]]
        assert kinds == ["image", "null", "bytes"]
        assert client.ask("/api/media?column=b&row=0")[2] == picture
        assert client.error("/api/media", column="b", row=1)[0] == 400
        assert client.error("/api/media", column="b", row=2)[0] == 400


def test_values_that_may_be_very_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    table = pa.table(
        {"id": [1, 2, 3], "big": [random.bytes(20 << 20), random.bytes(20 << 20), b"x"]}
    )
    ds = pennon.write_dataset(table, tmp_path / "t", data_storage_version="2.0")
    monkeypatch.setattr(rows, "AT_ONCE_BYTES", 1 << 20)
    with serving(ds) as client:
        found = client.load("/api/rows")["rows"]
        assert found[0][0] == {"kind": "number", "text": "1"}
        assert (found[0][1]["kind"], found[1][1]["kind"]) == ("large", "large")
        assert client.load("/api/cell", column="big", row=0)["kind"] == "large"
        assert found[2][1] == {"kind": "bytes", "text": "78", "size": "1 bytes"}
        assert "not read" in client.error("/api/media", column="big", row=0)[1]


def test_values_of_a_damaged_file_are_shown_as_errors_and_the_others_as_they_are(
    tmp_path: Path,
) -> None:
    pennon.write_dataset(
        pa.table({"id": range(2000), "word": [f"w{n}" for n in range(2000)]}),
        tmp_path / "t",
        data_storage_version="2.0",
    )
    (file,) = (tmp_path / "t" / "data").iterdir()
    data = bytearray(file.read_bytes())
    place = data.index(b"w0w1w2") - 16_000
    data[place : place + 4_000] = b"\xff" * 4_000
    file.write_bytes(data)
    with serving(pennon.dataset(tmp_path / "t")) as client:
        for row in client.load("/api/rows", offset=100)["rows"]:
            assert {each["kind"] for each in row} <= {"number", "text", "error"}
        client.load("/api/grid")
        client.load("/api/columns")
