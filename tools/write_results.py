"""Write docs/results from the records: a table for each spec that has any, and its figure.

`--check` only says whether the tables are those of the records, and draws nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rarenode.experiments.comparison import compare, gather
from rarenode.experiments.figures.charts import figure_of
from rarenode.experiments.figures.drawing import draw
from rarenode.experiments.spec import Spec, load_spec, spec_names
from rarenode.experiments.table import as_markdown

PROJECT = Path(__file__).parent.parent
RECORDS, PAGES = PROJECT / "results", PROJECT / "docs" / "results"
HEAD = "<!-- Made by `make results` from the records in results/; do not edit. -->\n\n"


def main() -> None:
    """Write, or with --check compare."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name in spec_names():
        spec = load_spec(name)
        if not any(gather(spec, RECORDS).values()):
            continue
        page = PAGES / f"{name}.md"
        text = _page(name, spec)
        if not check:
            PAGES.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
            draw(figure_of(spec, RECORDS), PAGES, name)
        elif not page.exists() or page.read_text(encoding="utf-8") != text:
            stale.append(page.name)
    if stale:
        sys.exit(f"docs/results is not what the records say: {', '.join(stale)}; run `make results`")


def _page(name: str, spec: Spec) -> str:
    table = as_markdown(compare(spec, gather(spec, RECORDS)))
    drawing = f"\n![{spec.title}]({name}.svg)\n"
    shown = f"`rarenode table {name}` and `rarenode figure {name}`"
    commands = f"\nMeasured by `rarenode reproduce {name}`; shown by {shown}.\n"
    return HEAD + table.rstrip("\n") + "\n" + drawing + commands


if __name__ == "__main__":
    main()
