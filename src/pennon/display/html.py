"""HTML for notebooks: what an object is, in a small table; its columns, and first rows where these are cheap.

All text comes from files and tables: it is escaped, its control characters are shown as such, and it is cut where
it is long.  The HTML has no script, no style sheet, and no address of another place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from pennon.display.cells import cell
from pennon.display.plain import plain_rows
from pennon.errors import printable

MOST_COLUMNS: Final = 30
"""The number of columns that are listed."""
MOST_ROWS: Final = 5
"""The number of rows that are shown."""
MOST_VALUE_BYTES: Final = 1 << 20
"""Rows of more bytes are not shown."""
_LONGEST: Final = 80


def object_html(
    title: str,
    facts: Mapping[str, object],
    schema: pa.Schema | None = None,
    rows: pa.Table | None = None,
) -> str:
    """Return an object as HTML: its title, facts by name, columns with types, and rows.

    >>> print(object_html("Fragment <0>", {"rows": 3}))
    <div><strong>Fragment &lt;0&gt;</strong>
    <table><tr><th>rows</th><td>3</td></tr></table></div>
    """
    parts = [f"<div><strong>{_text(title)}</strong>"]
    lines = [
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts.items()
    ]
    parts.append(f"<table>{''.join(lines)}</table>")
    if schema is not None and len(schema):
        parts.append(_columns(schema))
    if rows is not None and rows.num_rows and rows.nbytes <= MOST_VALUE_BYTES:
        parts.append(_rows(rows))
    return "\n".join(parts) + "</div>"


def _columns(schema: pa.Schema) -> str:
    lines = [
        (field.name, field.type, "" if field.nullable else "not null")
        for field in islice(schema, MOST_COLUMNS)
    ]
    more = len(schema) - len(lines)
    tail = f"<p>and {more:,} more columns</p>" if more > 0 else ""
    return _table(("column", "type", ""), lines) + tail


def _rows(rows: pa.Table) -> str:
    shown = rows.slice(0, MOST_ROWS)
    names = shown.column_names[:MOST_COLUMNS]
    found = [
        [cell(row[name]) for name in names]
        for batch in shown.select(names).to_batches()
        for row in plain_rows(batch)
    ]
    return _table(names, found)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    lines = [f"<tr>{''.join(f'<td>{_text(each)}</td>' for each in row)}</tr>" for row in rows]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _text(value: Any) -> str:
    """Return a value as text that HTML shows as it is, cut where it is long."""
    text = str(value)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return escape(printable(text))
