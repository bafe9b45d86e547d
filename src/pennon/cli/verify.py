"""``pennon verify``: read a table with Pennon and with pylance, and compare hashes of rows, column by column.

pylance runs in another process, in a Python that has it: this package never imports it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa

from pennon.cli import column_hashes
from pennon.cli.arguments import at, parse_names, parse_pairs, storage_option, uri
from pennon.cli.rows import open_table
from pennon.cli.show import print_table, say, say_json
from pennon.errors import ArgumentError

_READ: Final = """
import json, sys
import lance

asked = json.loads(sys.stdin.read())
if "pennon" in sys.modules:
    sys.exit("the `lance` of this Python is Pennon itself (pennon.as_lance)")
table = lance.dataset(asked["uri"], version=asked["version"], storage_options=asked["options"])
open_batches = lambda name: table.scanner(columns=[name]).to_batches()
answer = {"release": lance.__version__, "version": table.version}
answer["columns"] = hash_columns(open_batches, asked["columns"])
print(json.dumps(answer))
"""


@click.command
@uri
@click.option("--against", type=click.Choice(["pylance"]), required=True, help="The other reader.")
@click.option(
    "--python",
    metavar="PATH",
    default=sys.executable,
    help="A Python that has pylance; by default the one that runs Pennon.",
)
@click.option("--columns", "-c", help="Only these columns, e.g. a,b")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@at
@storage_option
def verify(
    uri: str,
    against: str,
    python: str,
    columns: str | None,
    as_json: bool,
    at: str | None,
    storage_option: Sequence[str],
) -> None:
    """Compare what Pennon and pylance read of a table; exit code 3 if a column differs.

    All values are read, batch by batch, and hashed; blobs are compared by their descriptions.
    """
    options = parse_pairs(storage_option) or None
    table = open_table(uri, at, storage_option)
    names = parse_names(columns) or table.schema.names
    asked = {
        "uri": table.snapshot.store.uri,
        "version": table.version,
        "options": options,
        "columns": names,
    }
    theirs = _ask(python, asked)

    def batches(name: str) -> Iterator[pa.RecordBatch]:
        return table.to_batches(columns=[name])

    ours = column_hashes.hash_columns(batches, names)
    rows = [(name, *_compared(ours[name], theirs["columns"][name])) for name in names]
    differing = [name for name, verdict, *_ in rows if verdict != "same"]
    if as_json:
        found = {
            "table": uri,
            "version": table.version,
            "against": f"{against} {theirs['release']}",
            "equal": not differing,
            "columns": {
                name: {"verdict": verdict, "pennon": ours[name], against: theirs["columns"][name]}
                for name, verdict, *_ in rows
            },
        }
        say_json(found)
    else:
        print_table(("column", "verdict", "pennon", f"pylance {theirs['release']}"), rows, ())
        say(
            f"{uri}: version {table.version}, {len(names) - len(differing)} of {len(names)} columns are the same"
        )
    sys.exit(3 if differing else 0)


def _ask(python: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what pylance reads, from a process of its own.  Raises ArgumentError if that Python has none."""
    code = Path(column_hashes.__file__).read_text(encoding="utf-8") + _READ
    try:
        child = subprocess.run(  # noqa: S603 - the program that the user names, and our own text
            [python, "-c", code],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        message = f"--python {python}: {error}"
        raise ArgumentError(message) from error
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        message = f"pylance did not read the table in {python}: {last}"
        raise ArgumentError(message)
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer


def _compared(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str, str]:
    """Return a verdict on a column, and what each reader has to say."""
    if "error" in ours or "error" in theirs:
        is_both = "error" in ours and "error" in theirs
        verdict = "neither reads it" if is_both else "one does not read it"
        return verdict, _said(ours), _said(theirs)
    return "same" if ours == theirs else "differs", _said(ours), _said(theirs)


def _said(found: dict[str, Any]) -> str:
    return str(found.get("error") or f"{found['rows']:,} rows, {found['hash'][:12]}")
