"""The paper as data: specs with the published numbers, trainings, records, tables and figures.

Nothing else in rarenode but the command line imports this package. Its parts, from low to high: `as_published`
(hyperparameters and preparation), `spec` (an experiment as a TOML file), `grid` (the trainings of a spec), `record` and
`store` (results as JSON files), `measure` and `judge` (one training and its scores), `runner` and `queue` (many
trainings), `comparison`, `tables` and `figures` (what came of them).
"""

from rarenode.paper.as_published import load_as_published, settings_for

__all__ = ["load_as_published", "settings_for"]
