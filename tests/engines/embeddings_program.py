"""A small embedding model whose package has its weights: embed, refresh, search; run by test_embeddings."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa

import pennon

TITLES = [
    "a red fox jumps over a dog",
    "quantum mechanics of electrons",
    None,
    "",
    "stock markets crash in October",
    "how to bake bread with yeast",
]
AGAIN = """
import sys, pennon
print(pennon.dataset(sys.argv[1]).search("finance and shares", k=1)["id"].to_pylist())
"""


def main(folder: str) -> None:
    """Check each step."""
    uri = f"{folder}/titles.lance"
    rows = pa.table({"id": range(len(TITLES)), "title": TITLES})
    ds = pennon.write_dataset(rows, uri, max_rows_per_file=4)
    ds.embed("title", "wordllama")
    note = ds.embeddings()["title_vector"]
    assert (note["model"], note["dimension"]) == ("wordllama", 256), note
    assert note["version"], note
    assert ds.to_table()["title_vector"].null_count == 1
    assert ds.search("finance and shares", k=1)["id"].to_pylist() == [4]
    assert ds.search("physics of tiny particles", k=1)["id"].to_pylist() == [1]
    ds.insert(pa.table({"id": [9], "title": ["the guitar plays a melody"]}))
    ds.update({"title": "'a submarine dives into the ocean'"}, where="id = 0")
    assert ds.refresh_embeddings() == 2
    assert ds.search("music and songs", k=1)["id"].to_pylist() == [9]
    assert ds.search("ship under water", k=1)["id"].to_pylist() == [0]
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, uri], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[4]", done.stdout
    other = pennon.write_dataset(rows, f"{folder}/other.lance")
    from wordllama import WordLlama

    model = WordLlama.load(cache_dir=_home(), disable_download=True)
    other.embed("title", model.embed, normalize=True)
    found = other.search("finance and shares", k=1, model=model.embed)
    assert found["id"].to_pylist() == [4]
    print("all steps passed")


def _home() -> str:
    import wordllama

    return str(wordllama.__path__[0])


if __name__ == "__main__":
    main(sys.argv[1])
