"""A report as `write_report` leaves it, of models and rows with hostile names, in a real browser."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode.plots.style import DARK, LIGHT
from rarenode.report import Report, folder_of, report_on_model, write_report
from rarenode.thresholds import Thresholds
from tests.report.browser.driver import Opener, ask, keep
from tests.report.browser.sample import HOSTILE
from tests.report.runs import model_over, rows_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

# A node's name is never empty, and must differ from others.
NAMES = [name for name in HOSTILE if name]
HIERARCHY = Hierarchy.from_edges([(NAMES[place // 3], name) for place, name in enumerate(NAMES) if place])


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, Y = rows_over(HIERARCHY, 60)
    strict, lenient = (
        model_over(HIERARCHY, seed=1, thresholds=Thresholds(np.full(len(HIERARCHY), value), strategy="fixed"))
        for value in (0.9, 0.2)
    )
    runs = (
        report_on_model(strict, X, Y, name="strict <b>", rows="</script> rows"),
        report_on_model(lenient, X, Y, name="lenient \u202e", rows="rows"),
    )
    page, *_ = write_report(Report(runs), tmp_path_factory.mktemp("whole") / "report.html")
    return page


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_it_opens_without_complaint_and_shows_what_was_gained(
    page_file: Path, open_page: Opener, width: int, scheme: str
) -> None:
    page = open_page(page_file, width=width, color_scheme=scheme)
    keep(page, f"whole_{width}_{scheme}", full=True)
    with (folder_of(page_file) / "changes.csv").open(encoding="utf-8", newline="") as file:
        changes = list(csv.DictReader(file))
    gained = [line for line in changes if line["change"] == "gained"]
    assert gained
    words = page.locator("#comparison").inner_text()
    assert f"{len(gained)} gained" in words
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.locator("figure.chart svg").count() >= 8


def test_a_node_is_found_by_search_and_its_row_in_the_table(page_file: Path, open_page: Opener) -> None:
    page = open_page(page_file)
    page.locator("#search").fill("IMG SRC=X")
    hit = page.locator("#search-hits [role=option]")
    hit.first.wait_for()
    assert hit.count() == 1
    hit.first.click()
    column = HIERARCHY.index['"><img src=x onerror=alert(2)>']
    assert ask(page, "chosen()") == column
    assert "<img src=x" in page.locator("#details").inner_text()
    assert ask(page, "shown()") == len(HIERARCHY)


def test_charts_take_the_colours_of_the_theme(page_file: Path, open_page: Opener) -> None:
    page = open_page(page_file)
    look = """() => ["fill", "stroke"].map(name => [...document.querySelectorAll(`.rn-chart [${name}^="#"]`)]
        .map(each => [each.getAttribute(name), getComputedStyle(each)[name]]))"""
    seen: dict[tuple[str, str], set[str]] = {}
    for theme, palette in (("Light", LIGHT), ("Dark", DARK)):
        page.locator("#theme button", has_text=theme).click()
        page_colours = {"ink": "--ink", "muted": "--muted", "grid": "--line", "paper": "--card"}
        for given, shown in (pair for pairs in page.evaluate(look) for pair in pairs):
            role = next(role for role, colour in LIGHT.items() if colour == given)
            if role not in page_colours:
                assert shown == f"rgb({', '.join(str(int(palette[role][at : at + 2], 16)) for at in (1, 3, 5))})"
            seen.setdefault((role, theme), set()).add(shown)
    assert {"ink", "muted", "grid", "1", "2"} <= {role for role, _ in seen}
    for role, _ in seen:
        assert len(seen[role, "Light"]) == len(seen[role, "Dark"]) == 1
        assert seen[role, "Light"] != seen[role, "Dark"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_file_of_a_chart_has_its_own_paper(
    page_file: Path, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto((folder_of(page_file) / "recall_by_depth.svg").as_uri())
    paper, ink = (
        page.evaluate(f"getComputedStyle(document.querySelector('{what}')).fill")
        for what in ("rect", "text.rn-heading")
    )
    context.close()
    palette = LIGHT if scheme == "light" else DARK
    for shown, role in ((paper, "paper"), (ink, "ink")):
        assert shown == f"rgb({', '.join(str(int(palette[role][at : at + 2], 16)) for at in (1, 3, 5))})"
