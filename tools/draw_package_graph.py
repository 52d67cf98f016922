"""Draw which package imports which into docs/images/packages.svg, from the imports; --check only compares."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from statistics import fmean

import grimp

from tools.svg_graph import Arrow, Box, draw_graph

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "packages.svg"
EVERYWHERE = {"_io", "errors", "version"}
"""Used by almost every package; their arrows would hide the others."""


def draw() -> str:
    """The graph as SVG: an arrow from a package to each package it imports and no other way leads to."""
    graph = grimp.build_graph("rarenode")
    layers = [name for name in _layers() if name not in EVERYWHERE]
    imports = {name: _imports(graph, name, layers) for name in layers}
    for importer in layers:
        indirect = set().union(*(_reachable(imports, package) for package in imports[importer]))
        imports[importer] -= indirect
    return _drawn(layers, imports)


def _drawn(layers: list[str], imports: dict[str, set[str]]) -> str:
    """Every package below those that import it; an arrow that passes a row of boxes has a place of its own there."""
    rows: dict[str, int] = {}
    for name in layers:
        rows[name] = 1 + max((rows[each] for each in layers if name in imports[each]), default=-1)
    ways = {
        (importer, package): [f"{importer}>{package}>{row}" for row in range(rows[importer] + 1, rows[package])]
        for importer in layers
        for package in sorted(imports[importer])
    }
    above: dict[str, list[str]] = {}
    for (importer, package), middles in ways.items():
        for upper, lower in zip([importer, *middles], [*middles, package], strict=True):
            above.setdefault(lower, []).append(upper)
            rows.setdefault(lower, rows[upper] + 1)
    columns = _columns(rows, above)
    boxes = [Box(name, columns[name], rows[name]) for name in layers]
    arrows = [
        Arrow(layers.index(importer), layers.index(package), via=tuple((columns[each], rows[each]) for each in middles))
        for (importer, package), middles in ways.items()
    ]
    return draw_graph(boxes, arrows, title="Which package imports which", box=(96, 28))


def _columns(rows: dict[str, int], above: dict[str, list[str]]) -> dict[str, float]:
    """Places from left to right: each row in the order of the mean place of what is above, around one middle."""
    columns: dict[str, float] = {}
    for row in range(max(rows.values()) + 1):
        names = [name for name in rows if rows[name] == row]
        names.sort(key=lambda name: fmean(columns[each] for each in above[name]) if name in above else 0)
        for place, name in enumerate(names):
            columns[name] = place - (len(names) - 1) / 2
    leftmost = min(columns.values())
    return {name: column - leftmost for name, column in columns.items()}


def _layers() -> list[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [name for layer in contracts["contracts"][0]["layers"] for name in layer.split(" | ")]
    return [name.removeprefix("rarenode.") for name in layers]


def _imports(graph: grimp.ImportGraph, package: str, layers: list[str]) -> set[str]:
    inside = {f"rarenode.{package}"} | graph.find_descendants(f"rarenode.{package}")
    imported = {each for module in inside for each in graph.find_modules_directly_imported_by(module)}
    return {module.split(".")[1] for module in imported if "." in module} & (set(layers) - {package})


def _reachable(imports: dict[str, set[str]], package: str) -> set[str]:
    return imports[package].union(*(_reachable(imports, each) for each in imports[package]))


def main() -> None:
    """Write the graph, or exit with an error if it is not the one in the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    drawn = draw()
    if not arguments.check:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit("docs/images/packages.svg does not show the imports as they are; run `make graph`")


if __name__ == "__main__":
    main()
