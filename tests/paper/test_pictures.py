"""Datasets of pictures and their encoders: small ones that are drawn here, and real ones where they are there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from numpy.typing import NDArray

from rarenode.config import Settings
from rarenode.data.dataset import DatasetSplits
from rarenode.data.images import Images
from rarenode.data.reef import PATHS, TAXA, make_reef
from rarenode.errors import MissingFileError
from rarenode.models.encoder import IMAGENET_DEVIATION, IMAGENET_MEAN, Encoder
from rarenode.models.pixels import PixelEncoder
from rarenode.paper import pictures
from rarenode.paper.pictures import (
    DEVIATION,
    MEAN,
    PICTURES,
    benthicnet_e_hierarchy,
    encoder_for,
    find_weights,
    fraction_of,
    load_pictures,
)
from rarenode.training.embedding import pixels
from tests.encoders import SIZE, encoder_folder, reef, small_settings

__all__ = ["encoder_folder", "reef"]

NUMBERS = dict(zip(benthicnet_e_hierarchy().titles, benthicnet_e_hierarchy().nodes, strict=True))


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    load_pictures.cache_clear()
    yield
    load_pictures.cache_clear()


class TestFindWeights:
    def test_in_the_folder_of_the_variable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "resnet-50").mkdir()
        (tmp_path / "mine").mkdir()
        monkeypatch.setenv("RARENODE_WEIGHTS", str(tmp_path))
        assert find_weights("resnet50") == str(tmp_path / "resnet-50")
        assert find_weights("mine") == str(tmp_path / "mine")

    def test_beside_the_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RARENODE_WEIGHTS", raising=False)
        monkeypatch.setenv("RARENODE_DATA", str(tmp_path / "data"))
        (tmp_path / "data").mkdir()
        (tmp_path / "weights" / "resnet-18").mkdir(parents=True)
        assert find_weights("resnet18") == str(tmp_path / "weights" / "resnet-18")

    def test_the_variable_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RARENODE_DATA", str(tmp_path / "data"))
        monkeypatch.setenv("RARENODE_WEIGHTS", str(tmp_path / "given"))
        for folder in ("data", "weights/resnet-50", "given/resnet-50"):
            (tmp_path / folder).mkdir(parents=True)
        assert find_weights("resnet50") == str(tmp_path / "given" / "resnet-50")

    def test_else_the_name_stays(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RARENODE_WEIGHTS", str(tmp_path))
        monkeypatch.setenv("RARENODE_DATA", str(tmp_path / "data"))
        assert find_weights("resnet50") == "resnet50"


class TestEncoderFor:
    def test_pixels_of_benthicnet_e_are_normalised_as_in_the_paper(self, encoder_folder: Path) -> None:
        settings = small_settings(encoder_folder)
        usual, theirs = (encoder_for(settings, dataset) for dataset in ("larvae", "benthicnet_e"))
        assert (usual.mean, usual.deviation) == (IMAGENET_MEAN, IMAGENET_DEVIATION)
        assert (theirs.mean, theirs.deviation) == (MEAN, DEVIATION)
        assert usual.crop.size == theirs.crop.size == SIZE

    def test_random_weights_follow_the_seed_and_need_no_files(self, encoder_folder: Path) -> None:
        first, again, other = (
            encoder_for(small_settings(f"random:{encoder_folder}", seed=seed), "reef") for seed in (0, 0, 1)
        )
        assert not first.is_pretrained
        assert first.fingerprint == again.fingerprint != other.fingerprint

    def test_weights_are_found_by_name(
        self, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(encoder_folder, tmp_path / "resnet-50")
        monkeypatch.setenv("RARENODE_WEIGHTS", str(tmp_path))
        found = encoder_for(small_settings("resnet50"), "reef")
        assert found.is_pretrained
        assert found.width == 16

    def test_statistics_are_those_of_the_pictures(self, encoder_folder: Path, tmp_path: Path) -> None:
        """With them, the first batch normalisation returns a mean of 0 and a deviation of 1 for these pictures."""
        make_reef(tmp_path, rows=20, size=24)
        images = Images.below(tmp_path / "images")
        settings = Settings(encoder=str(encoder_folder), image_size=24)
        encoder = encoder_for(settings, "reef", 0.5, images)
        assert encoder.fingerprint != encoder_for(settings, "reef", 0.5).fingerprint
        seen: list[torch.Tensor] = []
        network = PixelEncoder(encoder.module, encoder.input).eval()
        first = next(part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d))
        torch.nn.init.ones_(first.weight)
        torch.nn.init.zeros_(first.bias)
        first.register_forward_hook(lambda module, given, returned: seen.append(returned))
        with torch.no_grad():
            network(torch.from_numpy(pixels(images, encoder.crop)))
        assert seen[0].mean(dim=(0, 2, 3)).abs().max() < 1e-3
        np.testing.assert_allclose(seen[0].std(dim=(0, 2, 3)), 1, atol=0.02)

    def test_a_factor_mixes_trained_and_random_weights(self, encoder_folder: Path) -> None:
        settings = small_settings(encoder_folder, seed=3)
        trained, half, none = (_first_weights(encoder_for(settings, "reef", factor)) for factor in (None, 0.5, 0.0))
        np.testing.assert_allclose(half, 0.5 * trained + 0.5 * none, atol=1e-6)
        assert not np.allclose(trained, none)


def _first_weights(encoder: Encoder) -> NDArray[np.float32]:
    return np.asarray(next(encoder.module.parameters()).detach().numpy())


@pytest.fixture
def drawn(reef: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DatasetSplits:
    """60 drawn pictures, where the 3,000 of the real dataset would be kept."""
    monkeypatch.setattr(pictures, "user_cache_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(pictures, "REEF_ROWS", 60)
    monkeypatch.setattr(pictures, "REEF_SIZE", SIZE)
    shutil.copytree(reef, tmp_path / f"reef-60-{SIZE}-0")
    return load_pictures("reef")


class TestReef:
    def test_its_parts_and_nodes(self, drawn: DatasetSplits) -> None:
        assert drawn.hierarchy.nodes[0] == "Echinoderms"
        assert set(drawn.hierarchy.nodes) <= set(TAXA)
        assert drawn.valid is not None
        assert len(drawn.train) + len(drawn.valid) + len(drawn.test) == 60
        assert isinstance(drawn.train.X, Images)

    def test_the_root_which_all_pictures_have_is_not_scored(self, drawn: DatasetSplits) -> None:
        assert drawn.train.Y[:, 0].all()
        assert drawn.scored.tolist() == [False, *[True] * (len(drawn.hierarchy) - 1)]

    def test_it_is_drawn_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pictures, "user_cache_path", lambda *_, **__: tmp_path)
        monkeypatch.setattr(pictures, "REEF_ROWS", 12)
        monkeypatch.setattr(pictures, "REEF_SIZE", 16)
        first = load_pictures("reef")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["reef-12-16-0"]
        load_pictures.cache_clear()
        monkeypatch.setattr(pictures, "make_reef", lambda *_, **__: pytest.fail("drawn again"))
        assert (load_pictures("reef").train.Y == first.train.Y).all()


class TestFractionOf:
    def test_it_is_a_part_of_training_and_validation_rows(self, drawn: DatasetSplits) -> None:
        rows = drawn.train_and_valid
        part = fraction_of(drawn, 0.5)
        assert len(part) == round(0.5 * len(rows))
        assert part.ids is not None and rows.ids is not None
        assert set(part.ids) < set(rows.ids)
        assert len(set(part.ids)) == len(part)
        assert part.n_counted is None
        where = [rows.ids.index(name) for name in part.ids]
        np.testing.assert_array_equal(part.Y, rows.Y[where])

    def test_each_contains_the_smaller_ones(self, drawn: DatasetSplits) -> None:
        ids = [set(fraction_of(drawn, fraction).ids or ()) for fraction in (0.05, 0.1, 0.3, 1.0)]
        assert ids[0] < ids[1] < ids[2] < ids[3]

    def test_it_is_the_same_every_time_and_never_empty(self, drawn: DatasetSplits) -> None:
        assert fraction_of(drawn, 0.3).ids == fraction_of(drawn, 0.3).ids
        assert len(fraction_of(drawn, 1e-9)) == 1


class TestBenthicNetE:
    def write(self, root: Path, reef: Path, **columns: list[str]) -> None:
        """The drawn pictures, with labels in the form of the real ones: lists of the numbers of nodes."""
        folder = root / "benthicnet_e"
        shutil.copytree(reef / "images", folder / "images" / "images")
        table = pl.read_csv(reef / "labels.csv")
        numbers = [
            str([int(NUMBERS[path.strip().rpartition(" > ")[2]]) for path in taxa.split(";")])
            for taxa in table["taxa"].to_list()
        ]
        made = {"image": table["image"].to_list(), "partition": table["partition"].to_list(), "nodes": numbers}
        pl.DataFrame(made | columns).write_csv(folder / "labels.csv")

    def test_the_hierarchy_is_that_of_the_drawn_reef(self) -> None:
        hierarchy = benthicnet_e_hierarchy()
        assert len(hierarchy) == 13
        assert hierarchy.is_tree
        by_title = dict(zip(hierarchy.nodes, hierarchy.titles, strict=True))
        assert {(by_title[parent], by_title[child]) for parent, child in hierarchy.edges} == {
            (path.split(" > ")[-2], title) for title, path in PATHS.items() if " > " in path
        }
        assert {name: by_title[name] for name in ("0", "8", "12")} == {
            "0": "Echinoderms",
            "8": "Pelagic/swimming sea cucumbers",
            "12": "Regular urchins",
        }

    def test_pictures_with_lists_of_numbers(self, tmp_path: Path, reef: Path) -> None:
        self.write(tmp_path, reef)
        found = load_pictures("benthicnet_e", tmp_path)
        assert found.hierarchy == benthicnet_e_hierarchy()
        assert found.scored.sum() == 12
        table = pl.read_csv(reef / "labels.csv")
        parts = table["partition"].to_list()
        assert found.valid is not None
        for part, rows in (("train", found.train), ("valid", found.valid), ("test", found.test)):
            assert len(rows) == parts.count(part)
            for names, taxa in zip(
                found.hierarchy.decode(rows.Y), table.filter(pl.col("partition") == part)["taxa"], strict=True
            ):
                steps = {step for path in taxa.split(";") for step in path.strip().split(" > ")}
                assert names == {NUMBERS[step] for step in steps}

    def test_what_to_do_where_it_is_not(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match=r"labels\.csv is not there; RARENODE_DATA names the folder"):
            load_pictures("benthicnet_e", tmp_path)


@pytest.mark.real_data
class TestPlankton:
    @pytest.fixture(autouse=True)
    def _there(self) -> None:
        from tests.encoders import plankton

        plankton()

    def test_all_of_it(self) -> None:
        found = load_pictures("plankton")
        assert found.valid is not None
        assert len(found.train) + len(found.valid) + len(found.test) == 24_212
        assert len(found.train_and_valid) == PICTURES["plankton"].rows
        assert len(found.hierarchy) == PICTURES["plankton"].nodes
        assert (~found.scored).sum() == len(found.hierarchy.roots)

    def test_the_branch_of_the_larvae(self) -> None:
        found = load_pictures("larvae")
        assert found.valid is not None
        assert (len(found.train), len(found.valid), len(found.test)) == (635, 165, 249)
        assert len(found.hierarchy) == 10
        (root,) = found.hierarchy.roots
        assert root.endswith("ECHINODERMS")
        assert found.scored.tolist() == [name != root for name in found.hierarchy.nodes]
        assert found.train.Y[:, found.hierarchy.index[root]].all()
        found.hierarchy.require_closed(found.test.Y)
