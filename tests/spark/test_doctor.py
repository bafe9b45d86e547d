"""`LanceTable.doctor`: the same findings as on one machine, found by executors."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from pennon import doctor
from pennon.spark import LanceTable
from tests.faults.doctored import files_of, place, write_everything


def test_doctor_on_executors_equals_the_one_on_threads(spark: SparkSession, tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    write_everything(uri, stable=True)
    table = LanceTable.forPath(spark, str(uri))
    assert table.doctor(deep=True).count() == 0
    files = sorted(files_of(uri))
    place(files[0], None)
    place(files[-1], files[-1].read_bytes()[:100])
    found = [tuple(row) for row in table.doctor(deep=True).collect()]
    wanted = [
        (
            *(str(each.severity), each.code, each.what, each.where, each.advice, each.file),
            *(each.fragment, each.column, each.index),
        )
        for each in doctor.examine(uri, deep=True)
    ]
    assert found == wanted
    assert len({row[5] for row in found}) == 2
