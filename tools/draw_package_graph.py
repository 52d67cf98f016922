"""Draw which package imports which into docs/architecture.md, from the imports themselves; --check only compares."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(r"(<!-- package graph -->\n).*?(<!-- end of package graph -->)", re.DOTALL)
EVERYWHERE = {"_io", "errors", "version"}
"""Used by almost every package; their arrows would hide the others."""


def draw() -> str:
    """The graph in Mermaid: an arrow from a package to each package it imports and no other way leads to."""
    graph = grimp.build_graph("rarenode")
    layers = [name for name in _layers() if name not in EVERYWHERE]
    imports = {name: _imports(graph, name, layers) for name in layers}
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {name}["{name}"]' for name in layers]
    for importer in layers:
        indirect = set().union(*(_reachable(imports, package) for package in imports[importer]))
        lines += [f"    {importer} --> {package}" for package in layers if package in imports[importer] - indirect]
    return "\n".join([*lines, "```", ""])


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
    """Write the graph, or exit with an error if it is not the one on the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    drawn = BLOCK.sub(lambda found: found[1] + draw() + found[2], page)
    if not arguments.check:
        PAGE.write_text(drawn, encoding="utf-8")
    elif drawn != page:
        sys.exit("docs/architecture.md does not show the imports as they are; run `make graph`")


if __name__ == "__main__":
    main()
