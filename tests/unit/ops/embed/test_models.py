"""Embedding models: what may be one, their names, and what they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.embeddings import EmbeddingModel, register_embedding
from pennon.errors import ArgumentError, NotFoundError
from pennon.ops.embed.models import model_of, registered_model
from pennon.ops.embed.vectors import Vectors


def ones(values: list[Any]) -> list[list[float]]:
    return [[1.0, 2.0] for _ in values]


class Encoder:
    """An object like a SentenceTransformer."""

    def __init__(self) -> None:
        self.model_card_data = type("Card", (), {"base_model": "tiny/model"})()

    def get_sentence_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: list[str]) -> np.ndarray[Any, Any]:
        return np.array([[len(text), 0] for text in texts], np.float32)

    def encode_query(self, texts: list[str]) -> np.ndarray[Any, Any]:
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_model_of_a_function_has_the_name_of_the_function() -> None:
    model = model_of(ones)
    assert model.name.endswith("test_models.ones")
    assert not model.is_named


def test_model_of_an_encoder_embeds_texts_and_queries_by_its_methods() -> None:
    model = model_of(Encoder())
    assert (model.name, model.dimension) == ("sentence-transformers:tiny/model", 2)
    assert model.embed(pa.array(["ab"])).tolist() == [[2, 0]]
    assert model.embed_query("abc").tolist() == [[3, 1]]


def test_registered_model_is_found_by_name_and_by_its_function() -> None:
    made = register_embedding("test_models.ones", ones, version="7")
    assert registered_model("test_models.ones") is made
    assert model_of("test_models.ones").title == "test_models.ones 7"
    assert model_of(ones) is made


def test_model_of_a_misspelt_name_is_refused_with_the_nearest_name() -> None:
    register_embedding("test_models.near", ones)
    with pytest.raises(NotFoundError, match=r"did you mean 'test_models\.near'"):
        model_of("test_models.nera")


@pytest.mark.parametrize("given", [7, None, ["a"]])
def test_model_of_a_number_none_or_list_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="an embedding model is a callable"):
        model_of(given)


def test_registration_under_the_name_of_a_packaged_model_is_refused() -> None:
    with pytest.raises(ArgumentError, match="choose another name"):
        register_embedding("wordllama", ones)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"name": ""}, "1 to 256 letters"), ({"name": "n", "takes": "rows"}, "'list' or 'arrow'")],
)
def test_model_with_wrong_arguments_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        EmbeddingModel(ones, **options)


def test_model_that_takes_arrow_gets_an_array() -> None:
    model = EmbeddingModel(lambda values: [[float(len(str(values.type)))]], "arrow", takes="arrow")
    assert model.embed(pa.array(["a"])) == [[float(len("string"))]]


def test_error_of_a_model_names_the_model_in_a_note() -> None:
    def fails(_: Any) -> Any:
        raise KeyError("x")

    with pytest.raises(KeyError) as caught:
        EmbeddingModel(fails, "broken").embed(pa.array(["a", "b"]))
    assert caught.value.__notes__ == ["while the embedding model 'broken' embedded 2 values"]


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], np.float64),
        [np.array([1.0, 2.0]), (3, 4)],
        pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        pa.chunked_array([pa.array([[1.0, 2.0], [3.0, 4.0]])]),
    ],
)
def test_vectors_of_lists_and_arrays_are_float32_lists_of_a_fixed_size(answer: Any) -> None:
    found = Vectors.of(answer, 2, None, "m").array()
    assert found.type == pa.list_(pa.float32(), 2)
    assert found.to_pylist() == [[1, 2], [3, 4]]


def test_vectors_of_none_and_nan_are_null() -> None:
    found = Vectors.of([[1.0, 2.0], None, [float("nan"), 1.0], [float("inf"), 0.0]], 4, 2, "m")
    assert found.array().to_pylist() == [[1, 2], None, None, None]
    assert Vectors.of([None], 1, 3, "m").array().to_pylist() == [None]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1.0]], "returned 1 vectors for 2 values"),
        ([[1.0, 2.0, 3.0]] * 2, "vectors of 3 numbers, but they have 2"),
        ([1.0, 2.0], "a vector for each value"),
        ([["a"], ["b"]], "no array of vectors"),
        ([[1.0, 2.0], [1.0]], "no array of vectors"),
        ("ab", "no array of vectors"),
    ],
)
def test_vectors_of_a_wrong_answer_are_refused_with_the_name_of_the_model(
    answer: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=f"'m' .*{message}"):
        Vectors.of(answer, 2, 2, "m")


def test_normalized_vectors_have_length_one_and_zeros_stay() -> None:
    found = Vectors.of([[3.0, 4.0], [0.0, 0.0]], 2, 2, "m").normalized().array()
    assert found.to_pylist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
