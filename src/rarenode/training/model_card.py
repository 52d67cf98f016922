"""The model card: what someone who finds the folder, or opens the report, wants to know.

It is made of blocks that become Markdown beside the model and HTML in a report. Text may contain names and paths from
anywhere; `plain` keeps them from ending their line, table cell or code. Loading a model never reads the card.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted, printable
from rarenode.metrics import rarity_masks
from rarenode.training.model_folder import ModelFile
from rarenode.training.model_records import GuaranteedRecord


@dataclass(frozen=True)
class Heading:
    """Begins a part."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str
    language: str


@dataclass(frozen=True)
class Table:
    """A head and rows of as many cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


PART = re.compile(r" \((train|valid|test) rows\)$")
"""Ends the name of a part of a table."""
Card = tuple[Heading | Paragraph | Code | Table, ...]


def to_markdown(title: str, card: Card) -> str:
    """The card as the text of a file."""
    parts = [f"# {title}"]
    for block in card:
        match block:
            case Heading(text):
                parts.append(f"## {text}")
            case Paragraph(text):
                parts.append(text)
            case Code(text, language):
                parts.append(f"```{language}\n{text}\n```")
            case Table(head, rows):
                parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)))
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of any sequences."""
    return Table(tuple(head), tuple(map(tuple, rows)))


def code(value: object) -> str:
    """A value as code within a sentence or a cell."""
    return f"`{plain(value)}`"


def plain(text: object) -> str:
    """Text that cannot end its line, its cell or its code."""
    return "".join(" " if c in "|`<>[]" else c for c in printable(text))


def write_card(record: ModelFile) -> str:
    """The card of a model, in Markdown."""
    title = f"A rarenode model{f' of {plain(record.source)}' if record.source else ''}"
    return to_markdown(title, make_card(record))


def make_card(record: ModelFile) -> Card:
    """The card of a model."""
    parts = record.model.get("models", [record.model])
    settings = record.settings
    return (
        Paragraph(
            f"It predicts the {counted(len(record.hierarchy.nodes), 'node')} of a hierarchy with "
            f"{counted(len(record.hierarchy.edges), 'edge')} from {_inputs(record, parts[0]['features'])}: "
            f"{', blended with '.join(_MODELS[part['kind']](part) for part in parts)}. {_weights(record, parts)}"
            "A parent is never less probable than its child."
        ),
        Heading("Use"),
        Code(
            'from rarenode.training import TrainedModel\n\nmodel = TrainedModel.load("this folder")\n'
            "probabilities = model.predict_proba(X)  # rows x nodes, in the order of model.hierarchy.nodes\n"
            "decided = model.predict(X)  # the same shape; a node is decided together with all its ancestors",
            "python",
        ),
        Paragraph(_decision(record)),
        *([] if record.guaranteed is None else [Paragraph(_guaranteed(record, record.guaranteed))]),
        Paragraph(_preparation(record)),
        Heading("Training data"),
        Paragraph(_source(record)),
        table(("training rows of a node", "nodes"), _rarity(record)),
        Heading("Limits"),
        Paragraph(
            "A node with few training rows is predicted poorly, and one without any is not predicted at all. "
            "Probabilities are not calibrated. On rows that differ from the training rows, in how they were measured "
            "or in how common each node is, the scores will be lower; the model does not notice that."
        ),
        Heading("Training"),
        table(("setting", "value"), [(name, code(value)) for name, value in settings.to_dict().items()]),
        Paragraph(_outcome(record)),
        Heading("Reproducing it"),
        Paragraph(
            "The same rows, settings and versions give the same model on the same kind of machine. The settings above, "
            "in TOML, are `settings.toml` in the folder of a `rarenode fit`."
        ),
        Code(f"rarenode fit {_data(record)}{_options(record)} --settings settings.toml --out RUN", "sh"),
        table(
            ("what", "value"),
            [(plain(name), code(value)) for name, value in [*record.versions.items(), *record.fingerprints.items()]],
        ),
    )


def _weights(record: ModelFile, parts: Sequence[Mapping[str, Any]]) -> str:
    """The learned weights of a blend, and what they left out, as sentences with a blank behind them."""
    kinds = [part["kind"] for part in parts]
    text = ""
    if weights := record.model.get("weights"):
        shown = ", ".join(f"{kind} {weight:.2f}" for kind, weight in weights.items())
        text = f"Weights of their log odds, learned from held-out rows: {shown}. "
    if left_out := [kind for kind in record.settings.models if kind not in kinds]:
        text += f"Left out, as held-out rows were predicted as well without: {', '.join(left_out)}. "
    return text


def _mlp(part: Mapping[str, Any]) -> str:
    members = f"{part['members']} members ({part['ensemble']})" if part["members"] > 1 else "a single network"
    layers, units = counted(part["layers"], "linear layer"), counted(part["hidden"], "hidden unit")
    return f"{members} of {layers} with {units}" if part["layers"] > 1 else f"{members} of {layers}"


def _forest(part: Mapping[str, Any]) -> str:
    return f"a forest of {counted(part['trees'], 'tree')}"


def _neighbours(part: Mapping[str, Any]) -> str:
    return f"the nearest of {counted(part['training_rows'], 'training row')}"


_MODELS: dict[str, Callable[[Mapping[str, Any]], str]] = {"mlp": _mlp, "forest": _forest, "neighbours": _neighbours}


def _data(record: ModelFile) -> str:
    """The DATA of a command, as one word for a shell."""
    source = PART.sub("", record.source)
    return shlex.quote(printable(source)) if source.strip() else "DATA"


def _options(record: ModelFile) -> str:
    """How the table was read, as options of a command."""
    reading = record.reading
    if reading is None:
        return ""
    given = {"labels": ",".join(reading.labels) or "FILE", "id": reading.id, "partition": reading.partition}
    given |= {"image": reading.image, "images": "FOLDER"} if record.encoder is not None else {}
    return "".join(f" --{name} {shlex.quote(printable(value))}" for name, value in given.items() if value)


def _source(record: ModelFile) -> str:
    if not record.source.strip():
        return "Where its rows came from is not recorded."
    return f"Its rows came from {code(record.source)}."


def _inputs(record: ModelFile, features: int) -> str:
    return counted(features, "feature") if record.encoder is None else "pictures"


def _decision(record: ModelFile) -> str:
    if record.thresholds is None:
        return "A node is decided where its probability is at least 0.5."
    strategy, rule, values = record.thresholds.strategy, record.thresholds.rule, set(record.thresholds.values)
    if len(values) == 1 and None not in values:
        return f"A node is decided where its probability is at least {values.pop():g} ({code(strategy)})."
    titles = record.hierarchy.nodes if record.hierarchy.terms is None else record.hierarchy.terms.titles
    given_up = record.thresholds.as_thresholds().given_up(titles, _scored(record))
    text = f"Every node has its own threshold ({code(strategy)}); decisions are made coherent by {code(rule)}."
    return f"{text} {plain(given_up)}." if given_up else text


def _guaranteed(record: ModelFile, guaranteed: GuaranteedRecord) -> str:
    words = guaranteed.as_guaranteed().in_words(_scored(record))
    return f"Guaranteed sets, by `model.predict_guaranteed(X)`: {words}."


def _scored(record: ModelFile) -> NDArray[np.bool_]:
    unscored = set(record.unscored)
    return np.array([node not in unscored for node in record.hierarchy.nodes], dtype=np.bool_)


def _preparation(record: ModelFile) -> str:
    if record.encoder is not None:
        width = f"{record.encoder.width:,} numbers"
        pictures = "`X` is pictures: paths of files, a folder, a zip archive, or `rarenode.Images`"
        encoder = f"{code(record.encoder.name)}, whose weights are in `encoder.safetensors`"
        return f"{pictures}. The encoder {encoder}, turns each into {width}."
    if record.preparation is None:
        return "`X` must be prepared as the training rows were; the model has no preparation."
    if record.preparation.projection is not None:
        return (
            f"`X` is raw and may be sparse: rows are scaled to length 1 and projected on "
            f"{record.preparation.projection.components:,} directions that were found in the training rows."
        )
    return "`X` is raw: missing values (NaN) are filled and columns standardised with statistics of the training rows."


def _rarity(record: ModelFile) -> list[tuple[str, str]]:
    nodes, unscored = record.hierarchy.nodes, set(record.unscored)
    counts = np.array([n for n, node in zip(record.training_positives, nodes, strict=True) if node not in unscored])
    return [(band, f"{int(mask.sum()):,}") for band, mask in rarity_masks(counts).items()]


def _outcome(record: ModelFile) -> str:
    if not record.history:
        return "No epoch was recorded."
    last = record.history[-1]
    text = f"After {counted(last.epoch, 'epoch')} with the {plain(record.engine)} engine the loss was {last.loss:.5g}"
    measured = [(epoch.valid.ap, -epoch.epoch, epoch.valid.f1) for epoch in record.history if epoch.valid is not None]
    if record.settings.patience is not None and measured:
        ap, epoch, f1 = max(measured)
        return (
            f"{text}; the parameters are those of epoch {-epoch}, with the best AP on validation rows: "
            f"{100 * ap:.2f} %, and F1 {100 * f1:.2f} %."
        )
    if last.valid is not None:
        text += f", and on validation rows AP {100 * last.valid.ap:.2f} % and F1 {100 * last.valid.f1:.2f} %"
    return f"{text}."
