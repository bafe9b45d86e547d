"""Values that Spark's hash partitioning places in given partitions."""

from __future__ import annotations

import pytest

from pennon.spark.placement import keys_of_partitions


def test_keys_of_partitions_are_the_least_that_hash_there() -> None:
    # Spark's hash(0) is 933211791, hash(1) is -559580957
    assert keys_of_partitions(1) == [0]
    assert keys_of_partitions(1000)[933211791 % 1000] == 0
    assert keys_of_partitions(1000)[-559580957 % 1000] == 1


@pytest.mark.parametrize("count", [2, 7, 200])
def test_keys_of_partitions_are_all_different(count: int) -> None:
    assert len(set(keys_of_partitions(count))) == count
