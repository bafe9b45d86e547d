"""Tables that are made empty, column by column, with Delta's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import types as st

from pennon.errors import ArgumentError, UnsupportedError
from pennon.io import open_store
from pennon.ops.commit import commit_transaction
from pennon.ops.write import WriteMode, plan_write, version_of_table
from pennon.schema.version import DEFAULT_VERSION, FileVersion
from pennon.spark.history import HistoryEntry
from pennon.spark.names import check_new_names
from pennon.spark.source.conditions import check_flag, check_kind, check_text, column_names
from pennon.spark.table.column_properties import ColumnShape
from pennon.spark.table_place import place_of
from pennon.spark.types import lance_schema
from pennon.table.commit.options import CommitPolicy
from pennon.table.operations import Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest, read_newest_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
CLUSTERING: Final = "pennon.clusteringColumns"
COMMENT: Final = "comment"
_STABLE_ROW_IDS: Final = "enable_stable_row_ids"
_FILE_VERSION: Final = "data_storage_version"
_CREATE, _KEEP, _REPLACE, _EITHER = "create", "createIfNotExists", "replace", "createOrReplace"


@dataclass(slots=True)
class LanceTableBuilder(Generic[T]):
    """A builder of a table; each method adds to it and returns it, as in Delta.

    ``way`` is the method of `LanceTable` that it came of, ``open`` gives the table that was made.

    >>> builder = LanceTable.create(spark).location(path + ".2").addColumn("id", "long")
    >>> builder.comment("numbers").execute().detail().first().description
    'numbers'
    """

    spark: SparkSession
    way: str
    open: Callable[[SparkSession, str, Mapping[str, str]], T]
    uri: str | None = None
    name: str | None = None
    fields: list[st.StructField] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def tableName(self, identifier: str) -> LanceTableBuilder[T]:
        """Take a name, which needs a `location` beside it: Spark keeps no catalog for Python sources."""
        check_text(identifier, "identifier")
        self.name = identifier
        return self

    def location(self, location: str) -> LanceTableBuilder[T]:
        """Say where the table is to be."""
        check_text(location, "location")
        self.uri = location
        return self

    def comment(self, comment: str) -> LanceTableBuilder[T]:
        """Say what the table is for."""
        check_text(comment, "comment")
        self.properties[COMMENT] = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | st.DataType,
        nullable: bool = True,
        generatedAlwaysAs: object = None,
        generatedByDefaultAs: object = None,
        comment: str | None = None,
    ) -> LanceTableBuilder[T]:
        """Add a column; its comment is metadata of the field."""
        check_text(colName, "colName")
        if generatedAlwaysAs is not None or generatedByDefaultAs is not None:
            message = f"column {colName!r}: a Lance table has no generated and no identity columns"
            raise UnsupportedError(message)
        kind = parse_type(self.spark, dataType) if isinstance(dataType, str) else dataType
        check_kind(kind, st.DataType, "dataType must be a DataType or its name, got")
        if comment is not None:
            check_text(comment, "comment")
        check_flag(nullable, "nullable must be bool, got")
        metadata = {} if comment is None else {COMMENT: comment}
        new = st.StructField(colName, kind, nullable, metadata)
        self.fields.append(new)
        return self

    def addColumns(self, cols: st.StructType | Sequence[st.StructField]) -> LanceTableBuilder[T]:
        """Add the columns of a schema."""
        fields = tuple(cols) if isinstance(cols, (st.StructType, list, tuple)) else (cols,)
        if not all(isinstance(each, st.StructField) for each in fields):
            message = f"cols must be a StructType or StructFields, got {cols!r}"
            raise TypeError(message)
        self.fields.extend(fields)
        return self

    def partitionedBy(self, *cols: str) -> LanceTableBuilder[T]:
        """Refuse: a Lance table has no partitions."""
        column_names(cols, "partitionedBy")
        message = f"partitionedBy({cols}): a Lance table has no partitions; write it sorted"
        raise UnsupportedError(message)

    def clusterBy(self, *cols: str | Sequence[str]) -> LanceTableBuilder[T]:
        """Put down the columns that rows are to be clustered by; `LanceTable.detail` shows them."""
        self.properties[CLUSTERING] = ",".join(column_names(cols, "clusterBy"))
        return self

    def property(self, key: str, value: str) -> LanceTableBuilder[T]:
        """Set an entry of the table's config.

        ``enable_stable_row_ids`` and ``data_storage_version`` are what `pennon.write_dataset` calls so.  Those of a
        column, such as ``vec.arrow.fixed-size-list.size``, are in `pennon.spark.table.column_properties`.
        """
        check_text(key, "key")
        check_text(value, "value")
        self.properties[key] = value
        return self

    def execute(self) -> T:
        """Make the table, and return it.

        Raises AlreadyExistsError or NotFoundError where the way of making it says so.
        """
        if self.uri is None:
            message = (
                f"the table {self.name!r} has no location: Spark hands the tables of its catalog to no "
                "source in Python, so say location(path)"
            )
            raise ArgumentError(message)
        uri, options = place_of(self.spark, self.uri, self.storage_options)
        store = open_store(uri, options or None)
        base = read_manifest(store) if self.way == _REPLACE else read_newest_if_any(store)
        if base is not None and self.way == _KEEP:
            return self._opened()
        mode = WriteMode.CREATE if self.way in {_CREATE, _KEEP} else WriteMode.OVERWRITE
        name = self.properties.get(_FILE_VERSION)
        asked = None if name is None else FileVersion.parse(name)
        version = version_of_table(base, mode, asked) or DEFAULT_VERSION
        shape = ColumnShape.of(self.properties, [each.name for each in self.fields])
        schema = shape.stored(self._schema(version, shape.dimensions))
        plan = plan_write(store, schema, mode, base=base, version=version)
        entry = HistoryEntry("CREATE TABLE" if base is None else "REPLACE TABLE")
        own = {_STABLE_ROW_IDS, _FILE_VERSION}
        config = {key: value for key, value in shape.others.items() if key not in own}
        operation = Overwrite((), plan.table_schema, config_upserts=config)
        read_version = 0 if base is None else base.version
        commit_transaction(
            store,
            Transaction(read_version, operation, properties=entry.properties()),
            CommitPolicy(stable_row_ids=self._asks_stable_row_ids()),
            base=base,
            planned_ns=plan.planned_ns,
            file_version=plan.task.version,
        )
        return self._opened()

    def _opened(self) -> T:
        return self.open(self.spark, self.uri or "", self.storage_options)

    def _asks_stable_row_ids(self) -> bool:
        text = self.properties.get(_STABLE_ROW_IDS, "false").lower()
        if text not in {"true", "false"}:
            message = f"property {_STABLE_ROW_IDS} is true or false, not {text!r}"
            raise ArgumentError(message)
        return text == "true"

    def _schema(self, version: FileVersion, dimensions: Mapping[str, int]) -> pa.Schema:
        """Return the columns as they are stored, with what may be NULL and comments."""
        if not self.fields:
            message = "a table has at least one column: addColumn(name, type)"
            raise ArgumentError(message)
        columns = st.StructType(self.fields)
        check_new_names(columns, case_sensitive=False)
        shown = lance_schema(columns, dimensions, version)
        pairs = zip(shown, self.fields, strict=True)
        return pa.schema([arrow.with_nullable(said.nullable) for arrow, said in pairs])


def parse_type(spark: SparkSession, text: str) -> st.DataType:
    """Return the type of its SQL name, as Spark reads it."""
    return spark.createDataFrame([], f"c {text}").schema[0].dataType
