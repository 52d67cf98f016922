"""Runs on pictures: every way to name them gives the same bits, and so does every way to stop and continue."""

from __future__ import annotations

import shutil
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from numpy.typing import NDArray

from rarenode import Dataset, Run, TrainedModel
from rarenode._io.progress import Progress
from rarenode.data.images import Images
from rarenode.data.sources import open_data
from rarenode.data.table_options import TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, Interrupted, MissingFileError, ResumeError
from rarenode.metrics import summary
from rarenode.models.encoder import Encoder
from rarenode.models.pretrained import load_encoder
from rarenode.thresholds import make_strategy
from rarenode.training import ShowProgress, fit_model
from tests.commands import on_training_rows
from tests.encoders import BY_VALIDATION, SIZE, encoder_folder, plain_encoder, reef, small_settings, tiny_encoder
from tests.training.problem import Recorder, outcomes

__all__ = ["encoder_folder", "reef"]


@pytest.fixture(autouse=True, scope="module")
def _all_with_one_thread(one_thread: None) -> None: ...


def survey(reef: Path) -> Path:
    return reef / "labels.csv"


def how(reef: Path, **changes: Any) -> dict[str, Any]:
    return {"labels": "taxa", "image": "image", "images": str(reef), "ignore": ["partition"]} | changes


def new(reef: Path) -> list[Path]:
    return sorted((reef / "new").iterdir())


@pytest.fixture(scope="module")
def run(reef: Path, encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return Run.fit(survey(reef), folder, small_settings(encoder_folder), options=how(reef))


@pytest.fixture(scope="module")
def expected(run: Run, reef: Path) -> NDArray[np.float32]:
    """The probabilities of the pictures without labels, by the plainest way."""
    return run.model.predict_proba(new(reef))


def stop() -> None:
    raise KeyboardInterrupt


# --- the same by every way -------------------------------------------------------------------------------------------


def test_a_model_in_memory_and_from_its_folder(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    data = Dataset.read(survey(reef), **how(reef))
    settings = small_settings(encoder_folder)
    model = fit_model(data, settings).model
    before = model.predict_proba(new(reef))
    model.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert (loaded.predict_proba(new(reef)) == before).all()
    assert (loaded.predict(new(reef)) == model.predict(new(reef))).all()
    assert loaded.encoder is not None
    assert model.encoder is not None
    given = load_encoder(str(encoder_folder), size=SIZE)
    assert loaded.encoder.fingerprint == model.encoder.fingerprint == given.fingerprint
    assert not loaded.encoder.module.training


def test_every_way_to_name_pictures_gives_the_same_bits(
    run: Run, reef: Path, expected: NDArray[np.float32], tmp_path: Path
) -> None:
    model, paths = run.model, new(reef)
    assert (model.predict_proba(reef / "new") == expected).all()
    assert (model.predict_proba([str(path) for path in paths]) == expected).all()
    assert (model.predict_proba(Images.from_paths(paths)) == expected).all()
    assert (model.predict_proba(Images.from_paths(paths)[::-1])[::-1] == expected).all()
    for row, path in enumerate(paths):
        assert (model.predict_proba([path]) == expected[row]).all()
    archive = shutil.make_archive(str(tmp_path / "new"), "zip", reef / "new")
    assert (run.predict(archive).probs == expected).all()
    by_folder = run.predict(reef / "new")
    assert (by_folder.probs == expected).all()
    assert by_folder.ids == tuple(path.name for path in paths)
    table = tmp_path / "new.csv"
    pl.DataFrame({"image": [path.name for path in paths]}).write_csv(table)
    assert (run.predict(table, options={"images": reef / "new"}).probs == expected).all()
    shutil.copytree(reef / "new", tmp_path, dirs_exist_ok=True)
    beside = run.predict(table)  # the folder is asked anew: that of the table
    assert (beside.probs == expected).all()
    assert beside.ids == by_folder.ids
    frame = pl.DataFrame({"image": [str(path) for path in paths]})
    assert (run.predict(frame).probs == expected).all()
    for form in (paths, np.array([str(path) for path in paths]), frame["image"]):
        assert (run.predict(form).probs == expected).all()
        assert (model.predict_proba(form) == expected).all()
    assert model.encoder is not None
    embedded = model.encoder.encode(np.stack([_pixels(model.encoder, path) for path in paths]))
    assert (model.predict_proba(embedded) == expected).all()


def _pixels(encoder: Encoder, path: Path) -> NDArray[np.uint8]:
    from rarenode.data.decoding import decode, to_square

    return to_square(decode(path.read_bytes()).image, encoder.crop).reshape(-1)


def test_pictures_have_the_same_names_by_every_way(
    run: Run, reef: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reef)
    folder, names = Path("new"), [path.name for path in new(reef)]
    for form in (folder, Images.below(folder), [folder / name for name in names], [f"new/{name}" for name in names]):
        found = run.predict(form)
        assert found.ids == tuple(names)
        assert found.to_frame().columns[0] == "image"
    shutil.copy(folder / names[0], tmp_path / names[0])
    several = [str(folder / names[0]), str(tmp_path / names[0])]
    assert run.predict(several).ids == tuple(several)  # two folders may have the same names
    stream = StringIO()
    run.predict_to_file(str(folder / names[1]), tmp_path / "one.csv", progress=Progress(stream=stream))
    assert stream.getvalue().startswith(f"{folder / names[1]}: encoded 1 picture ")
    assert set(pl.read_csv(tmp_path / "one.csv")["image"]) == {names[1]}


def test_a_file_of_predictions(run: Run, reef: Path, expected: NDArray[np.float32], tmp_path: Path) -> None:
    written = run.predict_to_file(reef / "new", tmp_path / "found.csv")
    assert written.rows == len(new(reef))
    found = pl.read_csv(tmp_path / "found.csv")
    assert found["image"].unique(maintain_order=True).to_list() == [path.name for path in new(reef)]
    np.testing.assert_allclose(found["probability"].to_numpy(), expected.ravel(), atol=1e-6)


def test_what_a_run_keeps(run: Run, reef: Path) -> None:
    reading = run.model.reading
    assert reading is not None
    assert (reading.images, reading.image, reading.id, reading.skip_bad_images) == (None, "image", "image", False)
    page = (run.folder / "report.html").read_text()
    assert "data:image/jpeg;base64," in page
    assert "60 pictures" in page
    with on_training_rows():
        assert run.evaluate(survey(reef), options={"images": reef}).rows == 60
    assert "encoder" in (run.folder / "README.md").read_text()


def test_parts_of_a_table(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    options = how(reef, partition="partition", ignore=[])
    parts = open_data(survey(reef), options=TableOptions(**options))
    assert not isinstance(parts, Dataset)
    run = Run.fit(survey(reef), tmp_path / "run", small_settings(encoder_folder, **BY_VALIDATION), options=options)
    assert parts.valid is not None
    np.testing.assert_array_equal(run.model.training_positives, parts.train.Y.sum(axis=0))
    prior = np.concatenate([parts.train.Y, parts.valid.Y]).mean(axis=0)
    chosen = make_strategy("midpoint").fit(run.model.predict_proba(parts.valid.X), prior=prior)
    np.testing.assert_array_equal(run.model.decides_with.values, chosen.values)
    assert run.evaluate(survey(reef), options={"images": reef}).rows == len(parts.test)
    assert run.evaluate(survey(reef), split="valid", options={"images": reef}).rows == len(parts.valid or ())
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"labels.csv, test rows: {len(parts.test)} rows" in page


def test_parts_that_have_changed_places(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    """Rows that a model was trained on never pass for test rows."""
    options = how(reef, partition="partition", ignore=[])
    table = tmp_path / "labels.csv"
    shutil.copy(survey(reef), table)
    run = Run.fit(table, tmp_path / "run", small_settings(encoder_folder, **BY_VALIDATION), options=options)
    assert run.evaluate().rows > 0
    swapped = {"train": "test", "test": "train"}
    frame = pl.read_csv(table)
    frame.with_columns(pl.col("partition").replace(swapped)).write_csv(table)
    with pytest.raises(DataError, match=r"labels\.csv .*has changed since .*run was trained on it"):
        run.evaluate()


def test_validation_rows_are_read_alike(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(survey(reef))
    for name, rows in (("train", frame[:40]), ("valid", frame[40:])):
        rows.write_csv(tmp_path / f"{name}.csv")
    settings = small_settings(encoder_folder, **BY_VALIDATION, patience=1)
    run = Run.fit(
        tmp_path / "train.csv", tmp_path / "run", settings, valid=tmp_path / "valid.csv",
        options=how(reef), hierarchy=reef / "taxonomy.csv",
    )  # fmt: skip
    assert all(record.valid is not None for record in run.history)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "valid.csv, validation rows: 20 rows" in page


# --- its own data ----------------------------------------------------------------------------------------------------


def test_a_run_finds_its_own_data(
    run: Run, reef: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = run.files.held_out(run.model)
    found = run.evaluate()
    assert (found.rows, found.trained_on) == (len(held_out["rows"]), False)
    assert found.data == f"{survey(reef)}, held-out rows"
    data = Dataset.read(survey(reef), **how(reef)).take(held_out["rows"])
    assert found.scores.all.ap == pytest.approx(run.evaluate(data).scores.all.ap, abs=1e-6)
    page = run.report(tmp_path / "page.html")
    assert "labels.csv, held-out rows: " in page.read_text()
    assert "data:image/jpeg;base64," in page.read_text()
    monkeypatch.chdir(reef)
    relative = how(reef, images=".", partition="partition", ignore=[])
    settings = small_settings(encoder_folder, **BY_VALIDATION)
    parted = Run.fit("labels.csv", tmp_path / "parts", settings, options=relative, report=False)
    assert parted.evaluate().data == "labels.csv, test rows"
    assert parted.evaluate().scores == parted.evaluate("labels.csv", options={"images": "."}).scores
    valid = parted.evaluate(split="valid")
    assert not valid.trained_on
    assert valid.note == "thresholds used these rows; scores on new rows may be a little lower"
    with on_training_rows():
        assert parted.evaluate(split="train").trained_on


def test_a_run_finds_its_own_data_from_any_folder(
    reef: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    shutil.copytree(reef, project)
    elsewhere.mkdir()
    frame = pl.read_csv(survey(reef)).with_columns(pl.col("image").str.strip_prefix("images/"))
    frame[:45].write_csv(project / "train.csv")
    frame[45:].write_csv(project / "valid.csv")
    monkeypatch.chdir(project)
    options = how(reef, images="images")
    run = Run.fit(
        "train.csv", "run", small_settings(encoder_folder, **BY_VALIDATION), valid="valid.csv", options=options,
        hierarchy="taxonomy.csv",
    )  # fmt: skip
    expected = run.evaluate()
    assert expected.data == "valid.csv, validation rows"
    monkeypatch.chdir(elsewhere)
    run = Run(project / "run")
    assert run.evaluate().scores == expected.scores
    assert "valid.csv, validation rows: 15 rows" in run.report(tmp_path / "page.html").read_text()
    (run.folder / "report.html").unlink()
    Run.fit(project / "train.csv", run.folder, resume=True)
    assert (run.folder / "report.html").exists()
    with pytest.warns(RuntimeWarning, match=r"valid\.csv: its pictures are not beside it, but in .*images, as in"):
        assert run.evaluate(project / "valid.csv").scores == expected.scores
    with pytest.raises(DataError, match=r"none of its 15 pictures is there.*--images names the folder"):
        run.predict(project / "valid.csv")  # only new pictures are predicted
    moved = project.rename(tmp_path / "moved")
    run = Run(moved / "run")
    told = r"trained with train\.csv in .*project, which is no longer there; name it \(`rarenode evaluate .*run DATA`"
    with pytest.raises(MissingFileError, match=told):
        run.evaluate()
    with pytest.raises(DataError, match=r"none of its 15 pictures is there.*--images names the folder"):
        run.evaluate(moved / "valid.csv")
    monkeypatch.chdir(moved)  # where the paths that were given lead to the data
    assert run.evaluate().scores == expected.scores
    (moved / "images").rename(moved / "pictures")
    with pytest.raises(MissingFileError, match=r"trained with images in .*, which is no longer there; --images names"):
        run.evaluate()
    assert run.evaluate(options={"images": "pictures"}).scores == expected.scores


def test_a_namesake_is_not_taken_for_the_runs_own_data(
    reef: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the data are gone, nor with --split, nor in test rows; and a copied project is told of it."""
    project, other = tmp_path / "project", tmp_path / "other"
    shutil.copytree(reef, project)
    shutil.copytree(reef, other)
    frame = pl.read_csv(survey(reef))
    is_test = pl.col("partition") == "test"
    relabelled = frame.with_columns(taxa=pl.when(is_test).then(pl.col("taxa").reverse()).otherwise(pl.col("taxa")))
    assert not relabelled.equals(frame)
    relabelled.write_csv(other / "labels.csv")
    monkeypatch.chdir(project)
    options = how(reef, images=".", partition="partition", ignore=[])
    run = Run.fit("labels.csv", "run", small_settings(encoder_folder, **BY_VALIDATION), options=options, report=False)
    expected = run.evaluate(split="test").scores
    monkeypatch.chdir(other)
    run = Run(project / "run")
    with pytest.warns(RuntimeWarning, match=r"project/labels\.csv is used, .* and not labels\.csv in the current"):
        assert run.evaluate().scores == expected
    project.rename(tmp_path / "moved")
    run = Run(tmp_path / "moved" / "run")
    for split in (None, "test"):
        with pytest.raises(DataError, match=r"labels\.csv \(test rows\) has changed since"):
            run.evaluate(split=split)
    with on_training_rows():
        assert run.evaluate(split="train").trained_on  # these are the same
    assert run.evaluate("labels.csv", split="test", options={"images": "."}).scores != expected


def test_training_and_validation_files_are_recognised_from_any_folder(
    reef: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, elsewhere = pl.read_csv(survey(reef)), tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    frame[:30].write_csv("train.csv")
    frame[30:40].write_csv("valid.csv")
    frame[40:].write_csv(elsewhere / "train.csv")
    (tmp_path / "taxa").touch()  # named as the column of labels
    settings = small_settings(encoder_folder, **BY_VALIDATION)
    run = Run.fit(
        "train.csv", "run", settings, valid="valid.csv", options=how(reef), hierarchy=reef / "taxonomy.csv",
        report=False,
    )  # fmt: skip
    images = {"images": reef}
    with on_training_rows():
        assert run.evaluate("train.csv", options=images).trained_on
    assert "thresholds used these rows" in run.evaluate("valid.csv", options=images).note
    monkeypatch.chdir(elsewhere)
    run = Run(tmp_path / "run")
    assert not run.evaluate("train.csv", options=images).trained_on
    with on_training_rows():
        assert run.evaluate("../train.csv", options=images).trained_on
    with pytest.warns(RuntimeWarning, match="and not train.csv in the current folder"):
        assert run.evaluate().rows == 10


def test_a_run_of_a_table_is_evaluated_on_folders_of_classes(run: Run, reef: Path, tmp_path: Path) -> None:
    """Whose names are joined by / while those of the table are by >."""
    frame = pl.read_csv(survey(reef)).filter(~pl.col("taxa").str.contains("[|;/]"))
    assert len(frame)
    for image, path in frame.select("image", "taxa").iter_rows():
        folder = tmp_path / path.replace(" > ", "/")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(reef / image, folder / Path(image).name)
    assert run.evaluate(tmp_path, options={"labels": "folder"}).rows == len(frame)


def test_out_of_fold_predictions_are_those_of_the_report(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    settings = small_settings(encoder_folder, holdout=None, cv=2)
    run = Run.fit(survey(reef), tmp_path / "run", settings, options=how(reef))
    found = run.evaluate()
    assert (found.rows, found.data) == (60, f"{survey(reef)}, out-of-fold predictions")
    assert found.scores.all.ap == summary(
        Dataset.read(survey(reef), **how(reef)).Y, run.files.held_out(run.model)["probs"]
    ).ap
    with on_training_rows():
        assert found.scores.all.ap < run.evaluate(survey(reef), options={"images": reef}).scores.all.ap
    frame = pl.read_csv(survey(reef))
    changed = tmp_path / "labels.csv"
    frame.write_csv(changed)
    again = Run.fit(changed, tmp_path / "again", settings, options=how(reef), report=False)
    frame[1:].write_csv(changed)
    with pytest.raises(DataError, match=r"labels\.csv has changed since .*again was trained on it"):
        again.evaluate()


def test_a_run_on_all_rows_has_none_to_evaluate(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    settings = small_settings(encoder_folder, holdout=None, thresholds="fixed")
    run = Run.fit(survey(reef), tmp_path / "run", settings, options=how(reef))
    with pytest.raises(ArgumentError, match=r"trained on all rows of .*labels\.csv; name other rows"):
        run.evaluate()
    data = Dataset.read(survey(reef), **how(reef))
    told = r"does not say which files it was trained on, and keeps no held-out rows; name rows that the model was not"
    with pytest.raises(ArgumentError, match=told):
        Run.fit(data, tmp_path / "rows", settings, report=False).evaluate()


@pytest.mark.parametrize("split", [{"holdout": 0.3, "cv": None}, {"holdout": None, "cv": 2}])
def test_rows_in_memory_have_held_out_predictions(
    reef: Path, encoder_folder: Path, tmp_path: Path, split: dict[str, Any]
) -> None:
    """As the rows of a file have; only pictures are not kept."""
    settings = small_settings(encoder_folder, **split)
    data = Dataset.read(survey(reef), **how(reef), hierarchy=reef / "taxonomy.csv", unknown="below")
    assert data.known is not None
    pictures = Dataset.from_images(data.X, data.Y, data.hierarchy)
    of_file = Run.fit(
        survey(reef), tmp_path / "file", settings, options=how(reef, unknown="below"), hierarchy=reef / "taxonomy.csv",
    )  # fmt: skip
    for rows, folder in ((data, "data"), (pictures, "pictures")):
        run = Run.fit(rows, tmp_path / folder, settings)
        numbers = _report_numbers(run)
        found = Run(run.folder).evaluate()
        kind = "held-out rows" if split["holdout"] else "out-of-fold predictions"
        assert found.data == f"{rows.name or 'the training data'}, {kind}"
        assert not found.note
        Run(run.folder).report()
        assert _report_numbers(run) == numbers
        if rows is data:
            assert found.scores == of_file.evaluate().scores
    assert "labels" not in of_file.files.held_out(of_file.model)
    unsure = pl.read_csv(tmp_path / "pictures" / "report_files" / "unsure_rows.csv")
    assert set(unsure["id"]) <= set(pictures.ids or ())


def test_validation_rows_that_have_changed(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(survey(reef))
    train, valid = tmp_path / "train.csv", tmp_path / "valid.csv"
    frame[:40].write_csv(train)
    frame[40:].write_csv(valid)
    run = Run.fit(
        train, tmp_path / "run", small_settings(encoder_folder, **BY_VALIDATION, epochs=8), valid=valid,
        options=how(reef), hierarchy=reef / "taxonomy.csv",
    )  # fmt: skip
    before, scores = _report_numbers(run), run.evaluate()
    assert scores.data == f"{valid}, validation rows"
    (run.folder / "report.html").unlink()
    again = Run.fit(train, run.folder, resume=True)
    assert _report_numbers(again) == before
    assert again.evaluate().scores == scores.scores
    for changed in (frame[:20], frame[40:].reverse(), frame[45:]):  # as many training rows, another order, fewer rows
        changed.write_csv(valid)
        with pytest.raises(DataError, match=r"valid\.csv has changed since .*run was trained on it"):
            again.evaluate()
        with pytest.raises(ResumeError, match="another training: the validation rows are not the same"):
            Run.fit(train, run.folder, resume=True)


def test_validation_rows_that_are_in_no_file(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    """Predictions for them are not taken for those of training rows."""
    frame = pl.read_csv(survey(reef))
    frame[:40].write_csv(tmp_path / "train.csv")
    run = Run.fit(
        tmp_path / "train.csv", tmp_path / "run", small_settings(encoder_folder, **BY_VALIDATION), valid=frame[40:],
        report=False, options=how(reef), hierarchy=reef / "taxonomy.csv",
    )  # fmt: skip
    valid = Dataset.read(frame[40:], **how(reef), hierarchy=run.model.hierarchy)
    found = Run(run.folder).evaluate()
    assert found.data == "validation rows"
    assert found.scores == run.evaluate(valid).scores
    (run.folder / "held_out.safetensors").unlink()
    with pytest.raises(ArgumentError, match="does not say which file its validation rows are from; name rows that it"):
        run.evaluate()
    with pytest.raises(ResumeError, match="another training: the validation rows are not the same"):
        Run.fit(tmp_path / "train.csv", tmp_path / "run", resume=True)


def _report_numbers(run: Run) -> dict[str, list[tuple[Any, ...]]]:
    """What the page says about each node, and about unsure rows by their names, whose numbers may change."""
    kept = {"nodes": ["node", "rows", "decided", "found", "f1", "auc"], "unsure_rows": ["id", "node", "labelled"]}
    files = {name: pl.read_csv(run.folder / "report_files" / f"{name}.csv", columns=of) for name, of in kept.items()}
    return {name: sorted(frame.rows(), key=str) for name, frame in files.items()}


# --- pictures and tables are not mixed up ----------------------------------------------------------------------------


def test_a_model_for_pictures_refuses_tables(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("depth,ground\n1,2\n")
    with pytest.raises(ArgumentError, match=r"t\.csv has no column 'image' of pictures \(--image\); it has 'depth'"):
        run.predict(table)
    with pytest.raises(DataError, match=r"shape \(rows, 16\); got \(2, 3\)"):
        run.model.predict_proba(np.zeros((2, 3)))
    tree = run.model.hierarchy
    data = Dataset.from_arrays(np.zeros((2, 3)), np.zeros((2, len(tree)), dtype=bool), tree)
    with pytest.raises(DataError, match="trained on pictures, and the data is a table"):
        run.predict(data)


def test_a_model_for_tables_refuses_pictures(reef: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    pl.DataFrame({"depth": range(12), "taxa": ["a > b", "a > c"] * 6}).write_csv(table)
    run = Run.fit(table, tmp_path / "run", small_settings("resnet50"), options={"labels": "taxa"}, report=False)
    with pytest.raises(DataError, match="folder of pictures, and the model was trained on tables"):
        run.predict(reef / "new")
    for options in ({"images": reef}, {"image": "depth"}):
        for act in (run.predict, run.evaluate, partial(run.predict_to_file, out=tmp_path / "found.csv")):
            with pytest.raises(ArgumentError, match="trained on a table without pictures; leave out --images"):
                act(table, options=options)
    with pytest.raises(DataError, match="trained on tables, and cannot predict pictures"):
        run.model.predict_proba(new(reef))
    images = Images.below(reef / "new")
    tree = run.model.hierarchy
    data = Dataset.from_arrays(images, np.zeros((len(images), len(tree)), dtype=bool), tree)
    with pytest.raises(DataError, match="trained on a table, and the data is pictures"):
        run.predict(data)


# --- an own torch module ---------------------------------------------------------------------------------------------


def test_an_own_module(reef: Path, tmp_path: Path) -> None:
    encoder = plain_encoder(size=16)
    run = Run.fit(survey(reef), tmp_path / "run", small_settings("resnet50"), options=how(reef), encoder=encoder)
    before = run.model.predict_proba(new(reef))
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(FileFormatError, match=r"not one of the transformers library; pass its torch module \(encoder="):
        TrainedModel.load(tmp_path / "run")
    other = plain_encoder(seed=9, size=16).module  # the weights are those of the folder
    assert (TrainedModel.load(tmp_path / "run", encoder=other).predict_proba(new(reef)) == before).all()
    assert (Run(tmp_path / "run", encoder=other).predict(reef / "new").probs == before).all()
    with pytest.raises(FileFormatError, match=r"encoder"):
        TrainedModel.load(tmp_path / "run", encoder=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4)))
    wrong: Any = torch.nn.Flatten
    with pytest.raises(FileFormatError, match="Flatten is a class"):
        TrainedModel.load(tmp_path / "run", encoder=wrong)
    with pytest.raises(ArgumentError, match="Flatten is a class"):
        Run.fit(survey(reef), tmp_path / "x", small_settings("resnet50"), options=how(reef), encoder=wrong)
    settings = small_settings("resnet50", image_size=16)
    module = Run.fit(survey(reef), tmp_path / "module", settings, options=how(reef), encoder=encoder.module)
    assert (module.model.predict_proba(new(reef)) == before).all()


# --- stopped and continued -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("train_encoder", [False, True])
def test_folds_side_by_side_are_the_same(
    reef: Path, encoder_folder: Path, tmp_path: Path, train_encoder: bool
) -> None:
    """The encoder travels, and so does what is known of pictures."""
    settings = small_settings(
        encoder_folder, holdout=None, cv=2, patience=1, batch_size=8, epochs=2, train_encoder=train_encoder
    )
    runs = [
        Run.fit(survey(reef), tmp_path / f"{jobs}", settings, options=how(reef), jobs=jobs, report=False)
        for jobs in (1, 2)
    ]
    here, elsewhere = (run.model for run in runs)
    assert (elsewhere.predict_proba(new(reef)) == here.predict_proba(new(reef))).all()
    assert outcomes(elsewhere) == outcomes(here)


def test_folds_on_frozen_embeddings_resume_to_the_same_bits(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    settings = small_settings(encoder_folder, holdout=None, cv=3, patience=1, batch_size=8)
    whole = Run.fit(survey(reef), tmp_path / "whole", settings, options=how(reef))
    for at_batch in (3, 14):
        with pytest.raises(Interrupted):
            Run.fit(
                survey(reef), tmp_path / "stopped", settings, options=how(reef), resume=at_batch > 3,
                callback=Recorder(at_batch, stop),
            )  # fmt: skip
    assert list((tmp_path / "stopped").glob(".fold-*"))
    assert not list((tmp_path / "stopped").glob(".fold-*/encoder.safetensors"))  # it is the same for all, and large
    recorder = Recorder()
    again = Run.fit(survey(reef), tmp_path / "stopped", resume=True, callback=recorder)
    assert (again.model.predict_proba(new(reef)) == whole.model.predict_proba(new(reef))).all()
    assert outcomes(again.model) == outcomes(whole.model)
    assert (again.model.decides_with.values == whole.model.decides_with.values).all()


def test_another_encoder_is_not_continued_with(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(encoder_folder, tmp_path / "tiny")
    settings = small_settings(tmp_path / "tiny", holdout=None, cv=2, batch_size=8)
    with pytest.raises(Interrupted):
        Run.fit(survey(reef), tmp_path / "run", settings, options=how(reef), callback=Recorder(9, stop))
    shutil.rmtree(tmp_path / "tiny")
    tiny_encoder(tmp_path / "tiny", seed=1)
    with pytest.raises(ResumeError):
        Run.fit(survey(reef), tmp_path / "run", settings, options=how(reef), resume=True)


@pytest.mark.parametrize("split", [{"holdout": 0.3}, {"holdout": None, "cv": 2, "patience": 1}])
def test_a_trained_encoder(reef: Path, encoder_folder: Path, tmp_path: Path, split: dict[str, Any]) -> None:
    how_to = {"train_encoder": True, "encoder_learning_rate": 1e-3, "batch_size": 16, "epochs": 2}
    settings = small_settings(encoder_folder, **how_to | split)
    start = load_encoder(str(encoder_folder), size=SIZE)
    data = Dataset.read(survey(reef), **how(reef))
    model = fit_model(data, settings).model
    assert model.encoder is not None
    assert model.encoder.fingerprint != start.fingerprint
    assert load_encoder(str(encoder_folder), size=SIZE).fingerprint == start.fingerprint
    before = model.predict_proba(new(reef))
    whole = Run.fit(survey(reef), tmp_path / "whole", settings, options=how(reef))
    assert (whole.model.predict_proba(new(reef)) == before).all()
    with pytest.raises(Interrupted):
        Run.fit(survey(reef), tmp_path / "stopped", settings, options=how(reef), callback=Recorder(4, stop))
    again = Run.fit(survey(reef), tmp_path / "stopped", resume=True)
    assert (again.model.predict_proba(new(reef)) == before).all()
    assert (Run(tmp_path / "stopped").predict(reef / "new").probs == before).all()


def test_no_silence_while_a_trained_encoder_encodes(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    """Training and validation rows for the forest and thresholds, and test rows for the report."""
    settings = small_settings(encoder_folder, **BY_VALIDATION, patience=1, train_encoder=True, batch_size=16)
    stream = StringIO()
    progress = Progress(stream=stream, seconds_between=0)
    options = how(reef, partition="partition", ignore=[])
    Run.fit(
        survey(reef), tmp_path / "run", settings, options=options, progress=progress, callback=ShowProgress(progress)
    )  # fmt: skip
    parts = pl.read_csv(survey(reef))["partition"].to_list()
    shown = stream.getvalue()
    for part in ("train", "valid"):
        count = parts.count(part)
        assert f"encoding {count} pictures with the trained encoder\n" in shown
        assert f"{count} of {count} pictures, " in shown
    growing = shown.index("growing 5 trees")
    assert shown.index("with the trained encoder") < growing
    assert "test rows: encoded " in shown[growing:]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": "forest"}, r"train_encoder needs a network.*forest.*mlp"),
        ({"engine": "fused"}, r"train_encoder needs engine 'torch' or 'auto'"),
    ],
)
def test_an_encoder_that_cannot_be_trained(reef: Path, tmp_path: Path, change: dict[str, Any], told: str) -> None:
    settings = small_settings("nowhere", train_encoder=True, **change)  # refused before the encoder is looked for
    with pytest.raises(ArgumentError, match=told):
        Run.fit(survey(reef), tmp_path / "runs" / "run", settings, options=how(reef))
    assert not list(tmp_path.iterdir())
    data = Dataset.read(survey(reef), **how(reef))
    with pytest.raises(ArgumentError, match=told):
        fit_model(data, settings, encoder=plain_encoder(size=16))
