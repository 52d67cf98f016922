"""Take docs/images/report.png: the map of the demo's report in Chromium. Run `make demo` before."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "build" / "demo.html"
PICTURE = ROOT / "docs" / "images" / "report.png"


def main() -> None:
    """Open the page, choose the last run, and take the part with map and details."""
    with sync_playwright() as playwright:
        chromium = os.environ.get("RARENODE_CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 640}, color_scheme="light")
        page.goto(PAGE.as_uri())
        page.wait_for_timeout(1000)
        page.get_by_role("heading", name="Map of the hierarchy").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('#map').scrollIntoView()")
        page.wait_for_timeout(500)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
