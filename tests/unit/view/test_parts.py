"""The four parts of the page: overview, rows, layout, versions."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon
from tests.unit.io.s3_server import BUCKET, serving_s3
from tests.unit.view import tables
from tests.unit.view.conftest import Client, serving

PATHS = (
    "/api/table",
    "/api/columns",
    "/api/health",
    "/api/rows",
    "/api/strip",
    "/api/grid",
    "/api/versions",
)


def test_overview_has_the_facts_of_pennon_info(gallery: Client) -> None:
    table = gallery.load("/api/table")
    done = subprocess.run(
        [sys.executable, "-m", "pennon.cli.main", "info", gallery.server.viewed.uri],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = {
        line.split("  ")[0].strip(): line.split("  ")[-1].strip()
        for line in done.stdout.splitlines()
    }
    for name, text in table["facts"]:
        assert shown[name] == text


def test_overview_names_columns_types_tags_and_searches(gallery: Client) -> None:
    table = gallery.load("/api/table")
    columns = {each["name"]: each for each in table["columns"]}
    assert columns["embedding"]["search"] == "vector"
    assert (
        columns["caption"]["search"],
        columns["caption"]["indexed"],
        columns["place"]["indexed"],
    ) == ("text", True, False)
    assert table["tags"] == ["spring"]
    assert table["version"] == table["newest"]


def test_overview_of_an_older_version_names_the_newest(gallery: Client) -> None:
    table = gallery.load("/api/table", version=1)
    assert (table["version"], table["rows"]) == (1, 20)
    assert table["newest"] > 1


def test_bytes_of_columns_are_those_of_data_stats(gallery: Client) -> None:
    ds = gallery.server.viewed.dataset
    found = gallery.load("/api/columns")
    sizes = {each.id: each.bytes_on_disk for each in ds.stats.data_stats().fields}
    assert found["columns"][0]["bytes"] == sizes[0]
    total = sum(each["bytes"] for each in found["columns"]) + found["rest"]["bytes"]
    assert total == int(ds.get_version()["metadata"]["total_files_size"])
    assert found["note"] == ""


def test_bytes_of_columns_of_version_0_1_are_those_of_its_pages(tmp_path: Path) -> None:
    ds = pennon.write_dataset(
        pa.table({"id": range(1000)}), tmp_path / "t", data_storage_version="0.1"
    )
    with serving(ds) as client:
        assert client.load("/api/columns")["columns"][0]["bytes"] == 8000


def test_warnings_name_small_files_deleted_rows_and_a_command(gallery: Client) -> None:
    found = gallery.load("/api/health")
    advice = {each["advice"] for each in found["warnings"]}
    assert advice == {"pennon compact TABLE", "dataset.optimize.optimize_indices()"}
    assert {each["name"]: each["kind"] for each in found["indices"]}["caption_idx"] == "Inverted"


def test_rows_come_in_pages_and_pass_a_filter(gallery: Client) -> None:
    ds = gallery.server.viewed.dataset
    expected = ds.to_table(columns=["id"], filter="country = 'Norway'")["id"].to_pylist()
    found = []
    for offset in range(0, len(expected) + 2, 2):
        page = gallery.load("/api/rows", filter="country = 'Norway'", limit=2, offset=offset)
        found += [int(row[0]["text"]) for row in page["rows"]]
    assert found == expected
    assert gallery.load("/api/count", filter="country = 'Norway'")["count"] == len(expected)


def test_rows_found_by_words_have_scores_of_the_scan(gallery: Client) -> None:
    ds = gallery.server.viewed.dataset
    query = {"query": "red", "columns": ["caption"]}
    expected = ds.to_table(columns=["id", "_score"], full_text_query=query, limit=5)
    found = gallery.load("/api/rows", words="red", column="caption", limit=5)
    assert [int(row[0]["text"]) for row in found["rows"]] == expected["id"].to_pylist()
    assert found["score_name"] == "score"


def test_rows_nearest_to_a_row_begin_with_it_and_pass_the_filter(gallery: Client) -> None:
    row = gallery.load("/api/rows", filter="id = 3", limit=1)["addresses"][0]
    found = gallery.load("/api/rows", near=row, column="embedding", limit=3)
    assert (found["addresses"][0], found["scores"][0], found["score_name"]) == (
        row,
        "0",
        "distance",
    )
    next_page = gallery.load("/api/rows", near=row, column="embedding", limit=3, offset=3)
    assert not set(found["addresses"]) & set(next_page["addresses"])
    some = gallery.load("/api/rows", near=row, column="embedding", filter="country <> 'Chile'")
    assert row not in some["addresses"]


def test_columns_of_a_wide_table_come_in_parts(tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({f"c{n}": [n] for n in range(150)}), tmp_path / "t")
    with serving(ds) as client:
        assert len(client.load("/api/rows")["columns"]) == 60
        assert client.load("/api/rows", first_column=120)["columns"] == [
            f"c{n}" for n in range(120, 150)
        ]
        grid = client.load("/api/grid", first_column=40)
        assert (grid["columns"][0]["name"], len(grid["columns"]), grid["column_count"]) == (
            "c40",
            40,
            150,
        )


def test_grid_has_bytes_pages_and_encodings_of_fragments_and_columns(gallery: Client) -> None:
    grid = gallery.load("/api/grid")
    names = [each["name"] for each in grid["columns"]]
    first = dict(zip(names, grid["cells"][0], strict=True))
    assert first["embedding"]["encoding"] == "full-zip FixedSizeList"
    assert first["id"]["pages"] == 1
    pages = gallery.load("/api/pages", fragment=grid["fragments"][0]["id"], column="camera")
    assert [part["name"] for part in pages["parts"]] == [
        "camera.iso",
        "camera.lens",
        "camera.exposure.f",
        "camera.exposure.s",
    ]
    page = pages["parts"][0]["pages"][0]
    assert page["layout"] == "mini-block"
    assert page["bytes"] == sum(part["bytes"] for part in page["parts"])


def test_grid_leaves_out_columns_that_a_fragment_has_not(tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    ds.add_columns(pa.schema([pa.field("later", pa.int64())]))
    ds.insert(pa.table({"id": [2], "later": [3]}))
    with serving(ds) as client:
        cells = client.load("/api/grid")["cells"]
    assert cells[0][1] is None
    assert cells[1][1]["pages"] == 1


def test_grid_names_a_damaged_file_only_in_its_cells(tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t", max_rows_per_file=1)
    file = Path(tmp_path / "t" / "data" / ds.get_fragments()[1].data_files()[0].path)
    file.write_bytes(b"x" * file.stat().st_size)
    with serving(pennon.dataset(tmp_path / "t")) as client:
        cells = client.load("/api/grid")["cells"]
        assert cells[0][0]["pages"] == 1
        assert file.name in cells[1][0]["damage"]
        assert client.load("/api/rows", limit=1)["rows"] == [[{"kind": "number", "text": "1"}]]


def test_table_of_10_000_fragments_is_shown_in_parts(tmp_path: Path) -> None:
    with serving(tables.many_fragments(tmp_path / "t", 10_000)) as client:
        for path in PATHS:
            start = time.perf_counter()
            client.load(path)
            print(f"{path}: {(time.perf_counter() - start) * 1000:.0f} ms")
        strip = client.load("/api/strip")
        assert (strip["fragments"], len(strip["bars"])) == (10_000, 240)
        assert sum(each["rows"] for each in strip["bars"]) == 2_000_000
        grid = client.load("/api/grid", first=9_990)
        assert [each["id"] for each in grid["fragments"]] == list(range(9_990, 10_000))
        assert "of 10,000 fragments" in client.load("/api/columns")["note"]


def test_versions_have_their_operations_newest_first(gallery: Client) -> None:
    found = gallery.load("/api/versions")["versions"]
    did = [each["did"] for each in reversed(found)]
    assert did[:2] == ["overwrite", "append"]
    assert {"update", "delete", "index", "add columns"} <= set(did)
    deleted = next(each for each in found if each["did"] == "delete")
    assert deleted["detail"] == "where id % 13 = 4"
    assert deleted["rows_change"].startswith("-")


def test_versions_in_pages_have_the_changes_of_one_long_list(
    gallery: Client,
) -> None:
    every = gallery.load("/api/versions", limit=50)["versions"]
    found, last = [], 0
    while True:
        page = (
            gallery.load("/api/versions", limit=4, last=last)
            if last
            else gallery.load("/api/versions", limit=4)
        )
        found += page["versions"]
        last = page["next"]
        if not last:
            break
    assert found == every


def test_versions_name_a_damaged_manifest_and_show_the_others(tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    ds.insert(pa.table({"id": [2]}))
    ds.insert(pa.table({"id": [3]}))
    first = max((tmp_path / "t" / "_versions").iterdir(), key=lambda each: each.name)
    first.write_bytes(b"damaged")
    with serving(ds) as client:
        found = client.load("/api/versions")["versions"]
    assert [each["did"] for each in found] == ["append", "append", "unreadable"]


def test_difference_names_rows_files_columns_and_indices(gallery: Client) -> None:
    every = gallery.load("/api/versions", limit=50)["versions"]
    at = {each["did"]: each["version"] for each in every}
    deleted = gallery.load("/api/difference", before=at["delete"] - 1, after=at["delete"])
    assert any(name.startswith("rows deleted") for name, _, _ in deleted["facts"])
    added = gallery.load("/api/difference", before=at["add columns"] - 1, after=at["add columns"])
    assert added["columns"] == [["added", "title", "string"]]
    indexed = gallery.load("/api/difference", before=1, after=every[0]["version"])
    assert [each[1] for each in indexed["indices"]] == ["caption_idx", "embedding_idx", "id_idx"]


def test_changed_rows_are_those_of_the_change_feed(gallery: Client) -> None:
    at = {
        each["did"]: each["version"] for each in gallery.load("/api/versions", limit=50)["versions"]
    }
    found = gallery.load("/api/changed", before=at["delete"] - 1, after=at["delete"])
    assert found["columns"][:3] == ["change", "version", "id"]
    assert {row[0]["text"] for row in found["rows"]} == {"delete"}
    assert {int(row[2]["text"]) % 13 for row in found["rows"]} == {4}


def test_no_request_changes_the_table(gallery: Client) -> None:
    folder = Path(gallery.server.viewed.uri)
    before = sorted((each, each.stat().st_mtime_ns) for each in folder.rglob("*"))
    for path in PATHS:
        gallery.load(path)
    assert sorted((each, each.stat().st_mtime_ns) for each in folder.rglob("*")) == before


def test_page_of_a_table_in_a_bucket_has_all_parts_and_no_credentials() -> None:
    with serving_s3() as s3:
        uri = f"s3://{BUCKET}/places.lance"
        rows = tables.gallery_rows(12)
        ds = pennon.write_dataset(rows, uri, storage_options=s3.options)
        secrets = [value for key, value in s3.options.items() if "key" in key]
        with serving(ds) as client:
            for path in (*PATHS, "/api/pages?column=caption", "/api/cell?column=caption&row=1"):
                status, _, body = client.ask(path)
                assert status == 200, body
                assert not any(each.encode() in body for each in secrets)
            assert client.ask("/api/media?column=picture&row=1")[2] == rows["picture"][1].as_py()


def test_hostile_names_and_values_are_escaped_in_every_answer(hostile: Client) -> None:
    for path in PATHS:
        status, headers, body = hostile.ask(path)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert all(32 <= each < 127 for each in body)
        assert all(each.isprintable() for each in shown_texts(json.loads(body)))
    columns = hostile.load("/api/table")["columns"]
    assert columns[0]["name"] == tables.SCRIPT
    for column in columns:
        assert hostile.load("/api/pages", fragment=0, column=column["path"])["parts"]
    assert hostile.load("/api/difference", before=1, after=2)["settings"]


def shown_texts(answer: Any) -> Iterator[str]:
    """Yield all texts of an answer but the paths of columns, which only requests hold."""
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, list):
        for each in answer:
            yield from shown_texts(each)
    elif isinstance(answer, dict):
        for key, each in answer.items():
            if key not in ("path", "fields"):
                yield from shown_texts(each)


def test_hostile_bytes_are_never_sent_as_a_document(hostile: Client) -> None:
    assert hostile.error("/api/media", column="svg", row=1)[0] == 400
    for row in hostile.load("/api/rows")["addresses"]:
        _, headers, _ = hostile.ask(f"/api/media?column=png&row={row}")
        assert headers["Content-Type"] in ("image/png", "image/gif", "image/jpeg")
        assert headers["X-Content-Type-Options"] == "nosniff"
