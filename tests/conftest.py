"""Shared test settings: markers by folder, one worker for Spark, reproducible examples."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.schedule import other_variants, part_of, seconds_of

HERE = Path(__file__).parent
THOROUGH = frozenset(
    [
        "faults",
        "golden/test_indices.py",
        "interop/test_api_parity_programs.py",
        "interop/test_bench_search.py",
        "interop/test_catalog.py",
        "interop/test_blob_lists.py",
        "interop/test_blob_operations.py",
        "interop/test_changed_tables_2_1.py",
        "interop/test_changes.py",
        "interop/test_columns.py",
        "interop/test_columns_2_2.py",
        "interop/test_conflicts.py",
        "interop/test_contract_2_1.py",
        "interop/test_deferred_remap.py",
        "interop/test_encoding_hints_2_1.py",
        "interop/test_encodings_2_1.py",
        "interop/test_engines.py",
        "interop/test_external_stores.py",
        "interop/test_file_0_1.py",
        "interop/test_filters.py",
        "interop/test_graphs_of_equal_rows.py",
        "interop/test_index_conflicts.py",
        "interop/test_index_matrix.py",
        "interop/test_index_paths.py",
        "interop/test_index_read.py",
        "interop/test_index_write.py",
        "interop/test_indexed_tables.py",
        "interop/test_inspect.py",
        "interop/test_json_index.py",
        "interop/test_matrix_2_0.py",
        "interop/test_matrix_2_1.py",
        "interop/test_moved_rows.py",
        "interop/test_namespace_servers.py",
        "interop/test_nearest.py",
        "interop/test_nested_2_1.py",
        "interop/test_old_readers.py",
        "interop/test_parts_2_2.py",
        "interop/test_point_reads_2_1.py",
        "interop/test_random_2_0.py",
        "interop/test_scanner.py",
        "interop/test_shared_tables.py",
        "interop/test_sizes.py",
        "interop/test_sizes_2_1.py",
        "interop/test_statistics_0_1.py",
        "interop/test_take_across.py",
        "interop/test_text_build.py",
        "interop/test_text_search.py",
        "interop/test_vector_build.py",
        "interop/test_vector_indices.py",
        "interop/test_vector_shuffle.py",
        "interop/test_write_2_1.py",
        "interop/test_wrong_indices.py",
        "limits",
        "property/test_bounds.py",
        "property/test_indexed_programs.py",
        "property/test_many_columns.py",
        "property/test_many_fragments.py",
        "property/test_programs.py",
        "spark/test_aggregates.py",
        "spark/test_apply_changes.py",
        "spark/test_backfill.py",
        "spark/test_catalog.py",
        "spark/test_changing_sources.py",
        "spark/test_clustering.py",
        "spark/test_column_update.py",
        "spark/test_conflicts.py",
        "spark/test_diff.py",
        "spark/test_docs.py",
        "spark/test_examples.py",
        "spark/test_index_matrix.py",
        "spark/test_indices.py",
        "spark/test_kills.py",
        "spark/test_lance_table_upkeep.py",
        "spark/test_maps.py",
        "spark/test_merge_keys.py",
        "spark/test_modes.py",
        "spark/test_names_of_merges.py",
        "spark/test_nested_changes.py",
        "spark/test_nested_programs.py",
        "spark/test_odd_names.py",
        "spark/test_parity.py",
        "spark/test_partial_overwrite.py",
        "spark/test_stream_kills.py",
        "spark/test_stream_source.py",
        "spark/test_streams.py",
        "spark/test_tpch.py",
        "spark/test_write_rules.py",
        "spark/test_write_schema.py",
        "unit/cli/test_main.py",
        "unit/cli/test_terminal.py",
        "unit/expr/test_fuzz.py",
        "unit/index/kernels/vectors/test_vector_rows.py",
        "unit/io/test_retries.py",
    ]
)
"""What `make check` runs and `make test` leaves out: folders, and modules that take long."""

settings.register_profile(
    "pennon", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pennon")


class OneSparkWorker(LoadScopeScheduling):
    """Gives all of Spark's tests to one worker, for a JVM takes long to start; others go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith("tests/spark/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSparkWorker | None:
    """Share the tests out; ``--dist loadgroup`` would, but pytest 9 shows it no groups."""
    return OneSparkWorker(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--part 2/3``: the second of three parts of a run."""
    text = "run part N of M, which take about the same time"
    parser.addoption("--part", metavar="N/M", type=_part, help=text)


def _part(text: str) -> tuple[int, int]:
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return number, count


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Mark tests by their folder; of those that run choose a part, and put Spark's first, then the longest.

    Spark's are one long queue on one worker, in the order of their modules.
    """
    named = {Path(each.partition("::")[0]).resolve() for each in config.args}
    _mark_variants(
        item for item in items if item.get_closest_marker("slow") is None and item.path not in named
    )
    for item in items:
        place = item.path.relative_to(HERE)
        folder = place.parts[0]
        if {folder, place.as_posix()} & THOROUGH:
            item.add_marker("thorough")
        if folder in {"spark", "interop"}:
            item.add_marker(folder)
    yield  # -m and -k choose
    if config.option.part is not None:
        number, count = config.option.part
        kept = set(part_of(items, [_seconds(item) for item in items], number, count))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    items.sort(
        key=lambda item: -_seconds(item) if item.get_closest_marker("spark") is None else -1e9
    )


def _mark_variants(items: Iterable[pytest.Item]) -> None:
    """Mark most variants of the modules of `tests.schedule` as slow."""
    for path, group in groupby(items, key=lambda item: item.path):
        tests = list(group)
        functions = [item.name.partition("[")[0] for item in tests]
        for at in other_variants(path.relative_to(HERE).as_posix(), functions):
            tests[at].add_marker("slow")


def _seconds(item: pytest.Item) -> float:
    module = item.path.relative_to(HERE).as_posix()
    function = item.name.partition("[")[0]
    return seconds_of(module, function, is_slow=item.get_closest_marker("slow") is not None)


@pytest.fixture(autouse=True)
def passed_tests_leave_no_files(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empty the folder of each test that passed: all of them together fill a small disk.

    The folder itself stays, so no later test gets the same path, under which a cache may know another table.
    """
    folder: Path | None = None
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    failed = request.session.testsfailed
    yield
    if folder is None or request.session.testsfailed > failed:
        return
    for each in folder.glob("*"):
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
