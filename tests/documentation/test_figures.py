"""The figures of the documentation are drawn by functions of the package, and those in docs are all there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tools import draw_figures, draw_package_graph

from tests.pages import DOCS


def texts(path: Path) -> set[str]:
    root = ElementTree.parse(path).getroot()
    return {"".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_the_script_draws_what_the_pages_show(tmp_path: Path) -> None:
    draw_figures.draw(tmp_path)
    drawn = sorted(tmp_path.iterdir())
    assert len(drawn) >= 5
    for path in drawn:
        kept = DOCS / "images" / path.name
        assert kept.read_text(encoding="utf-8").startswith("<")
        assert texts(kept) == texts(path), f"{path.name} is out of date: make graph"
    shown = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    assert all(f"](images/{path.name})" in shown for path in drawn)


def test_the_package_graph_has_every_package_once() -> None:
    drawn = draw_package_graph.draw()
    root = ElementTree.fromstring(drawn)
    names = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(names) == len(set(names))
    assert {"cli", "run", "training", "hierarchy"} <= set(names)
    assert not {"_io", "errors"} & set(names)
