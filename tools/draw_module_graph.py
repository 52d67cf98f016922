"""Draw which module imports which into docs/architecture.md, from the imports themselves; --check only compares."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import grimp

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
BLOCK = re.compile(r"(<!-- module graph -->\n).*?(<!-- end of module graph -->)", re.DOTALL)
LAYERS = (
    *("cli", "report", "experiments", "estimator", "training", "engines", "models"),
    *("objective", "resampling", "diagnosis", "decision", "metrics", "data", "hierarchy"),
    *("errors", "printable", "version"),
)


def draw() -> str:
    """The graph in Mermaid: a box for each layer, an arrow from a module to each module it imports."""
    graph = grimp.build_graph("rarenode")
    members: dict[str, list[str]] = defaultdict(list)
    for module in sorted(graph.modules - {"rarenode"}):
        members[module.split(".")[1]].append(module)
    unknown = set(members) - set(LAYERS)
    if unknown:
        sys.exit(f"tools/draw_module_graph.py does not know the layer of {', '.join(sorted(unknown))}")
    lines = ["```mermaid", "flowchart TD"]
    for layer in LAYERS:
        lines.append(f"    subgraph {layer}_layer [{layer}]")
        lines += [f'        {_id(module)}["{_title(module)}"]' for module in members[layer]]
        lines.append("    end")
    for importer in sorted(graph.modules - {"rarenode"}):
        for imported in sorted(graph.find_modules_directly_imported_by(importer) - {"rarenode"}):
            # Everything may raise our errors or tell our version; those arrows would hide the others.
            if imported not in ("rarenode.errors", "rarenode.printable", "rarenode.version"):
                lines.append(f"    {_id(importer)} --> {_id(imported)}")
    return "\n".join([*lines, "```", ""])


def _id(module: str) -> str:
    return module.removeprefix("rarenode.").replace(".", "_")


def _title(module: str) -> str:
    layer, _, name = module.removeprefix("rarenode.").partition(".")
    return name or f"{layer}/__init__" if layer not in ("errors", "printable", "version") else layer


def main() -> None:
    """Write the graph into the page, or compare it with the one there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is out of date")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    drawn = BLOCK.sub(lambda found: found[1] + draw() + found[2], page)
    if check and drawn != page:
        sys.exit("docs/architecture.md does not show the imports as they are; run 'make graph'")
    if not check:
        PAGE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
