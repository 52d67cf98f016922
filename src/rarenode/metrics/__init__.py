"""Metrics: arrays in, numbers out. Scores of each node, of all nodes together, by depth and by rarity."""

from rarenode.metrics.average_precision import macro_average_precision
from rarenode.metrics.hierarchical import (
    CafaScores,
    HierarchicalScores,
    accretion_from_counts,
    aspect_masks,
    cafa_scores,
    count_parents_together,
    hierarchical_scores,
    hierarchical_scores_by_aspect,
    information_accretion,
)
from rarenode.metrics.per_node import NodeScores, node_scores
from rarenode.metrics.summaries import (
    RARITY_BANDS,
    GroupedSummary,
    GroupSummary,
    Summary,
    rarity_masks,
    summarize_groups,
    summary,
    summary_by_depth,
    summary_by_rarity,
)

__all__ = [
    "RARITY_BANDS",
    "CafaScores",
    "GroupSummary",
    "GroupedSummary",
    "HierarchicalScores",
    "NodeScores",
    "Summary",
    "accretion_from_counts",
    "aspect_masks",
    "cafa_scores",
    "count_parents_together",
    "hierarchical_scores",
    "hierarchical_scores_by_aspect",
    "information_accretion",
    "macro_average_precision",
    "node_scores",
    "rarity_masks",
    "summarize_groups",
    "summary",
    "summary_by_depth",
    "summary_by_rarity",
]
