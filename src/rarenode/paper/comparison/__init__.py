"""Published numbers and ours, side by side: `scores` at the threshold 0.5, and `decisions` beyond it."""
