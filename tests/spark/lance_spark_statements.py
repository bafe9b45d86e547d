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

PAGES = [
    Page(
        "ddl/create-namespace",
        [],
        [
            "CREATE NAMESPACE company",
            "CREATE NAMESPACE company.analytics",
            "CREATE NAMESPACE IF NOT EXISTS company",
            "CREATE NAMESPACE other WITH PROPERTIES ('description' = 'Company data namespace', 'owner' = 'data-team')",
        ],
    ),
    Page(
        "ddl/describe-namespace",
        ["CREATE NAMESPACE company", "CREATE NAMESPACE company.analytics"],
        [
            "DESCRIBE NAMESPACE company",
            "DESCRIBE NAMESPACE EXTENDED company",
            "DESCRIBE NAMESPACE company.analytics",
        ],
    ),
    Page(
        "ddl/show-namespaces",
        ["CREATE NAMESPACE company"],
        ["SHOW NAMESPACES", "SHOW NAMESPACES IN company", "SHOW NAMESPACES LIKE 'comp*'"],
    ),
    Page("ddl/show-tables", [USERS, "CREATE NAMESPACE ns2"], ["SHOW TABLES", "SHOW TABLES IN ns2"]),
    Page(
        "ddl/drop-namespace",
        [
            "CREATE NAMESPACE company",
            "CREATE NAMESPACE analytics",
            "CREATE NAMESPACE analytics.daily",
            "CREATE NAMESPACE company2",
            "CREATE NAMESPACE company2.analytics",
        ],
        [
            "DROP NAMESPACE company",
            "DROP NAMESPACE IF EXISTS company",
            "DROP NAMESPACE analytics CASCADE",
            "DROP NAMESPACE company2.analytics",
        ],
    ),
    Page("ddl/describe-table", [USERS], ["DESCRIBE TABLE users", "DESCRIBE EXTENDED users"]),
    Page(
        "ddl/drop-table",
        [USERS, USERS.replace("users", "others"), USERS.replace("users", "third")],
        [
            "DROP TABLE users",
            "DROP TABLE IF EXISTS lance.users",
            "DROP TABLE others PURGE",
            "DROP TABLE IF EXISTS third PURGE",
        ],
    ),
    Page(
        "ddl/create-table",
        [],
        [
            PLAIN_USERS,
            EVENTS,
            """CREATE TABLE embeddings_table (id INT NOT NULL, text STRING, embeddings ARRAY<FLOAT> NOT NULL) USING lance
            TBLPROPERTIES ('embeddings.arrow.fixed-size-list.size' = '128')""",
            """CREATE TABLE multi_vector_table (id INT NOT NULL, title STRING, text_embeddings ARRAY<FLOAT> NOT NULL,
            image_embeddings ARRAY<DOUBLE> NOT NULL) USING lance TBLPROPERTIES
            ('text_embeddings.arrow.fixed-size-list.size' = '384', 'image_embeddings.arrow.fixed-size-list.size' = '512')""",
            f"INSERT INTO embeddings_table VALUES (1, 'first text', {numbers(128)}), (2, 'second text', {numbers(128)})",
            "SELECT id, text FROM embeddings_table WHERE id = 1",
            "SELECT COUNT(*) FROM embeddings_table",
            """CREATE TABLE embeddings_f16 (id INT NOT NULL, text STRING, embeddings ARRAY<FLOAT> NOT NULL) USING lance
            TBLPROPERTIES ('embeddings.arrow.fixed-size-list.size' = '128', 'embeddings.arrow.float16' = 'true')""",
            DOCUMENTS,
            """CREATE TABLE media_files (id INT NOT NULL, filename STRING, image_data BINARY, video_data BINARY) USING lance
            TBLPROPERTIES ('image_data.lance.encoding' = 'blob', 'video_data.lance.encoding' = 'blob')""",
            "INSERT INTO documents VALUES (1, 'Document 1', X'48656C6C6F'), (2, 'Document 2', X'576F726C64')",
            "SELECT id, title FROM documents WHERE id = 1",
            "SELECT COUNT(*) FROM documents",
            Said(
                "SELECT id, title, content__blob_pos, content__blob_size FROM documents WHERE id = 1",
                BLOB_METADATA,
            ),
            """CREATE TABLE articles (id INT NOT NULL, title STRING, content STRING) USING lance
            TBLPROPERTIES ('content.arrow.large_var_char' = 'true')""",
            """CREATE TABLE compressed (id BIGINT, payload STRING, ts BIGINT) USING lance TBLPROPERTIES (
            'payload.lance.compression' = 'zstd', 'payload.lance.compression-level' = '3', 'ts.lance.compression' = 'none')""",
        ],
    ),
    Page(
        "ddl/alter-table",
        [
            PLAIN_USERS,
            "CREATE NAMESPACE ns1",
            "CREATE NAMESPACE ns2",
            PLAIN_USERS.replace("users", "ns1.users"),
        ],
        [
            "ALTER TABLE users SET TBLPROPERTIES ('team' = 'data-eng', 'env' = 'production')",
            "ALTER TABLE users SET TBLPROPERTIES ('env' = 'staging')",
            "ALTER TABLE users UNSET TBLPROPERTIES ('env')",
            "ALTER TABLE users UNSET TBLPROPERTIES ('team', 'env')",
            "CREATE TABLE users2 (id BIGINT, name STRING) TBLPROPERTIES ('enable_stable_row_ids' = 'true')",
            "ALTER TABLE users SET TBLPROPERTIES ('enable_stable_row_ids' = 'true')",
            "ALTER TABLE users ADD COLUMN age INT",
            "ALTER TABLE users2 ADD COLUMNS (age INT, email STRING)",
            "ALTER TABLE users DROP COLUMN age",
            "ALTER TABLE users DROP COLUMN IF EXISTS age",
            "ALTER TABLE users RENAME COLUMN name TO full_name",
            "ALTER TABLE users ALTER COLUMN id DROP NOT NULL",
            "ALTER TABLE users RENAME TO new_users",
            "ALTER TABLE ns1.users RENAME TO ns2.new_users",
        ],
    ),
    Page(
        "ddl/create-branch",
        [
            DB,
            DB_USERS,
            *([MORE_ROWS] * 4),
            "ALTER TABLE lance.db.users CREATE BRANCH experiment_a",
            "INSERT INTO lance.db.users@experiment_a SELECT id, 'b' FROM range(2)",
            "ALTER TABLE lance.db.users CREATE TAG release_candidate",
        ],
        [
            "ALTER TABLE lance.db.users CREATE BRANCH feature_x",
            "ALTER TABLE lance.db.users CREATE BRANCH IF NOT EXISTS snapshot_v5 AS OF VERSION 5",
            "ALTER TABLE lance.db.users CREATE BRANCH experiment_b AS OF BRANCH experiment_a",
            "ALTER TABLE lance.db.users CREATE BRANCH experiment_b_v3 AS OF BRANCH experiment_a VERSION 6",
            "ALTER TABLE lance.db.users CREATE BRANCH release_fix AS OF TAG release_candidate",
            "SHOW BRANCHES FROM lance.db.users",
            "SHOW BRANCH IN lance.db.users",
            "ALTER TABLE lance.db.users DROP BRANCH IF EXISTS feature_x",
        ],
    ),
    Page(
        "ddl/create-tag",
        [
            DB,
            DB_USERS,
            *([MORE_ROWS] * 4),
            "ALTER TABLE lance.db.users CREATE BRANCH experiment_a",
            "INSERT INTO lance.db.users@experiment_a SELECT id, 'b' FROM range(2)",
        ],
        [
            "ALTER TABLE lance.db.users CREATE TAG release_candidate",
            "ALTER TABLE lance.db.users CREATE TAG IF NOT EXISTS release_candidate_v5 AS OF VERSION 5",
            "ALTER TABLE lance.db.users CREATE TAG experiment_snapshot AS OF BRANCH experiment_a",
            "ALTER TABLE lance.db.users CREATE TAG experiment_snapshot_v3 AS OF BRANCH experiment_a VERSION 6",
            "ALTER TABLE lance.db.users CREATE TAG release_copy AS OF TAG release_candidate",
            "SHOW TAGS FROM lance.db.users",
            "SHOW TAGS IN lance.db.users",
            "SHOW TAG FROM lance.db.users",
            "SHOW TAG IN lance.db.users",
            "ALTER TABLE lance.db.users DROP TAG IF EXISTS release_candidate",
        ],
    ),
    Page(
        "ddl/create-index",
        [
            DB,
            DB_USERS,
            "CREATE TABLE lance.db.logs AS SELECT current_timestamp() AS timestamp, 1 AS level",
            "CREATE TABLE lance.db.events AS SELECT current_timestamp() AS event_ts, id FROM range(9)",
            "CREATE TABLE lance.db.documents AS SELECT 'a text' AS content",
        ],
        [
            "ALTER TABLE lance.db.users CREATE INDEX user_id_idx USING btree (id)",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id USING btree (id)",
            Said(
                "ALTER TABLE lance.db.logs CREATE INDEX idx_ts_level USING btree (timestamp, level)",
                "an index is of one column",
            ),
            "ALTER TABLE lance.db.users CREATE INDEX idx_id_zoned USING btree (id) WITH (zone_size = 2048)",
            "ALTER TABLE lance.db.events CREATE INDEX idx_ts_zm USING zonemap (event_ts)",
            "ALTER TABLE lance.db.events CREATE INDEX idx_ts_zm USING zonemap (event_ts) WITH (rows_per_zone = 2048)",
            f"ALTER TABLE lance.db.documents CREATE INDEX doc_fts USING fts (content) {FTS}",
            "SHOW INDEXES FROM lance.db.users",
            "SHOW INDEX IN lance.db.users",
            "ALTER TABLE lance.db.users DROP INDEX idx_id",
        ],
    ),
    Page(
        "ddl/create-scalar-index",
        [
            DB,
            DB_USERS,
            "CREATE TABLE lance.db.events AS SELECT id, concat('s', id % 3) AS status, array('a', 'b') AS labels FROM range(9)",
            "CREATE TABLE lance.db.documents AS SELECT 'a text' AS content",
            "CREATE TABLE lance.db.places AS SELECT named_struct('x', 1.0D, 'y', 2.0D) AS geometry",
        ],
        [
            "ALTER TABLE lance.db.users CREATE INDEX idx_id_zonemap USING zonemap (id)",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id_zonemap USING zonemap (id) WITH (rows_per_zone = 2048)",
            "ALTER TABLE lance.db.events CREATE INDEX idx_status_bitmap USING bitmap (status) WITH (num_segments = 8)",
            "ALTER TABLE lance.db.events CREATE INDEX idx_labels USING label_list (labels) WITH (num_segments = 8)",
            "ALTER TABLE lance.db.documents CREATE INDEX idx_content_ngram USING ngram (content) WITH (num_segments = 8)",
            """ALTER TABLE lance.db.events CREATE INDEX idx_id_bloom USING bloomfilter (id) WITH (
            number_of_items = 16384, probability = 0.001, num_segments = 8)""",
            Said(
                "ALTER TABLE lance.db.places CREATE INDEX idx_geometry USING rtree (geometry) WITH (page_size = 2048, num_segments = 8)",
                "RTREE",
            ),
            f"ALTER TABLE lance.db.documents CREATE INDEX doc_fts USING fts (content) {FTS[:-1]}, num_segments = 8)",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id USING zonemap (id) WITH (train = false)",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id USING zonemap (id)",
        ],
    ),
    Page(
        "ddl/create-vector-index",
        [DB, ITEMS],
        [
            "ALTER TABLE lance.db.items CREATE INDEX vec_idx USING ivf_flat (embedding)",
            """ALTER TABLE lance.db.items CREATE INDEX vec_pq_idx USING ivf_pq (embedding) WITH (
            num_partitions = 64, num_sub_vectors = 8, num_bits = 8, distance_type = 'cosine')""",
            "ALTER TABLE lance.db.items CREATE INDEX vec_sq_idx USING ivf_sq (embedding) WITH (num_partitions = 64, num_bits = 8)",
            """ALTER TABLE lance.db.items CREATE INDEX vec_hnsw_pq USING ivf_hnsw_pq (embedding) WITH (
            num_partitions = 128, num_sub_vectors = 8, m = 20, ef_construction = 150, max_level = 7)""",
            """ALTER TABLE lance.db.items CREATE INDEX vec_hnsw_sq USING ivf_hnsw_sq (embedding) WITH (
            num_partitions = 128, num_bits = 8, m = 20, ef_construction = 150)""",
            "ALTER TABLE lance.db.items CREATE INDEX vec_idx USING ivf_flat (embedding) WITH (num_partitions = 64, num_segments = 8)",
        ],
    ),
    Page(
        "ddl/optimize-index",
        [
            DB,
            DB_USERS,
            "ALTER TABLE lance.db.users CREATE INDEX idx_user_id USING btree (id)",
            MORE_ROWS,
        ],
        [
            "ALTER TABLE lance.db.users OPTIMIZE INDEX idx_user_id",
            "ALTER TABLE lance.db.users OPTIMIZE INDEX idx_user_id WITH (num_indices_to_merge = 0, retrain = false)",
        ],
    ),
    Page(
        "ddl/refresh-index",
        [
            DB,
            DB_USERS,
            "ALTER TABLE lance.db.users CREATE INDEX user_id_idx USING btree (id)",
            "ALTER TABLE lance.db.users CREATE INDEX zone_idx USING zonemap (id)",
        ],
        [
            "ALTER TABLE lance.db.users REFRESH INDEX user_id_idx",
            "INSERT INTO lance.db.users VALUES (100, 'new row')",
            "OPTIMIZE lance.db.users",
            "ALTER TABLE lance.db.users REFRESH INDEX zone_idx",
            "ALTER TABLE lance.db.users REFRESH INDEX user_id_idx WITH (num_segments = 8)",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id USING zonemap (id) WITH (train = false)",
            "ALTER TABLE lance.db.users REFRESH INDEX idx_id",
            "SHOW INDEXES FROM lance.db.users",
            "ALTER TABLE lance.db.users CREATE INDEX idx_id USING zonemap (id) WITH (rows_per_zone = 2048)",
            "ALTER TABLE lance.db.users REFRESH INDEX idx_id WITH (rows_per_zone = 2048)",
        ],
    ),
    Page(
        "ddl/optimize",
        [DB, DB_USERS, MORE_ROWS],
        [
            "OPTIMIZE lance.db.users",
            "OPTIMIZE lance.db.users WITH (target_rows_per_fragment = 1000000)",
            """OPTIMIZE lance.db.users WITH (target_rows_per_fragment = 1000000, max_rows_per_group = 10000,
            materialize_deletions = TRUE, num_threads = 4)""",
        ],
    ),
    Page(
        "ddl/vacuum",
        [DB, DB_USERS, *([MORE_ROWS] * 10)],
        [
            "VACUUM lance.db.users",
            "VACUUM lance.db.users WITH (before_version = 10)",
            "VACUUM lance.db.users WITH (before_timestamp_millis = 1704067200000)",
            "VACUUM lance.db.users WITH (before_version = 10, delete_unverified = TRUE)",
        ],
    ),
    Page(
        "ddl/set-unenforced-primary-key",
        [
            DB,
            "CREATE TABLE lance.db.users (id BIGINT NOT NULL, name STRING NOT NULL)",
            "CREATE TABLE lance.db.others (id BIGINT NOT NULL, name STRING NOT NULL)",
        ],
        [
            "ALTER TABLE lance.db.users SET UNENFORCED PRIMARY KEY (id)",
            "ALTER TABLE lance.db.others SET UNENFORCED PRIMARY KEY (id, name)",
        ],
    ),
    Page(
        "dml/insert-into",
        [
            PLAIN_USERS,
            EVENTS,
            "CREATE NAMESPACE staging",
            """CREATE TABLE staging.user_signups AS SELECT 9L AS user_id, 'u' AS username, 'e' AS email_address,
            TIMESTAMP '2024-02-01 00:00:00' AS signup_date""",
            "CREATE TABLE embeddings_table (id INT NOT NULL, text STRING, embeddings ARRAY<FLOAT> NOT NULL) TBLPROPERTIES ('embeddings.arrow.fixed-size-list.size' = '128')",
            DOCUMENTS,
            "CREATE TABLE articles (id INT NOT NULL, title STRING, content STRING) TBLPROPERTIES ('content.arrow.large_var_char' = 'true')",
        ],
        [
            """INSERT INTO users VALUES (4, 'David', 'david@example.com', '2024-01-15 10:30:00'),
            (5, 'Eva', 'eva@example.com', '2024-01-15 11:45:00')""",
            "INSERT INTO users (id, name, email) VALUES (6, 'Frank', 'frank@example.com'), (7, 'Grace', 'grace@example.com')",
            """INSERT INTO users SELECT user_id as id, username as name, email_address as email, signup_date as created_at
            FROM staging.user_signups WHERE signup_date >= '2024-01-01'""",
            """INSERT INTO events VALUES (1001, 123, 'page_view', array('web', 'desktop'),
            struct('web_app', 1, '2024-01-15 12:00:00'), '2024-01-15 12:00:00')""",
            f"INSERT INTO embeddings_table VALUES (10, 'new text', {numbers(128)})",
            "INSERT INTO documents VALUES (3, 'Document 3', X'48656C6C6F576F726C64')",
            "INSERT INTO articles VALUES (3, 'Article 3', 'Very long article content...')",
        ],
    ),
    Page(
        "dml/insert-overwrite",
        ["CREATE TABLE users (id BIGINT, name STRING, email STRING)", STAGING],
        [
            "INSERT OVERWRITE users VALUES (1, 'Alice', 'alice@newdomain.com'), (2, 'Bob', 'bob@newdomain.com')",
            "INSERT OVERWRITE users SELECT id, name, email FROM staging_users",
            "INSERT OVERWRITE users SELECT id, UPPER(name) as name, LOWER(email) as email FROM staging_users WHERE active = true",
        ],
    ),
    Page(
        "dml/replace",
        [
            DB,
            "CREATE TABLE lance.db.events AS SELECT id, concat('2026-08-0', id) AS dt, id AS value FROM range(1, 9)",
            "CREATE TABLE staging_events AS SELECT id, concat('2026-08-0', id) AS dt, -id AS value FROM range(1, 8)",
        ],
        [
            """REPLACE lance.db.events WHERE dt = '2026-08-01'
            AS SELECT id, dt, value FROM staging_events WHERE dt = '2026-08-01'""",
            """REPLACE lance.db.events WHERE dt >= '2026-08-01' AND dt < '2026-08-08'
            AS SELECT id, dt, value FROM staging_events""",
        ],
    ),
    Page("dml/delete", [USERS], ["DELETE FROM users WHERE id = 4", "DELETE FROM users"]),
    Page(
        "dml/update",
        [USERS, EVENTS, AN_EVENT],
        [
            "UPDATE users SET name = 'Updated Name' WHERE id = 4",
            """UPDATE events SET metadata = named_struct('source', 'ios', 'version', 1, 'processed_at',
            timestamp'2024-01-15 13:00:00') WHERE event_id = 1001""",
            """UPDATE events SET metadata = named_struct('source', metadata.source, 'version', 2, 'processed_at',
            timestamp'2024-01-15 13:00:00') WHERE event_id = 1001""",
            "UPDATE events SET tags = ARRAY('ios', 'mobile') WHERE event_id = 1001",
        ],
    ),
    Page(
        "dml/add-columns",
        [USERS],
        [
            "CREATE TEMPORARY VIEW tmp_view AS SELECT _rowaddr, _fragid, hash(name) as name_hash FROM users",
            "ALTER TABLE users ADD COLUMNS name_hash FROM tmp_view",
            "CREATE TABLE members (id INT, name STRING) USING lance TBLPROPERTIES ('file_format_version' = '2.2')",
            "ALTER TABLE members SET TBLPROPERTIES ('content.lance.encoding' = 'blob')",
            "INSERT INTO members VALUES (1, 'alpha'), (2, 'bravo')",
            "CREATE TEMPORARY VIEW content_backfill AS SELECT _rowaddr, _fragid, CAST(name AS BINARY) AS content FROM members",
            "ALTER TABLE members ADD COLUMNS content FROM content_backfill",
            Said("SELECT id, content.size, content.kind FROM members", "content"),
        ],
    ),
    Page(
        "dml/update-columns",
        ["CREATE TABLE users AS SELECT id, 'old' AS name, 1 AS value FROM range(5)"],
        [
            "CREATE TEMPORARY VIEW update_source AS SELECT _rowaddr, _fragid, 'new_value' as name FROM users WHERE id = 2",
            "ALTER TABLE users UPDATE COLUMNS name FROM update_source",
            """CREATE OR REPLACE TEMPORARY VIEW update_source AS
            SELECT _rowaddr, _fragid, 200 as value, 'updated' as name FROM users WHERE id = 2""",
            "ALTER TABLE users UPDATE COLUMNS value, name FROM update_source",
        ],
    ),
    Page(
        "dql/select",
        [
            "CREATE TABLE users AS SELECT id, 'n' AS name, 'e' AS email, 20 + id AS age, 'd' AS department FROM range(20)",
            "CREATE TABLE projects AS SELECT id AS user_id, 'p' AS title FROM range(5)",
            DOCUMENTS,
            *(["INSERT INTO users VALUES (99, 'x', 'y', 99, 'z')"] * 10),
        ],
        [
            "SELECT * FROM users",
            "SELECT id, name, email FROM users",
            "SELECT * FROM users WHERE age > 25",
            "SELECT department, COUNT(*) as employee_count FROM users GROUP BY department",
            "SELECT COUNT(*) FROM users",
            "SELECT COUNT(*) FROM users WHERE age > 25",
            "SELECT department, COUNT(*) FROM users GROUP BY department",
            "SELECT u.name, p.title FROM users u JOIN projects p ON u.id = p.user_id",
            Said(
                "SELECT id, title, content__blob_pos, content__blob_size FROM documents WHERE id = 1",
                BLOB_METADATA,
            ),
            Said(
                "SELECT id, title, content__blob_size FROM documents WHERE content__blob_size > 1000000",
                BLOB_METADATA,
            ),
            Said(
                """SELECT COUNT(*) as blob_count, AVG(content__blob_size) as avg_size, MAX(content__blob_size) as max_size
                FROM documents""",
                BLOB_METADATA,
            ),
            "SELECT id, title FROM documents WHERE title LIKE '%report%'",
            "SELECT * FROM users VERSION AS OF 5",
            "SELECT id, name FROM users VERSION AS OF 3",
            "SELECT * FROM users TIMESTAMP AS OF '2024-01-15 10:30:00'",
            "SELECT * FROM users TIMESTAMP AS OF 1705314600000000",
            "SELECT * FROM lance.`{folder}/users.lance` VERSION AS OF 10",
        ],
    ),
    Page(
        "dql/fts",
        [
            DB,
            TEXTS.format(name="lance.db.documents"),
            f"ALTER TABLE lance.db.documents CREATE INDEX body_fts USING fts (body) {FTS}",
            f"ALTER TABLE lance.db.documents CREATE INDEX title_fts USING fts (title) {FTS}",
        ],
        [
            "SELECT * FROM lance.db.documents WHERE lance_match(body, 'machine learning')",
            "SELECT * FROM lance.db.documents WHERE lance_match(body, 'machin lerning', 'fuzziness=1,operator=AND')",
            "SELECT * FROM lance.db.documents WHERE lance_match(body, 'spark', 'boost=2.0,prefix_length=2')",
            "SELECT * FROM lance.db.documents WHERE lance_match_phrase(body, 'machine learning')",
            "SELECT * FROM lance.db.documents WHERE lance_match_phrase(body, 'deep networks', 2)",
            "SELECT * FROM lance.db.documents WHERE lance_multi_match('machine learning', title, body)",
            "SELECT * FROM lance.db.documents WHERE lance_multi_match('machine learning', 'operator=AND', title, body)",
        ],
    ),
    Page(
        "dql/search",
        [
            TEXTS.format(name="lance.default.documents"),
            TEXTS.format(name="lance.default.items").replace(
                "AS SELECT",
                "TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '4') AS SELECT",
            ),
        ],
        [
            """SELECT id, title, _distance FROM VECTOR_SEARCH(table => 'lance.default.items',
            query_vector => array(0.12, 0.34, 0.56, 0.78), vector_column => 'embedding', num_results => 10,
            distance_type => 'l2', columns => array('id', 'title')) ORDER BY _distance""",
            f"ALTER TABLE lance.default.documents CREATE INDEX body_fts USING fts (body) {FTS}",
            """SELECT id, body, _score FROM SEARCH(table => 'lance.default.documents', query => 'vector database',
            search_columns => array('body'), columns => array('id', 'body'), limit => 10) ORDER BY _score DESC""",
            "SELECT * FROM SEARCH('lance.default.documents', 'lance', 5)",
        ],
    ),
    Page(
        "dql/vector-search",
        [
            """CREATE TABLE lance.default.items TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '3') AS
         SELECT id, array(float(id), 1.0F, 2.0F) AS embedding FROM range(20)""",
            """CREATE TABLE lance.default.wide TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '4') AS
         SELECT id, array(float(id), 1.0F, 2.0F, 0.5F) AS embedding FROM range(20)""",
        ],
        [
            "SELECT * FROM VECTOR_SEARCH('lance.default.items', array(0.12, 0.34, 0.56), 5)",
            """SELECT query_index, id, _distance FROM VECTOR_SEARCH(table => 'lance.default.wide', query_vector => array(
            array(0.12, 0.34, 0.56, 0.78), array(0.90, 0.10, 0.20, 0.30)), vector_column => 'embedding',
            num_results => 10) ORDER BY query_index, _distance""",
        ],
    ),
    Page(
        "dql/hybrid-search",
        [
            TEXTS.format(name="lance.default.documents").replace(
                "AS SELECT",
                "TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '4') AS SELECT",
            ),
            f"ALTER TABLE lance.default.documents CREATE INDEX body_fts USING fts (body) {FTS}",
        ],
        [
            """SELECT id, body, _distance, _score, _relevance_score FROM HYBRID_SEARCH(
            table => 'lance.default.documents', query_vector => array(0.12, 0.34, 0.56, 0.78), query => 'vector database',
            vector_column => 'embedding', search_columns => array('body'), columns => array('id', 'body'),
            num_results => 10, candidates => 50, rrf_k => 60.0) ORDER BY _relevance_score DESC""",
            "SELECT * FROM HYBRID_SEARCH('lance.default.documents', array(0.12, 0.34, 0.56, 0.78), 'lance', 5)",
        ],
    ),
    Page(
        "dql/nearest-neighbor-join",
        [
            """CREATE TABLE documents AS SELECT id, 'd' AS title, array(float(id), 1.0F) AS embedding,
         IF(id % 2 = 0, 'news', 'x') AS category, id AS score FROM range(20)""",
            "CREATE TABLE queries AS SELECT id, array(float(id), 2.0F) AS embedding FROM range(3)",
        ],
        [
            """SELECT q.id, d.id, d.title FROM queries q INNER JOIN documents d
            APPROX NEAREST 10 BY DISTANCE vector_l2_distance(q.embedding, d.embedding)""",
            """SELECT q.id, d.id FROM queries q INNER JOIN (SELECT * FROM documents WHERE category = 'news' AND score > 5) d
            APPROX NEAREST 10 BY DISTANCE vector_l2_distance(q.embedding, d.embedding)""",
        ],
    ),
]
