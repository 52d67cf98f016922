"""Scores as tables, in percent: all nodes first, then by rarity and by depth; and by aspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rarenode._io.text import printable
from rarenode.metrics import CafaScores, GroupedSummary, HierarchicalScores, Summary

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = ".:-=+*#@"


def scores_table(scores: GroupedSummary, encoding: str, with_rows: Summary | None = None) -> Table:
    """The scores, the number of nodes found and a histogram of recalls, one line for each group of nodes.

    ``with_rows`` are the scores of the nodes that have rows, which are shown as well if these are not all nodes.
    """
    table = _table("nodes", "total", "F1", "precision", "recall", "Bin. AP", "AP", "found")
    table.add_column("recalls, 0 to 100", no_wrap=True)
    if with_rows is not None and with_rows.nodes == scores.all.nodes:
        with_rows = None
    for line in scores.groups():
        also = with_rows if line.group == "all" else None
        bars = sparkline(line.recall_histogram, encoding)
        table.add_row(*_scores(line.group, line.summary), bars, end_section=line.ends_section and also is None)
        if also is not None:
            table.add_row(*_scores("with rows", also), bars, end_section=line.ends_section)
    return table


def _scores(group: str, s: Summary) -> tuple[str, ...]:
    shown = (_percent(value) for value in (s.f1, s.precision, s.recall, s.bin_ap, s.ap))
    return (group, str(s.nodes), *shown, str(s.nodes_found))


def aspects_table(hierarchical: Mapping[str, HierarchicalScores], cafa: Mapping[str, CafaScores]) -> Table:
    """The measures of the field, one line for each aspect that rows have labels in."""
    table = _table("aspect", "rows", "hP", "hR", "hF", "F-max", "at", "coverage", "S-min", "at")
    for aspect, best in cafa.items():
        decided = hierarchical[aspect]
        table.add_row(
            printable(aspect),
            str(best.rows),
            *(_percent(value) for value in (decided.precision, decided.recall, decided.f1, best.f_max)),
            _two_decimals(best.f_max_threshold),
            _percent(best.coverage),
            _two_decimals(best.s_min),
            _two_decimals(best.s_min_threshold),
        )
    return table


def comparison_table(runs: Mapping[str, GroupedSummary]) -> Table:
    """How many nodes each run finds, and their F1, one line for each group of nodes."""
    table = _table("nodes", "total", *(f"{name}\n{what}" for name in runs for what in ("found", "F1")))
    for lines in zip(*(scores.groups() for scores in runs.values()), strict=True):
        first = lines[0]
        shown = [text for each in lines for text in (str(each.summary.nodes_found), _percent(each.summary.f1))]
        table.add_row(first.group, str(first.summary.nodes), *shown, end_section=first.ends_section)
    return table


def _table(group: str, *numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(group, no_wrap=True)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def _two_decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def sparkline(counts: Sequence[int], encoding: str = "utf-8") -> str:
    """Bars as high as the counts, the highest full; a blank where there is nothing, and never where there is something.

    >>> sparkline([8, 0, 1, 4])
    '█ ▁▄'
    >>> sparkline([8, 0, 1, 4], "ascii")
    '@ .='
    """
    most = max(counts, default=0)
    bars = _bars(encoding)
    return "".join(bars[-(-count * len(bars) // most) - 1] if count else " " for count in counts)


def _bars(encoding: str) -> str:
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS
