"""Changes to Delta's tests with their reasons, and the tests that are left out.

A change is patterns that occur in the text of a test, or of what it calls, and what is put there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """What is put for what, in words and as patterns."""

    why: str
    pairs: Sequence[tuple[str, str]]

    def applied(self, text: str) -> str:
        """Return the text with the change; raises ValueError if there is nothing to change."""
        found = 0
        for pattern, new in self.pairs:
            text, count = re.subn(pattern, new, text)
            found += count
        if not found:
            message = f"there is nothing to change so that it is {self.why}"
            raise ValueError(message)
        return text


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why a test makes no sense here, and what it must fail with, as a pattern, after some changes."""

    why: str
    error: str
    changes: Sequence[Change] = ()


EVERYWHERE = Change(
    "the format is `lance`; rows are written with mode `append`, for Spark has no `errorifexists` for "
    "sources in Python",
    [
        (r'format\("delta"\)', 'format("lance")'),
        (
            r'(write(?:\.partitionBy\("\w+"\))?\.format\("lance"\))\s*\.save\(([\w.]+)\)',
            r'\1.mode("append").save(\2)',
        ),
    ],
)

NAMES = Change(
    "a path for the name of a table", [(r"\.tableName\(tableName\)", ".location(tableName)")]
)
SQL = Change(
    "`DESCRIBE DETAIL`, `SHOW TBLPROPERTIES` and `CREATE TABLE` are asked of `LanceTable`",
    [(r"self\.spark\.sql\(", "self.sql("), (r'format, "delta"', 'format, "lance"')],
)
NO_PARTITIONS = Change(
    "without partitions",
    [(r"\\?\s*\.partitionedBy\([^)]*\)", ""), (r"(partitioningColumns=)\[[^\]]+\]", r"\1[]")],
)
NOT_PARTITIONED = Change("without partitions", [(r'\.write\.partitionBy\("\w+"\)', ".write")])
NOT_GENERATED = Change(
    "without the generated column",
    [
        (r', generatedAlwaysAs="[^"]*"', ""),
        (r"self\.__verify_generated_column\([^\n]*\)\n", "pass\n"),
    ],
)
NO_IDENTITY = Change(
    "without identity columns",
    [(r"(?s)        # bad generatedAlwaysAs\n.*(?=        # bad nullable\n)", "")],
)
FROM_ONE = Change(
    "versions are counted from 1", [(r"(restoreToVersion|cloneAtVersion)\(0", r"\1(1")]
)
ERRORS = Change(
    "errors are Pennon's, in its words",
    [
        (r"AnalysisException", "LanceError"),
        ("already exists", "already"),
        ("did not exist", "no Lance table"),
    ],
)
PLACED = (SQL, NO_PARTITIONS, NOT_GENERATED)
BUILT = (NAMES, *PLACED)
BOTH = (
    *PLACED,
    Change(
        "what is asked of the name is asked of the path",
        [(r"(self\.__verify_table_schema\(|verify_generated_column\()tableName", r"\1path")],
    ),
)

_CATALOG = "Spark hands the tables of its catalog to no source in Python"
_PROTOCOL = (
    "Lance has no protocol to upgrade: what is written sets the flags that its readers must know"
)

TESTS: dict[str, Sequence[Change] | LeftOut] = {
    "test_forPath": (),
    "test_forPathWithOptions": (),
    "test_forName": LeftOut(
        _CATALOG,
        "catalog",
        (
            Change(
                "by a name that Spark reads",
                [(r"(saveAsTable\(|spark, )t(?:bl|able)Name", r"\1'named'")],
            ),
        ),
    ),
    "test_alias_and_toDF": (),
    "test_delete": (),
    "test_generate": LeftOut(
        "there are no manifests of Parquet files for other engines", "generate"
    ),
    "test_update": (),
    "test_merge": (),
    "test_merge_with_inconsistent_sessions": (
        Change(
            "a thread that writes calls `activate(spark)` first",
            [(r"(def f\(spark\):[^\n]*\n)", r"\1            activate(spark)\n")],
        ),
    ),
    "test_history": (),
    "test_cdc": (
        Change(
            "the table has stable row ids, and nothing is turned on; versions are counted from 1",
            [
                (
                    r'(range\(0, 5\)\.write\.format\("lance"\))',
                    r'\1.option("enable_stable_row_ids", "true")',
                ),
                (r"(?s)        # Enable Change Data Feed\n.*?self\.tempFile\)\)\n", ""),
                (r'"startingVersion", "1"', '"startingVersion", "2"'),
            ],
        ),
    ),
    "test_detail": (Change("the format is `lance`", [(r"Row\('delta'\)", "Row('lance')")]),),
    "test_vacuum": (
        Change(
            "the files that no version needs are in the table's own folders: others' are never deleted",
            [(r"'(\w+)\.txt'", r"'data/\1.lance'")],
        ),
    ),
    "test_convertToDelta": (
        Change(
            "the rows are copied to a table of another path",
            [
                (r"DeltaTable\.convertToDelta\(", "self.convert("),
                (r"\.load\(([\w.]+)\)", r'.load(\1 + ".lance")'),
                (r"forPath\(self\.spark, (tempFile\d)\)", r'forPath(self.spark, \1 + ".lance")'),
            ],
        ),
    ),
    "test_isDeltaTable": (),
    "test_create_table_with_existing_schema": (NAMES, SQL, NO_PARTITIONS),
    "test_create_replace_table_with_cluster_by": (NAMES, SQL),
    "test_create_replace_table_with_no_spark_session_passed": (NAMES, SQL),
    "test_create_table_with_name_only": BUILT,
    "test_create_table_with_location_only": PLACED,
    "test_create_table_with_name_and_location": BOTH,
    "test_create_table_behavior": (
        *BUILT,
        ERRORS,
        Change("a path for the name of a table", [(r"\.table\(tableName\)", ".load(tableName)")]),
    ),
    "test_replace_table_with_name_only": BUILT,
    "test_replace_table_with_location_only": PLACED,
    "test_replace_table_with_name_and_location": BOTH,
    "test_replace_table_behavior": (*BUILT, ERRORS),
    "test_verify_paritionedBy_compatibility": LeftOut(
        "it reaches into Delta's own builder in the JVM", "_jbuilder|generated"
    ),
    "test_create_table_with_identity_column": LeftOut("there are no identity columns", "identity"),
    "test_delta_table_builder_with_bad_args": (NO_IDENTITY,),
    "test_protocolUpgrade": LeftOut(_PROTOCOL, "upgradeTableProtocol"),
    "test_addFeatureSupport": LeftOut(_PROTOCOL, "DELTA_UNSUPPORTED_FEATURES"),
    "test_dropFeatureSupport": LeftOut(_PROTOCOL, "addFeatureSupport"),
    "test_restore_to_version": (FROM_ONE,),
    "test_restore_to_timestamp": (),
    "test_restore_invalid_inputs": (),
    "test_optimize": (
        Change(
            "a condition of `where` names any column",
            [(r"(?s)        # test non-partition column.*", "")],
        ),
    ),
    "test_optimize_w_partition_filter": (
        NOT_PARTITIONED,
        Change(
            "a condition of `where` names any column, and is told as it was given",
            [
                (r"(?s)        # test non-partition column.*", ""),
                (r"\"\('key = a\)\"", "\"key = 'a'\""),
            ],
        ),
    ),
    "test_optimize_zorder_by": (
        NOT_PARTITIONED,
        Change(
            "so there is one file afterwards, not ten; files are counted by `files()`",
            [
                (r"self\.spark\.read[^\n]*\n[^\n]*_metadata[^\n]*", "self.files_with()"),
                (r"numDataFilesPostZOrder = 10", "numDataFilesPostZOrder = 1"),
                (r"assertEqual\(10, metrics", "assertEqual(1, metrics"),
                (r"(?s)        # negative test.*", ""),
            ],
        ),
    ),
    "test_optimize_zorder_by_w_partition_filter": (
        Change(
            "ten fragments by the values of `p`, where Delta has ten partitions",
            [
                (
                    r'\.repartition\(4\)\.write\.partitionBy\("p"\)',
                    '.repartitionByRange(10, "p").write',
                ),
                (r'(df\.format\("lance"\))', r'\1.mode("append")'),
                (r"self\.spark\.read[^\n]*\n[^\n]*_metadata[^\n]*", 'self.files_with("p = 2")'),
            ],
        ),
    ),
    "test_clone": (SQL, FROM_ONE),
    "test_clone_invalid_inputs": (
        Change(
            "the type is told as `<class 'int'>`, as Delta does; it runs this test, which stands in another one, never",
            [(r'but got (?:int|string)"', 'but got "')],
        ),
    ),
    "test_create_table_with_cluster_by": (NAMES, SQL),
    "test_replace_table_with_cluster_by": (NAMES, SQL),
    "test_cluster_by_bad_args": (),
    "test_create_table_geo_types": LeftOut(
        "GEOMETRY and GEOGRAPHY are refused", "(?i)geometry", (NAMES,)
    ),
}
