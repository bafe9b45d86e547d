"""Install the wheel of ``dist/`` into a bare environment outside the tree, and try it as a stranger would.

It runs README's first Python lines and the command there, and measures what they cost::

    python scripts/try_wheel.py                       # with this Python, the packages of the registry
    python scripts/try_wheel.py --python python3.15   # another one; it needs no compiler

Needs nothing but the standard library, so it runs in a system that has only Python.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_IMPORT_SECONDS = 0.4
MOST_BESIDE_BYTES = 60_000_000
"""The size of Pennon and all its dependencies but the two that are there already in most environments."""
LARGE = ("numpy", "numpy.libs", "pyarrow", "pyarrow.libs")
TOOLS = ("pip", "setuptools")
IMPORT_SECONDS = """
import time
start = time.process_time()
import pennon
pennon.dataset
print(time.process_time() - start)
"""
DEFAULT_CALLS = """
import pennon
import pyarrow as pa
from pennon.dataset import ColumnOrdering
rows = [{"id": n, "word": f"word {n % 7}", "v": [float(n), 1.0]} for n in range(300)]
vectors = pa.list_(pa.float32(), 2)
table = pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("word", pa.string()), ("v", vectors)]))
ds = pennon.write_dataset(table, "calls.lance")
assert ds.to_table(nearest={"column": "v", "q": [7.0, 1.0], "k": 3}).column("id")[0].as_py() == 7
ds.create_scalar_index("id", "BTREE")
ds.create_scalar_index("word", "INVERTED")
assert ds.to_table(filter="id = 5").num_rows == 1
assert ds.to_table(full_text_query="word", limit=4).num_rows == 4
ordered = ds.scanner(columns=["id"], order_by=[ColumnOrdering("id", ascending=False)]).to_table()
assert ordered.column("id")[0].as_py() == 299
ds.update({"word": "upper(word)"}, where="id < 10")
ds.merge_insert("id").when_not_matched_insert_all().execute(table)
ds.delete("id > 100")
ds.optimize.compact_files()
assert ds.count_rows() == 101
"""
VERSION = "import pennon, sys; print(pennon.__version__, 'on Python', sys.version.split()[0])"


def main() -> None:
    """Install, try and measure; exit with 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", default=sys.executable, help="the Python to make the environment with"
    )
    parser.add_argument("--wheel", type=Path, help="the wheel, if not the one of dist/")
    options = parser.parse_args()
    wheel = options.wheel or the_wheel()
    with tempfile.TemporaryDirectory(prefix="pennon-try-") as folder:
        python = install(options.python, wheel.resolve(), Path(folder))
        print(run(python, folder, "-c", VERSION))
        run(python, folder, "-c", readme_lines())
        run(python, folder, "-c", DEFAULT_CALLS)
        assert "Usage" in run(python, folder, "-m", "pennon.cli.main", "--help")
        print("README's first lines, default calls and the command run")
        run(python, folder, "-c", IMPORT_SECONDS)  # compiles all modules
        seconds = min(float(run(python, folder, "-c", IMPORT_SECONDS)) for _ in range(5))
        sizes = sizes_of(site_packages(python, folder))
    print(f"wheel: {wheel.stat().st_size:,} bytes")
    beside = sum(size for name, size in sizes.items() if name not in LARGE)
    print(f"installed, without compiled modules (.pyc) and pip: {sum(sizes.values()):,} bytes")
    print(f"beside pyarrow and NumPy: {beside:,} bytes; pennon {sizes['pennon']:,}")
    print(f"import pennon: {seconds:.3f} s of processor time, the best of 5")
    if seconds > MOST_IMPORT_SECONDS or beside > MOST_BESIDE_BYTES:
        sys.exit(
            f"more than {MOST_IMPORT_SECONDS} s, or {MOST_BESIDE_BYTES:,} bytes beside pyarrow and NumPy"
        )


def the_wheel() -> Path:
    """Return the one wheel of ``dist/``."""
    found = sorted((ROOT / "dist").glob("pennon-*.whl"))
    if len(found) != 1:
        sys.exit(f"{len(found)} wheels in dist/, not one: run make wheel")
    return found[0]


def install(python: str, wheel: Path, folder: Path) -> str:
    """Make an environment, install the wheel with its dependencies; return the environment's Python."""
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    ours = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    command = [ours, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel)]
    subprocess.run(command, cwd=folder, env=environment(), check=True)
    return ours


def run(python: str, folder: str, *arguments: str) -> str:
    """Run Python outside the tree; return what it prints."""
    command = [python, *arguments]
    env = environment()
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def environment() -> dict[str, str]:
    """Return this process's environment without what leads Python elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"
    }


def readme_lines() -> str:
    """Return README's first Python block."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found, "README.md has no Python block"
    return found[1]


def site_packages(python: str, folder: str) -> Path:
    """Return where an environment's packages lie."""
    return Path(run(python, folder, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"))


def sizes_of(packages: Path) -> dict[str, int]:
    """Return the size of each installed package, without the environment's own tools and compiled modules."""
    sizes: Counter[str] = Counter()
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0]
        if path.is_file() and path.suffix != ".pyc" and name.partition("-")[0] not in TOOLS:
            sizes[name] += path.stat().st_size
    return sizes


if __name__ == "__main__":
    main()
