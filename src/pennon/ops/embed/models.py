"""Embedding models: what turns texts or images into vectors, and the names by which tables remember them.

::

    a callable            list of texts (or bytes), or an Arrow array  ->  a vector for each
    SentenceTransformer   its `encode`; an object with such a method will do, no package is imported for it
    a name                a model that the program registered, or one of `PACKAGED`

A table remembers the name of a model, never its code.  A name that a table remembers loads nothing but packages that
bring their weights along (`PACKAGED`): all else has to be registered, or passed again, by the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError, NotFoundError

Takes: TypeAlias = Literal["list", "arrow"]
"""The argument of a model: a list of `str` or `bytes`, or a `pyarrow.Array`."""
_TAKES: Final = ("list", "arrow")
LONGEST_NAME: Final = 256
_DIMENSION: Final = ("get_embedding_dimension", "get_sentence_embedding_dimension")
"""The method of SentenceTransformer since release 5, and before."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model with the name and version that tables remember.

    ``function`` gets a batch of values, none of them NULL, and returns a vector for each: a two-dimensional array, a
    list of vectors, or an Arrow array; None in a list, or NaN in a vector, stands for no vector.  ``takes``: the batch
    is a ``list`` of `str` or `bytes`, or an ``arrow`` array.  ``query`` embeds queries, if that differs.
    ``dimension``: how many numbers a vector has; by default that of the first vector.

    >>> from pennon.embeddings import EmbeddingModel
    >>> lengths = EmbeddingModel(lambda texts: [[len(text), 1.0] for text in texts], "lengths")
    >>> lengths.name
    'lengths'

    Raises ArgumentError for a name that is empty or longer than 256 letters, and another ``takes``.
    """

    function: Callable[[Any], Any]
    name: str
    version: str = ""
    dimension: int | None = None
    query: Callable[[Any], Any] | None = None
    takes: Takes = "list"
    is_named: bool = True
    """Whether the name was chosen, and not taken from a function."""

    def __post_init__(self) -> None:
        """Check the name and the dimension."""
        name: object = self.name
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            message = f"a model has a name of 1 to {LONGEST_NAME} letters, got {name!r}"
            raise ArgumentError(message)
        if self.takes not in _TAKES:
            message = f"a model takes 'list' or 'arrow', not {self.takes!r}"
            raise ArgumentError(message)
        function: object = self.function
        if not callable(function):
            message = f"the function of model {name!r} cannot be called: {type(function).__name__}"
            raise ArgumentError(message)

    @property
    def title(self) -> str:
        """Return the name and the version."""
        return f"{self.name} {self.version}".strip()

    def embed(self, values: pa.Array[Any]) -> Any:
        """Return what the model makes of values, none of them NULL."""
        return self._call(self.function, values)

    def embed_query(self, query: str | bytes) -> Any:
        """Return what the model makes of one query: one vector in an array or a list."""
        return self._call(self.query or self.function, pa.array([query]))

    def _call(self, function: Callable[[Any], Any], values: pa.Array[Any]) -> Any:
        given: Any = values if self.takes == "arrow" else values.to_pylist()
        try:
            return function(given)
        except Exception as error:
            error.add_note(f"while the embedding model {self.name!r} embedded {len(values)} values")
            raise


# --- registered -----------------------------------------------------------------------------------

_REGISTERED: Final[dict[str, EmbeddingModel]] = {}


def register_embedding(
    name: str,
    model: Any,
    *,
    version: str = "",
    dimension: int | None = None,
    query: Callable[[Any], Any] | None = None,
    takes: Takes = "list",
) -> EmbeddingModel:
    """Give a model a name in this process, by which tables find it: `LanceDataset.embed`, ``search`` and refreshes.

    ``model``: a callable, a SentenceTransformer or an `EmbeddingModel`; the other arguments are those of
    `EmbeddingModel`.  A name that is registered again means the new model.

    >>> from pennon.embeddings import register_embedding
    >>> model = register_embedding("lengths", lambda texts: [[len(text), 1.0] for text in texts])
    >>> ds = pennon.write_dataset(pa.table({"title": ["fox", "whale"]}), uri)
    >>> ds.embed("title", "lengths")
    >>> pennon.dataset(uri).search("abc", k=1)["title"].to_pylist()
    ['fox']

    Raises TypeError for what is no model, ArgumentError for a name that a package's model has.
    """
    if name in PACKAGED:
        message = f"{name!r} is the model of the package {name}; choose another name"
        raise ArgumentError(message)
    known = model_of(model)
    changed = replace(
        known,
        name=name,
        version=version or (known.version if known.is_named else ""),
        dimension=dimension or known.dimension,
        query=query or known.query,
        takes=known.takes if takes == "list" else takes,
        is_named=True,
    )
    _REGISTERED[name] = changed
    return changed


def registered_model(name: str) -> EmbeddingModel:
    """Return the model of a name: a registered one, or one of `PACKAGED`.

    Raises NotFoundError for another name, ModuleNotFoundError if the package is not installed.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in PACKAGED:
        return PACKAGED[name]()
    known = sorted({*_REGISTERED, *PACKAGED})
    message = (
        f"no embedding model is called {name!r} in this process; there are {', '.join(known)}"
        f"{did_you_mean(name, known)}: pass the model (model=...), or register it first: "
        f"pennon.embeddings.register_embedding({name!r}, model)"
    )
    raise NotFoundError(message)


def model_of(given: Any) -> EmbeddingModel:
    """Return the model that a caller passed, or named.  Raises TypeError for what is none."""
    if isinstance(given, EmbeddingModel):
        return given
    if isinstance(given, str):
        return registered_model(given)
    if hasattr(given, "encode") and not isinstance(given, type):
        return _sentence_transformer(given)
    if callable(given):
        same = [each for each in _REGISTERED.values() if each.function is given]
        return same[0] if same else EmbeddingModel(given, _name_of(given), is_named=False)
    if hasattr(given, "embed"):
        return EmbeddingModel(given.embed, type(given).__name__, is_named=False)
    message = (
        "an embedding model is a callable, a SentenceTransformer, an EmbeddingModel or a name, "
        f"not {type(given).__name__}"
    )
    raise TypeError(message)


def given_model(given: Any) -> EmbeddingModel | None:
    """Return the model that a caller passed, or named; None for None."""
    return None if given is None else model_of(given)


def _name_of(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{name}".strip(".")[:LONGEST_NAME]


def _sentence_transformer(given: Any) -> EmbeddingModel:
    """Return the model of a SentenceTransformer, or of an object like it."""
    card = getattr(given, "model_card_data", None)
    names = (getattr(card, name, None) for name in ("model_id", "base_model", "model_name"))
    chosen = next((name for name in names if isinstance(name, str) and name), None)
    dimension = next((getattr(given, name)() for name in _DIMENSION if hasattr(given, name)), None)
    return EmbeddingModel(
        Method(given, ("encode_document", "encode")),
        (f"sentence-transformers:{chosen}" if chosen else type(given).__name__)[:LONGEST_NAME],
        dimension=dimension if isinstance(dimension, int) else None,
        query=Method(given, ("encode_query", "encode")),
        is_named=chosen is not None,
    )


@dataclass(frozen=True, slots=True)
class Method:
    """Calls the first of some methods that an object has."""

    owner: Any
    names: tuple[str, ...]

    def __call__(self, values: Sequence[Any]) -> Any:
        """Return what the method returns."""
        name = next(name for name in self.names if hasattr(self.owner, name))
        return getattr(self.owner, name)(values)


# --- packages that bring their weights ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordLlama:
    """The model of the package wordllama, 256 numbers a vector; it pickles by its name."""

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors of texts."""
        return _load_wordllama().embed(texts)


@cache
def _load_wordllama() -> Any:
    """Load the weights and the tokenizer that lie in the package; release 0.4 looks for the second in its cache alone."""
    package = import_module("wordllama")
    home = Path(str(package.__file__)).parent
    return package.WordLlama.load(cache_dir=home, disable_download=True)


def _wordllama() -> EmbeddingModel:
    try:
        version = package_version("wordllama")
    except ModuleNotFoundError as error:
        message = "the embedding model 'wordllama' is a package of its own: pip install wordllama"
        raise ModuleNotFoundError(message, name="wordllama") from error
    return EmbeddingModel(WordLlama(), "wordllama", version, 256)


PACKAGED: Final[Mapping[str, Callable[[], EmbeddingModel]]] = {"wordllama": _wordllama}
"""Models of packages that bring their weights along: a name that a table remembers may load these."""
