"""`rarenode demo`: the idea in a minute or two, on a made-up survey of the seafloor.

The settings of the first three models were chosen earlier, on other synthetic data, because they show the effect of
weights clearly. The fourth is the preset ``best`` in the size of the others, with fewer trees so that it is quick.
This is an illustration, not a measurement.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from rarenode.cli.console import print_table

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("paper", {"weighting": "none"}),
    "weights": ("paper", {"weighting": "as_published"}),
    "weights + GMU of 5": ("paper", {"weighting": "as_published", "n_members": 5, "focus": "gmu"}),
    "best": ("best", {"n_trees": 200}),
}
"""Name -> preset and what is changed of it."""
TRAINING: dict[str, Any] = {"hidden_size": 300, "learning_rate": 1e-3, "batch_size": 32, "epochs": 25, "w0": 0.1}


def demo(
    seed: Annotated[int, typer.Option(metavar="S", help="Determines everything random.")] = 1,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The report to write: FILE.html.")] = Path(
        "rarenode_demo.html"
    ),
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train in four ways on a made-up survey of the seafloor, and see the rare taxa appear.

    The survey is the sample of `rarenode data sample survey`: photographs with features, and the taxa that a biologist
    named in each, from "Animals" down to "Acropora". Most taxa are rare.

    The first three decide at a threshold of 0.5: a network without weights, with node weights, and an ensemble of five
    whose loss is also weighted by its uncertainty (GMU). The fourth is what `rarenode fit` does by default, smaller: no
    weights, a forest blended with the network, and for each node the threshold with the best expected F1. The table
    shows how many nodes each finds in the test rows, and the report which.

    \b
    Examples:
      rarenode demo
      rarenode demo --seed 3 --quiet
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode._io.progress import Progress  # noqa: PLC0415
    from rarenode.cli.tables import comparison_table  # noqa: PLC0415
    from rarenode.config import Settings  # noqa: PLC0415
    from rarenode.data.dataset import Dataset  # noqa: PLC0415
    from rarenode.data.samples import write_sample  # noqa: PLC0415
    from rarenode.metrics import summarize_groups  # noqa: PLC0415
    from rarenode.report import Report, report_on_model, require_page_name, write_report  # noqa: PLC0415
    from rarenode.training import ShowProgress, fit_model  # noqa: PLC0415

    require_page_name(out)
    with TemporaryDirectory() as folder:
        write_sample("survey", folder, seed=seed)
        here = Path(folder)
        how: dict[str, Any] = {"labels": "taxa", "id": "image", "hierarchy": here / "taxonomy.csv"}
        train, test = (replace(Dataset.read(here / f"{part}.csv", **how), name=part) for part in ("train", "test"))
    print(f"A survey of {len(train):,} photographs to learn from and {len(test):,} to test on: {train.hierarchy!r}")
    scores, reports, progress = {}, [], Progress(quiet)
    for number, (name, (base, choices)) in enumerate(RUNS.items(), start=1):
        progress.line(f"Way {number} of {len(RUNS)}, {name}:")
        settings = Settings.preset(base, **(TRAINING | choices), seed=seed)
        model = fit_model(train, settings, callback=ShowProgress(progress)).model
        probs = model.predict_proba(test.X)
        scores[name] = summarize_groups(
            test.Y, probs, model.decide(probs), train.hierarchy, model.training_positives, train.scored
        )
        reports.append(report_on_model(model, test.X, test.Y, name=name, rows="the survey, test rows"))
    print("Nodes found in test rows, and their mean F1 in percent")
    print_table(comparison_table(scores))
    page, *_ = write_report(Report(tuple(reports)), out)
    print(f"{page}: open it in a browser to see which nodes appear, which are lost, and why")
