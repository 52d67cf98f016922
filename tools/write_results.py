"""Write docs/results from the records: a page for each spec that has any, its figure, and a tally over all specs.

`--check` only says whether the pages are what the records say. It draws nothing, so it does not look at figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.paper.comparison.scores import Comparison, Tally, compare
from rarenode.paper.figures import FigureData, figure_of
from rarenode.paper.figures.drawing import draw
from rarenode.paper.grid import cell
from rarenode.paper.spec import Spec, load_spec, spec_names
from rarenode.paper.store import gather
from rarenode.paper.tables.decisions import decisions_page
from rarenode.paper.tables.scores import as_markdown

PROJECT = Path(__file__).parent.parent
RECORDS, PAGES = PROJECT / "results", PROJECT / "docs" / "results"
HEAD = "<!-- Made by `make results` from the records in results/; do not edit. -->\n\n"
BY_HAND = frozenset({"README.md"})


def main() -> None:
    """Write, or with --check compare."""
    if "--check" in sys.argv[1:]:
        stale = find_stale(RECORDS, PAGES)
        if stale:
            sys.exit(f"docs/results is not what the records say: {', '.join(stale)}; run `make results`")
    else:
        write(RECORDS, PAGES)


def write(records: Path, pages: Path) -> None:
    """Write all pages and figures, and remove pages that nothing is known for any more."""
    pages.mkdir(parents=True, exist_ok=True)
    texts = make_pages(records)
    for page in pages.glob("*.md"):
        if page.name not in texts | dict.fromkeys(BY_HAND):
            page.unlink()
    for name, text in texts.items():
        (pages / name).write_text(text, encoding="utf-8")
        figure = None if name == "tally.md" else _figure(load_spec(Path(name).stem), records)
        if figure is not None:
            draw(figure, pages, Path(name).stem)


def find_stale(records: Path, pages: Path) -> list[str]:
    """The pages that are not what the records say: changed, missing, or of a spec without records."""
    texts = make_pages(records)
    there = {page.name: page.read_text(encoding="utf-8") for page in pages.glob("*.md") if page.name not in BY_HAND}
    return sorted(name for name in texts | there if texts.get(name) != there.get(name))


def make_pages(records: Path) -> dict[str, str]:
    """File name -> text."""
    comparisons, texts = {}, {}
    for name in spec_names():
        spec = load_spec(name)
        found = gather(spec, records)
        if not any(found.values()):
            continue
        if spec.decisions:
            texts[f"{name}.md"] = _page(name, spec, decisions_page(spec, found), records)
        else:
            comparisons[name] = spec, compare(spec, found)
            texts[f"{name}.md"] = _page(name, spec, as_markdown(comparisons[name][1]), records)
    return texts | {"tally.md": _tally(comparisons)} if comparisons else texts


def _figure(spec: Spec, records: Path) -> FigureData | None:
    try:
        return figure_of(spec, records)
    except ArgumentError:  # too few records for any chart
        return None


def _page(name: str, spec: Spec, text: str, records: Path) -> str:
    drawing = "" if _figure(spec, records) is None else f"\n![{spec.title}]({name}.svg)\n"
    shown = f"`rarenode paper table {name}` and `rarenode paper figure {name}`"
    commands = f"\nMeasured by `rarenode paper run {name}`; shown by {shown}.\n"
    return HEAD + text.rstrip("\n") + "\n" + drawing + commands


def _tally(comparisons: dict[str, tuple[Spec, Comparison]]) -> str:
    lines = ["| spec | trainings done | rows with records | rows judged | within 2 |", "|:--|--:|--:|--:|--:|"]
    judged: dict[tuple[str, float], bool] = {}
    for name, (spec, comparison) in comparisons.items():
        tally, rows = comparison.tally, [row for row in comparison.rows if row.seeds]
        done = f"{comparison.trainings - comparison.missing} of {comparison.trainings}"
        lines.append(f"| [{name}]({name}.md) | {done} | {len(rows)} | {tally.of} | {tally.within} |")
        for row in rows:
            published = row.figures["f1"].published
            if row.within is not None and published is not None:
                key = cell(spec, row.dataset, row.method, 0).fingerprint, published.mean
                judged[key] = judged.get(key, True) and row.within
    total = Tally(sum(judged.values()), len(judged))
    text = (
        "A row is a method on a dataset. It is judged where the paper has a deviation, and within 2 if F1, recall, "
        "Bin. AP and AP, as far as published, are all at most two combined deviations from the paper's."
    )
    alike = "Rows that two specs share count once."
    every = f"**{total.within} of {counted(total.of, 'row')} within 2 combined deviations over all specs.** {alike}"
    return HEAD + "\n".join(["# All specs", "", text, "", every, "", *lines]) + "\n"


if __name__ == "__main__":
    main()
