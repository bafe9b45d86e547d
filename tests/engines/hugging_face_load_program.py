"""Tables as datasets of Hugging Face, by its own loader and by `pennon.hf`; run by test_engines."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import datasets
import fsspec
import lance
import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from PIL import Image

from pennon import hf
from pennon.errors import ArgumentError, NotFoundError


class Hub(LocalFileSystem):
    """The Hub as the working folder."""

    protocol = "hf"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("hf://").rstrip("/")

    def resolve_path(self, path: str) -> Any:
        """Return a place, as huggingface_hub does."""
        stripped = self._strip_protocol(path)

        class Place:
            def unresolve(self) -> str:
                return stripped

        return Place()


def features() -> datasets.Features:
    """Return one feature of each kind."""
    return datasets.Features(
        id=datasets.Value("int64"),
        image=datasets.Image(),
        label=datasets.ClassLabel(names=["cat", "dog"]),
        words=datasets.Sequence(datasets.Value("string")),
        vector=datasets.Sequence(datasets.Value("float32"), length=3),
        boxes=datasets.Array2D((2, 2), "float32"),
        nested={"number": datasets.Value("int32"), "image": datasets.Image()},
    )


def made(folder: Path, rows: int) -> datasets.Dataset:
    """Return rows whose images are files."""
    picture = folder / "picture.png"
    Image.fromarray(np.full((4, 6, 3), 200, np.uint8)).save(picture)
    each = {
        "image": str(picture),
        "label": 1,
        "words": ["red", "fox"],
        "vector": [1.0, 2.0, 3.0],
        "boxes": [[1.0, 2.0], [3.0, 4.0]],
        "nested": {"number": 7, "image": str(picture)},
    }
    return datasets.Dataset.from_list(
        [{"id": number, **each} for number in range(rows)], features=features()
    )


def check_rows(found: Any, ids: list[int]) -> None:
    """Check features, numbers and decoded images."""
    assert found.features == features(), found.features
    rows = list(found)
    assert [each["id"] for each in rows] == ids
    assert rows[0]["image"].size == (6, 4)
    assert rows[0]["nested"]["image"].size == (6, 4)
    assert (rows[0]["label"], rows[0]["words"]) == (1, ["red", "fox"])
    assert rows[0]["boxes"] == [[1.0, 2.0], [3.0, 4.0]]


def check_module(folder: Path) -> None:
    """`pennon.hf`: features kept, files embedded, filters, streams that resume, splits."""
    data = made(folder, 10)
    uri = folder / "pets.lance"
    hf.save_dataset(data, uri, max_rows_per_file=4)
    hf.save_dataset(data.to_iterable_dataset(), folder / "streamed.lance")
    (folder / "picture.png").unlink()
    for streaming in (False, True):
        check_rows(hf.load_dataset(uri, streaming=streaming), list(range(10)))
        check_rows(hf.load_dataset(folder / "streamed.lance", streaming=streaming), list(range(10)))
        few = hf.load_dataset(uri, columns=["id"], filter="id > 7", streaming=streaming)
        assert list(few) == [{"id": 8}, {"id": 9}]
        check_rows(hf.load_dataset(uri, filter="id > 7", streaming=streaming), [8, 9])
    stream = hf.load_dataset(uri, streaming=True, columns=["id"], batch_size=2)
    assert stream.num_shards == 3
    begun = iter(stream)
    seen = [next(begun)["id"] for _ in range(5)]
    resumed = pickle.loads(pickle.dumps(stream))
    resumed.load_state_dict(stream.state_dict())
    assert seen + [each["id"] for each in resumed] == list(range(10))
    shuffled = [each["id"] for each in stream.shuffle(seed=1, buffer_size=4)]
    assert sorted(shuffled) == list(range(10))

    lance.dataset(str(uri)).delete("id < 5")
    assert [each["id"] for each in hf.load_dataset(uri)] == [5, 6, 7, 8, 9]
    assert len(hf.load_dataset(uri, version=1)) == 10
    shutil.rmtree(uri)
    hf.save_dataset(made(folder, 3), uri)
    assert len(hf.load_dataset(uri, version=1)) == 3  # not what the cache has of the other table

    several = datasets.DatasetDict(
        train=data.select_columns(["id"]), test=data.select_columns(["id", "label"])
    )
    saved: Any = hf.save_dataset(several, folder / "splits")
    assert set(saved) == {"train", "test"}
    assert {name: len(each) for name, each in hf.load_dataset(folder / "splits").items()} == {
        "train": 10,
        "test": 10,
    }
    streams = hf.load_dataset(folder / "splits", streaming=True)
    assert list(streams["test"])[3] == {"id": 3, "label": 1}
    png = {"id": [1], "png": [lance.dataset(str(uri)).to_table()["image"][0].as_py()["bytes"]]}
    lance.write_dataset(pa.table(png), folder / "plain.lance")
    plain = hf.load_dataset(folder / "plain.lance", features={"png": datasets.Image()})
    assert plain[0]["png"].size == (6, 4)
    sounds = datasets.Dataset.from_dict({"sound": [{"bytes": b"RIFF", "path": None}]})
    sounds = sounds.cast_column("sound", datasets.Audio(decode=False))
    hf.save_dataset(sounds, folder / "sounds.lance")
    loaded = hf.load_dataset(folder / "sounds.lance")
    assert loaded.features == sounds.features
    assert loaded[0] == sounds[0]
    for data, error in (([1], ArgumentError), ("none.lance", NotFoundError)):
        try:
            hf.load_dataset(folder / data) if isinstance(data, str) else hf.save_dataset(
                data, folder / "x"
            )
        except error:
            continue
        raise AssertionError(data)


def check_their_loader(folder: Path) -> None:
    """``datasets.load_dataset`` of a table and of a folder of tables, columns pushed, images decoded."""
    data = made(folder, 6)
    place = folder / "mine" / "data"
    hf.save_dataset(datasets.DatasetDict(train=data, test=data.select(range(2))), place)
    known = {**features(), "boxes": datasets.List(datasets.List(datasets.Value("float32")))}
    for streaming in (False, True):
        whole = datasets.load_dataset(str(folder / "mine"), streaming=streaming)
        assert set(whole) == {"train", "test"}
        assert whole["train"].features == known
        assert [each["image"].size for each in whole["test"]] == [(6, 4)] * 2
        one = datasets.load_dataset(
            str(place / "train.lance"), columns=["id", "label"], streaming=streaming
        )
        assert list(one["train"])[5] == {"id": 5, "label": 1}


def check_hub(folder: Path) -> None:
    """Tables at ``hf://``, by `pennon`, `pennon.hf` and ``datasets`` in a stream."""
    os.chdir(folder)
    fsspec.register_implementation("hf", Hub, clobber=True)
    hf.save_dataset(made(folder, 5), "datasets/me/pets/pets.lance")
    uri = "hf://datasets/me/pets/pets.lance"
    assert lance.dataset(uri).to_table(filter="id = 3", columns=["id"])["id"].to_pylist() == [3]
    for streaming in (False, True):
        check_rows(hf.load_dataset(uri, streaming=streaming), list(range(5)))
    assert set(hf.load_dataset("hf://datasets/me/pets")) == {"pets"}
    theirs = datasets.load_dataset("lance", data_files=f"{uri}/**", streaming=True)["train"]
    assert [each["id"] for each in theirs] == list(range(5))


def main(folder: str) -> None:
    """Check each loader."""
    place = Path(folder)
    for check in (check_module, check_their_loader, check_hub):
        below = place / check.__name__
        below.mkdir()
        check(below)


if __name__ == "__main__":
    main(sys.argv[1])
    print("all steps passed")
