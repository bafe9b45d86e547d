"""Errors for a missing optional package, and the packages that every install has."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said_without(package: str, program: str) -> str:
    """Return the output of a program in a Python that lacks a package."""
    blocked = f"""
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_missing = name.partition(".")[0] == {package!r}
        return None if is_missing else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
    run = subprocess.run(
        [sys.executable, "-c", blocked + program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, run.stderr
    return run.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "call",
    ["table.to_pandas()", "table.get_fragments()[0].to_pandas()", "table.scanner().to_pandas()"],
)
def test_to_pandas_without_pandas_names_the_extra(tmp_path: Path, call: str) -> None:
    program = f"import pennon; table = pennon.write_dataset([{{'a': 1}}], {str(tmp_path / 't')!r}); {call}"
    said = said_without("pandas", program)
    assert said.startswith("ModuleNotFoundError: to_pandas needs the package pandas")
    assert "pip install 'pandas>=2.2'" in said


@pytest.mark.parametrize("name", ["LanceTable", "read", "local_session"])
def test_spark_without_pyspark_names_the_extra(name: str) -> None:
    said = said_without("pyspark", f"from pennon.spark import {name}")
    assert f"ModuleNotFoundError: pennon.spark.{name} needs the package pyspark" in said
    assert "pip install 'pennon[spark]'" in said


def test_namespace_without_its_models_names_the_extra() -> None:
    program = "from pennon.catalog import DirectoryCatalog, RestCatalog; import pennon.namespace"
    said = said_without("lance_namespace", program)
    assert "ModuleNotFoundError: pennon.namespace needs the package lance_namespace" in said
    assert "pip install 'pennon[namespace]'" in said


def test_extras_named_in_errors_exist() -> None:
    from pennon.core.extras import not_installed

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package in (
        "datafusion",
        "datasets",
        "huggingface_hub",
        "lance_namespace",
        "pyspark",
        "torch",
    ):
        extra = str(not_installed(package, "this")).partition("[")[2].partition("]")[0]
        packages = project["optional-dependencies"][extra]
        assert any(each.startswith(package.replace("_", "-")) for each in packages)


def test_stemmer_of_the_default_text_index_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(each.startswith("snowballstemmer") for each in project["dependencies"])
