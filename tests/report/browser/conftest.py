"""The fixtures of the driver, for the tests of this folder."""

from tests.report.browser.driver import open_page

__all__ = ["open_page"]
