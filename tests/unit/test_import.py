"""``import pennon`` is light, and its names are where pylance has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import pennon

LIGHT = """
import sys
import numpy, pyarrow
before = set(sys.modules)
import pennon
heavy = {"pandas", "pyspark", "obstore", "sqlglot", "pyarrow.dataset", "click", "rich", "secrets"}
writers = {"pennon.file.container.writer", "pennon.dataset.operation", "pennon.table.commit.loop"}
versions = {"pennon.file.container.file", "pennon.encoding.v2_0.encodings", "pennon.encoding.v2_1.encodings"}
versions |= {"pennon.file.v0_1", "pennon.file.v2_0", "pennon.file.v2_1", "pennon.file.container.wire"}
found = (heavy | writers | versions) & sys.modules.keys() - before
assert not found, found
"""
NO_FORKS = """
import importlib, importlib.util, os, pkgutil
needs = {"pennon.as_lance.torch.": "torch", "pennon.torch": "torch", "pennon.hf.builder": "datasets", "pennon.otel": "opentelemetry"}
needs |= {"pennon.arrow.bfloat16_pandas": "pandas", "pennon.namespace": "lance_namespace", "pennon.spark.": "pyspark"}
needs |= {"pennon.pydantic": "pydantic", "pennon.schema.pydantic_models": "pydantic"}
needs |= {"pennon.table.external.dynamodb_client": "botocore"}
absent = tuple(name for name, package in needs.items() if importlib.util.find_spec(package) is None)
for name in ("register_at_fork", "fork", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "sched_setaffinity"):
    delattr(os, name)
import pennon
seen = 0
for module in pkgutil.walk_packages(pennon.__path__, "pennon."):
    if not module.name.endswith(".__main__") and not module.name.startswith(absent):
        importlib.import_module(module.name)
        seen += 1
assert seen > 300, seen
"""
HEAD = """
import runpy, sys
sys.argv = ["pennon", "head", {uri!r}]
try:
    runpy.run_module("pennon.cli.main", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
found = {"pandas", "pyspark", "obstore", "pyarrow.compute", "pyarrow.dataset"} & sys.modules.keys()
versions = {"pennon.file.v0_1", "pennon.file.v2_0", "pennon.encoding.v2_0.encodings"}
found |= ({"pennon.file.container.writer", "pennon.expr.tree"} | versions) & sys.modules.keys()
assert not found, found
"""
FILTER = """
import sys
import pyarrow as pa
from pennon.expr.parse import parse_filter
assert parse_filter("s IS NULL OR s < t", pa.schema({"s": pa.string(), "t": pa.string()}))
assert "pandas" not in sys.modules, "pa.scalar and pa.array import pandas when first called"
"""
MERGE = """
import sys
import pyarrow as pa
import pennon
table = pennon.write_dataset(pa.table({"k": pa.array([1, 2, 3]), "v": pa.array([1.0, 2.0, 3.0])}), {uri!r})
table.create_scalar_index("k", "BTREE")
merge = table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
assert merge.execute(pa.table({"k": pa.array([3, 4]), "v": pa.array([0.0, 0.0])}))["num_updated_rows"] == 1
assert not {"pyspark", "obstore", "sqlglot"} & sys.modules.keys()
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


def test_modules_load_on_systems_without_fork_and_flags_of_posix() -> None:
    _run(NO_FORKS)


def test_head_command_loads_few_modules(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(pa.table({"n": [1, 2], "w": ["a", None]}), uri)
    _run(HEAD.replace("{uri!r}", repr(uri)))


def test_a_merge_without_conditions_loads_no_parser(tmp_path: Path) -> None:
    _run(MERGE.replace("{uri!r}", repr(str(tmp_path / "t.lance"))))


def test_a_condition_loads_no_pandas() -> None:
    _run(FILTER)


def test_modules_and_names_have_the_places_of_pylance() -> None:
    _run(NAMES)
