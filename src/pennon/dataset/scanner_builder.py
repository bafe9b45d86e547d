"""Collecting the options of a scan: pylance's ``ScannerBuilder``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import pyarrow.compute as pc

from pennon.compat.arguments import check_columns, check_options
from pennon.core.near_names import did_you_mean
from pennon.dataset.scanner import LanceScanner
from pennon.errors import ArgumentError, UnsupportedError
from pennon.scan.plan.query import ColumnOrdering as ColumnOrdering
from pennon.scan.plan.query import ScanOptions, parse_columns, parse_predicate
from pennon.scan.plan.row_masks import row_mask
from pennon.scan.plan.row_search import TextSearch
from pennon.scan.predicate import all_of
from pennon.scan.read.tasks import check_batch_rows
from pennon.scan.run.sort import sort_keys
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase
    from pennon.scan.plan.row_search import RowSearch
    from pennon.scan.plan.vector_query import VectorSearch
    from pennon.scan.predicate import Predicate
    from pennon.scan.search.fusion import Fusion


_BLOB_HANDLINGS = ("all_binary", "blobs_descriptions", "all_descriptions")


@dataclass(frozen=True, slots=True)
class AllOf:
    """Filters that a row must pass, all of them: SQL texts and pyarrow expressions side by side."""

    filters: tuple[str | pc.Expression, ...]

    def and_also(self, filter: str | pc.Expression | AllOf | None) -> AllOf:
        """Return these filters and another."""
        if filter is None:
            return self
        more = filter.filters if isinstance(filter, AllOf) else (filter,)
        return AllOf((*self.filters, *more))


class ScannerBuilder:
    """Collects the options of a scan, one call each, and makes the scanner.

    What Pennon does not do yet is refused when it is asked for.  What only makes pylance faster
    (``use_stats``, ...) is accepted and changes nothing.

    >>> from pennon.dataset import ScannerBuilder
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> scan = ScannerBuilder(ds).filter("id > 1").limit(1).to_scanner()
    >>> scan.to_table()["id"].to_pylist()
    [2]
    """

    def __init__(self, ds: DatasetBase) -> None:
        """Start with the defaults."""
        self.ds = ds
        self._given: dict[str, Any] = {}
        self._columns: Any = None
        self._filter: str | pc.Expression | AllOf | None = None
        self._text: tuple[Any, tuple[str, ...] | None] | None = None
        self._nearest: VectorSearch | None = None
        self._fusion: Fusion | None = None
        self._search_options: dict[str, Any] = {}
        self._segments: frozenset[str] | None = None
        self._mask: Predicate | None = None

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> ScannerBuilder:
        """Set options by their names."""
        for name, value in default_opts.items():
            setter = getattr(self, name, None)
            if setter is None or name.startswith("_"):
                known = (each for each in dir(self) if not each.startswith("_"))
                message = f"unknown scan option {name!r}{did_you_mean(name, known)}"
                raise ArgumentError(message)
            if name == "nearest" and value is not None:
                if not isinstance(value, Mapping):
                    message = f"nearest is a dict of the arguments of ScannerBuilder.nearest, got {type(value).__name__}"
                    raise TypeError(message)
                check_options(value, self.nearest, "nearest")
                setter(**value)
            elif name != "nearest":
                setter(value)
        return self

    def _set(self, **changes: Any) -> ScannerBuilder:
        self._given.update(changes)
        return self

    def columns(self, cols: Any = None) -> ScannerBuilder:
        """Choose columns by name, or by a mapping from a new name to a column or SQL expression."""
        self._columns = check_columns(cols)
        return self

    def filter(self, filter: Any) -> ScannerBuilder:
        """Keep the rows for which SQL text, or a pyarrow expression, is true."""
        if isinstance(filter, AllOf):
            for each in filter.filters:
                self.filter(each)
        if isinstance(filter, (str, pc.Expression, AllOf)):
            self._filter = filter
            return self
        message = (
            "a filter is SQL text or a pyarrow.compute expression, "
            f"not a value of type {type(filter).__name__}; for functions of batches: to_batches()"
        )
        raise UnsupportedError(message)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """Stop after ``n`` rows."""
        return self._set(limit=_not_negative("limit", n))

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Skip ``n`` rows."""
        return self._set(offset=_not_negative("offset", n) or 0)

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Set the most rows a batch may have."""
        return self._set(batch_size=check_batch_rows(batch_size))

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Set about how many bytes a batch may have."""
        return self._set(batch_size_bytes=batch_size_bytes)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Set how many bytes are read ahead of the caller."""
        return self._set(io_buffer_size=io_buffer_size)

    def with_fragments(self, fragments: Iterable[Any] | None) -> ScannerBuilder:
        """Read these fragments only, in the order given."""
        if fragments is None:
            return self._set(fragments=None)
        chosen = []
        for each in fragments:
            fragment = getattr(each, "fragment", None)
            if not isinstance(fragment, Fragment):
                name = type(each).__name__
                message = f"fragments must be an iterable of LanceFragment, got a {name}"
                raise TypeError(message)
            chosen.append(fragment)
        return self._set(fragments=tuple(chosen))

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Add the column ``_rowid``."""
        return self._set(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Add the column ``_rowaddr``."""
        return self._set(with_row_address=with_row_address)

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Let all batches but the last have exactly ``batch_size`` rows."""
        return self._set(strict_batch_size=strict_batch_size)

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Accept and ignore: read-ahead is bounded by bytes (`io_buffer_size`)."""
        if nbatches is not None and nbatches <= 0:
            message = f"batch_readahead must be greater than 0, got {nbatches}"
            raise ArgumentError(message)
        return self

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Accept and ignore: read-ahead is bounded by bytes (`io_buffer_size`)."""
        _not_negative("fragment_readahead", nfragments)
        return self

    def blob_handling(self, blob_handling: str | None) -> ScannerBuilder:
        """Show blob columns as descriptions (``blobs_descriptions``) or bytes (``all_binary``)."""
        if blob_handling not in {None, *_BLOB_HANDLINGS}:
            known = ", ".join(map(repr, _BLOB_HANDLINGS))
            message = f"there is no blob_handling {blob_handling!r}; there are {known}"
            raise ArgumentError(message)
        return self._set(blobs_as_bytes=blob_handling == "all_binary")

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Choose the columns that are read behind the filter, just for the rows that it kept.

        All (True), none (False), or those named.  By default all are, and rows in between with them
        where that costs less.
        """
        late = late_materialization
        if isinstance(late, bool):
            return self._set(late=late)
        if isinstance(late, (list, tuple)) and all(isinstance(name, str) for name in late):
            return self._set(late=frozenset(late))
        message = "late_materialization must be a bool or a list of strings"
        raise ArgumentError(message)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Return deleted rows as well, as far as files still have them; their ``_rowid`` is NULL."""
        return self._set(with_deleted=bool(flag))

    def order_by(self, orderings: Iterable[Any] | None) -> ScannerBuilder:
        """Sort by columns: names, or `ColumnOrdering`."""
        if isinstance(orderings, (str, ColumnOrdering)):
            message = f"order_by is a list of names or ColumnOrderings: order_by=[{orderings!r}]"
            raise ArgumentError(message)
        chosen = []
        for each in orderings or ():
            ordering = ColumnOrdering(each) if isinstance(each, str) else each
            if not isinstance(getattr(ordering, "column_name", None), str):
                message = f"orderings must be a list of ColumnOrdering, got {type(each).__name__}"
                raise TypeError(message)
            chosen.append(ordering)
        sort_keys(self.ds.snapshot.manifest.schema, chosen)
        return self._set(orderings=tuple(chosen))

    def scan_stats_callback(self, callback: Any) -> ScannerBuilder:
        """Have ``callback`` called with the `ScanStatistics` of each scan that is complete."""
        if not callable(callback):
            message = f"scan_stats_callback is a function, got {type(callback).__name__}"
            raise TypeError(message)
        return self._set(report=callback)

    def to_scanner(self) -> LanceScanner:
        """Return the scanner."""
        search = self._search()
        given = {**self._given, **self._shown(search)}
        if self._filter is not None:
            given["predicate"] = self._condition(self._filter, search)
        if self._mask is not None:
            if search is not None:
                given["mask"] = self._mask
            else:
                given["predicate"] = all_of([self._mask, *_present(given.get("predicate"))])
        return LanceScanner(self.ds, self.ds.snapshot, ScanOptions(**given, search=search))

    def _search(self) -> RowSearch | None:
        """Return the search, if the scan is one.  Raises ArgumentError for two that are not to be made one."""
        vectors, texts, fusion = self._nearest, None, self._fusion
        if vectors is not None and self._search_options:
            vectors = replace(vectors, **self._search_options)
        if self._segments is not None:
            if vectors is None:
                message = "index_segments are for a search of vectors (nearest)"
                raise ArgumentError(message)
            vectors = replace(vectors, segments=self._segments)
        if self._text is not None:
            texts = TextSearch(*self._text, **self._search_options)
        if vectors is None or texts is None:
            if fusion is not None:
                message = "a hybrid search is for a vector (nearest) and a text (full_text_query)"
                raise ArgumentError(message)
            return vectors or texts
        if fusion is None:
            message = "a scan searches vectors (nearest) or texts (full_text_query), not both"
            raise ArgumentError(message)
        return fusion.search(vectors, texts)

    def _shown(self, search: RowSearch | None) -> dict[str, Any]:
        """Return the options that say which columns come out."""
        columns = self._columns
        if not isinstance(columns, Mapping):
            return {"columns": columns}
        stored, expressions = parse_columns(self.ds.snapshot, columns, search=search)
        order = tuple(columns) if expressions else ()
        return {"columns": stored, "expressions": expressions, "order": order}

    def _condition(self, text: str | pc.Expression | AllOf, search: RowSearch | None) -> Predicate:
        if isinstance(text, AllOf):
            return all_of([self._condition(each, search) for each in text.filters])
        try:
            return parse_predicate(self.ds.snapshot, text, search=search)
        except ArgumentError:
            added = [] if self._fusion is None or search is None else search.added.fields
            named = [name for name in added if name in str(text)]
            if not named:
                raise
            message = f"the filter of a hybrid search cannot compute with {named[0]}: {text}"
            raise ArgumentError(message) from None

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> ScannerBuilder:
        """Return the ``k`` rows (10) whose vectors are nearest to ``q``, nearest first, with their ``_distance``.

        ``q`` may be several vectors: each is answered by itself, and ``query_index`` says which; where rows are
        lists of vectors, they are one query.  ``metric``: l2, cosine, dot or hamming; by default the index's,
        else l2, of uint8 hamming.  ``distance_range``: from, and up to without, a distance.  What is about
        indices: ``use_index``, ``nprobes`` and its bounds (partitions), ``search_effort``, ``ef`` (HNSW),
        ``refine_factor`` (so many times ``k`` candidates are compared exactly).
        """
        given = locals()
        del given["self"]
        from pennon.scan.plan.vector_query import vector_search  # noqa: PLC0415 - as above

        self._nearest = vector_search(self.ds.snapshot, **given)
        return self

    def full_text_search(self, query: Any, columns: list[str] | None = None) -> ScannerBuilder:
        """Return the rows whose texts fit a query, best first, with their ``_score``.

        ``query``: words, a phrase in quotes, or a query of `pennon.query`; by default all columns with a
        full-text index are searched.
        """
        if isinstance(query, Mapping):
            return self.full_text_search(**query)
        self._text = (query, None if columns is None else tuple(columns))
        return self

    def fuse(self, fusion: Fusion) -> ScannerBuilder:
        """Search vectors and texts at once, and make one list of the rows that both find."""
        self._fusion = fusion
        return self

    def prefilter(self, prefilter: bool = True) -> ScannerBuilder:
        """Search among the rows that pass the filter; by default the filter is for the rows found."""
        self._search_options["prefilter"] = bool(prefilter)
        return self

    def fast_search(self, flag: bool = True) -> ScannerBuilder:
        """Search just what indices cover."""
        self._search_options["is_fast"] = bool(flag)
        return self

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Show ``_score`` only where it is named among the columns."""
        self._search_options["is_scored"] = not disable
        return self

    def with_index_segments(self, index_segments: Iterable[str | UUID] | None) -> ScannerBuilder:
        """Search for near vectors in these segments of an index only, by their UUIDs; None: in all.

        Other rows are compared only where `with_fragments` names their fragments.
        """
        self._segments = None if index_segments is None else _segment_ids(index_segments)
        return self

    def row_addr_prefilter(
        self, allowlist: bytes | None = None, blocklist: bytes | None = None
    ) -> ScannerBuilder:
        """Read or search only the rows of a list, or only others; neither: all.

        Both are what `pennon.dataset.serialize_row_addrs` returns.  A search looks for the best of these rows.
        """
        self._mask = row_mask(allowlist, blocklist)
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Ask the indices of columns which rows may pass the filter; True by default."""
        return self._set(uses_indices=bool(use_scalar_index))

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Accept and ignore: statistics are always used."""
        return self

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Accept and ignore: rows always come in order."""
        return self

    def minhash_search(self, query: object) -> ScannerBuilder:
        """Refuse: indices of kind MINHASHLSH are not read."""
        return self._refuse("minhash_search", "nearest")

    def substrait_aggregate(self, aggregate: object) -> ScannerBuilder:
        """Refuse: plans of Substrait are not read; `LanceDataset.sql` aggregates."""
        return (
            self
            if aggregate is None
            else self._refuse("substrait_aggregate", "substrait_aggregate")
        )

    def _refuse(self, name: str, option: str) -> NoReturn:
        message = f"the scan option {option!r} is not supported yet (ScannerBuilder.{name})"
        raise UnsupportedError(message)


def _present(predicate: Predicate | None) -> list[Predicate]:
    return [] if predicate is None else [predicate]


def _segment_ids(segments: Any) -> frozenset[str]:
    """Return UUIDs as text.  Raises TypeError for one alone, ArgumentError for text that is none, or for no segment."""
    if isinstance(segments, (str, UUID)):
        message = f"index_segments is a list of UUIDs, not a single one: [{str(segments)!r}]"
        raise TypeError(message)
    found = set()
    for each in segments:
        if not isinstance(each, (str, UUID)):
            message = f"index_segments are UUIDs, as text or uuid.UUID, got {type(each).__name__}"
            raise TypeError(message)
        try:
            found.add(str(UUID(str(each))))
        except ValueError as error:
            message = f"an index segment is named by its UUID, not by {each!r}"
            raise ArgumentError(message) from error
    if not found:
        message = "index_segments names no segment; leave it out to search all of them"
        raise ArgumentError(message)
    return frozenset(found)


def _not_negative(name: str, value: int | None) -> int | None:
    if value is not None and value < 0:
        message = f"{name.capitalize()} must be non-negative, got {value}"
        raise ArgumentError(message)
    return value
