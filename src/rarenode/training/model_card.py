"""The model card: what a person who finds the folder, or opens the report, wants to know.

It is written from the record that is saved, for reading only; loading a model never looks at it.
"""

from __future__ import annotations

import shlex

import numpy as np

from rarenode._io.text import printable
from rarenode.metrics import rarity_masks
from rarenode.training.card import Card, Code, Heading, Paragraph, code, plain, table, to_markdown
from rarenode.training.model_folder import ModelFile


def write_card(record: ModelFile) -> str:
    """The card of a model, in Markdown."""
    title = f"A rarenode model{f' of {plain(record.source)}' if record.source else ''}"
    return to_markdown(title, make_card(record))


def make_card(record: ModelFile) -> Card:
    """The card of a model."""
    settings = record.settings
    members = f"{settings.members} members ({settings.ensemble})" if settings.members > 1 else "a single model"
    forest = "" if record.forest is None else f", joined with a forest of {record.forest.trees} trees"
    return (
        Paragraph(
            f"It predicts the {len(record.hierarchy.nodes):,} nodes of a hierarchy with "
            f"{len(record.hierarchy.edges):,} edges from {record.features:,} features: {members}, "
            f"{settings.layers} linear layers of {settings.hidden} hidden units{forest}. "
            "A parent is never less probable than its child."
        ),
        Heading("Use"),
        Code(
            'from rarenode.training import TrainedModel\n\nmodel = TrainedModel.load("this folder")\n'
            "probabilities = model.predict_proba(X)  # rows x nodes, in the order of model.hierarchy.nodes\n"
            "decided = model.predict(X)  # the same shape; with a node, all its ancestors",
            "python",
        ),
        Paragraph(_decision(record)),
        Paragraph(_preparation(record)),
        Heading("What it learnt from"),
        Paragraph(_source(record)),
        table(("training rows of a node", "nodes"), _rarity(record)),
        Heading("Limits"),
        Paragraph(
            "A node that few rows carry is predicted poorly, and one that none carries is not predicted at all. "
            "Probabilities are not calibrated. Rows that differ from those it learnt from, in how they were measured "
            "or in how common each node is, are decided less well than the figures say; nothing here notices that."
        ),
        Heading("Training"),
        table(("setting", "value"), [(name, code(value)) for name, value in settings.to_dict().items()]),
        Paragraph(_outcome(record)),
        Heading("How to make it again"),
        Paragraph(
            "The same rows, settings and versions give the same model on the same kind of machine. The settings above, "
            "in TOML, are `settings.toml` in the folder of a `rarenode fit`."
        ),
        Code(f"rarenode fit {_data(record)} --settings settings.toml --out RUN", "sh"),
        table(
            ("what", "value"),
            [(plain(name), code(value)) for name, value in [*record.versions.items(), *record.fingerprints.items()]],
        ),
    )


def _data(record: ModelFile) -> str:
    """The DATA of a command, as one word for a shell."""
    return shlex.quote(printable(record.source)) if record.source.strip() else "DATA"


def _source(record: ModelFile) -> str:
    if not record.source.strip():
        return "Where its rows came from is not recorded."
    return f"Its rows came from {code(record.source)}."


def _decision(record: ModelFile) -> str:
    if record.thresholds is None:
        return "A node is decided where its probability is at least 0.5."
    strategy, rule, values = record.thresholds.strategy, record.thresholds.rule, set(record.thresholds.values)
    if len(values) == 1 and None not in values:
        return f"A node is decided where its probability is at least {values.pop():g} ({code(strategy)})."
    return f"Every node has a threshold of its own ({code(strategy)}); decisions are made coherent by {code(rule)}."


def _preparation(record: ModelFile) -> str:
    if record.preparation is None:
        return "`X` must be prepared as the training rows were; the model does not know how."
    return "`X` is raw: missing values (NaN) are filled and columns standardised with the training rows' statistics."


def _rarity(record: ModelFile) -> list[tuple[str, str]]:
    nodes, unscored = record.hierarchy.nodes, set(record.unscored)
    counts = np.array([n for n, node in zip(record.training_positives, nodes, strict=True) if node not in unscored])
    return [(band, f"{int(mask.sum()):,}") for band, mask in rarity_masks(counts).items()]


def _outcome(record: ModelFile) -> str:
    if not record.history:
        return "No epoch was recorded."
    last = record.history[-1]
    text = f"After {last.epoch} epochs with the {plain(record.engine)} engine the loss was {last.loss:.5g}"
    measured = [(epoch.valid.ap, -epoch.epoch, epoch.valid.f1) for epoch in record.history if epoch.valid is not None]
    if record.settings.early_stopping is not None and measured:
        ap, epoch, f1 = max(measured)
        return (
            f"{text}; the parameters are those of epoch {-epoch}, with the best AP on validation rows: "
            f"{100 * ap:.2f} %, and F1 {100 * f1:.2f} %."
        )
    if last.valid is not None:
        text += f", and on validation rows AP {100 * last.valid.ap:.2f} % and F1 {100 * last.valid.f1:.2f} %"
    return f"{text}."
