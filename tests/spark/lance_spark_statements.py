"""The statements of lance-spark's pages about rows and queries (docs/src/operations/dml and dql), and of all pages."""

from __future__ import annotations

from tests.spark.lance_spark_ddl import DDL
from tests.spark.lance_spark_pages import (
    AN_EVENT,
    BLOB_METADATA,
    DB,
    DOCUMENTS,
    EVENTS,
    FTS,
    PLAIN_USERS,
    STAGING,
    TEXTS,
    USERS,
    Page,
    Said,
    numbers,
)

PAGES = [
    *DDL,
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
