"""`tree_chart`: a hierarchy, with a score of every method in each of its nodes.

Records have counts of nodes, and beside them is ``nodes.json`` with their names, which tell the hierarchy of a dataset
of pictures; see `hierarchy_from_names`. So no data are needed to draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures.charts import Chart, Line, Tree
from rarenode.paper.figures.points import node_values, note_on, over_seeds, scale_of
from rarenode.paper.panel import Measure, Panel
from rarenode.paper.record import DatasetNodes
from rarenode.paper.store import NODES, Records, hierarchy_of, read_nodes

MOST_NODES = 60
"""More would not be legible on a page."""


def tree_chart(panel: Panel, title: str, measure: Measure, found: Records, dataset: str, folder: Path) -> Chart:
    """The chart of one dataset.

    Raises:
        FileFormatError: a record, or ``nodes.json``, is damaged.
    """
    methods = panel.methods or ()
    absent = [method for method in methods if (dataset, method) not in found]
    if len(absent) == len(methods):
        return _without(title, note_on((), (dataset,), (), titled=True))
    place = next(record.cell.place for method in methods for record in found.get((dataset, method), ()))
    nodes = read_nodes(folder, place)
    hierarchy = hierarchy_of(nodes, folder / place / NODES)
    if hierarchy is None or not hierarchy.is_tree:
        return _without(title, f"the names of the nodes of {dataset} do not tell a tree, which this needs")
    if len(hierarchy) > MOST_NODES:
        return _without(title, f"{dataset} has {len(hierarchy)} nodes; at most {MOST_NODES} can be drawn")
    lines = []
    for method in methods:
        scores = [
            node_values(record, nodes, range(len(hierarchy)), measure, folder)
            for record in found.get((dataset, method), ())
        ]
        means = [over_seeds(values) for values in zip(*scores, strict=True)] or [None] * len(hierarchy)
        lines.append(Line(method, _of_scored(means, nodes), (None,) * len(hierarchy)))
    return Chart(
        kind="hierarchy",
        title=title,
        note=note_on((dataset,), (dataset,), absent, titled=True),
        axis="",
        scale=scale_of([measure]),
        positions=tuple(map(float, range(len(hierarchy)))),
        names=hierarchy.titles,
        lines=tuple(lines),
        tree=Tree(
            parents=tuple(
                hierarchy.index[parents[0]] if (parents := hierarchy.parents(name)) else None
                for name in hierarchy.nodes
            ),
            rows=nodes.training_rows,
            scored=nodes.scored,
        ),
    )


def _of_scored(means: Sequence[Estimate | None], nodes: DatasetNodes) -> tuple[Estimate | None, ...]:
    """None for nodes that are not scored, and for those that no test row has: their score is not defined."""
    return tuple(
        mean if scored and rows else None
        for mean, scored, rows in zip(means, nodes.scored, nodes.test_rows, strict=True)
    )


def _without(title: str, note: str) -> Chart:
    return Chart("hierarchy", title, note, "", "", (), None, ())
