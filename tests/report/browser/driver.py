"""A browser for the tests of the page: Chromium, driven by playwright. What the page complains about fails the test."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Opener(Protocol):
    def __call__(
        self, path: Path, *, width: int = 1440, height: int = 900, anchor: str = "", **options: Any
    ) -> Page: ...


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    wanted = os.environ.get("RARENODE_CHROMIUM")
    program = next((found for name in ([wanted] if wanted else PROGRAMS) if (found := shutil.which(name))), None)
    if program is None:
        why = f"RARENODE_CHROMIUM names {wanted}, which is no program" if wanted else "no Chromium on the PATH"
        pytest.skip(f"{why}; on Debian and Ubuntu: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright is not installed: pip install playwright (its own browsers are not needed)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Opens pages and waits until they are ready. After the test no page may have complained, or used the network."""
    troubles: list[str] = []
    contexts: list[BrowserContext] = []

    def opened(path: Path, *, width: int = 1440, height: int = 900, anchor: str = "", **options: Any) -> Page:
        options = {"reduced_motion": "reduce", "color_scheme": "light"} | options
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        listen(page, troubles)
        page.goto(path.as_uri() + anchor)
        if options.get("java_script_enabled", True):
            until(page, "window.rarenodeReport?.ready === true")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


def listen(page: Page, troubles: list[str]) -> None:
    def refuse(dialog: Any) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    page.on("console", lambda said: troubles.append(f"{said.type}: {said.text}") if said.type != "log" else None)
    page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
    page.on("request", lambda asked: None if local(asked.url) else troubles.append(f"network: {asked.url}"))


def local(address: str) -> bool:
    return address.startswith(("file:", "data:", "blob:"))


def keep(page: Page, name: str, *, full: bool = False, part: str = "") -> None:
    """A screenshot, to be looked at, of the page or a part of it: into RARENODE_SCREENSHOTS or build/screenshots."""
    folder = Path(os.environ.get("RARENODE_SCREENSHOTS", "build/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    if part:
        page.locator(part).screenshot(path=folder / f"{name}.png")
    else:
        page.screenshot(path=folder / f"{name}.png", full_page=full)


def until(page: Page, condition: str, seconds: float = 20) -> None:
    """Waits for a condition. The page's policy forbids the way in which playwright itself would wait for it."""
    given_up = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < given_up, f"never came true: {condition}"
        page.wait_for_timeout(20)


def ask(page: Page, question: str) -> Any:
    """What the page says of itself: ``chosen()``, ``zoomed()``, ``shown()``."""
    return page.evaluate(f"window.rarenodeReport.{question}")
