"""The statements of lance-spark's pages about tables, namespaces, indices, tags and branches (docs/src/operations/ddl)."""

from __future__ import annotations

from tests.spark.lance_spark_pages import (
    BLOB_METADATA,
    DB,
    DB_USERS,
    DOCUMENTS,
    EVENTS,
    FTS,
    ITEMS,
    MORE_ROWS,
    PLAIN_USERS,
    USERS,
    Page,
    Said,
    numbers,
)

DDL = [
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
]
