"""What specs may say about pictures, and about panels that compare series or draw the hierarchy."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rarenode.paper.grid import cell, tasks
from rarenode.paper.panel import MOST_CELLS
from rarenode.paper.pictures import PICTURES
from rarenode.paper.spec import Spec, load_spec
from tests.paper.small_grid import small_spec

CELLCYCLE, REEF = "cellcycle_FUN", "reef"
IMAGE_SPECS = (
    "training_factor", "data_ablation", "pictures_lpros", "plankton", "untrained_encoder", "benthicnet_e",
)  # fmt: skip
FACTORS = (0.0, 0.5, 1.0)


def factors(series: str, *values: float, **changes: Any) -> dict[str, Any]:
    return {"series": series, "setting": "factor", "values": list(values or FACTORS)} | changes


def panel(kind: str, **changes: Any) -> dict[str, Any]:
    pairs = [{"label": "A", "of": "A", "against": "B"}]
    usual: dict[str, Any] = {"kind": kind, "title": "t", "measures": ["f1"]}
    usual |= {"setting": "factor", "pairs": pairs} if kind in ("difference", "advantage") else {}
    return usual | changes


def with_panel(**panel: Any) -> Spec:
    members = {"series": "C", "setting": "n_members", "values": [1, 2]}
    sweeps = [factors("A"), factors("B", settings={"weighting": "none"}), members]
    return small_spec(datasets=[REEF], sweeps=sweeps, panels=[panel])


def refusal(make: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        make(*arguments, **options)
    return str(caught.value)


class TestShipped:
    @pytest.mark.parametrize("name", IMAGE_SPECS)
    def test_all_datasets_are_pictures_and_nothing_was_published(self, name: str) -> None:
        spec = load_spec(name)
        assert set(spec.datasets) <= PICTURES.keys()
        assert spec.published == {}

    def test_the_papers_training_factor_differs_by_nothing_but_data_and_size(self) -> None:
        ours, theirs = load_spec("training_factor"), load_spec("benthicnet_e")
        assert [sweep.series for sweep in ours.sweeps] == [sweep.series for sweep in theirs.sweeps]
        assert ours.panels == theirs.panels
        name = "GMU, training factor=0.5"
        one, other = cell(ours, "larvae", name, 0), cell(theirs, "benthicnet_e", name, 0)
        assert (one.factor, other.factor) == (0.5, 0.5)
        assert one.settings.model_copy(update={"image_size": None}) == other.settings

    def test_the_papers_hyperparameters_of_heads(self) -> None:
        settings = cell(load_spec("benthicnet_e"), "benthicnet_e", "GMU, training factor=1.0", 0).settings
        assert (settings.n_members, settings.n_layers, settings.hidden_size, settings.dropout) == (20, 3, 2048, 0.7)
        assert (settings.batch_size, settings.epochs) == (128, 20)
        assert (settings.learning_rate, settings.weight_decay) == (1e-3, 1e-4)
        assert (settings.u0, settings.w0, settings.k) == (0.25, 0.25, 1.0)

    def test_the_ablation_trains_everything_on_a_part_of_the_rows(self) -> None:
        grid = tasks(load_spec("data_ablation"))
        assert {task.cell.fraction for task in grid} == {0.01, 0.02, 0.05, 0.1, 0.2, 0.3}
        assert {task.cell.settings.epochs for task in grid} == {1, 2, 5}
        assert all(task.cell.settings.train_encoder for task in grid)
        assert all(task.cell.settings.encoder.startswith("random:") for task in grid)


class TestFactorAndFraction:
    def test_they_are_swept_and_no_settings(self) -> None:
        spec = small_spec(datasets=[REEF], sweeps=[factors("A", 0.25, fraction=0.5)])
        (method,) = spec.all_methods
        assert (method.name, method.factor, method.fraction, method.settings) == ("A, factor=0.25", 0.25, 0.5, {})
        made = cell(spec, REEF, method.name, 0)
        assert (made.factor, made.fraction) == (0.25, 0.5)

    @pytest.mark.parametrize(
        ("method", "fault"),
        [
            ({"factor": 1.5}, "less than or equal to 1"),
            ({"factor": -0.5}, "greater than or equal to 0"),
            ({"fraction": 0.0}, "greater than 0"),
            ({"fraction": 1.5}, "less than or equal to 1"),
            ({"factor": 0.5, "datasets": [CELLCYCLE]}, "method 'A': a training factor is for pictures"),
            ({"factor": 0.5}, "method 'A': a training factor is for pictures"),
            (
                {"factor": 0.5, "datasets": [REEF], "settings": {"encoder": "random:resnet18"}},
                "method 'A': a training factor mixes trained weights with random ones, and random:resnet18 has only",
            ),
        ],
    )
    def test_what_cannot_be(self, method: dict[str, Any], fault: str) -> None:
        assert fault in refusal(small_spec, {"name": "A"} | method, datasets=[REEF, CELLCYCLE])

    def test_a_part_of_the_rows_is_for_the_papers_protocol(self) -> None:
        decided: dict[str, Any] = {"protocol": "cross_fit", "decisions": ["fixed"]}
        fault = refusal(small_spec, {"name": "A", "fraction": 0.5}, datasets=[REEF], **decided)
        assert "method 'A': a fraction needs protocol = 'paper'" in fault

    def test_a_training_factor_is_for_any_protocol(self) -> None:
        decided: dict[str, Any] = {"protocol": "cross_fit", "decisions": ["fixed"]}
        spec = small_spec({"name": "A", "factor": 0.5}, datasets=[REEF], **decided)
        assert cell(spec, REEF, "A", 0).factor == 0.5

    def test_a_part_of_the_rows_is_for_any_dataset(self) -> None:
        spec = small_spec({"name": "A", "fraction": 0.5}, datasets=[CELLCYCLE])
        assert cell(spec, CELLCYCLE, "A", 0).fraction == 0.5

    def test_a_dataset_that_is_neither_in_the_catalogue_nor_pictures(self) -> None:
        with pytest.raises(Exception, match="no dataset 'reeef'"):
            small_spec({"name": "A"}, datasets=["reeef"])


class TestPanels:
    @pytest.mark.parametrize("kind", ["difference", "advantage"])
    def test_pairs_are_of_series_of_the_setting(self, kind: str) -> None:
        assert with_panel(**panel(kind)).panels[0].pairs[0].of == "A"

    @pytest.mark.parametrize("kind", ["difference", "advantage"])
    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"pairs": []}, "needs pairs of series"),
            ({"pairs": [{"label": "x", "of": "A", "against": "Z"}]}, "the series of factor: 'Z' is not one of A, B"),
            ({"pairs": [{"label": "x", "of": "C", "against": "B"}]}, "the series of factor: 'C' is not one of A, B"),
            ({"pairs": [{"label": "x", "of": "A", "against": "A"}]}, "'A' is compared with itself"),
            (
                {"pairs": [{"label": "x", "of": "A", "against": "B"}, {"label": "x", "of": "B", "against": "A"}]},
                "two pairs are labelled 'x'",
            ),
            ({"setting": None}, "panel 't': None is not one of factor, n_members"),
            ({"setting": "k"}, "panel 't': 'k' is not one of factor, n_members"),
            ({"methods": ["A, factor=0.5"]}, "has pairs of series, and no methods"),
        ],
    )
    def test_what_is_wrong_with_a_comparison(self, kind: str, changes: dict[str, Any], fault: str) -> None:
        told = refusal(with_panel, **panel(kind, **changes))
        assert fault in told
        assert "panel 't'" in told

    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({}, f"panel 't': a hierarchy needs methods, 1 to {MOST_CELLS} of them"),
            ({"methods": []}, "a hierarchy needs methods"),
            ({"methods": ["A, factor=0.5"] * (MOST_CELLS + 1)}, "a hierarchy needs methods"),
            ({"methods": ["A"]}, "panel 't': 'A' is not one of A, factor=0.0"),
            ({"methods": ["A, factor=0.5"], "measures": ["ap"]}, "panel 't': 'ap' is not one of precision, recall, f1"),
            ({"methods": ["A, factor=0.5"], "setting": "factor"}, "the kind 'hierarchy' has no setting"),
            (
                {"methods": ["A, factor=0.5"], "pairs": [{"label": "A", "of": "A", "against": "B"}]},
                "pairs are for panels of the kinds difference and advantage",
            ),
        ],
    )
    def test_what_is_wrong_with_a_hierarchy(self, changes: dict[str, Any], fault: str) -> None:
        assert fault in refusal(with_panel, **panel("hierarchy", **changes))
