"""Check rules that linters do not have: paths of one machine, long files, late imports, plain language."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Put together from parts, so that this file passes its own check.
FORBIDDEN = re.compile(
    "|".join(["/" + "work/", "py" + "pi\\.org", "python" + "hosted", "file:" + "///opt"])
)
LONGEST = 450
# The import contracts do not see Cython: a kernel knows arrays, not pages, files or stores.
KERNEL_IMPORT = re.compile(r"^\s*(?:from|c?import)\s+pennon\.(?!errors\b|core\.memory\b)(\S+)")
KERNELS: dict[str, tuple[str, ...]] = {
    "core": (),
    "encoding": ("core",),
    "expr": (),
    "file": ("core",),
    "index": ("core",),
    "table": ("core",),
    "training": (),
}
"""The rooms that have kernels, and the rooms whose kernels each of them may use beside its own."""
LATE_IMPORTS = 70
"""So many imports within functions may there be; each says in a comment what it saves."""
PACKAGE = Path("src/pennon")
RIDDLE_START = re.compile(
    r"(?:Of|What|Whoever|Whatever|Whose|So many|Where|Wherever|Being|Which|Whether|How|Who)\b"
)
RIDDLE_WITHIN = re.compile(r"\b(?:nobody|no part|of which|whoever|whatever)\b", re.IGNORECASE)
"""First lines of docstrings that say a riddle, where they could name the thing or its effect."""
VAGUE_TITLE = re.compile(
    r"test_(?:[^_]+$|(?:that|none|how|where)_|is_(?:refused|right|wrong)$|(?:\w+_)?(?:"
    r"what|whatever|wherever|whose|which|who|whom|whoever|nobody|somebody|nothing|anything|everything"
    r"|told|tells?|asked|asks?|said|says?|theirs|ours?|meanwhile|lies|alone|one_another|kept_as"
    r"|is_no|are_no(?!_larger|_more))(?:_|$))"
)
"""Titles of tests that name no feature, or hide it behind words like these."""
NEEDS_PANDAS = re.compile(r"\.to_pandas_dtype\(")
"""A call that works without pandas only where pyarrow is new."""
GENERATED = ("_pb2.py", "_pb2.pyi", ".lock", ".lance")


def tracked() -> list[Path]:
    """Return the files that git knows."""
    listing = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [path for name in listing.stdout.split("\0") if name and (path := Path(name)).is_file()]


def faults(path: Path) -> list[str]:
    """Return what is wrong with one file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    lines = text.splitlines()
    found = [
        f"{path}:{number}: an address or a path of one machine: {match.group()}"
        for number, line in enumerate(lines, start=1)
        if (match := FORBIDDEN.search(line))
    ]
    if path.suffix in {".pyx", ".pxd"}:
        found += kernel_faults(path, lines)
    if PACKAGE in path.parents:
        found += [
            f"{path}:{number}: to_pandas_dtype needs pandas before pyarrow 26; take core.numpy_types"
            for number, line in enumerate(lines, start=1)
            if NEEDS_PANDAS.search(line)
        ]
    is_code = path.suffix in {".py", ".pyx", ".pxd", ".pyi"} and not path.name.endswith(GENERATED)
    if is_code and len(lines) > LONGEST:
        found.append(f"{path}: {len(lines)} lines; {LONGEST} is the most, split it")
    return found


def kernel_faults(path: Path, lines: list[str]) -> Iterator[str]:
    """Yield which imports of a kernel pass a wall between rooms."""
    room = path.relative_to(PACKAGE).parts[0]
    if room not in KERNELS:
        yield f"{path}: the room {room} has no kernels in check_tree.KERNELS"
        return
    allowed = tuple(f"{each}.kernels" for each in (room, *KERNELS[room]))
    for number, line in enumerate(lines, start=1):
        if (match := KERNEL_IMPORT.match(line)) and not match[1].startswith(allowed):
            yield (
                f"{path}:{number}: a kernel of {room} may import pennon.errors, pennon.core.memory "
                f"and {', '.join(allowed)}"
            )


def late_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the imports within functions: their lines, and what is said of each."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    late = {
        (node.lineno, node.end_lineno or node.lineno)
        for function in ast.walk(ast.parse(text))
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    for first, last in sorted(late):
        said = " ".join(line.partition("#")[2] for line in lines[first - 1 : last])
        yield first, re.sub(r"noqa: PLC0415", "", said).strip(" -")


def late_import_faults(paths: list[Path]) -> list[str]:
    """Return which imports within functions do not say what they save, and whether there are too many."""
    modules = [path for path in paths if path.suffix == ".py" and PACKAGE in path.parents]
    late = [
        (path, line, said)
        for path in modules
        if not path.name.endswith(GENERATED)
        for line, said in late_imports(path)
    ]
    found = [
        f"{path}:{line}: an import within a function must say what it saves: # saves ..., or as above"
        for path, line, said in late
        if not said.startswith(("saves ", "as above"))
    ]
    if len(late) > LATE_IMPORTS:
        found.append(f"{len(late)} imports within functions; {LATE_IMPORTS} is the most")
    return found


def first_line_faults(paths: list[Path]) -> Iterator[str]:
    """Yield the docstrings of the package whose first line does not say what the thing is or does."""
    for path in paths:
        if path.suffix != ".py" or PACKAGE not in path.parents or path.name.endswith(GENERATED):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if match := RIDDLE_START.match(first) or RIDDLE_WITHIN.search(first):
                yield (
                    f"{path}:{node.body[0].lineno}: say what it is or does, without {match.group()!r}: {first}"
                )


def title_faults(paths: list[Path]) -> Iterator[str]:
    """Yield the tests whose titles name no feature."""
    for path in paths:
        if path.suffix != ".py" or path.parts[0] != "tests":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and VAGUE_TITLE.match(node.name):
                yield f"{path}:{node.lineno}: name the feature and the case: test_FEATURE_CASE, not {node.name}"


def main() -> int:
    """Print the faults; return the exit code."""
    paths = tracked()
    found = [fault for path in paths for fault in faults(path)] + late_import_faults(paths)
    found += [*first_line_faults(paths), *title_faults(paths)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
