"""Figures of specs: `charts` finds the numbers to draw, `drawing` draws them."""
