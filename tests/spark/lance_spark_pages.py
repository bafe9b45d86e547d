"""Every SQL statement of lance-spark's operation pages (docs/src/operations, those of 2025 and of 2026), as data.

A page has statements that make what it is about, and then its own, in their order.  ``refused`` is a part of the
message where Pennon refuses one.  Dots that a page leaves for the reader (``array(0.1, 0.2, ...)``) are written out.
Lines of grammar with ``<table>`` in them are no statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """A statement of a page; ``refused`` None: it runs unchanged."""

    text: str
    refused: str | None = None


@dataclass(frozen=True)
class Page:
    """A page: its name, what must be there, its statements."""

    name: str
    before: Sequence[str]
    statements: Sequence[Said | str]

    def said(self) -> list[Said]:
        """Return all statements."""
        return [Said(each) if isinstance(each, str) else each for each in self.statements]


def numbers(count: int) -> str:
    """Return an array of so many numbers."""
    return f"array({', '.join(str(n / 10) for n in range(count))})"


USERS = (
    "CREATE TABLE users AS SELECT id, concat('n', id) AS name, concat('e', id) AS email, "
    "TIMESTAMP '2024-01-01 00:00:00' AS created_at FROM range(10)"
)
PLAIN_USERS = (
    "CREATE TABLE users (id BIGINT NOT NULL, name STRING, email STRING, created_at TIMESTAMP)"
)
DB = "CREATE NAMESPACE IF NOT EXISTS db"
DB_USERS = "CREATE TABLE lance.db.users AS SELECT id, concat('n', id) AS name FROM range(10)"
MORE_ROWS = "INSERT INTO lance.db.users SELECT id + 10, 'more' FROM range(10)"
EVENTS = """CREATE TABLE events (event_id BIGINT NOT NULL, user_id BIGINT, event_type STRING, tags ARRAY<STRING>,
    metadata STRUCT<source: STRING, version: INT, processed_at: TIMESTAMP>, occurred_at TIMESTAMP)"""
AN_EVENT = """INSERT INTO events VALUES (1001, 123, 'page_view', array('web'), struct('web_app', 1, '2024-01-15 12:00:00'),
    '2024-01-15 12:00:00')"""
DOCUMENTS = """CREATE TABLE documents (id INT NOT NULL, title STRING, content BINARY) USING lance
    TBLPROPERTIES ('content.lance.encoding' = 'blob')"""
TEXTS = (
    "CREATE TABLE {name} AS SELECT id, concat('title of machine ', id) AS title, "
    "CASE WHEN id % 2 = 0 THEN 'machine learning with deep neural networks' ELSE 'apache spark vector database' END AS body, "
    "array(float(id), float(id % 3), 1.0F, 0.5F) AS embedding FROM range(20)"
)
FTS = """WITH (base_tokenizer = 'simple', language = 'English', max_token_length = 40, lower_case = true,
    stem = false, remove_stop_words = false, ascii_folding = false, with_position = true)"""
ITEMS = """CREATE TABLE lance.db.items USING lance TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '16') AS
    SELECT id, transform(sequence(1, 16), n -> float((id * n) % 97)) AS embedding FROM range(1024)"""
STAGING = "CREATE TABLE staging_users AS SELECT id, concat('N', id) AS name, concat('E', id) AS email, id > 2 AS active FROM range(5)"
BLOB_METADATA = "content__blob_"
