"""The documentation in Chromium, on a desktop and on a phone: nothing is cut off, and nothing asks another host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.browser.driver import keep

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = (
    "index.html",
    "tutorials/field-survey.html",
    "guide/thresholds.html",
    "mathematics.html",
    "architecture.html",
    "reference/command-line.html",
    "reference/objective.html",
    "reference/settings.html",
    "results/index.html",
    "results/decisions.html",
    "CHANGELOG.html",
)
FOUND = {"guaranteed_recall": "reference/settings.html", "RareNodeLoss": "reference/objective.html"}
"""What is searched for, and a page that is among the results."""
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(params=list(WIDTHS))
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """A page whose complaints fail the test, as does a request to another host."""
    width, troubles = WIDTHS[request.param], list[str]()
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme="light")
    page = context.new_page()
    page.on("console", lambda said: troubles.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
    page.on("request", lambda sent: None if _own(sent.url, address) else troubles.append(f"network: {sent.url}"))
    page.on("response", lambda got: troubles.append(f"{got.status}: {got.url}") if got.status >= 400 else None)
    yield page
    context.close()
    assert not troubles


@pytest.mark.parametrize("path", PAGES)
def test_it_fits_and_complains_about_nothing(page: Page, address: str, path: str) -> None:
    page.goto(f"{address}/{path}", wait_until="networkidle")
    assert page.locator("article h1").count() == 1
    width = _measured(page, "window.innerWidth")
    assert _measured(page, "document.documentElement.scrollWidth") <= width
    assert _measured(page, "[...document.images].filter(each => each.complete && !each.naturalWidth).length") == 0
    keep(page, f"docs-{path.replace('/', '-').removesuffix('.html')}-{width}")


def test_what_must_be_wide_scrolls_by_itself(page: Page, address: str) -> None:
    page.goto(f"{address}/results/decisions.html", wait_until="networkidle")
    within = "[...document.querySelectorAll('.md-typeset__scrollwrap')].every(each => each.clientWidth <= innerWidth)"
    assert _measured(page, within)
    assert _measured(page, "document.querySelectorAll('.md-typeset__scrollwrap table').length") > 3


def test_search_finds_a_setting_and_a_function(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.keyboard.press("/")  # opens the search, at any width
    for words, target in FOUND.items():
        page.keyboard.press("Control+a")
        page.keyboard.type(words)
        page.locator(f".md-search-result__link[href*='{target}']").first.wait_for(state="attached", timeout=60_000)
    page.locator(".md-search-result__link[href*='reference/objective.html']").first.click()
    page.wait_for_url("**/reference/objective.html*")
    assert "RareNodeLoss" in page.locator("article").inner_text()


def _own(address: str, here: str) -> bool:
    return address.startswith((f"{here}/", "data:", "blob:"))


def _measured(page: Page, expression: str) -> Any:
    return page.evaluate(expression)
