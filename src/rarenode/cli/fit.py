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
EngineName = Literal["auto", "fused", "torch"]


def fit(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A name from `rarenode data list`, or an ARFF file.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder that will hold the model.", show_default=False)],
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
            help="Weights by rarity: as in the paper's tables, as in its text, or none.", show_default="as_published"
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
        int | None, typer.Option(metavar="N", help="Times over the rows.", show_default="the paper's, or 100")
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
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a model and save it in the folder RUN.

    A dataset of the catalogue is trained on as in the paper: its hyperparameters, its preparation, training and
    validation rows together. An ARFF file is trained on with the same defaults. RUN/settings.toml says what ran, and
    can be given to --settings again; it may also set what has no option here, such as hidden or learning_rate.

    Training writes checkpoints into RUN. Stopped by Ctrl-C or otherwise, it goes on with --resume, to the same result.

    \b
    Examples:
      rarenode fit cellcycle_FUN --out runs/plain --weighting none
      rarenode fit cellcycle_FUN --out runs/ten --members 10 --focus gmu
      rarenode fit cellcycle_FUN --out runs/ten --resume
      rarenode fit cellcycle_FUN --out runs/cloned --resample lpros
      rarenode fit my_data.arff --out runs/mine --epochs 30 --settings mine.toml
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli.run_folder import choose_settings, is_finished, save_model, write_settings  # noqa: PLC0415
    from rarenode.cli.sources import load_training_data  # noqa: PLC0415
    from rarenode.training import choose_progress, train  # noqa: PLC0415
    from rarenode.training.checkpoint import sole_use  # noqa: PLC0415

    options = {
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
    settings = choose_settings(data, out, settings_file, resume, {n: v for n, v in options.items() if v is not None})
    given = load_training_data(data, root, keep_validation=settings.early_stopping is not None)
    with sole_use(out):  # a training under way keeps its folder as it is
        if is_finished(out, given.rows, settings, resume):
            if not quiet:
                print(f"{out} holds the finished model already")
            return
        write_settings(out, data, settings)
    trained = train(given.rows, settings, valid=given.valid, folder=out, resume=resume, watch=choose_progress(quiet))
    save_model(out, trained.with_source(given.source, given.preparation, given.feature_names))
    if not quiet:
        last = trained.history[-1]
        print(f"{out}: {last.epoch} epochs with the {trained.engine} engine, loss {last.loss:.5g}")
