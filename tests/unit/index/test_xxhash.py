"""xxHash64 beside published values, and those of its own specification's generator."""

from __future__ import annotations

import pytest

from pennon.index.scalar.xxhash import xxhash64

KNOWN = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


@pytest.mark.parametrize("data", KNOWN)
def test_known_hashes(data: bytes) -> None:
    assert xxhash64(data) == KNOWN[data]
