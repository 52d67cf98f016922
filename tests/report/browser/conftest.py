"""The fixtures of the driver, for the tests of this folder."""

from tests.report.browser.driver import browser, open_page

__all__ = ["browser", "open_page"]
