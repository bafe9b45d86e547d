"""All code blocks of the documents run; those that need Spark: tests/spark/test_docs.py, torch: tests/training."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pennon
from tests.documents import ROOT, blocks, pages, run, section
from tests.unit.io import dynamodb_tables
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3
from tests.unit.io.web_server import serving

README = ROOT / "README.md"
WHOLE = [
    "catalogs.md",
    "dataframes.md",
    "doctor.md",
    "embeddings.md",
    "index.md",
    "migrate/from-lancedb.md",
    "migrate/from-parquet.md",
    "migrate/from-pylance.md",
    "migrate/from-webdataset.md",
    "monitoring.md",
    "operations.md",
    "search.md",
    "security.md",
    "sql.md",
    "tables.md",
    "versions.md",
]
"""Pages whose blocks run one after the other in an empty folder, with nothing defined before."""
RUN_HERE = {"README.md", "compat.md", "stores.md", *(Path(each).name for each in WHOLE)}
RUN_BESIDE_ENGINES = {"huggingface.md", "ray-daft.md"}
"""Run by tests/engines, in the environment of these libraries."""
RUN_ON_SPARK = {
    "README.md",
    "from-delta.md",
    "spark.md",
    "sql-on-spark.md",
    "streams.md",
    "tutorial.md",
}
RUN_WITH_TORCH = {"training.md"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder that is empty, and end logs that a page begins."""
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("pennon")
    before, level = list(logger.handlers), logger.level
    yield
    for handler in set(logger.handlers) - set(before):
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(level)


def test_pages_with_python_blocks_are_run_by_a_test() -> None:
    found = {each.name for each in pages() if blocks(each, "python")}
    assert found == RUN_HERE | RUN_BESIDE_ENGINES | RUN_ON_SPARK | RUN_WITH_TORCH


def test_every_code_block_names_its_language_and_none_is_indented() -> None:
    for page in pages():
        text = page.read_text()
        languages = {each.language for each in blocks(page)}
        assert languages <= {"python", "sql", "sh", "text", "yaml"}, page
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n    \S", outside), f"{page}: an indented block is run by no test"


def test_the_python_blocks_of_the_readme_run_and_polars_takes_no_dataset() -> None:
    names: dict[str, Any] = {}
    found = section(README, "# Pennon", "## From Spark")
    assert len(found) > 2
    for block in found:
        run(block, names)
    with pytest.raises(TypeError):
        pl.from_arrow(names["ds"])


def test_the_python_blocks_of_the_tutorial_run_up_to_spark() -> None:
    names: dict[str, Any] = {}
    for block in section(ROOT / "docs" / "tutorial.md", "# Tutorial", "## On Spark"):
        run(block, names)


@pytest.mark.parametrize("page", WHOLE)
def test_the_python_blocks_of_a_page_run(page: str) -> None:
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / page, "python"):
        run(block, names)


def test_the_python_blocks_of_compat_run_in_a_process_of_their_own() -> None:
    for block in blocks(ROOT / "docs" / "compat.md", "python"):
        subprocess.run([sys.executable, "-c", block.text], check=True)


def test_arrow_batches_of_the_page_about_training_need_no_torch() -> None:
    names: dict[str, Any] = {}
    for block in section(ROOT / "docs" / "training.md", "## Arrow batches, for JAX and NumPy"):
        run(block, names)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A bucket whose place and credentials stand in the environment, as a user's do."""
    with serving_s3() as one:
        dynamodb_tables.create_table(one)
        for key, value in one.options.items():
            name = key.upper() if key.startswith("aws") else f"AWS_{key.upper()}"
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DYNAMODB_ENDPOINT", one.options["aws_endpoint"])
        yield one


def test_the_python_blocks_of_stores_open_tables_in_a_bucket_and_on_a_web_server(
    s3: S3Server, tmp_path: Path
) -> None:
    rows = pa.table({"id": [1]})
    places = {"https://host": "", "/var/lib": str(tmp_path), "/mnt": str(tmp_path / "mnt")}
    mounted = f"file+sqlite://{tmp_path}/mnt/t.lance?sqliteFile={tmp_path}/manifests.db"
    (tmp_path / "mnt").mkdir()
    pennon.write_dataset(rows, f"s3://{BUCKET}/t.lance", storage_options=s3.options)
    pennon.write_dataset(rows, tmp_path / "tables" / "t.lance")
    pennon.write_dataset(rows, mounted)
    names: dict[str, Any] = {}
    with serving(tmp_path) as web:
        places["https://host"] = web.url
        for block in blocks(ROOT / "docs" / "stores.md", "python"):
            text = block.text
            for place, here in places.items():
                text = text.replace(place, here)
            run(type(block)(block.page, block.language, text, block.line), names)
    assert names["ds"].to_table() == rows


def test_the_commands_of_the_readme_run() -> None:
    uri, numbers = "flights.lance", range(9)
    flights = pa.table({"carrier": ["UA"] * 9, "flight": numbers, "dep_delay": numbers})
    pennon.write_dataset(flights, uri)
    commands = [
        line
        for block in blocks(README, "sh")
        for line in block.text.splitlines()
        if line.startswith("pennon ") and not line.startswith("pennon ingest ")
    ]
    assert len(commands) > 5
    program = f'pennon() {{ {sys.executable} -m pennon.cli.main "$@"; }}\n' + "\n".join(commands)
    subprocess.run(["sh", "-euc", program], check=True, capture_output=True)
    assert pennon.dataset(uri).data_storage_version == "2.1"


@pytest.mark.parametrize("page", [page.relative_to(ROOT).as_posix() for page in pages()])
def test_make_targets_named_by_a_page_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = (ROOT / page).read_text()
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    named = [re.sub(r"#.*|\b[A-Z]+=(\"[^\"]*\"|\S+)", "", line) for line in lines if "make" in line]
    for line in named:
        words = line.split()
        assert set(words[words.index("make") + 1 :]) <= known, line


def test_pages_with_several_python_blocks_name_their_order_and_needs() -> None:
    for page in pages():
        text = page.read_text()
        found = blocks(page, "python")
        if page.parent.name not in {"docs", "migrate"}:
            continue
        if len(found) > 1:
            before = " ".join(text[: text.index(found[0].text)].split())
            assert re.search(
                r"(?i)\brun the blocks\b|\bblocks?\b[^.]* (?:runs?|needs?)\b", before
            ), page
