"""Options of a compaction: the call's, then the table's config, then defaults."""

from __future__ import annotations

from typing import Any

import pytest

from pennon.errors import ArgumentError
from pennon.ops.compact.options import CompactOptions


def test_compact_options_of_the_call_override_the_config() -> None:
    config = {
        "lance.compaction.target_rows_per_fragment": "10",
        "lance.compaction.materialize_deletions": "False",
        "lance.compaction.materialize_deletions_threshold": "0.5",
        "lance.compaction.num_threads": "7",
        "lance.compaction.unheard_of": "x",
        "else": "y",
    }
    options = CompactOptions.of({"target_rows_per_fragment": 20, "batch_size": None}, config)
    assert options == CompactOptions(
        target_rows_per_fragment=20,
        materialize_deletions=False,
        materialize_deletions_threshold=0.5,
    )
    assert not options.materializes


def test_a_threshold_of_all_rows_means_never() -> None:
    assert not CompactOptions(materialize_deletions_threshold=1.0).materializes
    assert CompactOptions(materialize_deletions_threshold=0.99).materializes


@pytest.mark.parametrize(
    "given",
    [
        {"foo": 1},
        {"target_rows_per_fragment": 0},
        {"target_rows_per_fragment": 1.5},
        {"max_source_rows": 0},
        {"num_threads": -1},
        {"compaction_mode": "x"},
        {"data_storage_version": "9"},
    ],
)
def test_compaction_options_with_wrong_values_are_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ArgumentError, match=f"{name}|compaction mode|file version"):
        CompactOptions.of(given, {})


@pytest.mark.parametrize("text", ["x", "", "-1"])
def test_compact_options_with_invalid_config_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="target_rows_per_fragment"):
        CompactOptions.of({}, {"lance.compaction.target_rows_per_fragment": text})
    with pytest.raises(ArgumentError, match="materialize_deletions"):
        CompactOptions.of({}, {"lance.compaction.materialize_deletions": text})
