"""About how long tests take: the longest run first, and parts of a run take about the same time."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLOW_SECONDS: Final[Mapping[str, float]] = {
    "engines": 120,
    "faults": 3,
    "faults/test_index_mutants.py": 100,
    "faults/test_mutants_2_1.py": 60,
    "faults/test_mutants_2_1.py::test_20_000_mutants_of_2_2_encodings": 300,
    "faults/test_mutants_blobs.py": 60,
    "faults/test_simulation.py": 45,
    "faults/test_vector_index_mutants.py": 100,
    "interop": 1.5,
    "interop/test_index_matrix.py::test_index_answers_after_all_deferred_compaction_chains": 120,
    "interop/test_index_read.py": 30,
    "interop/test_index_write.py": 30,
    "interop/test_text_build.py": 30,
    "interop/test_text_search.py": 30,
    "limits": 30,
    "property": 60,
    "property/test_indexed_programs.py": 45,
    "property/test_many_fragments.py": 100,
    "property/test_programs.py": 15,
    "spark": 8,
    "unit": 20,
    "unit/test_site.py": 40,
}
"""Seconds of one test marked ``slow``, by folder, module or function below tests, on two quiet cores."""
SECONDS: Final[Mapping[str, float]] = {
    "faults": 1,
    "interop": 0.2,
    "limits": 2,
    "property": 2,
    "spark": 2,
    "spark/test_embeddings.py": 4,
    "unit": 0.05,
}
"""The same of any other test."""

VARIANTS: Final[Mapping[str, int]] = {
    "faults/test_catalogs.py": 3,
    "faults/test_commit.py": 3,
    "faults/test_index_columns.py": 5,
    "faults/test_many_writers.py": 3,
    "faults/test_mutants.py": 3,
    "faults/test_mutants_0_1.py": 3,
    "faults/test_mutants_2_1.py": 3,
    "faults/test_mutants_blobs.py": 3,
    "faults/test_mutants_bounds.py": 3,
    "faults/test_simulation.py": 3,
    "golden/test_indices.py": 3,
    "interop/test_api_parity_programs.py": 5,
    "interop/test_changed_tables_2_1.py": 3,
    "interop/test_changes.py": 5,
    "interop/test_columns.py": 5,
    "interop/test_conflicts.py": 5,
    "interop/test_contract_2_1.py": 5,
    "interop/test_graphs_of_equal_rows.py": 5,
    "interop/test_index_conflicts.py": 5,
    "interop/test_index_matrix.py": 5,
    "interop/test_index_paths.py": 3,
    "interop/test_index_read.py": 5,
    "interop/test_index_write.py": 5,
    "interop/test_inspect.py": 3,
    "interop/test_json_index.py": 5,
    "interop/test_matrix_2_0.py": 5,
    "interop/test_matrix_2_1.py": 5,
    "interop/test_nearest.py": 5,
    "interop/test_old_readers.py": 3,
    "interop/test_random_2_0.py": 5,
    "interop/test_scanner.py": 3,
    "interop/test_text_build.py": 5,
    "interop/test_text_search.py": 5,
    "interop/test_vector_build.py": 5,
    "interop/test_write_2_1.py": 5,
    "interop/test_wrong_indices.py": 3,
    "limits/test_wide_tables.py": 3,
    "property/test_change_feed.py": 5,
    "property/test_doctor.py": 3,
    "property/test_many_fragments.py": 3,
    "property/test_programs.py": 3,
    "property/test_table_stream.py": 5,
    "spark/test_aggregates.py": 3,
    "spark/test_apply_changes.py": 3,
    "spark/test_backfill.py": 3,
    "spark/test_change_feed.py": 3,
    "spark/test_column_update.py": 3,
    "spark/test_diff.py": 3,
    "spark/test_index_matrix.py": 3,
    "spark/test_indices.py": 3,
    "spark/test_lance_spark_statements.py": 5,
    "spark/test_lance_table_upkeep.py": 3,
    "spark/test_maps.py": 3,
    "spark/test_merge_keys.py": 3,
    "spark/test_names_of_merges.py": 3,
    "spark/test_nested_changes.py": 3,
    "spark/test_nested_programs.py": 3,
    "spark/test_odd_names.py": 5,
    "spark/test_parity.py": 3,
    "spark/test_sql_grouping.py": 3,
    "spark/test_sql_injection.py": 5,
    "spark/test_sql_queries_in_statements.py": 5,
    "spark/test_sql_top_rows.py": 3,
    "spark/test_stream_kills.py": 3,
    "spark/test_stream_source.py": 3,
    "spark/test_write_rules.py": 3,
    "spark/test_write_schema.py": 3,
    "unit/as_lance/test_install.py": 3,
    "unit/cli/test_terminal.py": 3,
    "unit/expr/test_fuzz.py": 3,
    "unit/index/kernels/vectors/test_vector_rows.py": 5,
    "unit/io/test_retries.py": 3,
}
"""Modules whose tests have many variants that take long: `make check` runs one variant of so many.

The others are slow.  All numbers are odd, for variants often come in pairs.
"""


def other_variants(module: str, functions: Sequence[str]) -> list[int]:
    """Return which tests of a module are slow, as variants of others; a function is named once a test."""
    every = VARIANTS.get(module, 1)
    found = []
    for function in dict.fromkeys(functions):
        places = [at for at, name in enumerate(functions) if name == function]
        # Functions begin at different variants, so that a module has all file versions.
        first = zlib.crc32(function.encode()) % min(every, len(places))
        found += [at for number, at in enumerate(places) if (number - first) % every]
    return found


def seconds_of(module: str, function: str, *, is_slow: bool) -> float:
    """Return about how long a test takes, as its function, else its module, else its folder says."""
    table = SLOW_SECONDS if is_slow else SECONDS
    places = f"{module}::{function}", module, module.partition("/")[0]
    return next((table[place] for place in places if place in table), 1)


def part_of(items: Sequence[T], seconds: Sequence[float], number: int, count: int) -> list[T]:
    """Return the items of one of several parts, in their order; ``number`` counts from 1.

    Each item, the longest first, goes to the part that has the fewest seconds so far.
    """
    sums, chosen = [0.0] * count, []
    for at in sorted(range(len(items)), key=lambda at: -seconds[at]):
        least = min(range(count), key=sums.__getitem__)
        sums[least] += seconds[at]
        if least == number - 1:
            chosen.append(at)
    return [items[at] for at in sorted(chosen)]
