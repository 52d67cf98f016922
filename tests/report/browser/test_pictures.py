"""A report with pictures, whose names and ids mean harm, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode.report import Report, report_on_model, write_report
from rarenode.thresholds import Thresholds
from tests.report.browser.driver import Opener, keep, until
from tests.report.browser.sample import HOSTILE
from tests.report.drawings import Drawings
from tests.report.runs import model_over, rows_over

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROWS = 60
NAMES = [name for name in HOSTILE if name] + [f"species {number}" for number in range(16)]
HIERARCHY = Hierarchy.from_edges([(NAMES[place // 3], name) for place, name in enumerate(NAMES) if place])
IDS = [HOSTILE[row] if row < len(HOSTILE) else f"dive 7/{row:04d}.jpg" for row in range(ROWS)]
LOADED = "[...document.querySelectorAll('img')].every(image => image.complete && image.naturalWidth > 0)"


@pytest.fixture(scope="module", params=[1, 2], ids=["one run", "two runs"])
def page_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, Y = rows_over(HIERARCHY, ROWS)
    runs = []
    for name, value in (("strict <b>", 0.45), ("lenient \u202e", 0.2))[: request.param]:
        model = model_over(HIERARCHY, seed=1, thresholds=Thresholds(np.full(len(HIERARCHY), value), strategy="fixed"))
        pictures = Drawings(ROWS, unreadable={5, 20, 21, 22})
        runs.append(report_on_model(model, X, Y, name=name, rows="</script> rows", ids=IDS, pictures=pictures))
    page, *_ = write_report(Report(tuple(runs)), tmp_path_factory.mktemp("pictures") / "report.html")
    return page


def unfold(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark"), (320, "light")])
def test_all_pictures_load_and_fit(page_file: Path, open_page: Opener, width: int, scheme: str) -> None:
    page = open_page(page_file, width=width, color_scheme=scheme, device_scale_factor=2)
    unfold(page)
    until(page, LOADED)
    assert page.locator("[data-picture]").count() == 0
    assert page.locator("#pictures img").count() > 20
    assert page.locator("#rows img").count() >= 10
    sources = page.evaluate("[...document.images].map(image => image.src)")
    assert all(source.startswith("data:image/jpeg;base64,") for source in sources)
    assert len(set(sources)) < len(sources)  # shown in several places, and embedded in one
    file = page_file.read_text(encoding="utf-8")
    assert file.count("data:image/jpeg") == len(set(sources))
    assert page.evaluate("[...document.images].every(image => /^Picture of row \\d+$/.test(image.alt))")
    assert page.evaluate("Math.max(...[...document.images].map(image => image.offsetWidth))") == 96
    assert page.locator(".no-picture").count() > 0
    assert set(page.locator(".no-picture").all_inner_texts()) == {"cannot be read"}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    inside = """[...document.querySelectorAll('#pictures :is(.pictured-node, .pictured-pair)')]
        .every(each => each.scrollWidth <= each.clientWidth)"""
    assert page.evaluate(inside)
    runs = page.locator("#run option").count()
    if width == 1440:  # three in a row
        tops = """[...document.querySelectorAll('#pictures .row-of-pictures')]
            .every(row => new Set([...row.children].map(each => each.offsetTop)).size <= 1)"""
        assert page.evaluate(tops)
    name = f"pictures_{runs}_{width}_{scheme}"
    keep(page, name, part="#pictures")
    keep(page, f"{name}_rows", part="#rows")


def test_nothing_but_its_pictures_may_be_shown(page_file: Path, open_page: Opener) -> None:
    """What the policy refuses is reported as an event; the page would complain of it at the console as well."""
    page = open_page(page_file)
    assert page.locator("script").count() == 2
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
    assert [part.split()[0] for part in policy.split(";")] == ["default-src", "script-src", "style-src", "img-src"]
    assert "unsafe" not in policy
    assert policy.endswith("img-src data:")


def test_a_name_leads_to_the_node(page_file: Path, open_page: Opener) -> None:
    page = open_page(page_file)
    unfold(page)
    link = page.locator(".pictured-node h4 a").first
    column = int((link.get_attribute("href") or "").removeprefix("#node="))
    link.click()
    # The browser tells the page later that its address has changed.
    until(page, f"window.rarenodeReport.chosen() === {column}")


def test_without_scripts_each_picture_is_shown_once(page_file: Path, open_page: Opener) -> None:
    page = open_page(page_file, java_script_enabled=False)
    assert page.locator("img").count() == page_file.read_text(encoding="utf-8").count("data:image/jpeg")
    assert "shown only in the first of its places" in page.locator("#pictures").inner_text()
