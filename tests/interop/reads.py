"""Reads of a dataset to compare: by Pennon, by a release of pylance, and of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon
from tests.interop.equality import difference
from tests.interop.known_failures import has_small_dictionary, why_it_fails
from tests.interop.oracle import Oracle, OracleError
from tests.interop.random_tables import Case, project, prune

Options = dict[str, Any]
MOST_PAGES = 64


@dataclass(frozen=True, slots=True)
class Read:
    """One read: ``op`` is scan or take."""

    op: str
    options: Options

    def call(self, uri: Path) -> dict[str, Any]:
        """Return the oracle's call."""
        return {"op": self.op, "uri": str(uri), "out": True, **self.options}

    def ours(self, dataset: Any) -> pa.Table:
        """Return what Pennon reads."""
        if self.op == "scan":
            return dataset.scanner(**self.options).to_table()
        return dataset.take(self.options["indices"], columns=self.options.get("columns"))

    def wanted(self, table: pa.Table) -> pa.Table | None:
        """Return what the written table says, or None where only readers can tell."""
        options = dict(self.options)
        columns = options.pop("columns", None)
        if self.op == "take":
            return (prune(table, columns) if columns else table).take(options["indices"])
        if options.keys() - {"offset", "limit"}:
            return None
        start, rows = options.get("offset", 0), options.get("limit")
        return (project(table, columns) if columns else table).slice(start, rows)

    def __str__(self) -> str:
        """Return the call as one would type it."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.op}({shown[:300]})"


def reads_of(case: Case) -> list[Read]:
    """Return the reads of a random table."""
    row_numbers = {"with_row_id": True, "with_row_address": True}
    reads = [Read("scan", {}), Read("scan", {"columns": case.columns})]
    reads += [Read("scan", {"offset": start, "limit": rows}) for start, rows in case.slices]
    reads.append(Read("scan", {"columns": case.columns[:1], **row_numbers}))
    start, rows = case.slices[0]
    reads.append(Read("scan", {"offset": start, "limit": rows, **row_numbers}))
    if case.indices:
        reads.append(Read("take", {"indices": case.indices}))
        columns = case.deep_columns or case.columns
        reads.append(Read("take", {"indices": case.indices, "columns": columns}))
    return reads


def write_ours(case: Case, uri: Path) -> None:
    """Write a random table with Pennon."""
    batches = case.table.to_batches(max_chunksize=case.batch_rows)
    reader = pa.RecordBatchReader.from_batches(case.table.schema, batches)
    pennon.write_dataset(reader, uri, **case.options, max_page_bytes=case.page_bytes)


def write_theirs(oracle: Oracle, case: Case, uri: Path) -> None:
    """Write a random table with an oracle."""
    # It puts the dictionaries of all batches in a row, which 8 bits may be too few to number.
    batch_rows = None if has_small_dictionary(case.table.schema) else case.batch_rows
    oracle.write(uri, case.table, batch_rows=batch_rows, page_bytes=case.page_bytes, **case.options)


def rows_of_a_page(case: Case) -> int | None:
    """Return how many rows of a random table its widest column has in a page; None for all.

    There are `MOST_PAGES` at most: more take old releases minutes.
    """
    rows, most = case.table.num_rows, max(column.nbytes for column in case.table.columns)
    if case.page_bytes is None or most <= case.page_bytes:
        return None
    return max(1, rows * case.page_bytes // most, -(-rows // MOST_PAGES))


def write_both_in_pages(oracle: Oracle, case: Case, rows: int, ours: Path, theirs: Path) -> None:
    """Write a random table with Pennon and an oracle, all columns in pages of the same ``rows``.

    Each batch is a page where nothing is kept back.  By ``page_bytes`` they cannot be compared:
    the oracle goes by it at version 2.0 only.
    """
    table = case.table
    files = [
        table.slice(n, case.max_rows_per_file) for n in range(0, len(table), case.max_rows_per_file)
    ]
    pages = [
        file.slice(n, rows).combine_chunks() for file in files for n in range(0, len(file), rows)
    ]
    batches = [batch for page in pages for batch in page.to_batches()]
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    pennon.write_dataset(reader, ours, **case.options, data_cache_bytes=1)
    oracle.call("write_pages", uri=str(theirs), table=table, page_rows=rows, **case.options)


def trusted(oracle: Oracle, reads: list[Read], table: pa.Table, uri: Path) -> list[Read]:
    """Return the reads that the oracle gets right: what it gives is what the table says."""
    kept = []
    for read, theirs in zip(reads, oracle.run([read.call(uri) for read in reads]), strict=True):
        wanted = None if isinstance(theirs, OracleError) else read.wanted(table)
        if wanted is not None and difference(theirs, wanted) is None:
            kept.append(read)
    return kept


def differences(
    case: Case, reads: list[Read], table: pa.Table | None, oracle: Oracle, uri: Path
) -> list[str]:
    """Compare what we read with what the oracle reads, and both with the table, if it is given.

    Where the oracle is known to fail, what we read is compared with the table only.
    """
    found = []
    dataset = pennon.dataset(uri)
    for read, theirs in zip(reads, oracle.run([read.call(uri) for read in reads]), strict=True):
        ours = read.ours(dataset)
        source = None if table is None else read.wanted(table)
        for who, wanted in (("the oracle", theirs), ("the source", source)):
            if isinstance(wanted, OracleError):
                if why_it_fails(oracle.release, case.table.schema, wanted) is None:
                    found.append(f"seed {case.seed}, {read}: the oracle fails: {wanted}")
            elif wanted is not None and (different := difference(ours, wanted)) is not None:
                found.append(f"seed {case.seed}, {read}, ours and {who}: {different}")
    if table is not None and not dataset.schema.equals(table.schema, check_metadata=True):
        found.append(f"seed {case.seed}: schema {dataset.schema} instead of {table.schema}")
    return found
