"""Compaction and clean-up of a table in a bucket, which pylance then reads."""

from __future__ import annotations

from datetime import timedelta

import lance
import pyarrow as pa

import pennon
from tests.unit.io.s3_server import BUCKET, serving_s3


def test_compaction_and_clean_up_in_s3() -> None:
    with serving_s3() as s3:
        uri, options = f"s3://{BUCKET}/upkeep", s3.options
        for number in range(3):
            data = pa.table({"n": [number, number + 10]})
            pennon.write_dataset(
                data, uri, mode="append" if number else "create", storage_options=options
            )
        table = pennon.dataset(uri, storage_options=options)
        table.delete("n = 1")
        table.tags.create("deleted", 4)
        assert table.optimize.compact_files(target_rows_per_fragment=100).fragments_removed == 3
        rows = [0, 10, 11, 2, 12]
        stats = table.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
        assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (4, 0, 0)
        table.tags.delete("deleted")
        explained = table.explain_cleanup_old_versions(timedelta(0), include_files=True)
        stats = table.cleanup_old_versions(timedelta(0))
        assert stats == explained.stats
        assert (stats.old_versions, stats.data_files_removed) == (1, 3)
        theirs = lance.dataset(uri, storage_options=options)
        assert [each["version"] for each in theirs.versions()] == [6]
        assert theirs.to_table()["n"].to_pylist() == rows
        left = table.all_files().read_all()["path"].to_pylist()
        assert not [path for path in left if "/.tmp" in path]
        assert len([path for path in left if path.startswith("data/")]) == 1
