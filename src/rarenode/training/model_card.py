"""The model card: what a person who finds the folder wants to know, in Markdown.

It is written from the record that is saved, for reading only; loading a model never looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rarenode.metrics import RARITY_BANDS
from rarenode.printable import printable
from rarenode.training.model_folder import ModelFile


def write_card(record: ModelFile) -> str:
    """The card of a model."""
    settings = record.settings
    members = f"{settings.members} members ({settings.ensemble})" if settings.members > 1 else "a single model"
    forest = "" if record.forest is None else f", joined with a forest of {record.forest.trees} trees"
    parts = [
        f"# A rarenode model{f' of {_plain(record.source)}' if record.source else ''}",
        f"It predicts the {len(record.hierarchy.nodes):,} nodes of a hierarchy with {len(record.hierarchy.edges):,} "
        f"edges from {record.features:,} features: {members}, {settings.layers} linear layers of {settings.hidden} "
        f"hidden units{forest}. A parent is never less probable than its child.",
        "## Use",
        '```python\nfrom rarenode.training import TrainedModel\n\nmodel = TrainedModel.load("this folder")\n'
        "probabilities = model.predict_proba(X)  # rows x nodes, in the order of model.hierarchy.nodes\n"
        "decided = model.predict(X)  # the same shape; with a node, all its ancestors\n```",
        _decision(record),
        _preparation(record),
        "## What it learnt from",
        "A node that few rows carry is predicted poorly, and one that none carries is not predicted at all. "
        "Probabilities are not calibrated.",
        _table(("training rows of a node", "nodes"), _rarity(record)),
        "## Training",
        _table(("setting", "value"), [(name, _code(value)) for name, value in settings.to_dict().items()]),
        _outcome(record),
        "## Versions and fingerprints",
        _table(
            ("what", "value"),
            [(name, _code(v)) for name, v in [*record.versions.items(), *record.fingerprints.items()]],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _decision(record: ModelFile) -> str:
    if record.thresholds is None:
        return "A node is decided where its probability is at least 0.5."
    strategy, rule, values = record.thresholds.strategy, record.thresholds.rule, set(record.thresholds.values)
    if len(values) == 1 and None not in values:
        return f"A node is decided where its probability is at least {values.pop():g} ({_code(strategy)})."
    return f"Every node has a threshold of its own ({_code(strategy)}); decisions are made coherent by {_code(rule)}."


def _preparation(record: ModelFile) -> str:
    if record.preparation is None:
        return "`X` must be prepared as the training rows were; the model does not know how."
    return "`X` is raw: missing values (NaN) are filled and columns standardised with the training rows' statistics."


def _rarity(record: ModelFile) -> list[tuple[str, str]]:
    counts = np.array(record.training_positives)
    return [
        (band, f"{int(((counts >= fewest) & (counts <= most)).sum()):,}")
        for band, (fewest, most) in RARITY_BANDS.items()
    ]


def _outcome(record: ModelFile) -> str:
    if not record.history:
        return "No epoch was recorded."
    last = record.history[-1]
    text = f"After {last.epoch} epochs with the {record.engine} engine the loss was {last.loss:.5g}"
    if last.valid is not None:
        text += f", and on validation rows AP {100 * last.valid.ap:.2f} % and F1 {100 * last.valid.f1:.2f} %"
    return f"{text}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def _code(value: object) -> str:
    return f"`{_plain(str(value))}`"


def _plain(text: str) -> str:
    """Text that cannot end its line, its cell or its code."""
    return "".join(" " if c in "|`<>[]" else c for c in printable(text))
