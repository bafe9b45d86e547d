"""The class by which ``datasets`` reads a table: shards, features, rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import datasets
import pyarrow as pa
from datasets.builder import Key
from datasets.table import table_cast

from pennon.dataset.open import dataset
from pennon.hf.package import is_array


@dataclass
class TableConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """The table, version, columns and filter of a build; ``datasets`` names its cache by these values."""

    uri: str = ""
    table_version: int = 0
    columns: list[str] | None = None
    filter: str | None = None
    column_features: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 256


class TableBuilder(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Reads one version of a table, a shard for each fragment."""

    BUILDER_CONFIG_CLASS = TableConfig

    def _table(self) -> Any:
        """Return the table: every process opens it for itself."""
        config = self.config
        return dataset(config.uri, config.table_version, storage_options=self.storage_options)

    def _info(self) -> Any:
        return datasets.DatasetInfo(features=self._features())

    def _features(self) -> Any:
        """Return the features stored in the schema, with those that the user named in their place."""
        config = self.config
        scanner = self._table().scanner(columns=config.columns, blob_handling="all_binary")
        found = datasets.Features.from_arrow_schema(scanner.projected_schema)
        found.update(_stored_arrays(scanner.projected_schema))
        found.update({name: each for name, each in config.column_features.items() if name in found})
        return found

    def _split_generators(self, _: Any) -> list[Any]:
        fragments = [each.fragment_id for each in self._table().get_fragments()]
        return [datasets.SplitGenerator("train", gen_kwargs={"fragments": fragments})]

    def _generate_shards(self, fragments: list[int]) -> Iterator[str]:
        for each in fragments:
            yield f"{self.config.uri}#{each}"

    def _generate_tables(self, fragments: list[int]) -> Iterator[tuple[Any, pa.Table]]:
        config = self.config
        table = self._table()
        for number, each in enumerate(fragments):
            batches = table.get_fragment(each).to_batches(
                columns=config.columns,
                filter=config.filter,
                batch_size=config.batch_size,
                blob_handling="all_binary",
            )
            for count, batch in enumerate(batches):
                rows = table_cast(pa.Table.from_batches([batch]), self.info.features.arrow_schema)
                yield Key(number, count), rows


def _stored_arrays(schema: pa.Schema) -> dict[str, Any]:
    """Return the features ``Array2D`` to ``Array5D`` that a schema's metadata has; its columns have their storage."""
    try:
        said = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        stored = datasets.Features.from_dict(said)
    except (KeyError, TypeError, ValueError):
        return {}
    kinds = {each.name: each.type for each in stored.arrow_schema}
    return {
        each.name: stored[each.name]
        for each in schema
        if is_array(kinds.get(each.name)) and kinds[each.name].storage_type == each.type
    }
