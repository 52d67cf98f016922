"""Charts of scores, curves and hierarchies, drawn with matplotlib.

Each function takes the numbers of `rarenode.metrics`, `rarenode.thresholds` or `rarenode.diagnosis` and an optional
``ax``, and returns the axes. Without ``ax`` it makes a figure that pyplot does not know, so it is safe in threads and
servers; ``ax.figure`` shows it in a notebook, and ``ax.figure.savefig("chart.svg")`` writes it.

>>> from rarenode.plots import plot_training_curve
>>> ax = plot_training_curve({"first": ([1, 2, 3], [0.9, 0.5, 0.4])})
>>> ax.get_xlabel()
'epoch'
"""

from rarenode.plots.bars import plot_scores_by_depth, plot_scores_by_rarity
from rarenode.plots.curves import plot_precision_recall, plot_reliability, plot_training_curve
from rarenode.plots.icicle import plot_icicle
from rarenode.plots.node_scores import plot_node_scores

__all__ = [
    "plot_icicle",
    "plot_node_scores",
    "plot_precision_recall",
    "plot_reliability",
    "plot_scores_by_depth",
    "plot_scores_by_rarity",
    "plot_training_curve",
]
