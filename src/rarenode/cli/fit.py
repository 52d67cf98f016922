"""`rarenode fit`: train on a dataset of the catalogue or on an ARFF file, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rarenode.cli.data import Root

Weighting = Literal["none", "as_published", "as_described"]
Focus = Literal["none", "focal", "bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]
Resample = Literal["none", "lpros", "lpros-textbook", "hros-pd", "hros-pd-published"]
Ensemble = Literal["independent", "dropout"]
Preset = Literal["best", "paper"]
Rule = Literal["add_ancestors", "drop_orphans"]
EngineName = Literal["auto", "fused", "torch"]


def fit(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A name from `rarenode data list`, or an ARFF file.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder that will hold the model.", show_default=False)],
    preset: Annotated[
        Preset, typer.Option(help="Where all that is not given comes from; a resumed run has its own.")
    ] = "best",
    decision: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How nodes are decided: expected_f1 (or f2, f0.5), prior, tuned, global, precision_floor:0.2, "
            "fixed:0.3. All but fixed need --folds or --holdout.",
            show_default="expected_f1; paper: fixed, which is 0.5",
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(help="What to do with a decided node whose parent is not.", show_default="add_ancestors"),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Train once without each of N folds, to decide on rows not trained on, then once on all rows.",
            show_default="3; paper: 0, none",
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(metavar="X", help="Instead, hold out this share of the rows: one training.", show_default="none"),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Trees of a forest that is joined with the network; 0 is none.",
            show_default="500; paper: 0",
        ),
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Stop after N epochs without a better AP on rows not trained on; 0 trains to the end.",
            show_default="5; paper: 0",
        ),
    ] = None,
    resample: Annotated[
        Resample | None,
        typer.Option(
            help="Train more often on rows with rare labels: LP-ROS or HROS-PD, which needs more rows than nodes.",
            show_default="none",
        ),
    ] = None,
    members: Annotated[int | None, typer.Option(metavar="K", help="Members of the ensemble.", show_default="1")] = None,
    ensemble: Annotated[
        Ensemble | None,
        typer.Option(
            help="Members are models of their own, or dropout passes through one model.", show_default="independent"
        ),
    ] = None,
    weighting: Annotated[
        Weighting | None,
        typer.Option(
            help="Weights by rarity: as in the paper's tables, as in its text, or none.",
            show_default="none; paper: as_published",
        ),
    ] = None,
    w0: Annotated[float | None, typer.Option(metavar="X", help="The least weight.", show_default="0.25")] = None,
    focus: Annotated[
        Focus | None,
        typer.Option(
            help="Weigh annotations by what the ensemble is unsure of, or the focal way.", show_default="none"
        ),
    ] = None,
    u0: Annotated[float | None, typer.Option(metavar="X", help="The least focus.", show_default="0.25")] = None,
    k: Annotated[float | None, typer.Option(metavar="X", help="The focus's exponent.", show_default="1.0")] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Times over the rows, at most.", show_default="100; paper: the dataset's, or 100"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", help="Decides everything random.", show_default="0")] = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="What computes: fused is the fast one for the CPU.", show_default="auto"),
    ] = None,
    settings_file: Annotated[
        Path | None,
        typer.Option(
            "--settings", metavar="FILE", help="Settings in TOML; options given here go before.", show_default=False
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training that RUN holds.")] = False,
    report: Annotated[
        bool, typer.Option(help="Write RUN/report.html, on rows that the model has not seen; see `rarenode report`.")
    ] = True,
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a model that decides which nodes a row carries, and save it in the folder RUN.

    --preset best is the recipe to find rare nodes with. It trains an unweighted network without a third of the rows,
    until its AP on that third no longer rises, joins it with a forest of 500 trees, and asks both about that third;
    so for each of three folds. From what they say comes a threshold for each node, the one with the best expected F1.
    Then it trains once more, on all rows, for the median of the folds' epochs. That takes as long as one training for
    each fold and one more; --holdout 0.2 takes a single one, which learns from fewer rows.

    --preset paper is what produced the paper's tables: weighted, trained once and to the end, decided at 0.5. A dataset
    of the catalogue has the paper's hyperparameters then. With either preset its features are prepared as in the paper,
    and training and validation rows train; the latter only watch if --early-stopping has no other rows to look at.

    Options go before --settings, and that before the preset. RUN/settings.toml says what ran, and can be given to
    --settings again; it may also set what has no option here, such as hidden or learning_rate.

    Training writes checkpoints into RUN. Stopped by Ctrl-C or otherwise, in whatever fold, it goes on with --resume,
    to the same result.

    In the end RUN/report.html shows which nodes are found, which are missed, and why: in the test rows of a dataset of
    the catalogue; for a file of your own in its rows, each judged by a model that was not trained on it.

    \b
    Examples:
      rarenode fit cellcycle_FUN --out runs/best
      rarenode fit cellcycle_FUN --out runs/best --resume
      rarenode fit cellcycle_FUN --out runs/recall --decision expected_f2
      rarenode fit my_data.arff --out runs/quick --holdout 0.2 --trees 100
      rarenode fit my_data.arff --out runs/mine --settings mine.toml
      rarenode fit cellcycle_FUN --out runs/paper --preset paper --members 10 --focus gmu
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli import run_folder  # noqa: PLC0415
    from rarenode.cli.reporting import report_on_finished, report_on_training  # noqa: PLC0415
    from rarenode.cli.sources import load_training_data  # noqa: PLC0415
    from rarenode.training import choose_progress, fit_and_ask  # noqa: PLC0415

    options = {
        "decision": decision,
        "rule": rule,
        "folds": folds,
        "holdout": holdout,
        "trees": trees,
        "early_stopping": early_stopping,
        "resample": resample,
        "members": members,
        "ensemble": ensemble,
        "weighting": weighting,
        "w0": w0,
        "focus": focus,
        "u0": u0,
        "k": k,
        "epochs": epochs,
        "seed": seed,
        "engine": engine,
    }
    given = {name: value for name, value in options.items() if value is not None}
    settings = run_folder.choose_settings(data, out, preset, settings_file, resume, given)
    only_validation = settings.holdout is None and settings.folds is None
    source = load_training_data(data, root, keep_validation=settings.early_stopping is not None and only_validation)
    with run_folder.nobody_else(out):  # a training under way keeps its folder as it is
        if run_folder.is_finished(out, source.rows, settings, resume):
            run_folder.tidy(out)
            told = report_on_finished(out, source) if report else ""
            if not quiet:
                print("; ".join([f"{out} holds the finished model already", *([told] if told else [])]))
            return
        run_folder.write_settings(out, data, settings)
    watch = choose_progress(quiet)
    fitted = fit_and_ask(source.rows, settings, valid=source.valid, folder=out, resume=resume, watch=watch)
    model = fitted.model.with_source(source.source, source.preparation, source.feature_names)
    run_folder.save_model(out, model)
    if not quiet:
        last = model.history[-1]
        done = f"{last.epoch} epochs with the {model.engine} engine, loss {last.loss:.5g}"
        print(f"{out}: {done}; nodes decided by {settings.decision}")
    told = report_on_training(out, model, fitted.unseen, source) if report else ""
    run_folder.tidy(out)  # not before: if the report cannot be written, what it is made from is still there
    if told and not quiet:
        print(told)
