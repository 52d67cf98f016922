"""Draw the figures of docs/index.md, docs/mathematics.md and docs/architecture.md into docs/images.

    python -m tools.draw_figures [FOLDER]

The curves come from the functions of the package that the pages explain; one figure shows records in results/.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from rarenode import Hierarchy, node_weights, uncertainty
from rarenode.metrics import node_scores
from rarenode.paper.spec import load_spec
from rarenode.paper.store import gather
from rarenode.plots.style import LIGHT, SMALL, WIDTH, add_legend, chart_style
from rarenode.plots.svg import standalone, to_svg
from rarenode.thresholds import make_strategy
from tools.svg_graph import Arrow, Box, draw_graph

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
NAMES = ("cellcycle", "derisi", "eisen", "expr", "gasch1", "gasch2", "seq", "spo")
MOST = 1.5
LINE = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))

DATA_FLOW = (
    (
        Box("file or name", 0, 0),
        Box("Dataset: X, Y, hierarchy", 0, 1),
        Box("Settings", 1.2, 2),
        Box("network input", 0, 2),
        Box("training: engine + objective", 0.6, 3),
        Box("Model: mlp, forest, neighbours, blend", 0, 4),
        Box("Thresholds", 1.2, 4),
        Box("TrainedModel: Preparation, Model, Thresholds", 0.6, 5),
        Box("probabilities and decisions", 0.6, 6),
        Box("scores", 0, 7),
        Box("NodeDiagnosis", 1.2, 7),
        Box("report, tables", 0.6, 8),
    ),
    (
        Arrow(0, 1, "readers; an Encoder for pictures"),
        Arrow(1, 3, "Preparation, fitted on training rows"),
        Arrow(2, 4),
        Arrow(3, 4),
        Arrow(4, 5),
        Arrow(4, 6, "out-of-fold probabilities"),
        Arrow(5, 7),
        Arrow(6, 7),
        Arrow(7, 8),
        Arrow(8, 9, "metrics"),
        Arrow(8, 10, "diagnosis"),
        Arrow(9, 11),
        Arrow(10, 11),
    ),
)


def nodes_found() -> Figure:
    """The share of nodes that are found on FunCat, by a plain network at 0.5 and by the preset: from the records."""
    records = gather(load_spec("decisions"), ROOT / "results")
    ax, width = _axes(0.75), 0.38
    for place, (method, strategy, label) in enumerate(
        (("None", "fixed", "a plain network at 0.5"), ("best", "midpoint", "preset best"))
    ):
        shares = [
            np.mean([_share_found(record.decisions, strategy) for record in found])
            for (dataset, named), found in records.items()
            if named == method and dataset.split("_")[1:2] == ["FUN"]
        ]
        places = np.arange(len(shares)) + (place - 0.5) * width
        ax.barh(places, shares, width, color=LIGHT[str(1 + place)], label=label)
        for at, share in zip(places, shares, strict=True):
            ax.text(float(share) + 0.6, float(at), f"{share:.0f}", va="center", fontsize=SMALL)
    ax.set_yticks(range(len(NAMES)), NAMES)
    ax.invert_yaxis()
    ax.set_xlabel("nodes found (% of all nodes)")
    return _with_legend(ax)


def threshold_of_a_rare_node() -> Figure:
    """F1 of a node that one row in forty has, at every threshold, and what strategies choose without labels."""
    rng = np.random.default_rng(1)
    probs = rng.beta(0.25, 9.75, size=(20_000, 1))
    labels = rng.random(probs.shape) < probs
    ax, thresholds = _axes(0.7), np.linspace(0.01, 0.6, 200)
    f1 = [float(node_scores(labels, (probs >= threshold).astype(np.float64)).f1[0]) for threshold in thresholds]
    ax.plot(thresholds, f1, color=LIGHT["1"], label="F1 of the decisions")
    for place, name in enumerate(("expected_f1", "midpoint", "prior", "fixed:0.5")):
        chosen = float(make_strategy(name).fit(probs, prior=labels.mean(axis=0)).values[0])
        ax.axvline(chosen, color=LIGHT[str(2 + place)], linestyle=LINE[1 + place], label=name.replace(":", " at "))
    ax.set_xlabel("threshold")
    ax.set_ylabel("F1")
    ax.set_ylim(0)
    return _with_legend(ax)


def weights_by_rarity() -> Figure:
    """What an annotation of a node weighs, by the number of rows that have the node, in both forms."""
    counts = np.unique(np.geomspace(1, 900, 40).astype(int))
    tree = Hierarchy.from_edges([("root", f"n{count:03}") for count in counts])
    labels = np.zeros((1000, len(tree)), dtype=np.int8)
    labels[:, tree.index["root"]] = 1
    for count in counts:
        labels[:count, tree.index[f"n{count:03}"]] = 1
    columns = [tree.index[f"n{count:03}"] for count in counts]
    ax = _axes(0.65)
    published, described = (node_weights(labels, tree, form=form) for form in ("as_published", "as_described"))
    for place, (values, label) in enumerate(
        (
            (published.negative, "as_published: on negatives"),
            (described.positive, "as_described: on positives"),
        )
    ):
        ax.plot(counts, values[columns], color=LIGHT[str(1 + place)], linestyle=LINE[place], label=label)
    ax.axhline(0.25, color=LIGHT["muted"], linestyle=":", linewidth=1)
    ax.text(1, 0.29, "w0 = 0.25", fontsize=SMALL, va="bottom")
    ax.set(xscale="log", yscale="log", xlabel="training rows that have the node, of 1,000", ylabel="weight")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    return _with_legend(ax)


def uncertainties_of_two() -> Figure:
    """Uncertainties of two members, one of which says 0.9, by what the other says."""
    other = np.linspace(0.001, 0.999, 400)
    members = np.stack([np.full_like(other, 0.9), other])
    ax = _axes(0.8)
    kinds = ("bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric")
    for place, kind in enumerate(kinds):
        values = uncertainty(members, kind)
        values[values > MOST] = np.nan  # KL has no bound
        ax.plot(other, values, color=LIGHT[str(1 + place)], linestyle=LINE[place], label=kind)
    ax.set(xlabel="probability by the second member; the first says 0.9", ylabel="uncertainty", ylim=(0, MOST))
    return _with_legend(ax)


FIGURES: dict[str, tuple[Callable[[], Figure], str]] = {
    "nodes-found": (nodes_found, "Nodes found on eight FunCat datasets"),
    "threshold-of-a-rare-node": (threshold_of_a_rare_node, "Thresholds for a rare node"),
    "weights-by-rarity": (weights_by_rarity, "Node weights by rarity"),
    "uncertainties-of-two": (uncertainties_of_two, "Uncertainties of two members"),
}


def draw(folder: Path) -> None:
    """Write all figures into a folder."""
    for name, (figure, title) in FIGURES.items():
        with chart_style():
            svg = to_svg(figure(), title, str(figure.__doc__))
        (folder / f"{name}.svg").write_text(standalone(svg), encoding="utf-8")
    flow = draw_graph(*DATA_FLOW, title="From a file to a report", box=(200, 50))
    (folder / "data-flow.svg").write_text(flow, encoding="utf-8")


def _axes(height: float) -> Axes:
    inches = WIDTH / 72
    return Figure(figsize=(inches, inches * height), layout="constrained").add_subplot()


def _with_legend(ax: Axes) -> Figure:
    handles, labels = ax.get_legend_handles_labels()
    add_legend(ax, handles, labels)
    figure = ax.figure
    assert isinstance(figure, Figure)
    return figure


def _share_found(decisions: object, strategy: str) -> float:
    (decided,) = (
        each.test
        for each in decisions.decided  # type: ignore[attr-defined]
        if (each.strategy, each.rule, each.calibration, each.fitted_on)
        == (strategy, "add_ancestors", "none", "held_out")
    )
    return 100 * float(decided.nodes_found) / float(decided.nodes)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
