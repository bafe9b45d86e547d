"""Names, arguments and defaults of Delta's Python API, release 4.1, beside `LanceTable`.

What is left out, and why, is said here and in docs/spark.md; whatever else is there takes the same arguments, by
place and by name.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

import pytest

from pennon.errors import UnsupportedError
from pennon.spark import LanceTable
from pennon.spark.table.builder import LanceTableBuilder
from pennon.spark.table.merge_builder import LanceMergeBuilder
from pennon.spark.table.optimize_builder import LanceOptimizeBuilder

_CLONE: Final = "target, isShallow=False, replace=False, properties=None"
_COLUMN: Final = "colName, dataType, nullable=True, generatedAlwaysAs=None, generatedByDefaultAs=None, comment=None"
DELTA: Final[dict[type, dict[str, str]]] = {
    LanceTable: {
        "toDF": "",
        "alias": "aliasName",
        "generate": "mode",
        "delete": "condition=None",
        "update": "condition=None, set=None",
        "merge": "source, condition",
        "vacuum": "retentionHours=None",
        "history": "limit=None",
        "detail": "",
        "convertToDelta": "sparkSession, identifier, partitionSchema=None",
        "forPath": "sparkSession, path, hadoopConf=None",
        "forName": "sparkSession, tableOrViewName",
        "create": "sparkSession=None",
        "createIfNotExists": "sparkSession=None",
        "replace": "sparkSession=None",
        "createOrReplace": "sparkSession=None",
        "isDeltaTable": "sparkSession, identifier",
        "upgradeTableProtocol": "readerVersion, writerVersion",
        "addFeatureSupport": "featureName",
        "dropFeatureSupport": "featureName, truncateHistory=None",
        "restoreToVersion": "version",
        "restoreToTimestamp": "timestamp",
        "optimize": "",
        "clone": _CLONE,
        "cloneAtVersion": f"version, {_CLONE}",
        "cloneAtTimestamp": f"timestamp, {_CLONE}",
    },
    LanceMergeBuilder: {
        "whenMatchedUpdate": "condition=None, set=None",
        "whenMatchedUpdateAll": "condition=None",
        "whenMatchedDelete": "condition=None",
        "whenNotMatchedInsert": "condition=None, values=None",
        "whenNotMatchedInsertAll": "condition=None",
        "whenNotMatchedBySourceUpdate": "condition=None, set=None",
        "whenNotMatchedBySourceDelete": "condition=None",
        "withSchemaEvolution": "",
        "execute": "",
    },
    LanceTableBuilder: {
        "tableName": "identifier",
        "location": "location",
        "comment": "comment",
        "addColumn": _COLUMN,
        "addColumns": "cols",
        "partitionedBy": "*cols",
        "clusterBy": "*cols",
        "property": "key, value",
        "execute": "",
    },
    LanceOptimizeBuilder: {
        "where": "partitionFilter",
        "executeCompaction": "",
        "executeZOrderBy": "*cols",
    },
}
"""Delta's ``hadoopConf`` is an empty dict by default, which is the same as none."""

REFUSED: Final = {
    "generate": ("symlink_format_manifest",),
    "upgradeTableProtocol": (1, 3),
    "addFeatureSupport": ("appendOnly",),
    "dropFeatureSupport": ("appendOnly",),
}
"""Methods that say why there is no such thing; of these without a table `forName` and `convertToDelta`."""


def _said(method: Any) -> str:
    """The arguments of a method as `DELTA` has them; options of ours come behind, by name alone."""
    shown = []
    for each in inspect.signature(method).parameters.values():
        if each.name == "self" or each.kind in {each.VAR_KEYWORD, each.KEYWORD_ONLY}:
            continue
        star = "*" if each.kind is each.VAR_POSITIONAL else ""
        default = "" if each.default is each.empty else f"={each.default!r}"
        shown.append(f"{star}{each.name}{default}")
    return ", ".join(shown)


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, methods in DELTA.items() for name in methods]
)
def test_a_method_of_delta_takes_the_same_arguments(owner: type, name: str) -> None:
    assert _said(getattr(owner, name)) == DELTA[owner][name]


@pytest.mark.parametrize("name", REFUSED)
def test_delta_methods_without_lance_meaning_are_refused(name: str) -> None:
    table = LanceTable(None, "memory://nothing")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="Lance table"):
        getattr(table, name)(*REFUSED[name])


def test_delta_for_name_and_in_place_convert_are_refused() -> None:
    none: Any = None
    with pytest.raises(UnsupportedError, match="forPath"):
        LanceTable.forName(none, "sales")
    with pytest.raises(UnsupportedError, match=r"convertToLance\(.*location="):
        LanceTable.convertToDelta(none, "parquet.`/data/sales`")
