"""The version, the wheel's contents, and the bill of materials."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import pennon
from pennon.release import RELEASE

ROOT = Path(__file__).parents[2]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_version_of_the_package_is_the_release() -> None:
    assert pennon.__version__ == RELEASE == str(Version(RELEASE))
    dynamic = project()["tool"]["setuptools"]["dynamic"]["version"]
    assert dynamic == {"attr": "pennon.release.RELEASE"}


def test_kernels_are_compiled_for_no_single_processor_and_all_pythons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PENNON_SANITIZE", raising=False)
    build = run_path(str(ROOT / "setup.py"))
    kernels = build["kernel_extensions"]()
    assert len(kernels) == 1 + len(list((ROOT / "src").rglob("*.pyx")))
    for kernel in kernels:
        assert kernel.py_limited_api is build["IS_LIMITED"]
        assert not [each for each in kernel.extra_compile_args if each.startswith("-m")]
        assert "-Werror=implicit-function-declaration" in kernel.extra_compile_args


def test_wheel_check_names_sources_and_missing_kernels(tmp_path: Path) -> None:
    wheel = tmp_path / "pennon-0-cp311-abi3-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("pennon/core/kernels/gather.abi3.so", b"")
        packed.writestr("pennon/core/kernels/gather.pyx", b"")
        packed.writestr("tests/conftest.py", b"")
    program = "import runpy, sys, pathlib; build = runpy.run_path('scripts/build.py');"
    program += "print(*build['wheel_faults'](pathlib.Path(sys.argv[1])), sep='\\n')"
    command = [sys.executable, "-c", program, str(wheel)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    faults = done.stdout.splitlines()
    assert "holds pennon/core/kernels/gather.pyx" in faults
    assert "holds tests/conftest.py" in faults
    assert "lacks the kernel pennon/core/kernels/mapping" in faults
    assert "lacks the kernel pennon/core/kernels/gather" not in faults


def test_bill_of_materials_lists_every_dependency_at_its_locked_version(tmp_path: Path) -> None:
    (tmp_path / "pennon-0-py3-none-any.whl").write_bytes(b"a wheel")
    made = run_path(str(ROOT / "scripts/sbom.py"))["document"](tmp_path)
    assert json.loads(json.dumps(made)) == made
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    root = made["metadata"]["component"]
    assert root["version"] == RELEASE
    assert [each["name"] for each in root["components"]] == ["pennon-0-py3-none-any.whl"]
    lock = (ROOT / "requirements/dev.lock").read_text("utf-8")
    versions = {each["name"]: each["version"] for each in made["components"]}
    for name, version in versions.items():
        assert re.search(rf"^{name}=={re.escape(version)}\b", lock, re.MULTILINE)
    assert {Requirement(each).name for each in project()["project"]["dependencies"]} <= set(
        versions
    )
    refs = {each["bom-ref"] for each in made["components"]} | {"pennon"}
    assert {each["ref"] for each in made["dependencies"]} == refs
    assert {ref for each in made["dependencies"] for ref in each["dependsOn"]} <= refs


def test_lower_bounds_are_those_of_the_lock_of_oldest_releases() -> None:
    lock = (ROOT / "requirements/lowest.lock").read_text("utf-8")
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    for text in project()["project"]["dependencies"]:
        need = Requirement(text)
        lowest = next(each.version for each in need.specifier if each.operator == ">=")
        assert need.specifier.contains(locked[need.name])
        assert Version(locked[need.name]).release[:2] == (*Version(lowest).release, 0)[:2]


def test_pythons_of_the_classifiers_are_those_that_setup_accepts() -> None:
    classifiers = project()["project"]["classifiers"]
    minors = [int(each.rpartition(".")[2]) for each in classifiers if ":: 3." in each]
    setup = (ROOT / "scripts/setup.sh").read_text("utf-8")
    assert minors == list(range(11, 16))
    assert f"(3, {minors[0]}) <= sys.version_info < (3, {minors[-1] + 1})" in setup
