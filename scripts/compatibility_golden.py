"""Pennon and the tables of old releases that the tests keep: each operation, tried on a copy."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pennon
from tests.golden.archives import unpack

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
CELLS = """Some of them are damaged by a fault of the release, and two are kept without their data files (NotFoundError). The cells count
the tables on which an operation of Pennon works."""
OPERATIONS: dict[str, Callable[[pennon.LanceDataset], object]] = {
    "scan": lambda ds: ds.to_table(),
    "filter": lambda ds: ds.count_rows(f"{_first(ds)} IS NOT NULL"),
    "take": lambda ds: ds.take(list(range(min(3, ds.count_rows())))),
    "validate": lambda ds: ds.validate(),
    "append": lambda ds: ds.insert(ds.to_table()),
    "delete": lambda ds: ds.delete(f"{_first(ds)} IS NULL"),
    "compact": lambda ds: ds.optimize.compact_files(),
    "index": lambda ds: ds.optimize.optimize_indices(),
}


def _first(ds: pennon.LanceDataset) -> str:
    return f"`{ds.schema.names[0]}`"


def tables(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield release, name and place of each kept table, those of archives unpacked in a folder."""
    for release in sorted((GOLDEN / "datasets").iterdir(), key=lambda each: _order(each.name)):
        if release.is_dir():
            for place in sorted(release.iterdir()):
                yield release.name.removeprefix("v").partition("_")[0], place.name, place
    for kind in ("indices", "vector_indices"):
        archives = (GOLDEN / kind).glob("*.tar.xz")
        for archive in sorted(archives, key=lambda each: _order(each.name)):
            release = archive.name.removesuffix(".tar.xz")
            unpack(archive, folder / kind)
            for place in sorted((folder / kind / release).glob("*.lance")):
                yield release, place.name, place


def _order(name: str) -> list[int]:
    numbers = name.removeprefix("v").partition("_")[0].removesuffix(".tar.xz").split(".")
    return [int(each) for each in numbers if each.isdigit()]


def outcomes(place: Path, folder: Path) -> dict[str, str]:
    """Return ``yes``, or the error's class, of each operation on a table; changes are made on a copy."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place, copy)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, operation in OPERATIONS.items():
            try:
                operation(pennon.dataset(copy))
                found[name] = "yes"
            except Exception as error:  # noqa: BLE001 - the result
                found[name] = f"`{type(error).__name__}`"
    return found


def parts() -> list[str]:
    """Return the part of the page: a line for each release, and one for each table with a failure."""
    lines: dict[str, dict[str, list[int]]] = {}
    failures, number = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for release, table, place in tables(folder):
            number += 1
            found = outcomes(place, folder)
            line = lines.setdefault(release, {each: [0, 0] for each in OPERATIONS})
            for operation, outcome in found.items():
                line[operation][0] += outcome == "yes"
                line[operation][1] += 1
            wrong = {each: outcome for each, outcome in found.items() if outcome != "yes"}
            if wrong:
                failures.append(
                    f"| {release} | `{table}` | "
                    + ", ".join(f"{a}: {b}" for a, b in wrong.items())
                    + " |"
                )
    ordered = sorted(lines.items(), key=lambda each: _order(each[0]))
    rows = [
        f"| {release} | " + " | ".join(f"{good} of {of}" for good, of in line.values()) + " |"
        for release, line in ordered
    ]
    return [
        "## Kept tables of old releases",
        f"The tests keep {number} tables that {len(lines)} releases wrote. {CELLS}",
        "\n".join(
            [
                "| release | " + " | ".join(OPERATIONS) + " |",
                "|---|" + "---|" * len(OPERATIONS),
                *rows,
            ]
        ),
        *(
            [
                "Operations that do not work, with the error:",
                "\n".join(["| release | table | operations |", "|---|---|---|", *failures]),
            ]
            if failures
            else []
        ),
    ]
