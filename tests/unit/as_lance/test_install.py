"""`import lance` as Pennon: in a process, in those that it starts, and beside pylance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import importlib.metadata, lance
from lance.fragment import FragmentMetadata
print(lance.__version__, importlib.metadata.version("pylance"), lance.LanceDataset.__module__)
"""
EXPECTED = "14.0.2 14.0.2 pennon.dataset.lance_dataset"


def run(*arguments: str | Path, path: str = "") -> str:
    """Run Python in a process of its own; return what it printed, errors behind."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path) + os.pathsep + path}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def run_installed(code: str) -> str:
    """Run code behind `install_as_lance`."""
    return run("-c", f"import pennon\npennon.install_as_lance()\n{code}")


def test_import_lance_after_install_imports_pennon() -> None:
    assert run_installed(CHILD) == EXPECTED


def test_module_dataset_does_not_hide_the_function_dataset() -> None:
    code = """
import lance.dataset
import lance.dataset as door
from lance.dataset import LanceDataset, write_dataset
import lance
assert door is lance.dataset is pennon.dataset
assert LanceDataset is pennon.LanceDataset
print("same")
"""
    assert run_installed(code) == "same"


def test_every_module_of_the_table_is_importable_and_not_loaded_before() -> None:
    code = """
import importlib, sys
import lance
from pennon.as_lance.modules import MODULES
assert [name for name in sys.modules if name.startswith("lance.")] == ["lance.dataset"]
for name, home in MODULES.items():
    try:
        assert importlib.import_module(name) is importlib.import_module(home), name
    except ModuleNotFoundError as error:
        assert error.name == "torch" and ".torch." in name, error
print("all")
"""
    assert run_installed(code) == "all"


def test_a_module_that_pennon_lacks_is_a_module_not_found_error() -> None:
    code = """
try:
    import lance.no_such_module
except ModuleNotFoundError as error:
    print(error.name, "docs/compat.md" in str(error))
"""
    assert run_installed(code) == "lance.no_such_module True"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_import_pennon_as_lance(tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing
import lance
from lance.fragment import FragmentMetadata

def answer(fragment):
    import lance.fragment
    return lance.__version__, fragment.id, type(fragment) is lance.fragment.FragmentMetadata

if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        print(pool.map(answer, [FragmentMetadata(7, [], 0)]))
"""
    )
    assert run("-m", "pennon.as_lance", program) == "[('14.0.2', 7, True)]"


def test_processes_started_after_install_import_pennon_as_lance() -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {CHILD!r}])"
    assert run_installed(code) == EXPECTED


def test_install_without_subprocesses_leaves_the_environment() -> None:
    code = """
import os, pennon
before = dict(os.environ)
pennon.install_as_lance(subprocesses=False)
import lance
print(dict(os.environ) == before, lance.__version__)
"""
    assert run("-c", code) == "True 14.0.2"


def test_second_install_has_no_effect() -> None:
    code = """
import os, sys
def state():
    return list(sys.meta_path), list(sys.path), dict(os.environ)
before = state()
pennon.install_as_lance()
print(state() == before)
"""
    assert run_installed(code) == "True"


def test_install_beside_loaded_pylance_is_refused() -> None:
    code = """
import lance, pennon
try:
    pennon.install_as_lance()
except NotImplementedError as error:
    print(error)
"""
    printed = run("-c", code)
    assert printed.startswith("install_as_lance() must run before `import lance`")
    assert str(Path("lance", "__init__.py")) in printed


def test_programs_without_install_import_pylance() -> None:
    code = "import pennon, lance; print(lance.LanceDataset.__module__)"
    assert run("-c", code) == "lance.dataset"


def test_command_as_lance_passes_arguments_and_exit_code_on(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys, lance\nprint(lance.__version__, sys.argv[1:])\n")
    assert run("-m", "pennon.as_lance", program, "--option", "1") == "14.0.2 ['--option', '1']"
    assert run("-m", "pennon.as_lance", "-c", CHILD) == EXPECTED
    folder = run("-m", "pennon.as_lance", "--path")
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    asked = [sys.executable, "-c", "import lance, sys; sys.exit(len(lance.__version__))"]
    assert subprocess.run(asked, env=found, check=False).returncode == len("14.0.2")
    assert run("-m", "pennon.as_lance").startswith("usage: python -m pennon.as_lance")
