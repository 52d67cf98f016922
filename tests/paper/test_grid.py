from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from rarenode.config import Settings
from rarenode.errors import ArgumentError
from rarenode.paper import record_settings
from rarenode.paper.grid import Cell, cell, simplest, tasks
from rarenode.paper.spec import BY_PROTOCOL, Spec, load_spec
from tests.paper.small_grid import cell_of, small_spec

A, B = "cellcycle_FUN", "spo_FUN"

ANOTHER: dict[str, Any] = {
    "hidden_size": 7, "n_layers": 2, "dropout": 0.5, "activation": "tanh", "resampling": "lpros", "n_members": 2,
    "ensemble": "dropout", "weighting": "none", "w0": 0.5, "side": "both", "classes": "binary", "focus": "gmu",
    "u0": 0.5, "k": 2.0, "schedule": "linear", "schedule_by": "epoch", "schedule_towards": "w0", "mix": 0.5,
    "reduction": "sum", "learning_rate": 0.5, "weight_decay": 0.5, "batch_size": 5, "epochs": 7, "seed": 1,
    "patience": 3, "model": "mlp+forest", "n_trees": 5, "encoder": "vit", "image_size": 64, "train_encoder": True,
    "encoder_learning_rate": 0.5, "encoder_batchnorm": "frozen", "augmentation": "none", "precision": "bfloat16",
    "blend": "learned", "output_bias": "prior", "n_components": 5,
}  # fmt: skip
"""A value that is neither the default nor the paper's, for each setting that makes another training."""
COMPUTATION: list[dict[str, Any]] = [
    {"engine": "torch"}, {"checkpoint_epochs": 3}, {"checkpoint_minutes": None}, {"device": "cuda"}, {"n_jobs": 3},
    {"compile": True},
]  # fmt: skip
"""Settings that do not influence the result."""


def both() -> Spec:
    return small_spec(
        {"name": "plain", "settings": {"weighting": "none"}},
        {"name": "weighted", "settings": {"w0": 0.5}},
        datasets=(A, B),
        seeds=2,
    )


def told(spec: Spec, *arguments: Any) -> list[str]:
    return [str(task) for task in tasks(spec, *arguments)]


class TestOrder:
    def test_one_seed_of_everything_before_the_next(self) -> None:
        assert told(both()) == [
            f"{dataset}, {method}, seed {seed}"
            for seed in (0, 1)
            for dataset in (A, B)
            for method in ("plain", "weighted")
        ]

    def test_methods_may_have_seeds_and_datasets_of_their_own(self) -> None:
        spec = small_spec(
            {"name": "usual"}, {"name": "often", "seeds": 3}, {"name": "here", "datasets": (B,)}, datasets=(A, B)
        )
        assert told(spec) == [
            f"{A}, usual, seed 0",
            f"{A}, often, seed 0",
            f"{B}, usual, seed 0",
            f"{B}, often, seed 0",
            f"{B}, here, seed 0",
            f"{A}, often, seed 1",
            f"{B}, often, seed 1",
            f"{A}, often, seed 2",
            f"{B}, often, seed 2",
        ]

    def test_sweeps_are_methods(self) -> None:
        spec = small_spec(sweeps=[{"series": "GMU", "setting": "n_members", "values": [1, 2]}], datasets=(A,))
        found = tasks(spec)
        assert [task.method for task in found] == ["GMU, n_members=1", "GMU, n_members=2"]
        assert [task.cell.settings.n_members for task in found] == [1, 2]


    def test_some_datasets_have_one_seed(self) -> None:
        spec = small_spec(
            {"name": "usual"}, {"name": "often", "seeds": 3}, datasets=(A, B), seeds=2, one_seed=[B]
        )
        assert told(spec)[4:] == [f"{A}, usual, seed 1", f"{A}, often, seed 1", f"{A}, often, seed 2"]
        assert told(spec, [B], ["usual"], 2) == [f"{B}, usual, seed 0", f"{B}, usual, seed 1"]


class TestRestriction:
    def test_datasets(self) -> None:
        assert told(both(), [B]) == [
            f"{B}, {method}, seed {seed}" for seed in (0, 1) for method in ("plain", "weighted")
        ]

    def test_methods(self) -> None:
        assert told(both(), None, ["weighted"]) == [
            f"{dataset}, weighted, seed {seed}" for seed in (0, 1) for dataset in (A, B)
        ]

    def test_seeds_replace_those_of_spec_and_method(self) -> None:
        spec = small_spec({"name": "usual"}, {"name": "often", "seeds": 3}, datasets=(A,))
        assert told(spec, None, None, 2) == [
            f"{A}, {method}, seed {seed}" for seed in (0, 1) for method in ("usual", "often")
        ]

    def test_order_is_the_specs_and_not_the_callers(self) -> None:
        assert told(both(), [B, A], ["weighted", "plain"]) == told(both())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((["spo_fun"],), "the spec has no dataset 'spo_fun'; it has cellcycle_FUN; spo_FUN"),
            ((None, ["plain", "GMU"]), "the spec has no method 'GMU'; it has plain; weighted"),
        ],
    )
    def test_unknown_names(self, arguments: tuple[Any, ...], message: str) -> None:
        with pytest.raises(ArgumentError) as caught:
            tasks(both(), *arguments)
        assert str(caught.value) == message


class TestCell:
    def test_settings_are_the_papers_then_the_specs_then_the_methods(self) -> None:
        spec = small_spec(
            {"name": "own", "settings": {"n_members": 3}}, datasets=(B,), settings={"n_members": 2, "epochs": 9}
        )
        settings = cell(spec, B, "own", 4).settings
        assert (settings.hidden_size, settings.epochs, settings.n_members, settings.seed) == (250, 9, 3, 4)

    def test_methods_of_two_specs_share_one(self) -> None:
        ours = small_spec({"name": "mine", "settings": {"w0": 0.5, "focus": "none"}}, datasets=(A,))
        theirs = small_spec({"name": "theirs"}, datasets=(B, A), settings={"w0": 0.5})
        assert cell(ours, A, "mine", 0) == cell(theirs, A, "theirs", 0)

    def test_the_protocol_is_the_methods_or_the_specs(self) -> None:
        spec = small_spec(
            {"name": "usual"}, {"name": "own", "protocol": "cross_fit"}, datasets=(A,), protocol="held_out",
            decisions=["fixed"],
        )  # fmt: skip
        assert [cell(spec, A, name, 0).protocol for name in ("usual", "own")] == ["held_out", "cross_fit"]
        assert {task.decisions for task in tasks(spec)} == {("fixed",)}
        assert cell(both(), A, "plain", 0).protocol == "paper"

    def test_protocols_differ_in_cost(self) -> None:
        held_out, paper, cross_fit = (cell_of(protocol=name).cost for name in ("held_out", "paper", "cross_fit"))
        assert held_out < paper
        assert cross_fit == pytest.approx(3 * paper)

    def test_it_costs_more_with_more_to_do(self) -> None:
        usual = cell_of().cost
        assert cell_of(epochs=212).cost == pytest.approx(2 * usual)
        for more in ({"n_members": 2}, {"hidden_size": 600}, {"resampling": "lpros"}, {"batch_size": 2}):
            assert cell_of(**more).cost > usual


class TestFingerprint:
    def test_records_that_are_kept_stay_valid(self) -> None:
        """Literal: whatever changes them orphans every record that anyone has."""
        weighted, cloned = cell_of(), cell_of(weighting="none", resampling="lpros")
        assert weighted.name == "seed=0-d6fe64a84a7f"
        assert weighted.fingerprint == "d6fe64a84a7f7103f09ef8c99b680f02b7a66e8ab3858fd00b9f0d4a9a76d116"
        assert cloned.name == "resample=lpros,seed=0,weighting=none-386b360799ad"
        assert cloned.fingerprint == "386b360799ad8cb748f4581080d9b292fe45927c4035bf8e9b71f2f979e9afd7"

    def test_only_what_is_not_a_default_is_in_it(self) -> None:
        content = b'["cellcycle_FUN", {"epochs": 106, "focus": "gmu"}]'
        assert cell_of(focus="gmu").fingerprint == hashlib.sha256(content).hexdigest()

    def test_a_value_of_the_paper_that_is_spelt_out_changes_nothing(self) -> None:
        for name, value in cell_of().settings.to_dict().items():
            spelt_out = cell_of(**{name: value})
            assert (spelt_out.name, spelt_out.fingerprint) == (cell_of().name, cell_of().fingerprint)

    def test_a_setting_that_rarenode_gets_later_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = cell_of(w0=0.5)

        class Later(Settings):
            momentum: float = 0.0

        monkeypatch.setattr(record_settings, "Settings", Later)
        after = Cell(A, Later(**before.settings.to_dict()))
        assert (after.name, after.fingerprint) == (before.name, before.fingerprint)
        other = Cell(A, Later(**(before.settings.to_dict() | {"momentum": 0.5})))
        assert other.fingerprint != before.fingerprint
        assert other.name.startswith("momentum=0.5,seed=0,w0=0.5-")

    @pytest.mark.parametrize("changes", COMPUTATION)
    def test_how_it_is_computed_does_not_matter(self, changes: dict[str, Any]) -> None:
        assert (cell_of(**changes).name, cell_of(**changes).fingerprint) == (cell_of().name, cell_of().fingerprint)

    def test_every_other_setting_matters(self) -> None:
        computation = {name for changes in COMPUTATION for name in changes}
        assert set(ANOTHER) == set(Settings.model_fields) - computation - set(BY_PROTOCOL)
        alone = {name: value for name, value in ANOTHER.items() if name not in ("n_trees", "blend")}
        cells = [cell_of(), *(cell_of(**{name: value}) for name, value in alone.items())]
        cells.append(cell_of(model="mlp+forest", n_trees=5))
        cells.append(cell_of(model="mlp+forest", blend="learned"))
        cells.append(cell_of(model="forest"))
        assert len({cell.fingerprint for cell in cells}) == len(cells)
        assert len({cell.name for cell in cells}) == len(cells)

    def test_the_protocol_matters_unless_it_is_the_papers(self) -> None:
        content = b'["cellcycle_FUN", {"epochs": 106}, "held_out"]'
        assert cell_of(protocol="held_out").fingerprint == hashlib.sha256(content).hexdigest()
        assert cell_of(protocol="held_out").name == "protocol=held_out,seed=0-3733499b8dc7"
        assert cell_of(protocol="cross_fit").fingerprint != cell_of(protocol="held_out").fingerprint
        assert cell_of(protocol="paper").fingerprint == cell_of().fingerprint

    def test_the_dataset_matters(self) -> None:
        settings = cell_of().settings
        assert Cell(A, settings).fingerprint != Cell(B, settings).fingerprint


class TestPictures:
    """What only trainings on pictures have; all others are what they were before there were any."""

    def test_trainings_of_before_keep_their_names(self) -> None:
        """As the files in results/ are called."""
        for spec, dataset, method, name in (
            ("focal_fun", A, "GMU", "focus=gmu,members=10,resample=lpros,seed=0-92a8bf3ee338"),
            ("focal_fun", B, "bBMA", "focus=bbma,members=10,resample=lpros,seed=0-9a9fd927a044"),
            ("imbalance_fun", B, "LPROS", "resample=lpros,seed=0,weighting=none-f7d365b6e485"),
            ("imbalance_fun", A, "HROS-PD", "resample=hros-pd,seed=0,weighting=none-569de815728c"),
        ):
            assert cell(load_spec(spec), dataset, method, 0).name == name

    def test_the_fingerprint_is_of_content_that_has_nothing_of_pictures(self) -> None:
        content = b'["cellcycle_FUN", {"epochs": 106}]'
        assert cell_of().fingerprint == hashlib.sha256(content).hexdigest()
        assert replace(cell_of(), fraction=0.5).fingerprint != cell_of().fingerprint

    def test_factor_and_fraction_make_other_trainings(self) -> None:
        plain = cell_of("reef")
        others = [
            replace(plain, factor=factor, fraction=fraction)
            for factor, fraction in ((0.0, None), (0.5, None), (None, 0.5), (0.5, 0.5))
        ]
        assert len({each.fingerprint for each in (plain, *others)}) == 5
        assert [each.name.rsplit("-", 1)[0] for each in others] == [
            "factor=0.0,seed=0",
            "factor=0.5,seed=0",
            "fraction=0.5,seed=0",
            "factor=0.5,fraction=0.5,seed=0",
        ]

    @pytest.mark.parametrize("whole", [{"factor": 1.0}, {"fraction": 1.0}, {"factor": 1.0, "fraction": 1.0}])
    def test_all_of_the_weights_and_all_rows_are_the_plain_training(self, whole: dict[str, float]) -> None:
        spec = small_spec({"name": "plain"}, {"name": "whole"} | whole, datasets=("reef",))
        assert cell(spec, "reef", "whole", 0) == cell(spec, "reef", "plain", 0)

    def test_the_ends_of_a_sweep_are_the_trainings_of_other_specs(self) -> None:
        """The training factor 1 is the frozen encoder of the experiment with LP-ROS."""
        trained = cell(load_spec("training_factor"), "larvae", "unweighted, training factor=1.0", 0)
        assert trained == cell(load_spec("pictures_lpros"), "larvae", "None", 0)

    def test_names_of_all_image_specs_are_names_of_files(self) -> None:
        for name in ("training_factor", "data_ablation", "pictures_lpros", "plankton", "benthicnet_e"):
            for task in tasks(load_spec(name)):
                made = task.cell.name
                assert all(c.isascii() and (c.isalnum() or c in "_=,.-+") for c in made)
                assert len(made) <= 140

    def test_a_training_of_the_encoder_costs_more_and_a_part_of_the_rows_less(self) -> None:
        frozen, trained = cell_of("reef"), cell_of("reef", train_encoder=True)
        assert replace(frozen, fraction=0.1).cost < frozen.cost < trained.cost
        assert cell_of("reef", "cross_fit").cost > frozen.cost


class TestName:
    def test_it_tells_what_differs_from_the_paper(self) -> None:
        assert cell_of(n_members=10, focus="gmu", seed=2).name.startswith("focus=gmu,members=10,seed=2-")

    def test_it_fits_into_a_file_system(self) -> None:
        longest = cell_of(**ANOTHER).name
        assert len(longest) <= 140
        assert longest != cell_of(**(ANOTHER | {"seed": 2})).name

    @pytest.mark.parametrize("hostile", ["../../../etc/passwd", "/etc/passwd", "a\\b", "C:con", "..", "💥" * 200])
    def test_a_methods_name_is_never_in_it(self, hostile: str) -> None:
        (task,) = tasks(small_spec({"name": hostile}, datasets=(A,)))
        assert task.method == hostile
        assert task.cell.name == cell_of().name

    def test_only_harmless_characters(self) -> None:
        for name, value in ANOTHER.items():
            characters = set(cell_of(**{name: value}).name)
            assert all(c.isascii() and (c.isalnum() or c in "_=,.-+") for c in characters)


class TestSimplest:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"reduction": "sum", "n_members": 3}, {"n_members": 3}),
            ({"reduction": "mean"}, {}),
            ({"blend": "learned"}, {}),
            ({"u0": 0.5, "k": 2.0}, {}),
            ({"weighting": "none", "w0": 1.0, "side": "both", "classes": "binary"}, {"weighting": "none"}),
            ({"weighting": "none", "schedule": "linear", "schedule_by": "epoch"}, {"weighting": "none"}),
            ({"mix": 0.0}, {"weighting": "none"}),
            ({"schedule_by": "epoch", "schedule_towards": "w0"}, {}),
            ({"n_trees": 7}, {}),
        ],
    )
    def test_equal_trainings_are_one(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        assert simplest(Settings.preset("paper", **one)) == simplest(Settings.preset("paper", **other))

    @pytest.mark.parametrize(
        "changes",
        [
            {"reduction": "sum"},
            {"reduction": "mean", "n_members": 3},
            {"focus": "gmu", "u0": 0.5},
            {"w0": 0.5, "side": "both", "classes": "binary", "mix": 0.5},
            {"schedule": "linear", "schedule_by": "epoch", "schedule_towards": "w0"},
        ],
    )
    def test_what_has_a_say_stays(self, changes: dict[str, Any]) -> None:
        assert simplest(Settings.preset("paper", **changes)) == Settings.preset("paper", **changes)

    def test_every_cell_is_the_simplest(self) -> None:
        spec = small_spec({"name": "a", "settings": {"k": 3}}, {"name": "b"}, datasets=(A,))
        assert cell(spec, A, "a", 0) == cell(spec, A, "b", 0)
