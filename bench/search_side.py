"""Pennon or pylance as they search: ``search_side.py NAME`` (`formats.MODULES`), a process of its own."""

from __future__ import annotations

import importlib
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from formats import MODULES, Lance
from measure import arrow_table
from tasks import Side, Task, Works, answer_tasks, random_places

VERSION = "2.1"
"""Of the data files of tables."""
SCORE_DIGITS = 3


class SearchSide(Side):
    """Makes indices and asks them.

    A search is timed; where a task has ``answers``, all that it asks is asked once, and what was found is said.
    """

    def __init__(self, name: str) -> None:
        self.form = Lance(MODULES[name])
        self.query = importlib.import_module(f"{MODULES[name]}.query")
        self.opened: dict[str, Any] = {}

    def prepare_write(self, task: Task) -> Works:
        """Write the table in the Arrow file ``data``."""
        self.opened = {}
        shutil.rmtree(task["uri"], ignore_errors=True)
        table = arrow_table(Path(task["data"]))
        return [partial(self.form.write, table, task["uri"], VERSION)]

    def prepare_index(self, task: Task) -> Works:
        """Make an index of vectors, by l2."""
        make = partial(self._open(task).create_index, metric="l2")
        return self._makes(make, task)

    def prepare_scalar_index(self, task: Task) -> Works:
        """Make any other index."""
        return self._makes(self._open(task).create_scalar_index, task)

    def _makes(self, make: Callable[..., Any], task: Task) -> Works:
        self.opened = {}

        def work() -> int:
            make(task["column"], task["kind"], replace=True, **task["options"])
            return 0

        return [work]

    def prepare_forget(self, _task: Task) -> Works:
        """Open tables anew from now on: another side made an index of one."""
        self.opened = {}
        return []

    def prepare_near(self, task: Task) -> Works:
        """Search the rows near ``count`` queries at once, ``times`` over, those with a ``percent`` below one."""
        how = dict(task["how"])
        below = how.pop("below", None)
        options: dict[str, Any] = {"columns": ["id", "_distance"]}
        if below is not None:
            options |= {"filter": f"percent < {below}", "prefilter": True}

        def near(queries: Any) -> pa.Table:
            dataset = self._open(task) if task.get("is_cold") else self._dataset(task)
            asked = {"column": "vector", "q": queries, **how}
            return dataset.to_table(nearest=asked, **options)

        queries, count = np.load(task["queries"]), task["count"]
        if task.get("answers"):
            found = near(queries) if count > 1 else None
            each = [near(query) for query in queries] if found is None else by_query(found)
            return [lambda: [table["id"].to_pylist() for table in each]]
        some = [queries if count > 1 else queries[at] for at in random_places(len(queries), task)]
        return [partial(done, near, asked) for asked in some]

    def prepare_rows(self, task: Task) -> Works:
        """Read the ids of rows that meet each of some ``conditions``."""
        dataset = self._dataset(task)

        def ids(condition: str) -> pa.Table:
            return dataset.to_table(columns=["id"], filter=condition)

        if task.get("answers"):
            return [lambda: [pc.sum(ids(each)["id"]).as_py() for each in task["conditions"]]]
        return [partial(done, ids, each) for each in task["conditions"]]

    def prepare_count(self, task: Task) -> Works:
        """Count the rows that meet each of some ``conditions``."""
        count = self._dataset(task).count_rows
        if task.get("answers"):
            return [lambda: [count(filter=each) for each in task["conditions"]]]
        return [partial(done, count, filter=each) for each in task["conditions"]]

    def prepare_text(self, task: Task) -> Works:
        """Search texts for each of some ``words``."""
        dataset = self._dataset(task)
        make = getattr(self.query, f"{task['form']}Query")
        how = dict(task["options"])
        if "operator" in how:
            how["operator"] = self.query.FullTextOperator(how["operator"])
        asked = [make(words, "text", **how) for words in task["words"]]
        options = {"columns": ["id", "_score"], "limit": task["limit"]}

        def search(query: Any) -> pa.Table:
            return dataset.to_table(full_text_query=query, **options)

        if task.get("answers"):
            return [lambda: [scores_of(search(query)) for query in asked]]
        return [partial(done, search, query) for query in asked]

    def prepare_merge(self, task: Task) -> Works:
        """Update ``count`` random rows by their key, in the table as it was before the first time."""
        dataset = self._open(task)
        first = self.opened.setdefault(f"{task['uri']} at first", dataset.version)
        dataset = dataset.checkout_version(first)
        dataset.restore()
        random = np.random.default_rng(task["round"])
        rows = dataset.take(np.sort(random.choice(task["rows"], task["count"], replace=False)))
        dataset = self._open(task)

        def work() -> int:
            merge = dataset.merge_insert(task["column"])
            merge = merge.when_matched_update_all().when_not_matched_insert_all()
            return int(merge.execute(rows)["num_updated_rows"])

        return [work]

    def _open(self, task: Task) -> Any:
        """Open a table, with nothing remembered."""
        return self.form.open(task["uri"]).dataset

    def _dataset(self, task: Task) -> Any:
        if task["uri"] not in self.opened:
            self.opened[task["uri"]] = self._open(task)
        return self.opened[task["uri"]]


def done(search: Callable[..., Any], *words: Any, **options: Any) -> None:
    """Search, and say nothing of it: what is found was compared before."""
    search(*words, **options)


def by_query(found: pa.Table) -> list[pa.Table]:
    """Return the rows of each query of a batch."""
    queries = found["query_index"].combine_chunks().to_numpy()
    return [found.filter(pa.array(queries == at)) for at in np.unique(queries)]


def scores_of(found: pa.Table) -> list[float]:
    """Return the scores of documents, the best first; of documents with one score any may be found."""
    return [round(score, SCORE_DIGITS) for score in found["_score"].to_pylist()]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answer_tasks(SearchSide(sys.argv[1]))
