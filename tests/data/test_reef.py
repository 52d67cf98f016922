"""The reef: the same pictures again, labels that can be read, a long tail, and shapes, not colours, that tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rarenode import Dataset, Hierarchy, TableOptions, make_reef
from rarenode.data.readers.tables import read_labels
from rarenode.data.reef import NEW_PICTURES, TAXA, Reef, _name, draw_reef
from rarenode.data.reef_marks import Area, Lines, paint, paint_outline, place
from rarenode.data.reef_scene import DRAWN, MARGIN, OUTLINE, Seen, _Animal, _clarity, _Water, draw_scene
from rarenode.data.samples import write_sample
from rarenode.errors import ArgumentError
from tests.commands import succeed

HOW = TableOptions(labels="taxa", id="image")  # type: ignore[arg-type]
ROWS = 400
COMMON = ("Sea stars", "Regular urchins", "Brittle/snake stars", "Benthic sea cucumbers")


@pytest.fixture(scope="module")
def reef() -> Reef:
    """Small pictures, because the labels are the same at every size."""
    return draw_reef(rows=ROWS, size=16, seed=3)


def count(reef: Reef) -> dict[str, int]:
    return dict(zip(reef.hierarchy.titles, reef.Y.sum(axis=0).tolist(), strict=True))


# --- pictures --------------------------------------------------------------------------------------------------------


def test_a_seed_decides_everything() -> None:
    first, again, other = draw_reef(6, 32, seed=1), draw_reef(6, 32, seed=1), draw_reef(6, 32, seed=2)
    assert (first.pictures == again.pictures).all()
    assert (first.labels, first.partition) == (again.labels, again.partition)
    assert all((mine != theirs).mean() > 0.5 for mine, theirs in zip(first.pictures, other.pictures, strict=True))


def test_more_rows_leave_the_first_ones_as_they_are() -> None:
    few, many = draw_reef(10, 16), draw_reef(100, 16)
    assert (few.pictures == many.pictures[:10]).all()
    assert few.labels == many.labels[:10]
    assert few.partition == many.partition[:10]
    assert len({picture.tobytes() for picture in many.pictures}) == 100


@pytest.mark.parametrize("size", [16, 37, 64])
def test_the_size_is_the_one_that_was_asked_for(size: int) -> None:
    assert draw_reef(2, size).pictures.shape == (2, size, size, 3)


def test_another_size_shows_the_same_scene() -> None:
    small, large = draw_reef(12, 32), draw_reef(12, 128)
    assert small.labels == large.labels
    shrunk = large.pictures.reshape(12, 32, 4, 32, 4, 3).mean(axis=(2, 4))
    grey = [np.asarray(each, dtype=float).mean(axis=-1).reshape(12, -1) for each in (small.pictures, shrunk)]
    alike = np.corrcoef(*grey)[:12, 12:]
    assert np.diag(alike).min() > 0.9
    assert (alike.argmax(axis=1) == np.arange(12)).all()


def test_pictures_are_neither_black_nor_flat(reef: Reef) -> None:
    assert reef.pictures.dtype == np.uint8
    assert (reef.pictures.mean(axis=(1, 2, 3)) > 8).all()
    assert (reef.pictures.std(axis=(1, 2)).max(axis=1) > 3).all()


# --- labels ----------------------------------------------------------------------------------------------------------


def test_the_hierarchy_has_the_13_nodes(reef: Reef) -> None:
    assert reef.hierarchy == Hierarchy.from_paths(TAXA)
    assert len(reef.hierarchy) == len(set(reef.hierarchy.titles)) == 13
    assert reef.hierarchy.roots == ("Echinoderms",)
    assert {path.rpartition(" > ")[2] for path in reef.hierarchy.leaves} == set(DRAWN)


def test_labels_are_closed_and_every_picture_has_one(reef: Reef) -> None:
    assert reef.hierarchy.is_closed(reef.Y)
    assert reef.Y[:, reef.hierarchy.index["Echinoderms"]].all()


def test_pictures_have_several_labels(reef: Reef) -> None:
    given = np.bincount([len(labels) for labels in reef.labels], minlength=5)
    assert len(given) == 5
    assert given[0] == 0
    assert 0.2 < given[1] / ROWS < 0.5
    assert given[4] > 5
    assert all(len(set(labels)) == len(labels) for labels in reef.labels)


def test_the_tail_is_long(reef: Reef) -> None:
    found = count(reef)
    assert 0.4 < found["Sea stars"] / ROWS < 0.65
    assert 0 < found["Pelagic/swimming sea cucumbers"] / ROWS < 0.025
    assert found["Basket stars"] / ROWS < 0.06
    leaves = [found[kind] for kind in DRAWN]
    assert max(leaves) > 20 * min(leaves)


def test_labels_stop_half_way_more_often_where_little_can_be_seen(reef: Reef) -> None:
    found = count(reef)
    assert found["Unstalked crinoids"] < 0.95 * found["Feather stars"]
    assert found["Benthic sea cucumbers"] < 0.95 * found["Sea cucumbers"]
    rng = np.random.default_rng(0)
    depth = {
        clarity: np.mean([_name(rng, Seen("Basket stars", clarity)).count(">") for _ in range(300)])
        for clarity in (0.0, 0.3, 1.0)
    }
    assert depth[0.0] < depth[0.3] - 0.2 < depth[1.0]
    assert depth[1.0] == 2
    assert _name(rng, Seen("Sea stars", 1.0)) == "Echinoderms > Sea stars"


def test_what_is_small_hidden_outside_hazy_or_blurred_is_seen_less_clearly() -> None:
    water = _Water((0.1, 0.3, 0.4), np.array([0.2, 0.2]), blur=0.002)

    def clarity(radius: float = 0.2, x: float = 0.5, hidden: int = 0, water: _Water = water) -> float:
        marks = place(DRAWN["Sea stars"][0](np.random.default_rng(0)), np.array([x, 0.5]), radius)
        outline = Image.new("L", (2 * OUTLINE, 2 * OUTLINE))
        paint_outline(ImageDraw.Draw(outline), marks, OUTLINE, MARGIN)
        above = outline.point(lambda value: 7 if value else 0)
        above.paste(0, (0, 0, 2 * OUTLINE, hidden))
        animal = _Animal("Sea stars", marks, (1.0, 0.0, 0.0), np.array([x, 0.5]), radius, 0.1, outline)
        return _clarity(animal, 7, above, water)

    best = clarity()
    assert best == pytest.approx(0.8 * 0.9)
    assert clarity(radius=0.1) < 0.8 * best
    assert clarity(hidden=OUTLINE) == pytest.approx(best / 2, rel=0.2)
    assert clarity(x=0.0) == pytest.approx(best / 2, rel=0.2)
    assert clarity(hidden=2 * OUTLINE) == 0
    assert clarity(water=replace(water, haze=np.array([0.6, 0.6]))) == pytest.approx(best / 2)
    assert clarity(water=replace(water, blur=0.009)) < 0.7 * best


def test_some_animals_are_clear_and_some_are_not() -> None:
    scenes = [draw_scene(np.random.default_rng(row), 16)[1] for row in range(60)]
    clarity = [animal.clarity for seen in scenes for animal in seen]
    assert 0 <= min(clarity) < 0.15
    assert 0.7 < max(clarity) <= 1


def test_partitions_have_their_shares(reef: Reef) -> None:
    share = {part: reef.partition.count(part) / ROWS for part in ("train", "valid", "test")}
    assert share == pytest.approx({"train": 0.6, "valid": 0.15, "test": 0.25}, abs=0.06)
    assert sum(share.values()) == pytest.approx(1)


# --- what tells taxa apart -------------------------------------------------------------------------------------------


def auc(features: NDArray[np.float64], present: NDArray[np.bool_]) -> float:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.02))
    return float(roc_auc_score(present, cross_val_predict(model, features, present, cv=5, method="decision_function")))


def test_colours_do_not_tell(reef: Reef) -> None:
    pixels = reef.pictures.reshape(ROWS, -1, 3)
    bins = [[np.bincount(channel // 32, minlength=8) ** 0.5 for channel in picture.T] for picture in pixels]
    colours = np.concatenate([np.array(bins).reshape(ROWS, -1), pixels.mean(axis=1), pixels.std(axis=1)], axis=1)
    column = {title: place for place, title in enumerate(reef.hierarchy.titles)}
    scores = {kind: auc(colours, reef.Y[:, column[kind]]) for kind in COMMON}
    assert max(scores.values()) < 0.65, scores
    assert np.mean(list(scores.values())) < 0.58, scores
    leak = colours + 5 * colours.std(axis=0) * reef.Y[:, [column["Sea stars"]]]  # the measure would notice
    assert auc(leak, reef.Y[:, column["Sea stars"]]) > 0.95


def test_shapes_tell() -> None:
    """Outlines turned and seen from the side are told apart by where they are dense: by ring, and by waves around."""
    rng = np.random.default_rng(0)
    profiles, kinds = [], []
    for kind, (draw, _) in DRAWN.items():
        for _ in range(24):
            picture = Image.new("L", (96, 96))
            marks = place(draw(rng), np.array([0.5, 0.5]), 0.4, rng.uniform(0, 6), rng.uniform(0, 0.3))
            paint_outline(ImageDraw.Draw(picture), marks, 96, 0.0)
            profiles.append(profile(np.asarray(picture) > 0))
            kinds.append(kind)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500))
    right = cross_val_predict(model, np.array(profiles), kinds, cv=4) == np.array(kinds)
    share = {kind: right[np.array(kinds) == kind].mean() for kind in DRAWN}
    assert min(share.values()) > 0.75, share


def profile(covered: NDArray[np.bool_]) -> NDArray[np.float64]:
    angle, radius = np.arange(64) * (2 * np.pi / 64), np.arange(3, 45, 3)
    rows = np.rint(48 + radius[:, None] * np.sin(angle)).astype(int)
    columns = np.rint(48 + radius[:, None] * np.cos(angle)).astype(int)
    rings = covered[rows, columns].astype(float)
    waves: NDArray[np.float64] = np.abs(np.fft.rfft(rings, axis=1))[:, :24]
    return waves.ravel()


@pytest.mark.parametrize("kind", DRAWN)
def test_animals_are_as_large_as_each_other_and_never_the_same(kind: str) -> None:
    drawn = [DRAWN[kind][0](np.random.default_rng(seed)) for seed in range(20)]
    reach = []
    for marks in drawn:
        points = [mark.points if isinstance(mark, Area) else mark.paths for mark in marks]
        assert all(np.isfinite(each).all() for each in points)
        reach.append(np.concatenate([np.hypot(each[..., 0], each[..., 1]).ravel() for each in points]).max())
    assert 0.8 < np.mean(reach) < 1.35
    assert len(set(reach)) == 20


def test_marks_are_placed_and_painted() -> None:
    square = Area(np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]))
    (placed,) = place([square], np.array([0.5, 0.5]), 0.25, turn=np.pi / 4, tilt=0.5)
    assert isinstance(placed, Area)
    assert np.ptp(placed.points, axis=0) == pytest.approx([np.sqrt(0.5), np.sqrt(0.5) / 2])
    picture = Image.new("RGB", (40, 40))
    line = Lines(np.array([[[0.0, 0.1], [1.0, 0.1]]]), 0.1, shade=1.0)
    paint(ImageDraw.Draw(picture, "RGBA"), [placed, line], (1.0, 0.0, 0.0), 40)
    assert picture.getpixel((20, 20)) == (255, 0, 0)
    assert picture.getpixel((20, 4)) == (255, 255, 255)
    assert picture.getpixel((20, 35)) == (0, 0, 0)


# --- files -----------------------------------------------------------------------------------------------------------


def test_the_files_can_be_read(tmp_path: Path) -> None:
    labels = make_reef(tmp_path / "a" / "reef", rows=40, size=24, seed=4)
    assert labels == tmp_path / "a" / "reef" / "labels.csv"
    reef = draw_reef(40, 24, seed=4)
    table = pl.read_csv(labels)
    assert table.columns == ["image", "partition", "taxa"]
    assert table["partition"].to_list() == list(reef.partition)
    for row, name in enumerate(table["image"]):
        assert name == f"images/{row:04d}.png"
        with Image.open(labels.parent / name) as picture:
            assert (np.asarray(picture) == reef.pictures[row]).all()
    hierarchy, Y, known = read_labels([labels], HOW, labels.parent / "taxonomy.csv")
    assert hierarchy == reef.hierarchy
    assert (Y == reef.Y).all()
    assert known is None
    data = Dataset.read(labels, labels="taxa", id="image")
    assert data.ids == tuple(table["image"])
    assert set(data.hierarchy.nodes) <= set(TAXA)


def test_new_pictures_are_others(tmp_path: Path) -> None:
    folder = make_reef(tmp_path, rows=15, size=16).parent
    new = {path.read_bytes() for path in (folder / "new").iterdir()}
    assert len(new) == NEW_PICTURES
    assert not new & {path.read_bytes() for path in (folder / "images").iterdir()}


def test_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarenode.data.samples.REEF_ROWS", 5)
    told = succeed("data", "sample", "reef", "--out", tmp_path / "reef", "--seed", "2")
    shown = [str(tmp_path / "reef" / name) for name in ("taxonomy.csv", "labels.csv", "images: 5 pictures")]
    assert told.splitlines() == [*shown, str(tmp_path / "reef" / "new: 12 pictures")]
    before = {path: path.read_bytes() for path in (tmp_path / "reef").rglob("*.*")}
    (tmp_path / "reef" / "labels.csv").write_text("something older")
    files = write_sample("reef", tmp_path / "reef", seed=2)
    assert {path: path.read_bytes() for path in files} == before
    with Image.open(tmp_path / "reef" / "new" / "0000.png") as picture:
        assert picture.size == (64, 64)


def test_what_is_refused(tmp_path: Path) -> None:
    for wrong, message in (
        ({"rows": 0}, "rows must be at least 1, got 0"),
        ({"size": 15}, "size must be at least 16, got 15"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            draw_reef(**wrong)
        with pytest.raises(ArgumentError, match=message):
            make_reef(tmp_path / "none", **wrong)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="the sample cannot be written to"):
        make_reef(tmp_path / "file", rows=1)
