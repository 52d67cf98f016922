"""`rarenode fit`: train on a dataset of the catalogue or on a file, into a run folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from rarenode._io.files import is_dir
from rarenode._io.text import counted
from rarenode.cli.options import On, Quiet, Root, not_empty, with_settings, with_table_options
from rarenode.config import Settings
from rarenode.config.choices import Preset


@with_settings
@with_table_options()
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A table (.csv, .tsv, .parquet, .arrow), a pattern of tables in quotes ('parts/*.parquet'), an ARFF "
            "file, a folder or zip archive of pictures in folders that name their labels, or a name from `rarenode "
            "data list`.",
            show_default=False,
        ),
    ],
    valid: Annotated[
        str | None, typer.Argument(metavar="[VALID]", help="A table of validation rows.", show_default=False)
    ] = None,
    *,
    out: Annotated[
        Path,
        typer.Option(metavar="RUN", help="The folder to save the model in.", show_default=False, parser=not_empty),
    ],
    preset: Annotated[
        Preset | None, typer.Option(help="Default values of all settings.", show_default="best, or those of RUN")
    ] = None,
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Settings in TOML. Options override them.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the training in RUN.")] = False,
    download: Annotated[
        bool,
        typer.Option(
            "--download",
            help="Fetch the weights of --encoder from Hugging Face if they are not on this machine.",
            rich_help_panel="Images",
        ),
    ] = False,
    report: Annotated[bool, typer.Option(help="Write RUN/report.html; see `rarenode report`.")] = True,
    on: On = "local",
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Models of folds to train side by side; they share the processors.",
            show_default="1; on Ray all",
        ),
    ] = None,
    root: Root = None,
    quiet: Quiet = False,
    hierarchy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The hierarchy of the labels: .obo, .json, or a table of edges, parents, paths or levels; see "
            "`rarenode hierarchy --help`. Default: the one that paths or levels make.",
            show_default=False,
            rich_help_panel="Tables",
        ),
    ] = None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Train a model that predicts which nodes a row has, and save it in the folder RUN.

    --preset best finds many rare nodes at a good F1. It trains an unweighted network with early stopping, a forest and
    nearest neighbours, once for each of three folds. From the out-of-fold predictions it learns the weights of these
    models in a blend, leaves out one that does not help, and chooses a threshold for each node. Then it trains once
    more, on all rows. --holdout 0.2 takes one training instead of four, but the model learns from fewer rows. Where
    there are validation rows, in VALID or by --partition, one training uses these instead, and --cv and --holdout
    are refused.

    --preset paper is the method of the paper: node weights, one training to the last epoch, a threshold of 0.5; on a
    dataset of the catalogue with the paper's hyperparameters, on pictures with 20 heads as wide as the embedding.
    `rarenode paper` reproduces its tables.

    Every setting is an option, also those not listed here: `rarenode settings` explains all of them. Options override
    --settings, which overrides the preset. RUN/settings.toml records what was used.

    Ctrl-C saves a checkpoint, and --resume continues from it to the same result, with the settings of the run. Settings
    that are given as well must be the same. --resume of a finished run writes its report, if that is not there.

    RUN/report.html shows which nodes are found, which are missed, and why: in the test rows, if DATA has some, as a
    dataset of the catalogue or a table with --partition; otherwise in the rows of VALID, or else in held-out rows,
    whose predictions RUN/held_out.safetensors keeps.

    The models of folds are trained one after the other, or with --jobs 3 side by side, or with --on ray on Ray (pip
    install '.[cluster]'); the result is the same. The last training, on all rows, is always here.

    A table has a column for each feature. --labels says where the labels are, as a column of labels
    ('Biota > Corals; Biota > Sponges'), a column for each level, a column for each label, or a file with ids and
    labels. The model remembers all that, so that `rarenode predict` needs only a table of new rows.

    With --images, rows are the pictures that the table names. An encoder turns each into numbers, once: embeddings are
    kept in the user's cache folder, or in that of RARENODE_CACHE. --train-encoder trains it together with the rest.

    \b
    Examples:
      rarenode fit survey.csv --labels taxa --id image --out runs/survey
      rarenode fit photos.csv --images photos/ --labels taxa --encoder resnet50 --out runs/photos
      rarenode fit photos/ --encoder random:resnet18 --image-size 64 --train-encoder --out runs/folders
      rarenode fit survey.csv --labels 'level_*' --unknown below --out runs/levels
      rarenode fit genes.parquet --id gene --labels human.gaf.gz --hierarchy go-basic.obo.gz --out runs/go
      rarenode fit cellcycle_FUN --out runs/best
      rarenode fit cellcycle_FUN --out runs/best --resume
      rarenode fit cellcycle_FUN --out runs/best --on ray
      rarenode fit cellcycle_FUN --out runs/recall --thresholds expected_f2
      rarenode fit my_data.arff --out runs/quick --holdout 0.2 --n-trees 100
      rarenode fit my_data.arff --out runs/mine --settings mine.toml
      rarenode fit cellcycle_FUN --out runs/paper --preset paper --n-members 10 --focus gmu
      torchrun --nproc-per-node 4 -m rarenode fit cellcycle_FUN --out runs/large --n-members 20 --focus gmu
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode._io.progress import Progress  # noqa: PLC0415
    from rarenode.run import Run  # noqa: PLC0415
    from rarenode.training import ShowProgress  # noqa: PLC0415

    in_file = {} if settings_file is None else Settings.read_toml(settings_file)
    stored = Run(out).files.settings() if resume else None
    is_images = is_dir(data) or Path(data).suffix.lower() == ".zip" or "images" in table or "image" in table
    encoder = (in_file | settings).get("encoder", Settings().encoder) if is_images else None
    base = stored if stored is not None and preset is None else _preset(preset or "best", data, encoder)
    chosen = base.changed(in_file, **settings)
    progress = Progress(quiet)
    if valid is not None:
        same = re.sub(r"\d+", "", data) == re.sub(r"\d+", "", valid)
        hint = " (to train on both, name them together by a pattern in quotes)" if same else ""
        progress.line(f"validation rows: {valid}{hint}")
    callback = ShowProgress(progress)
    run = Run.fit(
        data,
        out,
        chosen,
        valid=valid,
        hierarchy=hierarchy,
        options=table or None,
        resume=resume,
        report=report,
        download=download,
        callback=callback,
        progress=progress,
        root=root,
        on=on,
        jobs=jobs,
    )
    if quiet:
        return
    model = run.model
    done = f"{counted(run.history[-1].epoch, 'epoch')}, loss {run.history[-1].loss:.5g}; " if run.history else ""
    never = ""
    if model.never_predicted and not model.given_up:
        never = f", with which {model.never_predicted:,} of {counted(model.scored.sum(), 'node')} are never predicted"
    print(f"{out}: {done}thresholds: {model.decides_with.in_words()}{never}")
    if model.given_up:
        print(model.given_up)
    page = out / "report.html"
    if report and page.exists():
        print(f"{page}: which nodes are found, which are missed, and why")
    elif report:
        missing = f"{out / 'held_out.safetensors'} is missing"
        why = missing if run.settings.holds_out_rows else "all rows were used for training"
        print(f"no report, because {why}; `rarenode report {out} --data FILE` writes one")


def _preset(preset: Preset, data: str, encoder: str | None) -> Settings:
    """The paper has hyperparameters for each of its datasets, and for heads on the embedding of an encoder."""
    if preset == "paper" and encoder is not None:
        from rarenode.paper.pictures import settings_for_pictures  # noqa: PLC0415

        return settings_for_pictures(encoder)
    if preset == "paper":
        from rarenode.data.catalogue import catalogue  # noqa: PLC0415
        from rarenode.paper import settings_for  # noqa: PLC0415

        if data in catalogue():
            return settings_for(data)
    return Settings.preset(preset)


def show_settings(
    preset: Annotated[Preset, typer.Option(help="Whose values to show.")] = "best",
) -> None:
    """Print every setting with its meaning and default value, as a TOML file for `rarenode fit --settings`.

    \b
    Examples:
      rarenode settings > mine.toml
      rarenode settings --preset paper
    """
    print(Settings.preset(preset).to_toml(), end="")
