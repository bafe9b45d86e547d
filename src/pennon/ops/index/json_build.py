"""Making an index of what lies at a path of a JSON column.

It is an index of another kind, of the values there: all booleans, whole numbers of 64 bits, floating-point numbers or
texts, whichever the first value of the table is.  Where nothing lies it has NULL.  Source: ledger F-601.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from pennon.errors import ArgumentError, ColumnTypeError, FormatError
from pennon.expr.functions.json import path_value
from pennon.index.base import Values
from pennon.index.kind import Kind
from pennon.index.kinds import KINDS, kind_called, kind_of_details
from pennon.index.row_map import RowMap
from pennon.index.text.documents import is_json
from pennon.ops.index.build import Builder, IndexBuild, Origin
from pennon.ops.index.request import (
    IndexRequest,
    check_parameters,
    check_type,
    groups_of_index,
    leaf_of,
    leaf_of_index,
    path_of,
)
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.json_index_wire import json_details, json_target

_WHOLE: Final = 1 << 63
_TYPES: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


@dataclass(frozen=True, slots=True)
class JsonChoices:
    """The settings of an index on a JSON path; ``kind`` is that of an index of the values."""

    path: str
    kind: Kind
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, chosen: Mapping[str, Any]) -> JsonChoices:
        """Return what was chosen.  Raises ArgumentError for what is missing, or no kind that can be."""
        given = dict(chosen)
        path, target = given.pop("path", None), given.pop("target_index_type", None)
        parameters = given.pop("target_index_parameters", None) or "{}"
        if not isinstance(path, str) or not isinstance(target, str) or given:
            message = (
                "a JSON index has path, target_index_type and, as JSON, target_index_parameters; got "
                f"{', '.join(sorted(chosen)) or 'none'}"
            )
            raise ArgumentError(message)
        kind = kind_called(target)
        if not kind.may_be_json_target:
            names = sorted(each.user_names[0] for each in KINDS if each.may_be_json_target)
            message = (
                f"an index on a path of JSON is one of {', '.join(names)}, and not {target!r}; "
                "INVERTED is made of the JSON column itself"
            )
            raise ArgumentError(message)
        try:
            found = json.loads(parameters)
            path_value("{}", path)
        except (ValueError, TypeError) as error:
            raise ArgumentError(str(error)) from error
        check_parameters(kind, found)
        return cls(path, kind, found)


@dataclass(frozen=True, slots=True)
class JsonBuild(IndexBuild):
    """A build of segments of an index on a JSON path; ``values_type`` is the type of the values."""

    json_path: str = ""
    values_type: pa.DataType = _TYPES[str]

    @classmethod
    def plan(cls, wanted: IndexRequest) -> JsonBuild:
        """See `IndexBuild.plan`.  Raises ColumnTypeError for a column that is not of JSON."""
        choices = JsonChoices.of(wanted.parameters)
        others = [each for each in wanted.indices if json_target(each)[0] != choices.path]
        name = wanted.name_or_new("", others)
        return cls._planned(wanted.snapshot, wanted.column, name, choices, wanted.fragments)

    @classmethod
    def plan_like(
        cls,
        snapshot: Snapshot,
        like: Index,
        fragments: Sequence[Fragment] | None,
        origin: Origin = Origin.FILES,
    ) -> JsonBuild:
        """See `IndexBuild.plan_like`."""
        cls.check_entry(snapshot, like)
        schema, (json_path, target) = snapshot.manifest.schema, json_target(like)
        column = path_of(schema, leaf_of_index(schema, like))
        choices = JsonChoices(json_path or "", kind_of_details(target.type_name), {})
        build = cls._planned(snapshot, column, like.name, choices, fragments)
        if origin is Origin.DETAILS:
            return build
        return replace(build, parameters=dict(build.kind.parameters.of_files(build.files(like))))

    @classmethod
    def _planned(
        cls,
        snapshot: Snapshot,
        column: str,
        name: str,
        choices: JsonChoices,
        fragments: Sequence[Fragment] | None,
    ) -> JsonBuild:
        schema, kind = snapshot.manifest.schema, choices.kind
        leaf = leaf_of(schema, column)
        arrow = field_to_arrow(leaf).type
        if not is_json(arrow):
            message = f"a JSON index is made of a JSON column, and {column} is {arrow}"
            raise ColumnTypeError(message)
        return cls(
            snapshot,
            name,
            kind.details,
            path_of(schema, leaf),
            leaf.id,
            dict(choices.parameters),
            groups_of_index(snapshot, leaf, kind, fragments),
            json_path=choices.path,
        )

    @classmethod
    def fits(cls, kind: Kind, column: pa.DataType) -> bool:  # noqa: ARG003 - of the values
        """See `IndexBuild.fits`."""
        return is_json(column)

    @property
    def type(self) -> pa.DataType:
        """See `IndexBuild.type`."""
        return self.values_type

    @property
    def details(self) -> tuple[str, bytes]:
        """See `IndexBuild.details`."""
        return json_details(self.json_path, self.kind.described(self.parameters))

    def values_of(self, column: Iterator[Values]) -> Iterator[Values]:
        """See `IndexBuild.values_of`.  Raises ArgumentError for a value of another type."""
        for part in column:
            found = [self._value(text) for text in part.values.to_pylist()]
            yield Values(pa.array(found, self.values_type), part.rows)

    def _value(self, text: str | None) -> Any:
        value: Any = None if text is None else path_value(text, self.json_path)
        if value is None:
            return None
        kind = _type_of(value, self.json_path)
        if self.values_type == _TYPES[float] and kind in (_TYPES[int], _TYPES[float]):
            return float(value)
        if kind == self.values_type:
            return value
        message = (
            f"column {self.path}: what lies at {self.json_path!r} is {self.values_type} in the first row that has "
            f"it, and {kind} in another: {value!r:.80}"
        )
        raise ArgumentError(message)

    def train(self, builder: Builder) -> JsonBuild:  # noqa: ARG002 - takes no time
        """Return the build of an index of values of the type that the first one in the table is of.

        Raises ArgumentError for one of no such type, ColumnTypeError for a type that the kind does not take.
        """
        if not any(self.groups):
            return self
        found = next(self._found(), None)
        kind = _TYPES[str] if found is None else _type_of(found, self.json_path)
        check_type(self.kind, f"{self.path}->{self.json_path}", kind)
        return replace(self, values_type=kind)

    def _found(self) -> Iterator[Any]:
        for fragment in self.snapshot.manifest.fragments:
            for part in self.read(plan_tasks(self.snapshot, [fragment])):
                texts = (text for text in part.values.to_pylist() if text is not None)
                values = (path_value(text, self.json_path) for text in texts)
                yield from (value for value in values if value is not None)

    def merge(self, segments: Sequence[Index]) -> Index:
        """See `IndexBuild.merge`.  Raises FormatError if one is of values of another type."""
        for each in segments:
            kind = self.stored_type(each)
            if kind is not None and kind != self.values_type:
                message = f"a segment of index {self.name!r} has {kind}, and the column has {self.values_type}"
                raise FormatError(message)
        return IndexBuild.merge(self, segments)

    def rewrite(self, segment: Index, moves: RowMap) -> Index:
        """See `IndexBuild.rewrite`."""
        return IndexBuild.rewrite(self.alike(segment), segment, moves)

    def alike(self, segment: Index) -> JsonBuild:
        """See `IndexBuild.alike`; no value is read from the table."""
        return replace(self, values_type=self.stored_type(segment) or self.values_type)

    def stored_type(self, segment: Index) -> pa.DataType | None:
        """Return of what type the values of a segment are; None where its files do not say."""
        if not self.kind.tells_type:
            return None
        opened: Any = self.kind.open_segment(self.files(segment), self.values_type)
        found: pa.DataType = opened.column.type
        return found


def _type_of(value: Any, path: str) -> pa.DataType:
    """Return the type of a value as an index has it.  Raises ArgumentError for arrays and objects."""
    kind = type(value)
    if kind is int and not -_WHOLE <= value < _WHOLE:
        kind = float
    if kind not in _TYPES:
        what = "an object" if kind is dict else "an array"
        message = f"an index is made of single values, and at {path!r} lies {what}: {value!r:.80}"
        raise ArgumentError(message)
    return _TYPES[kind]
