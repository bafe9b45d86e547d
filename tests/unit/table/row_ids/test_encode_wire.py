"""Row ids and row versions as bytes: pylance reads them, and does not write them smaller."""

from __future__ import annotations

from typing import Any

import lance.fragment as oracle_fragment
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import count_row_ids, decode_row_ids, decode_row_versions
from pennon.table.row_ids.encode_wire import encode_row_ids, encode_row_versions

RANGES = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 300)), min_size=1, max_size=4)
FORMS: dict[str, Any] = {
    "no row": [],
    "one": [2**60],
    "a range": range(5, 500),
    "holes": [n for n in range(1000) if n % 100],
    "a bitmap": [n for n in range(1000) if n % 3],
    "a sorted array": [n * 1000 for n in range(50)],
    "a wide sorted array": [0, 2**20, 2**40, 2**63],
    "an array": [9, 3, 7, 1, 8],
    "a wide array": [2**63, 1, 2**40],
}


ORACLE: Any = oracle_fragment


def oracle(ids: Any) -> bytes:
    meta = ORACLE.RowIdSequence(list(ids)).to_inline_metadata()
    return bytes(meta.asdict()["Inline"])


def read_by_oracle(data: bytes) -> list[int]:
    inline = ORACLE.RowIdMeta.from_json(f'{{"Inline": {list(data)}}}')
    return list(ORACLE.RowIdSequence.from_inline_metadata(inline))


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_the_oracles(name: str) -> None:
    ids = np.array(FORMS[name], np.uint64)
    data = encode_row_ids(ids)
    assert data == oracle(FORMS[name])
    assert decode_row_ids(data, len(ids)).tolist() == list(FORMS[name])
    assert count_row_ids(data) == len(ids)


@settings(max_examples=100, deadline=None)
@given(RANGES, st.randoms(use_true_random=False))
def test_encoded_row_ids_are_read_by_pylance(ranges: list[tuple[int, int]], random: Any) -> None:
    """What compaction makes of fragments: stretches, one behind the other, some rows missing."""
    ids = [
        n for start, count in ranges for n in range(start, start + count) if random.random() > 0.1
    ]
    ids = list(dict.fromkeys(ids))
    data = encode_row_ids(np.array(ids, np.uint64))
    assert decode_row_ids(data, len(ids)).tolist() == ids
    assert read_by_oracle(data) == ids
    assert count_row_ids(data) == len(ids)
    assert len(data) <= len(oracle(ids)) + 40 * len(ranges)


def test_row_ids_are_split_where_they_do_not_ascend() -> None:
    ids = np.concatenate([np.arange(5000, 9000), np.arange(0, 4000)]).astype(np.uint64)
    assert len(encode_row_ids(ids)) < 30
    shuffled: RowIds = np.random.default_rng(1).permutation(ids)
    assert decode_row_ids(encode_row_ids(shuffled), 8000).tolist() == shuffled.tolist()


@pytest.mark.parametrize("versions", [[], [3], [1, 1, 2, 2, 2, 1], list(range(20)), [2**40] * 9])
def test_versions_are_runs(versions: list[int]) -> None:
    data = encode_row_versions(np.array(versions, np.uint64))
    assert decode_row_versions(data, len(versions)).tolist() == versions
