"""What can be said of the page's template and script without a browser."""

from __future__ import annotations

import re
from importlib.resources import files

ASSETS = files("rarenode.report") / "assets"


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def all_scripts() -> list[str]:
    """Those of every page, and that of pages with pictures."""
    return [*asset("order.txt").split(), "pictures.js"]


def test_every_script_is_in_the_order_once() -> None:
    scripts = sorted(entry.name for entry in ASSETS.iterdir() if entry.name.endswith(".js"))
    assert sorted(all_scripts()) == scripts


def test_the_template_has_nothing_that_the_policy_forbids() -> None:
    page = asset("page.html")
    assert not re.search(r"\sstyle=", page)
    assert not re.search(r"\son[a-z]+=", page)
    assert not re.search(r"(src|href)=\"(?!#)", page)


def test_scripts_make_no_markup_out_of_text() -> None:
    script = "\n".join(asset(name) for name in all_scripts())
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
        assert way not in script
    assert "</script" not in script.lower()
    assert "http" not in script


def test_the_style_asks_for_nothing_from_elsewhere() -> None:
    style = asset("style.css") + asset("pictures.css")
    assert "url(" not in style
    assert "@import" not in style
    assert "</style" not in style.lower()
