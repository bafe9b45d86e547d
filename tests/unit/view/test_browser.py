"""The page in a headless Chromium (`make browser`): its parts, hostile tables, very many fragments; screenshots beside.

All screenshots stay in ``build/screenshots``, or in the folder that ``PENNON_SCREENSHOTS`` names; some of
`test_screenshots_of_the_four_parts` are those of ``docs/view.md``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.view.export import write_page
from tests.documents import ROOT
from tests.unit.view import tables
from tests.unit.view.browser import Browser
from tests.unit.view.conftest import Client, serving

pytestmark = pytest.mark.slow
SHOTS = Path(os.environ.get("PENNON_SCREENSHOTS") or ROOT / "build" / "screenshots")
PARTS = ("overview", "data", "layout", "versions")
FIRST_CELL = "document.querySelector('tbody tr:nth-child(1) td:nth-child({}) button').click()"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as browser:
        browser.size(1280, 800)
        yield browser
    shutil.rmtree(tmp_path / "profile", ignore_errors=True)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The page of a table of pictures, whose place is shown without the folder of the test."""
    with (
        chdir(tmp_path_factory.mktemp("gallery")),
        serving(tables.gallery("places.lance")) as client,
    ):
        yield client


def visit(browser: Browser, part: str) -> None:
    browser.run(f"location.hash = '#/{part}'")
    browser.settled()


def outside(browser: Browser, client: Client) -> list[str]:
    """Return the addresses that the page asked for and that are not its own."""
    own = (f"http://{client.host}/", f"blob:http://{client.host}/", "about:blank")
    return [each for each in browser.requests if not each.startswith(own)]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 860)])
def test_screenshots_of_the_four_parts(
    browser: Browser, places: Client, width: int, height: int, dark: bool
) -> None:
    browser.size(width, height, dark=dark)
    browser.open(places.server.link)
    for part in PARTS:
        visit(browser, part)
        if part == "layout":
            browser.run("document.querySelectorAll('.modes a')[1].click()")
            browser.settled()
            browser.run(
                "document.querySelector('tbody tr:nth-child(3) td:nth-child(7) button').click()"
            )
        if part == "versions":
            browser.run("document.querySelectorAll('button.line')[5].click()")
        browser.settled()
        assert len(browser.photo(SHOTS / f"{part}-{width}{'-dark' * dark}.png")) > 10_000
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []
    assert outside(browser, places) == []


def test_token_leaves_the_address_and_another_tab_without_it_sees_no_data(
    browser: Browser, places: Client
) -> None:
    browser.open(places.server.link)
    assert browser.run("location.href") == f"http://{places.host}/#/"
    assert browser.run("document.cookie") == ""
    browser.run("sessionStorage.clear()")
    browser.open(f"http://{places.host}/")
    browser.wait_for("document.querySelector('.failure')")
    assert "open the link that `pennon view` printed" in browser.run("document.body.innerText")
    assert "places" not in browser.run("document.body.innerText")


def test_filter_and_its_error_and_searches_by_words_and_by_vector(
    browser: Browser, places: Client
) -> None:
    browser.open(places.server.link)
    visit(browser, "data")
    browser.key("/")
    assert browser.run("document.activeElement.id") == "filter"
    browser.run(
        "document.activeElement.value = 'ratin > 4'; document.querySelector('form button').click()"
    )
    browser.settled()
    assert "did you mean 'rating'" in browser.run("document.querySelector('.failure').textContent")
    browser.photo(SHOTS / "error.png")
    browser.run(
        "document.getElementById('filter').value = \"country = 'Chile'\"; document.querySelector('form button').click()"
    )
    browser.wait_for("document.querySelectorAll('tbody tr').length > 3")
    browser.settled()
    assert set(
        browser.run(
            "[...document.querySelectorAll('tbody td:nth-child(4)')].map(each => each.textContent)"
        )
    ) == {"Chile"}
    browser.run("document.querySelector('a.near').click()")
    browser.wait_for(
        "document.querySelector('th') && document.querySelector('th').textContent === 'distance'"
    )
    visit(browser, "data?words=granite&column=caption")
    assert browser.run("document.querySelector('tbody tr').textContent").count("Lofoten") > 0


def test_values_open_in_windows_that_close(browser: Browser, places: Client) -> None:
    browser.open(places.server.link)
    visit(browser, "data")
    for kind in ("media", "vector", "nested", "sound"):
        browser.run(f"document.querySelector('button.{kind}').click()")
        browser.wait_for(
            "document.querySelector('dialog .value > *') && !document.querySelector('dialog .waiting')"
        )
        browser.photo(SHOTS / f"value-{kind}.png")
        browser.run("document.querySelector('dialog header button').click()")
        browser.wait_for("!document.querySelector('dialog')")
    assert browser.complaints == []


def test_keys_lead_through_parts_pages_and_cells(browser: Browser, places: Client) -> None:
    browser.open(places.server.link)
    browser.key("2")
    browser.wait_for("document.querySelector('a[data-key=n]')")
    browser.key("n")
    browser.wait_for("location.hash.includes('offset=25')")
    browser.key("3")
    browser.wait_for("document.querySelector('table.grid button')")
    browser.settled()
    browser.run("document.querySelector('table.grid button').focus()")
    browser.key("ArrowRight")
    browser.key("ArrowDown")
    assert browser.run("document.activeElement.getAttribute('aria-label')").startswith(
        "fragment 1, picture:"
    )
    assert browser.run("document.querySelectorAll('table.grid button[tabindex=\"0\"]').length") == 1


def test_table_of_every_type_has_no_cell_that_fails(browser: Browser, tmp_path: Path) -> None:
    with serving(tables.every_type(str(tmp_path / "t"))) as client:
        browser.open(client.server.link)
        for part in PARTS:
            visit(browser, part)
            browser.photo(SHOTS / f"every-{part}.png")
            assert browser.run("document.querySelectorAll('.failure').length") == 0
        assert browser.complaints == []


def test_hostile_table_runs_no_script_and_loads_no_address_outside(
    browser: Browser, hostile: Client, tmp_path: Path
) -> None:
    browser.open(hostile.server.link)
    for number, part in enumerate(
        (
            *PARTS,
            "data?filter=%3Cscript%3Ealert(1)%3C/script%3E",
            "%3Cimg%20src=x%20onerror=alert(1)%3E",
        )
    ):
        visit(browser, part)
        browser.run("for (const each of document.querySelectorAll('main button')) each.click()")
        browser.settled()
        browser.photo(SHOTS / f"hostile-{number}.png")
        assert browser.run("document.querySelectorAll('script').length") <= 1
        assert (
            browser.run(
                "document.querySelectorAll('main [onerror], main [onload], main svg[onload], main iframe, main object').length"
            )
            == 0
        )
        browser.run("for (const each of document.querySelectorAll('dialog')) each.close()")
    assert browser.run("typeof window.pwned") == "undefined"
    assert browser.dialogs == []
    assert outside(browser, hostile) == []
    assert [each for each in browser.complaints if "400" not in each] == []


def test_page_cannot_be_framed_nor_read_by_another_origin(
    browser: Browser, places: Client, tmp_path: Path
) -> None:
    other = tmp_path / "other.html"
    other.write_text(
        f"<iframe src='http://{places.host}/'></iframe><script src='http://{places.host}/main.js'></script>"
    )
    browser.open(other.as_uri(), settles=False)
    browser.wait_for("document.readyState === 'complete'")
    found = browser.run(
        f"fetch('http://{places.host}/api/table', {{headers: {{'X-Pennon-Token': '{places.server.guard.token}'}}}})"
        ".then(() => 'read', () => 'refused')"
    )
    assert found == "refused"
    assert any("frame" in each for each in browser.complaints)


def test_first_paint_of_10_000_fragments(browser: Browser, tmp_path: Path) -> None:
    with serving(tables.many_fragments(tmp_path / "t", 10_000)) as client:
        for part in ("overview", "layout"):
            browser.open(client.server.link)
            browser.open(f"http://{client.host}/#/{part}")
            browser.wait_for("performance.getEntriesByName('first-contentful-paint').length")
            paint = browser.run(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            done = browser.run("performance.now()")
            print(f"{part}: first contentful paint after {paint:.0f} ms, all parts in {done:.0f}")
            browser.photo(SHOTS / f"many-{part}.png")
            assert browser.run("document.querySelectorAll('*').length") < 4_000
        assert browser.complaints == []


def test_exported_file_shows_all_parts_and_loads_no_address(
    browser: Browser, places: Client, tmp_path: Path
) -> None:
    write_page(places.server.viewed.dataset, tmp_path / "out.html")
    for part in PARTS:
        browser.open((tmp_path / "out.html").as_uri() + "#/" + part)
        if part in ("layout", "data"):
            browser.run(FIRST_CELL.format(3 if part == "layout" else 2))
            browser.settled()
        if part == "versions":
            browser.run("document.querySelector('button.line').click()")
            browser.settled()
        browser.photo(SHOTS / f"file-{part}.png")
        assert browser.run("document.querySelectorAll('.failure').length") == 0
    assert browser.complaints == []
    assert all(
        each.startswith(("file://", "blob:", "about:", "data:")) for each in browser.requests
    )


def test_exported_file_of_a_hostile_table_runs_no_script(browser: Browser, tmp_path: Path) -> None:
    write_page(tables.hostile(str(tmp_path / "t")), tmp_path / "out.html")
    for part in PARTS:
        browser.open((tmp_path / "out.html").as_uri() + "#/" + part)
        browser.run("for (const each of document.querySelectorAll('main button')) each.click()")
    assert browser.run("typeof window.pwned") == "undefined"
    assert browser.dialogs == []
    assert browser.complaints == []
    assert all(
        each.startswith(("file://", "blob:", "about:", "data:")) for each in browser.requests
    )


def test_older_version_shows_a_link_to_the_newest(browser: Browser, tmp_path: Path) -> None:
    ds = pennon.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    with serving(ds) as client:
        ds.insert(pa.table({"id": [2]}))
        browser.open(client.server.link)
        browser.run("document.querySelector('a.warn').click()")
        browser.wait_for("document.querySelector('.version b').textContent === '2'")
        assert browser.run("location.hash") == "#/overview?version=2"
