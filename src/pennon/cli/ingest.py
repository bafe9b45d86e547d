"""``pennon ingest``: files that Spark reads become a table."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pennon.cli.arguments import parse_pairs, quiet, storage_option, uri
from pennon.cli.show import say
from pennon.dataset.open import dataset
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@click.command
@click.argument("source")
@uri
@click.option("--format", help="Spark's name; by the suffix if not given.")
@click.option(
    "--mode",
    type=click.Choice(["create", "append", "overwrite"]),
    default="create",
    show_default=True,
    help="What to do about a table that is there.",
)
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="local[N], spark://host:port, or sc://host for Connect.",
)
@click.option("--option", "-o", multiple=True, metavar="KEY=VALUE", help="Given to Spark's reader.")
@click.option(
    "--fixed-size-list", metavar="COLUMN=N,...", help="Arrays stored as vectors of N items."
)
@click.option("--max-rows-per-file", type=click.IntRange(1))
@storage_option
@quiet
def ingest(
    source: str,
    uri: str,
    format: str | None,
    mode: str,
    master: str,
    option: Sequence[str],
    fixed_size_list: str | None,
    max_rows_per_file: int | None,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Read files with Spark and write them as a Lance table.

    SOURCE is a file or folder: CSV, JSON, Parquet, ORC, ...
    """
    started = time.monotonic()
    spark = session(master)
    from pennon.spark import ingest as run  # saves Spark

    with _progress(spark, quiet):
        version = run(
            spark,
            source,
            uri,
            format=format,
            mode=mode,
            read_options=parse_pairs(option),
            fixed_size_list=fixed_size_list,
            max_rows_per_file=max_rows_per_file,
            storage_options=parse_pairs(storage_option) or None,
        )
    if not quiet:
        _summarize(uri, version, time.monotonic() - started, parse_pairs(storage_option))


def session(master: str) -> Any:
    """Return a Spark session.  Raises ArgumentError if there is no Spark."""
    try:
        from pennon.spark import local_session  # saves Spark, which may not be installed
    except ImportError as error:
        message = "this needs Spark: pip install 'pennon[spark]'"
        raise ArgumentError(message) from error
    spark = local_session(master, "pennon")
    if not master.startswith("sc://"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _progress(spark: Any, quiet: bool) -> Iterator[None]:
    """Show Spark's tasks as a bar on stderr while the block runs, if somebody looks."""
    context = getattr(spark, "_sc", None)  # a Connect session has no context to ask
    if quiet or context is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # saves rich where nobody looks
    from rich.progress import Progress  # as above

    done = threading.Event()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("ingesting", total=None)
        watcher = threading.Thread(
            target=_watch, args=(context.statusTracker(), bar, task, done), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(tracker: Any, bar: Progress, task: TaskID, done: threading.Event) -> None:
    """Ask Spark a few times a second how far the running stages are."""
    while not done.wait(0.2):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        completed = sum(stage.numCompletedTasks for stage in stages if stage)
        if total:
            bar.update(task, total=total, completed=completed)


def _summarize(uri: str, version: int, seconds: float, stores: dict[str, str]) -> None:
    rows = dataset(uri, version=version, storage_options=stores or None).count_rows()
    say(f"{uri}: version {version}, {rows:,} rows, {seconds:.1f} s")
