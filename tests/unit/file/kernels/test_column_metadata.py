"""The pages of a column, compared with protobuf."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from google.protobuf.message import DecodeError

from pennon.file.kernels.column_metadata import find_pages
from pennon.proto import file2_pb2
from tests.seeds import each_seed

FILE_BYTES = 1 << 40
MOST_ROWS = 1 << 62
Numbers = tuple[list[list[int]], list[list[int]], list[int], tuple[int, ...]]


def made(data: bytes) -> Numbers:
    pages, extents, first_rows, column = find_pages(data, FILE_BYTES, MOST_ROWS)
    return pages.tolist(), extents.tolist(), first_rows.tolist(), column


def expected(data: bytes) -> Numbers:
    """The slow twin.  Where protobuf keeps bytes, so do we; so places are compared as bytes."""
    message = file2_pb2.ColumnMetadata.FromString(data)
    pages: list[list[int]] = []
    extents: list[list[int]] = []
    first_rows = [0]
    for page in message.pages:
        first = len(extents)
        extents += extents_of(page.buffer_offsets, page.buffer_sizes)
        priority = page.priority - (1 << 64 if page.priority >> 63 else 0)
        numbers = [page.length, priority, *encoding_of(page.encoding, data)]
        pages.append([*numbers, first, len(extents) - first])
        first_rows.append(first_rows[-1] + page.length)
    first = len(extents)
    extents += extents_of(message.buffer_offsets, message.buffer_sizes)
    column = (*encoding_of(message.encoding, data), first, len(extents) - first)
    return pages, extents, first_rows, column


def extents_of(positions: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    if len(positions) != len(sizes):
        raise ValueError
    found = [list(both) for both in zip(positions, sizes, strict=True)]
    if any(position + size > FILE_BYTES for position, size in found):
        raise ValueError
    return found


def encoding_of(encoding: file2_pb2.Encoding, data: bytes) -> list[int]:
    arm = encoding.WhichOneof("location")
    if arm == "direct":
        start = data.find(encoding.direct.encoding) if encoding.direct.encoding else 0
        return [1, start, start + len(encoding.direct.encoding)]
    if arm != "indirect":
        return [0, 0, 0]
    position, size = encoding.indirect.buffer_location, encoding.indirect.buffer_length
    if position + size > FILE_BYTES:
        raise ValueError
    return [2, position, size]


def example(rng: random.Random) -> file2_pb2.ColumnMetadata:
    message = file2_pb2.ColumnMetadata()
    put_encoding(rng, message.encoding, 0)
    put_buffers(rng, message)
    for number in range(rng.choice([0, 1, 2, 200])):
        page = message.pages.add(length=rng.choice([0, 1, 300, 1 << 40]))
        page.priority = rng.choice([0, 5, (1 << 64) - 1])
        put_encoding(rng, page.encoding, number + 1)
        put_buffers(rng, page)
    return message


def put_encoding(rng: random.Random, encoding: file2_pb2.Encoding, number: int) -> None:
    kind = rng.choice(["direct", "indirect", "none", "nothing"])
    if kind == "direct":
        encoding.direct.encoding = b"encoding %06d" % number
    elif kind == "indirect":
        encoding.indirect.buffer_location = rng.randrange(1 << 39)
        encoding.indirect.buffer_length = rng.randrange(1 << 39)
    elif kind == "none":
        encoding.none.SetInParent()


def put_buffers(
    rng: random.Random, message: file2_pb2.ColumnMetadata | file2_pb2.ColumnMetadata.Page
) -> None:
    count = rng.choice([0, 1, 3, 9])
    message.buffer_offsets.extend(rng.randrange(1 << 39) for _ in range(count))
    message.buffer_sizes.extend(rng.randrange(1 << 39) for _ in range(count))


@each_seed(50)
def test_column_pages_equal_those_of_protobuf(seed: int) -> None:
    data = example(random.Random(seed)).SerializeToString()
    assert made(data) == expected(data)


def test_numbers_may_be_packed_or_not_and_unknown_fields_are_skipped() -> None:
    packed = file2_pb2.ColumnMetadata(buffer_offsets=[1, 300], buffer_sizes=[2, 4])
    data = packed.SerializeToString() + b"\x18\x07\x20\x09"  # 7 and 9, each by itself
    unknown = b"\x7a\x03abc" + b"\x78\x01" + b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    assert made(data + unknown)[1] == [[1, 2], [300, 4], [7, 9]]
    assert made(unknown + data) == expected(unknown + data)


@each_seed(20)
def test_damaged_column_metadata_is_refused_or_equals_protobuf(seed: int) -> None:
    rng = random.Random(seed)
    whole = example(rng).SerializeToString()[:2000]
    for _ in range(300):
        data = bytearray(whole[: rng.randrange(len(whole) + 1)])
        for _ in range(rng.randrange(3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            found = made(bytes(data))
        except ValueError:
            continue
        try:
            read = expected(bytes(data))
        except DecodeError:
            continue  # a group, say, that is not closed within a field nobody knows
        assert [page[:2] for page in found[0]] == [page[:2] for page in read[0]]
        assert found[1:3] == read[1:3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"buffer_offsets": [1]}, "1 buffer positions but 0 buffer sizes"),
        ({"buffer_offsets": [FILE_BYTES], "buffer_sizes": [1]}, "leaves the file"),
        ({"buffer_offsets": [(1 << 64) - 1], "buffer_sizes": [1]}, "leaves the file"),
        ({"buffer_offsets": [1], "buffer_sizes": [(1 << 64) - 1]}, "leaves the file"),
        ({"length": MOST_ROWS + 1}, "more rows"),
        ({"length": (1 << 64) - 1}, "more rows"),
    ],
)
def test_column_pages_with_invalid_buffers_are_refused(
    change: dict[str, object], said: str
) -> None:
    page = file2_pb2.ColumnMetadata.Page(**change)  # type: ignore[arg-type]
    for pages in ([page], [file2_pb2.ColumnMetadata.Page(length=1), page]):
        data = file2_pb2.ColumnMetadata(pages=pages).SerializeToString()
        with pytest.raises(ValueError, match=said):
            find_pages(data, FILE_BYTES, MOST_ROWS)


def test_encodings_outside_the_file_are_refused() -> None:
    far = file2_pb2.Encoding(
        indirect=file2_pb2.DeferredEncoding(buffer_location=FILE_BYTES, buffer_length=1)
    )
    page = file2_pb2.ColumnMetadata.Page(encoding=far)
    for message in (
        file2_pb2.ColumnMetadata(encoding=far),
        file2_pb2.ColumnMetadata(pages=[page]),
    ):
        with pytest.raises(ValueError, match="an encoding leaves the file"):
            find_pages(message.SerializeToString(), FILE_BYTES, MOST_ROWS)
