"""Messages with too many or too few fields, or of later versions."""

from __future__ import annotations

import pytest

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import ConstantPage, Layer
from pennon.encoding.v2_1.wire import parse_page_layout
from pennon.errors import FormatError, LanceError, UnsupportedError
from pennon.proto import encodings_v2_1_pb2 as pb


def flat(bits: int = 32) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def test_constant_layout_message_is_parsed() -> None:
    message = pb.PageLayout(
        constant_layout=pb.ConstantLayout(
            layers=[pb.REPDEF_NULLABLE_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST],
            inline_value=b"\x01",
            def_compression=pb.CompressiveEncoding(
                rle=pb.Rle(values=flat(16), run_lengths=flat(8))
            ),
            num_def_values=9,
        )
    )
    assert parse_page_layout(message.SerializeToString()) == ConstantPage(
        b"\x01",
        None,
        e.Rle(e.Flat(16), e.Flat(8)),
        0,
        9,
        (Layer.NULLABLE_ITEM, Layer.NULL_AND_EMPTY_LIST),
    )


def test_encoding_nested_too_deep_is_refused() -> None:
    encoding = flat()
    for _ in range(40):
        general = pb.General(values=encoding)
        general.compression.scheme = pb.COMPRESSION_ALGORITHM_ZSTD
        encoding = pb.CompressiveEncoding(general=general)
    message = pb.PageLayout(
        mini_block_layout=pb.MiniBlockLayout(
            value_compression=encoding, layers=[pb.REPDEF_ALL_VALID_ITEM]
        )
    )
    with pytest.raises(FormatError, match="deeper than 32"):
        parse_page_layout(message.SerializeToString())


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", FormatError, "page layout says nothing"),
        (b"\xff", FormatError, "not a valid PageLayout"),
        (b"\x2a\x00", UnsupportedError, "unknown page layout .number 5"),
        (
            pb.PageLayout(
                full_zip_layout=pb.FullZipLayout(layers=[pb.REPDEF_ALL_VALID_ITEM])
            ).SerializeToString(),
            FormatError,
            "without a width",
        ),
        (
            pb.PageLayout(
                full_zip_layout=pb.FullZipLayout(bits_rep=17, bits_per_value=8)
            ).SerializeToString(),
            FormatError,
            "levels of 17",
        ),
        (
            pb.PageLayout(constant_layout=pb.ConstantLayout()).SerializeToString(),
            FormatError,
            "0 layers",
        ),
        (
            pb.PageLayout(
                constant_layout=pb.ConstantLayout(layers=[pb.REPDEF_UNSPECIFIED])
            ).SerializeToString(),
            UnsupportedError,
            "unknown kind of layer",
        ),
        (
            pb.PageLayout(mini_block_layout=pb.MiniBlockLayout(num_buffers=65)).SerializeToString(),
            FormatError,
            "65 buffers",
        ),
    ],
)
def test_invalid_page_layout_messages_are_refused(
    data: bytes, error: type[LanceError], message: str
) -> None:
    with pytest.raises(error, match=message):
        parse_page_layout(data)


def test_an_encoding_of_a_later_version() -> None:
    range_encoding = b"\x72\x00"  # number 14 of the oneof
    layout = b"\x0a" + bytes([len(range_encoding) + 2]) + b"\x1a\x02" + range_encoding
    with pytest.raises(UnsupportedError, match=r"unknown encoding \(number 14\)"):
        parse_page_layout(layout)


def test_blob_layout_within_blob_layout_is_refused() -> None:
    inner = pb.PageLayout(blob_layout=pb.BlobLayout(layers=[pb.REPDEF_ALL_VALID_ITEM]))
    message = pb.PageLayout(
        blob_layout=pb.BlobLayout(inner_layout=inner, layers=[pb.REPDEF_ALL_VALID_ITEM])
    )
    with pytest.raises(FormatError, match="inside a blob layout"):
        parse_page_layout(message.SerializeToString())
