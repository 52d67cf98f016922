"""The paper as data: what was published, what is measured here, and the two side by side."""
