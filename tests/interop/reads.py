"""What is read of a dataset to compare: by Pennon, by an oracle, and what the source says it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.interop.random_tables import Case, project

Options = dict[str, Any]


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
            return table.take(options["indices"]) if columns is None else None
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
        reads.append(Read("take", {"indices": case.indices, "columns": case.columns}))
    return reads
