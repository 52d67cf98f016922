"""How well probabilities rank rows, whatever the thresholds: AP of methods, for the page of a spec with decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import fmean

from rarenode.paper.published import published_none
from rarenode.paper.record import Record
from rarenode.paper.store import Records
from rarenode.paper.tables.markdown import NOTHING, dataset_name, escape, line

NETWORK = "network alone"
"""The method that others are compared with: an unweighted network, trained on the same rows as "best"."""


def ranking(records: Records, shown: Collection[str]) -> Iterator[str]:
    """AP of the methods shown on every dataset; nothing, where none was compared with a network alone."""
    if not any(method == NETWORK for _, method in records):
        return
    yield "### Ranking: average precision, whatever the thresholds\n"
    for method in dict.fromkeys(method for _, method in records if method in shown and method != NETWORK):
        micro, macro, published = [], [], []
        for (dataset, name), its in records.items():
            if name != method or not its:
                continue
            ours, plain, none = _ap(its), _ap(records.get((dataset, NETWORK), ())), _published_ap(dataset)
            micro += _higher(ours[0], plain[0])
            macro += _higher(ours[1], plain[1])
            published += _higher(ours[0], none)
        if micro:
            yield (
                f"- {escape(method)}: AP above that of the network alone on {_share(micro)} datasets"
                f"{f', macro AP on {_share(macro)}' if macro else ''}"
                f"{f'; above the published AP of None on {_share(published)}' if published else ''}."
            )
    yield "\n" + line(["Dataset", "Method", "Seeds", "AP", "Macro AP", "AP of None, published"])
    yield line([":--", ":--", *["--:"] * 4])
    for (dataset, method), its in records.items():
        if its and method in shown:
            values = (*_ap(its), _published_ap(dataset))
            texts = [NOTHING if value is None else f"{value:.2f}" for value in values]
            yield line([dataset_name(dataset), escape(method), str(len(its)), *texts])
    yield (
        "\nAP is the micro average over all cells, macro AP the mean over scored nodes that have test rows. Models of "
        "the paper's kind learned from the training rows alone, the others and the published ones from training and "
        "validation rows."
    )


def _ap(its: Sequence[Record]) -> tuple[float | None, float | None]:
    """Micro and macro AP in percent, means over seeds; older records have no macro AP."""
    macro = [each.decided.macro_ap for each in its if each.decided.macro_ap is not None]
    micro = [each.decided.ap for each in its]
    return (100 * fmean(micro) if micro else None), (100 * fmean(macro) if macro else None)


def _published_ap(dataset: str) -> float | None:
    none = published_none(dataset)
    return None if none is None else none.means.get("ap")


def _higher(ours: float | None, theirs: float | None) -> list[bool]:
    return [] if ours is None or theirs is None else [ours > theirs]


def _share(reached: Sequence[bool]) -> str:
    return f"{sum(reached)} of {len(reached)}"
