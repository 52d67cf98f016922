"""Arrays in, numbers out: how well each node is found, and all of them together, by depth and by rarity."""

from rarenode.metrics.node_scores import NodeScores, node_scores
from rarenode.metrics.summaries import RARITY_BANDS, Summary, rarity_masks, summary, summary_by_depth, summary_by_rarity

__all__ = [
    "RARITY_BANDS",
    "NodeScores",
    "Summary",
    "node_scores",
    "rarity_masks",
    "summary",
    "summary_by_depth",
    "summary_by_rarity",
]
