"""Programs of users print the same with pylance and with Pennon."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

Program = Callable[[Any, str], list[object]]


def _embeddings(ids: range, value: float) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([value] * len(ids) * 4, pa.float32()), 4)
    return pa.table({"id": pa.array(ids), "vec": vectors, "title": [f"t{i}" for i in ids]})


def _rows(table: pa.Table) -> list[object]:
    return [table.schema.remove_metadata(), *table.to_pylist()]


def _counts(merged: Any) -> list[object]:
    return [merged[f"num_{what}_rows"] for what in ("inserted", "updated", "deleted")]


def curate(module: Any, uri: str) -> list[object]:
    """Choose training data: filters, computed columns, order, take; then label what is left."""
    words = [f"doc {i} " + "word " * (i % 30) for i in range(600)]
    data = {
        "id": range(600),
        "text": words,
        "lang": [("en", "de", "fr", None)[i % 4] for i in range(600)],
        "score": [i * 37 % 100 / 100 for i in range(600)],
        "tags": [[f"t{j}" for j in range(i % 4)] for i in range(600)],
        "meta": [{"src": f"s{i % 3}"} if i % 10 else None for i in range(600)],
    }
    table = module.write_dataset(pa.table(data), uri, max_rows_per_file=250)
    ordering = import_module(f"{module.__name__}.dataset").ColumnOrdering
    seen: list[object] = []
    for options in (
        {
            "filter": "lang = 'en' AND score > 0.9 AND meta.src = 's1'",
            "columns": ["id", "meta.src"],
        },
        {"columns": {"n": "length(text)", "up": "upper(lang)"}, "limit": 5, "offset": 248},
        {"filter": "array_has_any(tags, ['t1', 't2'])", "columns": ["id"], "limit": 4},
        {
            "columns": ["id", "score"],
            "order_by": [ordering("score", ascending=False), ordering("id")],
        },
        {"columns": ["lang", "id"], "order_by": ["lang", "id"], "limit": 4},
        {"filter": "id >= 598 IS NOT FALSE", "with_row_id": True, "columns": ["id"]},
    ):
        seen += _rows(table.scanner(**options).to_table())
    seen += [table.delete("score < 0.1")["num_deleted_rows"]]
    seen += [table.update({"lang": "'unknown'"}, where="lang IS NULL")["num_rows_updated"]]
    seen += [table.count_rows("lang = 'unknown'"), table.count_rows(), table.version]
    seen += _rows(table.take([5, 1, 1, 400], columns=["id", "lang"]))
    seen += [(f.fragment_id, f.count_rows(), f.num_deletions) for f in table.get_fragments()]
    return seen


def embed(module: Any, uri: str) -> list[object]:
    """Keep a table of embeddings up to date by merges, and ask what changed since."""
    table = module.write_dataset(
        _embeddings(range(300), 1.5), uri, enable_stable_row_ids=True, max_rows_per_file=100
    )
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    seen: list[object] = _counts(merge.execute(_embeddings(range(295, 305), 2.5)))
    titles = pa.table({"id": [1, 2], "title": ["new 1", "new 2"]})
    seen += _counts(table.merge_insert("id").when_matched_update_all().execute(titles))
    stale = table.merge_insert("id").when_not_matched_by_source_delete("id < 10")
    seen += _counts(stale.execute(_embeddings(range(5), 0.0)))
    seen += [table.update({"title": "concat(title, '!')"}, where="id = 304")["num_rows_updated"]]
    seen += _rows(
        table.to_table(
            columns=["id", "vec", "title", "_rowid", "_row_last_updated_at_version"],
            filter="id < 12 OR id > 293",
        )
    )
    changes = table.delta(compared_against=1)
    seen += _rows(changes.get_inserted_rows().read_all().select(["id"]).sort_by("id"))
    seen += _rows(changes.get_updated_rows().read_all().select(["id", "title"]).sort_by("id"))
    with pytest.raises(OSError, match=r"(?i)match|ambiguous|multiple"):
        table.merge_insert("id").when_matched_update_all().execute(pa.concat_tables([titles] * 2))
    return [*seen, table.version]


def backfill(module: Any, uri: str) -> list[object]:
    """Compute features: by SQL, by a function with a checkpoint, by a join; then tidy up."""
    table = module.write_dataset(
        pa.table({"a": range(100), "b": [str(i) for i in range(100)]}), uri, max_rows_per_file=40
    )
    table.add_columns({"c": "a * 2", "d": "concat(b, '!')", "e": "CAST(a AS DOUBLE) / 3"})
    schema = pa.schema([pa.field("v", pa.float32())])

    @module.batch_udf(output_schema=schema, checkpoint_file=f"{uri}.checkpoint")  # type: ignore[untyped-decorator]
    def root(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [n**0.5 for n in batch["a"].to_pylist()]
        return pa.record_batch([pa.array(values, pa.float32())], schema=schema)

    table.add_columns(root, read_columns=["a"], batch_size=30)
    table.add_columns(pa.field("later", pa.list_(pa.int32())))
    table.merge(pa.table({"a": range(50), "m": range(50, 100)}), "a")
    table.alter_columns({"path": "c", "name": "twice"}, {"path": "a", "data_type": pa.int32()})
    table.drop_columns(["d"])
    fragments = []
    for fragment in table.get_fragments():
        made, lance_schema = fragment.merge_columns({"w": "a + 1"}, ["a"])
        fragments.append(made)
    operation = module.LanceOperation.Merge(fragments, lance_schema)
    table = module.LanceDataset.commit(uri, operation, read_version=table.version)
    for wrong in ({"n": "nope + 1"}, {"a": "1"}, {"n": "a +"}):
        with pytest.raises(OSError, match=r".+"):
            table.add_columns(wrong)
    with pytest.raises(OSError, match=r".+"):
        table.alter_columns({"path": "b", "data_type": pa.struct([("x", pa.int8())])})
    seen = _rows(table.to_table(filter="a % 30 = 0"))
    return [*seen, [type(t.operation).__name__ for t in table.get_transactions()]]


def travel(module: Any, uri: str) -> list[object]:
    """Tag what was trained on, try things on a branch, go back, and clean up what nobody needs."""
    for number, mode in enumerate(("create", "append", "overwrite")):
        table = module.write_dataset(pa.table({"a": [number]}), uri, mode=mode)
    table.tags.create("trained", 2)
    seen: list[object] = [table.checkout_version("trained").to_table().to_pydict()]
    branch = table.create_branch("try", "trained")
    module.write_dataset(pa.table({"a": [100]}), branch, mode="append")
    seen += [
        table.checkout_version(("try", None)).to_table().to_pydict(),
        sorted(table.branches.list()),
    ]
    with pytest.raises(OSError, match=r".+"):
        table.checkout_version("nope")
    with pytest.raises(ValueError, match=r".+"):
        table.tags.create("trained", 1)
    old = table.checkout_version(1)
    old.restore()
    seen += [old.version, old.to_table().to_pydict()]
    with pytest.raises(OSError, match=r".+"):
        old.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=True)
    removed = old.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    seen += [removed.old_versions, [each["version"] for each in old.versions()]]
    return [*seen, module.dataset(uri, version="trained").count_rows()]


def upkeep(module: Any, uri: str) -> list[object]:
    """Write in many workers and commit once; compact by tasks that travel; clean up."""
    module.write_dataset(pa.table({"w": [0], "i": [0]}), uri)
    written = [
        pickle.dumps(module.fragment.write_fragments(pa.table({"w": [w] * 9, "i": range(9)}), uri))
        for w in range(1, 9)
    ]
    fragments = [fragment for each in written for fragment in pickle.loads(each)]
    operation = module.LanceOperation.Append(fragments)
    table = module.LanceDataset.commit(uri, operation, read_version=1)
    table.delete("i = 8 AND w > 4")
    compaction = import_module(f"{module.__name__}.optimize").Compaction
    plan = compaction.plan(table, options={"target_rows_per_fragment": 50})
    done = [pickle.loads(pickle.dumps(task)).execute(module.dataset(uri)) for task in plan.tasks]
    metrics = compaction.commit(table, pickle.loads(pickle.dumps(done)))
    seen: list[object] = [plan.num_tasks(), metrics.fragments_removed, metrics.fragments_added]
    seen += [metrics.files_removed, metrics.files_added, table.version]
    seen += _rows(table.to_table(filter="w IN (4, 5)"))
    conflict = import_module(f"{module.__name__}.commit").CommitConflictError
    stale = module.dataset(uri, version=2)
    late = module.LanceOperation.Merge(
        [f.metadata for f in stale.get_fragments()], stale.lance_schema
    )
    with pytest.raises(conflict) as raised:
        module.LanceDataset.commit(uri, late, read_version=2)
    removed = table.cleanup_old_versions(timedelta(0), delete_unverified=True)
    seen += [raised.value.retryable, removed.old_versions, len(list(Path(uri, "data").iterdir()))]
    return seen


@pytest.mark.parametrize("program", [curate, embed, backfill, travel, upkeep])
def test_user_program_output_equals_pylance(program: Program, tmp_path: Path) -> None:
    theirs = program(lance, str(tmp_path / "lance"))
    ours = program(pennon, str(tmp_path / "pennon"))
    assert ours == theirs
