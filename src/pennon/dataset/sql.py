"""SQL over one version of a table, run by DataFusion: pylance's ``LanceDataset.sql``.

pylance runs SQL in DataFusion, and so does Pennon: types, names of columns and answers are the same.  DataFusion asks
for the columns that a statement uses, and for the rows that pass its simple conditions (``x > 3 AND s = 'a'``), so
that pages and indices are used as in any scan; the rest it computes itself.  `pip install 'pennon[sql]'` installs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from pennon.compat.arrow_bases import ArrowDataset
from pennon.core.extras import not_installed
from pennon.dataset.scanner_builder import ScannerBuilder
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase
    from pennon.dataset.scanner import LanceScanner

DEFAULT_TABLE_NAME: Final = "dataset"
BlobHandling = Literal["all_binary", "blobs_descriptions", "all_descriptions"]


class SqlQueryBuilder:
    """Collects the options of a SQL statement over a table; `LanceDataset.sql` makes it.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> query = ds.sql("SELECT max(id) AS most FROM numbers WHERE id < 3").table_name("numbers").build()
    >>> query.to_batch_records()[0].to_pydict()
    {'most': [2]}
    """

    def __init__(self, dataset: DatasetBase, sql: str) -> None:
        """Take the statement; nothing is read yet."""
        self._dataset = dataset
        self._sql = sql
        self._name = DEFAULT_TABLE_NAME
        self._scan: dict[str, Any] = {}

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Set the name that the table has in the statement; by default it is ``dataset``."""
        self._name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Let the table have the column ``_rowid``."""
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Let the table have the column ``_rowaddr``."""
        return self._with(with_row_address=with_row_addr)

    def blob_handling(self, blob_handling: BlobHandling) -> SqlQueryBuilder:
        """Show blob columns as descriptions (``blobs_descriptions``, the default) or bytes (``all_binary``)."""
        return self._with(blob_handling=blob_handling)

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Set the most rows that a batch may have."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """Set about how many bytes a batch of the scan may have."""
        return self._with(batch_size_bytes=batch_size_bytes)

    def _with(self, **options: Any) -> SqlQueryBuilder:
        ScannerBuilder(self._dataset).apply_defaults(options)  # wrong values are found now
        self._scan.update(options)
        return self

    def build(self) -> SqlQuery:
        """Return the query, planned.

        Raises ArgumentError for a statement that is not SQL, is not a query, or does not fit the table, and
        ModuleNotFoundError if DataFusion is not installed.
        """
        return SqlQuery(SqlTable(self._dataset, self._scan), self._name, self._sql)


class SqlQuery:
    """A SQL statement over a table, which may be run several times; `SqlQueryBuilder.build` makes it.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> query = ds.sql("SELECT sum(id) AS total FROM dataset").build()
    >>> [batch.to_pydict() for batch in query.to_batch_records()]
    [{'total': [6]}]
    """

    def __init__(self, table: SqlTable, name: str, sql: str) -> None:
        """Plan the statement; raises as `SqlQueryBuilder.build` does."""
        if find_spec("datafusion") is None:
            raise not_installed("datafusion", "LanceDataset.sql")
        import datafusion  # noqa: PLC0415 - saves an extra

        # A statement is read only: files of others are no tables (CREATE EXTERNAL TABLE, COPY), settings stay.
        options = datafusion.SQLOptions()
        options = options.with_allow_ddl(allow=False).with_allow_dml(allow=False)
        options = options.with_allow_statements(allow=False)
        config = datafusion.SessionConfig()
        if table.batch_rows is not None:
            config = config.with_batch_size(table.batch_rows)
        context = datafusion.SessionContext(config)
        try:
            context.register_dataset(name, table)
            self._frame: Any = context.sql_with_options(sql, options)
        except Exception as error:  # DataFusion raises Exception itself
            raise _refused(sql, error) from error

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run the statement, and return all batches; none where no row comes out.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> query = ds.sql("SELECT id, id * id AS square FROM dataset WHERE id > 1 ORDER BY id DESC").build()
        >>> query.to_batch_records()[0].to_pydict()
        {'id': [3, 2], 'square': [9, 4]}
        """
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the statement, and return a reader of its batches.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.sql("SELECT count(*) AS rows FROM dataset").build().to_stream_reader().read_all().to_pydict()
        {'rows': [3]}
        """
        return pa.RecordBatchReader.from_stream(self._frame)


def _refused(sql: str, error: Exception) -> ArgumentError:
    reason = " ".join(str(error).removeprefix("DataFusion error: ").split())
    return ArgumentError(f"cannot run the SQL statement {sql!r}: {reason}")


class SqlTable(ArrowDataset):
    """A table as DataFusion reads it: a dataset of one fragment, which makes a scan for each statement.

    Row ids and addresses are columns like others; a scan does not add them unless a statement names them.
    """

    def __init__(self, dataset: DatasetBase, options: dict[str, Any]) -> None:
        """Take a table, and the options of its scans."""
        self._dataset = dataset
        shown = {"with_row_id", "with_row_address"}
        self._options = {name: value for name, value in options.items() if name not in shown}
        self._schema = ScannerBuilder(dataset).apply_defaults(options).to_scanner().projected_schema

    @property
    def batch_rows(self) -> int | None:
        """Return how many rows a batch may have, if that was set."""
        return self._options.get("batch_size")

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that a statement may name."""
        return self._schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        *,
        columns: list[str] | None = None,
        filter: Any = None,
        batch_size: int | None = None,
    ) -> LanceScanner:
        """Return the scan of some columns, for the rows that pass the filter."""
        builder = ScannerBuilder(self._dataset).apply_defaults(self._options)
        builder.columns(self._schema.names if columns is None else columns)
        if filter is not None:
            builder.filter(filter)
        return builder.to_scanner()

    def get_fragments(self, filter: Any = None) -> Iterator[SqlTable]:
        """Return the one fragment: a scan runs on threads of its own, and keeps the order of rows."""
        return iter([self])
