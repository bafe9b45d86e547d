"""``import pennon`` is light, and its names are where pylance has them."""

from __future__ import annotations

import subprocess
import sys

LIGHT = """
import sys
import pennon
heavy = {"pandas", "pyspark", "obstore", "pyarrow.dataset", "typer", "rich"} & sys.modules.keys()
assert not heavy, heavy
"""
NAMES = """
import pennon as lance
from pennon.dataset import LanceDataset, LanceOperation, LanceScanner, ScannerBuilder, Transaction
from pennon.dataset import write_dataset
from pennon.fragment import DataFile, DeletionFile, FragmentMetadata, LanceFragment
from pennon.fragment import RowIdMeta, write_fragments
from pennon.progress import FragmentWriteProgress, NoopFragmentWriteProgress
assert callable(lance.dataset) and lance.write_dataset is write_dataset
assert lance.LanceDataset is LanceDataset and lance.LanceFragment is LanceFragment
assert lance.fragment.write_fragments is write_fragments
assert lance.file.LanceFileReader and lance.file.LanceFileWriter
assert lance.LanceScanner is LanceScanner and lance.LanceOperation is LanceOperation
assert lance.FragmentMetadata is FragmentMetadata and lance.Transaction is Transaction
"""


def _run(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_import_is_light() -> None:
    _run(LIGHT)


def test_names_are_where_pylance_has_them() -> None:
    _run(NAMES)
