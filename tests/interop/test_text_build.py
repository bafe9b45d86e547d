"""Full-text indices that Pennon makes: pylance and Pennon find the same rows with the same scores."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import lance
import lance.indices
import lance.query
import pyarrow as pa
import pytest

import pennon
import pennon.indices
import pennon.query
from tests.interop.test_text_search import (
    SETTINGS,
    WORDS,
    Tables,
    difference,
    found,
    grow,
    is_close,
)

ROWS = 3000
DOORS = ((pennon, pennon.query), (lance, lance.query))


def texts(rng: random.Random) -> list[str | None]:
    """Return texts, some tokens of which have posting lists of many blocks."""
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    found: list[str | None] = []
    for row in range(ROWS):
        words = rng.choices(WORDS, weights, k=rng.randrange(1, 30))
        words += [f"only{row}"] * (row % 7 == 0) + ["fox"] * 200 * (row == 1500)
        found.append(None if row % 50 == 3 else " ".join(words))
    return found


def written(folder: str, values: pa.Array, **options: Any) -> pennon.LanceDataset:
    """Return a table of values."""
    table = pa.table({"id": pa.array(range(len(values))), "s": values})
    return pennon.write_dataset(table, folder, **options)


QUERIES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("MatchQuery", ("fox", "s"), {}),
    ("MatchQuery", ("alpha fox only7", "s"), {}),
    ("MatchQuery", ("only700", "s"), {"fuzziness": 1}),
    ("MatchQuery", ("quick beta", "s"), {"operator": "AND"}),
    ("PhraseQuery", ("quick fox", "s"), {}),
    ("PhraseQuery", ("fox fox fox", "s"), {}),
]


def answers(folder: str, query: tuple[Any, ...], limit: int | None) -> list[dict[int, float]]:
    """Return what Pennon and pylance find."""
    name, words, more = query
    every = []
    for module, door in DOORS:
        settings = dict(more)
        if "operator" in settings:
            settings["operator"] = door.FullTextOperator(settings["operator"])
        asked = getattr(door, name)(*words, **settings)
        dataset = module.dataset(folder)
        every.append(found(dataset.to_table(["id", "_score"], full_text_query=asked, limit=limit)))
    return every


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("memory_limit", [None, 1])
@pytest.mark.parametrize(
    "coding",
    [{"format_version": 1}, {}, {"format_version": 3}, {"block_size": 256}],
    ids=["1", "2", "3", "256"],
)
def test_text_index_of_pennon_answers_as_in_pylance(
    tmp_path: Path, version: str, memory_limit: Any, coding: dict[str, Any]
) -> None:
    folder = str(tmp_path / "t.lance")
    values = pa.array(texts(random.Random(7)), pa.string())
    dataset = written(folder, values, data_storage_version=version)
    dataset.create_scalar_index(
        "s",
        "INVERTED",
        with_position=True,
        stem=False,
        remove_stop_words=False,
        memory_limit=memory_limit,
        **coding,
    )
    files = list(Path(folder).glob("_indices/*/part_*_docs.lance"))
    assert (len(files) > 1) == (memory_limit is not None)
    for query in QUERIES:
        for limit in (None, 10):
            mine, known = answers(folder, query, limit)
            where = query, limit
            assert len(mine) == len(known) > 0, where
            pairs = zip(mine.values(), known.values(), strict=True)
            assert all(is_close(one, other) for one, other in pairs), where
            assert limit or set(mine) == set(known), where
    plan = pennon.dataset(folder).scanner(full_text_query="fox").explain_plan()
    assert "MatchQuery: column=s, query=[fox]" in plan
    assert "Flat" not in plan


@pytest.mark.parametrize("makers", [[pennon], [pennon, lance]], ids=["alone", "in turns"])
@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_text_index_in_random_histories(tmp_path: Path, number: int, makers: list[Any]) -> None:
    settings = SETTINGS[number]
    wrong = []
    for seed in range(number, 60, 20):
        folder = str(tmp_path / f"{seed}.lance")
        version = ("2.0", "2.1", "2.2")[seed % 3]
        tables = Tables(seed)
        stable = seed // 20 % 2 == number % 2
        done = grow(folder, tables, settings, stable=stable, makers=makers, version=version)
        for query in range(8):
            each = difference(folder, 100 * seed + query, settings)
            wrong += [f"seed {seed}: {each} after {done}"] if each else []
    assert wrong == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_text_index_in_many_random_histories(tmp_path: Path) -> None:
    wrong = []
    for seed in range(200, 300):
        settings = SETTINGS[seed % len(SETTINGS)]
        folder = str(tmp_path / f"{seed}.lance")
        makers = [pennon] if seed % 4 == 0 else [pennon, lance]
        version = ("2.0", "2.1", "2.2")[seed // 3 % 3]
        tables = Tables(seed)
        stable = seed % 2 == 0
        done = grow(folder, tables, settings, stable=stable, makers=makers, version=version)
        for query in range(40):
            each = difference(folder, 1000 * seed + query, settings)
            wrong += [f"seed {seed}: {each} after {done}"] if each else []
    assert wrong == []


@pytest.mark.parametrize(
    "chosen",
    [
        *SETTINGS,
        {"max_token_length": None},
        {"base_tokenizer": "ngram", "prefix_only": True, "stem": True},
        {"analyzer": "code", "split_identifiers": True, "index_operators": True},
        {"format_version": "v3"},
        {"lower_case": False, "ascii_folding": False, "max_token_length": 12},
    ],
    ids=str,
)
def test_text_index_details_and_settings_equal_pylance(
    tmp_path: Path, chosen: dict[str, Any]
) -> None:
    segments: list[Any] = []
    said: list[Any] = []
    for module in (pennon, lance):
        folder = str(tmp_path / f"{module.__name__}.lance")
        written(folder, pa.array(["quick fox", None, "fooBar += 12"]))
        dataset: Any = module.dataset(folder)
        made = dataset.create_index_uncommitted("s", "INVERTED", fragment_ids=[0], **chosen)
        segments.append((made.name, made.index_version, made.index_details))
        dataset.create_scalar_index("s", "FTS", **chosen)
        (described,) = dataset.describe_indices()
        statistics = dataset.index_statistics("s_idx")
        said.append(
            (described.index_type, described.details, statistics["indices"], described.type_url)
        )
        (committed,) = described.segments
        metadata = Path(folder) / "_indices" / committed.uuid / "metadata.lance"
        read = pennon.file.LanceFileReader(str(metadata)).metadata().schema.metadata
        settings = {name: value for name, value in read.items() if name != b"params"}
        said.append((settings, json.loads(read[b"params"])))
    assert segments[0] == segments[1]
    assert said[:2] == said[2:]


@pytest.mark.parametrize(
    ("column", "chosen"),
    [
        ("id", {}),
        ("zz", {}),
        ("s", {"bogus": 1}),
        ("s", {"lance_tokenizer": "json"}),
        ("s", {"base_tokenizer": "xx"}),
        ("s", {"base_tokenizer": 3}),
        ("s", {"analyzer": "zz"}),
        ("s", {"language": "english"}),
        ("s", {"block_size": 64}),
        ("s", {"block_size": 256, "format_version": 2}),
        ("s", {"format_version": 4}),
        ("s", {"max_token_length": "a"}),
        ("s", {"stem": 1}),
        ("s", {"with_position": "yes"}),
        ("s", {"custom_stop_words": "fox"}),
        ("s", {"split_identifiers": True}),
        ("s", {"base_tokenizer": "ngram", "min_ngram_length": 0}),
        ("s", {"base_tokenizer": "ngram", "min_ngram_length": 5}),
        ("s", {"memory_limit": 0}),
    ],
    ids=str,
)
def test_invalid_text_index_options_are_refused_as_in_pylance(
    tmp_path: Path, column: str, chosen: dict[str, Any]
) -> None:
    written(str(tmp_path / "t.lance"), pa.array(["quick fox"]))
    theirs: Any = lance.dataset(tmp_path / "t.lance")
    with pytest.raises((ValueError, TypeError, RuntimeError)) as known:
        theirs.create_scalar_index(column, "INVERTED", **chosen)
    ours: Any = pennon.dataset(tmp_path / "t.lance")
    kind = KeyError if column == "zz" else known.type  # pylance: of INVERTED a RuntimeError
    with pytest.raises(kind):
        ours.create_scalar_index(column, "INVERTED", **chosen)
    assert not pennon.dataset(tmp_path / "t.lance").describe_indices()


def test_text_index_of_list_items(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    values = pa.array([["quick fox", "dog"], None, ["fox"], []], pa.list_(pa.string()))
    for module, door in DOORS:
        dataset: Any = written(folder, values, mode="overwrite")
        dataset = module.dataset(folder)
        items = door.DocumentGranularity.LIST_ELEMENT
        dataset.create_scalar_index("s", "INVERTED", with_position=True, document_granularity=items)
        (described,) = dataset.describe_indices()
        assert described.name == "s_list_element_idx"
        assert described.details["document_granularity"] == "list_element"
        for reader, words in DOORS:
            query: Any = words.MatchQuery("fox", "s")
            rows = reader.dataset(folder).to_table(["id"], full_text_query=query)
            shown = rows.drop_columns("_score").to_pylist()
            assert sorted(shown, key=str) == [
                {"id": 0, "_doc_index": [0]},
                {"id": 2, "_doc_index": [0]},
            ]
    plain: Any = pennon.dataset(folder)
    plain.create_scalar_index("s", "INVERTED", with_position=True)
    assert [each.name for each in plain.describe_indices()] == ["s_idx", "s_list_element_idx"]


def test_text_index_of_lists_and_json(tmp_path: Path) -> None:
    documents = ['{"a": "quick fox", "n": [1, 2]}', None, '{"a": "fox", "b": {"c": true}}']
    lists = [["quick fox", None, "dog fox"], None, ["fox"]]
    table = pa.table(
        {
            "id": pa.array(range(3)),
            "j": pa.array(documents, pa.json_(pa.utf8())),
            "l": pa.array(lists, pa.list_(pa.string())),
        }
    )
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(table, folder, data_storage_version="2.2")
    for column in "jl":
        pennon.dataset(folder).create_scalar_index(column, "INVERTED", with_position=True)
    for kind, words, column in (
        ("MatchQuery", "a,str,fox", "j"),
        ("MatchQuery", "n,number,2", "j"),
        ("MatchQuery", "b.c,bool,true", "j"),
        ("MatchQuery", "fox", "l"),
        ("PhraseQuery", "fox dog", "l"),
    ):
        mine, known = (
            found(
                module.dataset(folder).to_table(
                    ["id", "_score"], full_text_query=getattr(door, kind)(words, column)
                )
            )
            for module, door in DOORS
        )
        assert mine, (words, column)
        assert mine == pytest.approx(known, rel=1e-6), (words, column)


def test_text_index_of_null_and_empty_texts(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    dataset = written(folder, pa.array([None, ""], pa.string()))
    dataset.create_scalar_index("s", "INVERTED")
    for module in (pennon, lance):
        rows = module.dataset(folder).to_table(full_text_query="fox")
        assert rows.num_rows == 0


@pytest.mark.parametrize("stable", [False, True])
def test_text_index_without_training_is_built_by_pylance(tmp_path: Path, *, stable: bool) -> None:
    folder = str(tmp_path / "t.lance")
    values = pa.array(["quick fox", "dog", None])
    dataset = written(folder, values, enable_stable_row_ids=stable)
    dataset.create_scalar_index("s", "INVERTED", train=False)
    assert dataset.index_statistics("s_idx")["indices"] == [{}]
    assert dataset.index_statistics("s_idx")["num_unindexed_rows"] == 3
    assert found(lance.dataset(folder).to_table(full_text_query="fox")).keys() == {0}
    lance.dataset(folder).optimize.optimize_indices()
    dataset = pennon.dataset(folder)
    (segment,) = dataset.index_statistics("s_idx")["indices"]
    assert (segment["num_docs"], segment["num_tokens"]) == (2, 3)


@pytest.mark.parametrize("merger", [pennon, lance])
def test_text_index_segments_are_merged_by_both(tmp_path: Path, merger: Any) -> None:
    """Both merge and commit segments that Pennon made."""
    folder = str(tmp_path / "t.lance")
    values = pa.array(texts(random.Random(3)), pa.string())
    dataset: Any = written(folder, values, max_rows_per_file=1000)
    settings: dict[str, Any] = {"with_position": True, "stem": False}
    segments = [
        dataset.create_index_uncommitted("s", "INVERTED", fragment_ids=[number], **settings)
        for number in range(3)
    ]
    if merger is pennon:
        segments = [pennon.dataset(folder).merge_existing_index_segments(segments[:2]), segments[2]]
    pennon.dataset(folder).commit_existing_index_segments("s_idx", "s", segments)
    if merger is lance:
        lance.dataset(folder).optimize.optimize_indices(num_indices_to_merge=10)
    apart = [answers(folder, query, None) for query in QUERIES]
    pennon.dataset(folder).create_scalar_index("s", "INVERTED", **settings)
    whole = [answers(folder, query, None) for query in QUERIES]
    for mine, known in [*apart, *whole]:
        assert mine == pytest.approx(known, rel=1e-5)
    for one, other in zip(apart, whole, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-5)


def test_text_index_prewarm_with_positions(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    dataset = written(folder, pa.array(["quick fox", "fox"]))
    dataset.create_scalar_index("s", "INVERTED", with_position=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.prewarm_index("s_idx")
    dataset.prewarm_index("s_idx", with_position=True)
    with pytest.raises(ValueError, match="only supported for inverted indices, got BTree"):
        dataset.prewarm_index("id_idx", with_position=True)
    dataset.create_scalar_index("s", "INVERTED")
    with pytest.raises(ValueError, match="built without positions"):
        dataset.prewarm_index("s_idx", with_position=True)


@pytest.mark.parametrize("maker", [pennon, lance])
def test_updated_rows_of_another_segment(tmp_path: Path, maker: Any) -> None:
    """Pylance finds an updated row by its old text, F-485, in an old segment; Pennon writes such a segment anew."""
    folder = str(tmp_path / "t.lance")
    values = pa.array(["old", "old", "other"])
    dataset = written(folder, values, enable_stable_row_ids=True)
    dataset.create_scalar_index("s", "INVERTED", stem=False)
    pennon.dataset(folder).update({"s": "'new'"}, where="id = 1")
    maker.dataset(folder).optimize.optimize_indices(num_indices_to_merge=0)
    query: tuple[Any, ...] = ("MatchQuery", ("old", "s"), {})
    mine, known = answers(folder, query, None)
    assert (set(mine), set(known)) == ({0}, {0} if maker is pennon else {0, 1})
    pennon.dataset(folder).optimize.optimize_indices(num_indices_to_merge=10)
    mine, known = answers(folder, query, None)
    assert set(mine) == {0}
    assert mine == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("base", ["raw", "ngram", "simple", "whitespace"])
def test_scores_with_empty_texts_and_lists(tmp_path: Path, base: str) -> None:
    values = ["alpha", "", "x y", None, "the", "", "   ", "xy z", "alpha"]
    lists: list[Any] = [
        ["", "b"],
        [""],
        [],
        None,
        ["b", "c"],
        ["abcd", "", "ef"],
        [None],
        ["b", ""],
        ["b"],
    ]
    table = pa.table({"id": range(len(values)), "s": values, "l": pa.array(lists)})
    answers = []
    for maker in (pennon, lance):
        uri = str(tmp_path / maker.__name__)
        dataset: Any = maker.write_dataset(table, uri)
        for column in ("s", "l"):
            dataset.create_scalar_index(
                column, "INVERTED", base_tokenizer=base, remove_stop_words=False, stem=False
            )
        pennon.write_dataset(table.slice(4), uri, mode="append")
        for reader in (pennon, lance):
            scores = []
            for column, query in (
                *(("s", text) for text in ("", "alpha", "x y", "xy", "the")),
                *(("l", text) for text in ("", "b", "b c", "abcd  ef", "b ")),
            ):
                asked = {"columns": [column], "query": query}
                result = reader.dataset(uri).to_table(["id", "_score"], full_text_query=asked)
                pairs = zip(result["id"].to_pylist(), result["_score"].to_pylist(), strict=True)
                scores.append(sorted((row, round(score, 5)) for row, score in pairs))
            answers.append(scores)
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert any(answers[0])
