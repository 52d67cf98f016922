"""The paper as data: specs with the published numbers, trainings, records, tables and figures.

Nothing else in rarenode but the command line imports this package. Its parts, from low to high: `as_published`
(hyperparameters and preparation), `own_data`, `own_code` and `own_methods` (what a spec brings itself), `contracts`
(the rules for code), `spec` (an experiment as a TOML file), `grid` (the trainings of a spec), `record` and `store`
(results as JSON files), `measure`, `own_training` and `judge` (one training and its scores), `runner` and `queue` (many
trainings), `comparison`, `tables` and `figures` (what came of them).
"""

from rarenode.paper.as_published import load_as_published, settings_for
from rarenode.paper.contracts import check_model, check_objective, check_resampler

__all__ = ["check_model", "check_objective", "check_resampler", "load_as_published", "settings_for"]
