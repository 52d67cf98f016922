"""Comparisons as text: Markdown to read, JSON to compute with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rarenode.paper.comparison.decisions import compare_decisions
from rarenode.paper.comparison.scores import compare
from rarenode.paper.spec import Spec
from rarenode.paper.store import gather
from rarenode.paper.tables.decisions import decisions_as_json, decisions_as_markdown
from rarenode.paper.tables.scores import as_json, as_markdown


def write_table(
    spec: Spec,
    folder: Path,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    *,
    in_json: bool = False,
) -> str:
    """The table of a spec, or of some of its datasets and methods.

    Raises:
        ArgumentError: the spec has no such dataset or method.
        FileFormatError: a record is damaged.
    """
    records = gather(spec, folder, datasets)
    if spec.decisions:
        if in_json:
            return decisions_as_json(compare_decisions(spec, records, datasets, methods))
        return decisions_as_markdown(spec, records, datasets, methods)
    comparison = compare(spec, records, datasets, methods)
    return as_json(comparison) if in_json else as_markdown(comparison)
