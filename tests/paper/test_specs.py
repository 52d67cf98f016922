from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from rarenode.config import Settings
from rarenode.errors import FileFormatError, MissingFileError
from rarenode.paper.as_published import settings_for
from rarenode.paper.grid import cell, tasks
from rarenode.paper.panel import Measure
from rarenode.paper.spec import Spec, load_spec, spec_names

SHIPPED = {
    *("imbalance_fun", "imbalance_go", "focal_fun", "focal_go", "focal_others", "lpros_weighting", "dropout_compute"),
    *("decisions", "recipes"),
    *("training_factor", "data_ablation", "pictures_lpros", "plankton", "untrained_encoder", "benthicnet_e"),
    *("schedules", "sweeps_expr", "ensemble_size", "top_nodes", "weight_sides", "weight_classes", "classic_focal"),
}
SCORES = {"f1", "precision", "recall", "bin_ap", "ap"}
GOOD = """
title = "A spec"
datasets = ["spo_FUN", "expr_FUN_rebuilt"]

[[methods]]
name = "plain"
settings = { weighting = "none" }

[[methods]]
name = "weighted"

[published.spo_FUN]
plain = { f1 = [0.61, 0.04] }
"""
DECIDED = """
title = "A spec with decisions"
datasets = ["spo_FUN"]
protocol = "held_out"
[[methods]]
name = "plain"
"""
WEIGHTED = 'name = "weighted"\n'


def head(name: str) -> str:
    """The comment that a shipped spec begins with."""
    text = (resources.files("rarenode.paper") / "specs" / f"{name}.toml").read_text(encoding="utf-8")
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return "\n".join(line.removeprefix("#").strip() for line in lines[:first])


def published_rows(spec: Spec) -> list[tuple[str, str]]:
    return [(dataset, method) for dataset, rows in spec.published.items() for method in rows]


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def changed(old: str, new: str) -> str:
    """The good spec with one thing wrong."""
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


class TestShipped:
    def test_there_is_one_for_every_table_and_figure(self) -> None:
        assert set(spec_names()) == SHIPPED

    @pytest.mark.parametrize("name", sorted(SHIPPED))
    def test_every_cell_makes_settings(self, name: str) -> None:
        spec = load_spec(name)
        grid = tasks(spec)
        assert set(spec.datasets) == {task.cell.dataset for task in grid}
        assert {task.method for task in grid} == {method.name for method in spec.all_methods}
        methods = {method.name: method for method in spec.all_methods}
        for task in grid:
            method = methods[task.method]
            if method.preset == "paper":
                usual = settings_for(task.cell.dataset, **spec.settings | method.settings)
                assert task.cell.settings.epochs == usual.epochs
                assert task.cell.settings.hidden_size == usual.hidden_size
            else:
                assert task.cell.settings.learning_rate == Settings().learning_rate

    @pytest.mark.parametrize("name", sorted(SHIPPED))
    def test_two_methods_are_two_trainings(self, name: str) -> None:
        spec = load_spec(name)
        seen: dict[str, str] = {}
        for task in tasks(spec, seeds=1):
            other = seen.setdefault(task.cell.fingerprint, task.method)
            assert other == task.method or {other, task.method} in (
                {"None", "Mixed loss, mix=0.0"},  # the ends of the sweep are the plain losses
                {"Weighted", "Mixed loss, mix=1.0"},
                {"GMU, u0=0.25", "GMU, k=1.0"},  # where the two sweeps cross
            )

    @pytest.mark.parametrize("name", sorted(SHIPPED))
    def test_the_head_tells_the_command_and_how_long_it_takes(self, name: str) -> None:
        comment = head(name)
        commands = re.findall(rf"^rarenode paper run {name}\b(.*)$", comment, flags=re.MULTILINE)
        assert commands
        for command in commands:
            assert re.search(r" about .*\b(minutes?|hours?|days?|week|month)\b", command)
        assert "two cores" in comment

    @pytest.mark.parametrize("name", sorted(SHIPPED))
    def test_commands_in_the_head_name_what_the_spec_has(self, name: str) -> None:
        spec = load_spec(name)
        for command in re.findall(rf"^rarenode paper run {name}\b.*$", head(name), flags=re.MULTILINE):
            datasets, methods = re.findall(r"--datasets (\S+)", command), re.findall(r"--methods (\S+)", command)
            assert tasks(spec, datasets or None, methods or None, seeds=1)

    def test_titles_differ(self) -> None:
        assert len({load_spec(name).title for name in SHIPPED}) == len(SHIPPED)

    def test_all_204_published_rows_are_there(self) -> None:
        rows = {name: published_rows(load_spec(name)) for name in SHIPPED}
        repeated = [row for row in rows["lpros_weighting"] if row[1] == "w0=0.25"]
        assert len(repeated) == 16
        assert {name: len(found) for name, found in rows.items() if found} == {
            "imbalance_fun": 8 * 5,
            "imbalance_go": 8 * 5,
            "focal_fun": 8 * 5,
            "focal_go": 8 * 5,
            "focal_others": 2 * 6,
            "lpros_weighting": 16 + len(repeated),
            "dropout_compute": 8 * 2,
        }
        assert sum(map(len, rows.values())) - len(repeated) == 204

    def test_each_published_row_is_whole(self) -> None:
        expected = dict.fromkeys(("imbalance_fun", "imbalance_go", "focal_fun", "focal_go", "focal_others"), SCORES)
        expected |= {
            "lpros_weighting": {"f1"},
            "dropout_compute": {"seconds_per_epoch", "steps_per_second", "memory_mb", "f1"},
        }
        for name, measures in expected.items():
            spec = load_spec(name)
            for dataset, method in published_rows(spec):
                assert set(spec.published_for(dataset, method)) == measures, (name, dataset, method)

    @pytest.mark.parametrize(
        ("name", "dataset", "method", "measure", "value"),
        [
            ("imbalance_fun", "cellcycle_FUN", "None", "precision", (9.81, 0.70)),
            ("imbalance_fun", "cellcycle_FUN", "w0=0.25", "f1", (4.85, 0.11)),
            ("imbalance_fun", "gasch1_FUN", "HROS-PD", "ap", (28.28, 0.13)),
            ("imbalance_fun", "expr_FUN_rebuilt", "w0=0.25", "f1", (8.50, 0.30)),
            ("imbalance_go", "derisi_GO", "w0=0.25", "bin_ap", (17.38, 0.08)),
            ("focal_fun", "seq_FUN", "GMU", "f1", (8.65, 0.13)),
            ("focal_go", "spo_GO", "Epistemic KL", "ap", (37.64, 0.02)),
            ("focal_go", "expr_GO_rebuilt", "GMU", "precision", (8.28, 0.11)),
            ("focal_others", "enron", "GMU", "f1", (15.40, 0.08)),
            ("focal_others", "diatoms", "GMU", "recall", (55.99, 0.15)),
            ("lpros_weighting", "seq_FUN", "LPROS + w0=0.25", "f1", (7.57, 0.35)),
            ("lpros_weighting", "gasch1_GO", "w0=0.25", "f1", (2.66, 0.08)),
            ("dropout_compute", "seq_FUN", "ensemble", "steps_per_second", (80.0, 0.7)),
            ("dropout_compute", "seq_FUN", "ensemble", "memory_mb", (1015.9, None)),
            ("dropout_compute", "cellcycle_FUN", "mc-dropout", "seconds_per_epoch", (1.99, 0.07)),
        ],
    )
    def test_values_of_the_paper(
        self, name: str, dataset: str, method: str, measure: Measure, value: tuple[float, float | None]
    ) -> None:
        assert load_spec(name).published_for(dataset, method)[measure] == value

    @pytest.mark.parametrize("name", sorted(SHIPPED))
    def test_published_numbers_are_possible(self, name: str) -> None:
        spec = load_spec(name)
        for dataset, method in published_rows(spec):
            for measure, (mean, deviation) in spec.published_for(dataset, method).items():
                assert mean > 0
                assert measure not in SCORES or mean <= 100
                assert deviation is None or 0 <= deviation < mean

    def test_the_previous_best_is_the_weighted_row_of_the_imbalance_tables(self) -> None:
        both = load_spec("lpros_weighting")
        tables = {"FUN": load_spec("imbalance_fun"), "GO": load_spec("imbalance_go")}
        for dataset in both.published:
            table = tables[dataset.split("_")[1]]
            previous = table.published_for(dataset, "w0=0.25")
            best = max(table.published_for(dataset, method)["f1"] for method in table.published[dataset])
            assert both.published_for(dataset, "w0=0.25")["f1"] == previous["f1"] == best

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("lpros_weighting", "cellcycle_FUN", "w0=0.25"), ("imbalance_fun", "cellcycle_FUN", "w0=0.25")),
            (("lpros_weighting", "expr_GO_rebuilt", "w0=0.25"), ("imbalance_go", "expr_GO_rebuilt", "w0=0.25")),
            (("dropout_compute", "spo_FUN", "ensemble"), ("focal_fun", "spo_FUN", "GMU")),
            (("schedules", "spo_FUN", "None"), ("imbalance_fun", "spo_FUN", "None")),
            (("schedules", "spo_FUN", "Weighted"), ("imbalance_fun", "spo_FUN", "w0=0.25")),
            (("sweeps_expr", "expr_FUN_rebuilt", "GMU, k=1.0"), ("focal_fun", "expr_FUN_rebuilt", "GMU")),
            (
                ("sweeps_expr", "expr_FUN_rebuilt", "One model, w0=0.5"),
                ("imbalance_fun", "expr_FUN_rebuilt", "w0=0.50"),
            ),
            (("top_nodes", "derisi_FUN", "w0=0.50"), ("imbalance_fun", "derisi_FUN", "w0=0.50")),
            (("weight_sides", "spo_FUN", "negatives, as published"), ("imbalance_fun", "spo_FUN", "w0=0.25")),
            (
                ("weight_sides", "spo_FUN", "positives, as described"),
                ("imbalance_fun", "spo_FUN", "w0=0.25, as described"),
            ),
            (("weight_classes", "spo_FUN", "nodes"), ("imbalance_fun", "spo_FUN", "w0=0.25")),
            (("classic_focal", "spo_FUN", "None"), ("imbalance_fun", "spo_FUN", "None")),
        ],
    )
    def test_what_two_specs_need_is_one_training(self, one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
        first, second = (cell(load_spec(name), dataset, method, 0) for name, dataset, method in (one, other))
        assert first.name == second.name

    @pytest.mark.parametrize("name", ["focal_fun", "focal_go", "focal_others"])
    def test_without_lp_ros_only_the_rows_differ(self, name: str) -> None:
        spec = load_spec(name)
        assert {method for _, method in published_rows(spec)} == {
            method.name for method in spec.all_methods if not method.name.endswith((", without LP-ROS", ", one model"))
        }
        for _, method in published_rows(spec):
            on_clones, plain = (
                cell(spec, spec.datasets[0], name, 0).settings for name in (method, f"{method}, without LP-ROS")
            )
            assert (on_clones.n_members, on_clones.resampling) == (10, "lpros")
            assert plain == Settings(**(on_clones.to_dict() | {"resampling": "none"}))

    def test_sizes_of_ensembles_differ_in_nothing_else(self) -> None:
        spec = load_spec("ensemble_size")
        for series in ("Baseline", "bBMA", "GMU", "Epistemic JS", "Epistemic KL"):
            one, *more = (
                cell(spec, "cellcycle_FUN", f"{series}, members={size}", 0).settings for size in (1, 2, 4, 6, 8, 10)
            )
            assert (one.n_members, *(settings.n_members for settings in more)) == (1, 2, 4, 6, 8, 10)
            assert one.reduction == "sum"
            for settings in more:  # several are summed up by themselves
                assert settings.to_dict() == one.to_dict() | {"n_members": settings.n_members, "reduction": "auto"}

    def test_no_published_number_has_changed(self) -> None:
        """The digest was taken when all of them were compared with the paper's tables, digit by digit."""
        numbers = sorted(
            (name, dataset, method, measure, *(value if isinstance(value, tuple) else (value,)))
            for name in spec_names()
            for dataset, rows in load_spec(name).published.items()
            for method, row in rows.items()
            for measure, value in row.items()
        )
        assert len(numbers) == 956
        digest = hashlib.sha256(repr(numbers).encode()).hexdigest()
        assert digest == "7a9651cbc4c12ddea5d4506c6166272fcfb25786ee0ec7e68e62f590601bbedb"

    def test_decisions_are_of_the_papers_methods(self) -> None:
        spec = load_spec("decisions")
        assert len(spec.datasets) == 18
        by_method = {method.name: len(method.datasets or ()) for method in spec.methods}
        assert by_method.items() >= {"None": 16, "w0=0.25": 16, "GMU ensemble": 9}.items()
        seeds = [(task.cell.dataset, task.cell.settings.seed) for task in tasks(spec) if task.method == "None"]
        assert sum(dataset == "cellcycle_FUN" for dataset, _ in seeds) == 3
        assert sum(dataset == "enron" for dataset, _ in seeds) == 3
        assert sum(dataset == "cellcycle_GO" for dataset, _ in seeds) == 1
        for ours, table, theirs in (
            ("None", "imbalance_fun", "None"),
            ("w0=0.25", "imbalance_fun", "w0=0.25"),
            ("GMU ensemble", "focal_fun", "GMU"),
        ):
            one, other = cell(spec, "spo_FUN", ours, 0), cell(load_spec(table), "spo_FUN", theirs, 0)
            assert one.settings == other.settings
            assert (one.protocol, other.protocol) == ("held_out", "paper")

    def test_reductions_of_the_compute_table(self) -> None:
        reductions = load_spec("dropout_compute").reductions
        assert reductions is not None
        assert (reductions.of, reductions.against) == ("mc-dropout", "ensemble")
        assert reductions.measures == ("seconds_per_epoch", "memory_mb", "f1")


class TestOwn:
    def test_a_file_is_read(self, tmp_path: Path) -> None:
        spec = load_spec(str(write(tmp_path, GOOD)))
        assert [method.name for method in spec.all_methods] == ["plain", "weighted"]
        assert spec.published_for("spo_FUN", "plain") == {"f1": (0.61, 0.04)}
        assert spec.published_for("spo_FUN", "weighted") == {}
        assert spec.reductions is None

    def test_decisions_are_named_as_strategies_are(self, tmp_path: Path) -> None:
        text = 'decisions = ["fixed:0.5", "expected_f1.0", "prior:2", "midpoint"]' + DECIDED
        spec = load_spec(str(write(tmp_path, text)))
        assert spec.decisions == ("fixed", "expected_f1", "prior:2", "midpoint")

    def test_cross_fitting_may_stop_early(self, tmp_path: Path) -> None:
        text = 'decisions = ["fixed"]\nsettings = { patience = 3 }' + DECIDED.replace("held_out", "cross_fit")
        spec = load_spec(str(write(tmp_path, text)))
        assert cell(spec, "spo_FUN", "plain", 0).settings.patience == 3

    def test_a_rebuilt_dataset_has_the_numbers_of_the_original(self, tmp_path: Path) -> None:
        spec = load_spec(str(write(tmp_path, changed("[published.spo_FUN]", "[published.expr_FUN]"))))
        assert spec.published_for("expr_FUN_rebuilt", "plain") == {"f1": (0.61, 0.04)}

    def test_a_sweep_is_a_method_for_each_value(self, tmp_path: Path) -> None:
        sweep = '[[sweeps]]\nseries = "s"\nsetting = "n_members"\nlabel = "members"\nvalues = [1, 3]\n'
        spec = load_spec(str(write(tmp_path, changed("[published", f"{sweep}\n[published"))))
        assert [method.name for method in spec.all_methods[2:]] == ["s, members=1", "s, members=3"]
        assert cell(spec, "spo_FUN", "s, members=3", 0).settings.n_members == 3

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            (changed("plain = {", "plian = {"), "published.spo_FUN: 'plian' is not one of plain, weighted"),
            (changed(".spo_FUN]", ".seq_FUN]"), "published: 'seq_FUN' is not one of spo_FUN, expr_FUN"),
            (changed('["spo_FUN"', '["spo_FAN"'), "no dataset 'spo_FAN' in the catalogue. Did you mean 'spo_FUN'?"),
            (changed("weighting =", "wieghting ="), "'plain': unknown setting 'wieghting'; did you mean 'weighting'?"),
            (changed('"none"', '"some"'), "method 'plain': weighting: Input should be"),
            (changed(WEIGHTED, 'name = "plain"\n'), "two methods are named 'plain'"),
            (changed(WEIGHTED, f'{WEIGHTED}datasets = ["seq_FUN"]\n'), "method 'weighted': datasets: 'seq_FUN' is not"),
            (changed(WEIGHTED, f"{WEIGHTED}settings = {{ seed = 1 }}\n"), "method 'weighted': a spec cannot set seed"),
            (changed("f1 =", "f2 ="), "published.spo_FUN.plain.f2"),
            (changed("0.04", "-0.04"), "published.spo_FUN.plain.f1"),
            (changed("0.61", "nan"), "published.spo_FUN.plain.f1"),
            (changed("title =", "titel ="), "title: Field required"),
            (changed('\n\n[[methods]]\nname = "plain"', '\nseeds = 0\n\n[[methods]]\nname = "plain"'), "seeds: Input"),
            ('bold = ["best"]' + GOOD, "bold: 'best' is not one of plain, weighted"),
            ('protocol = "held_out"' + GOOD, "method 'plain': the protocol 'held_out' holds out rows"),
            ('protocol = "held-out"' + GOOD, "protocol: Input should be 'paper', 'held_out' or 'cross_fit'"),
            ('decisions = ["fixed"]' + GOOD, "method 'plain': decisions need held-out rows"),
            ('decisions = ["fixed"]' + changed(WEIGHTED, f'{WEIGHTED}protocol = "held_out"\n'), "'plain': decisions"),
            ('decisions = ["best"]' + DECIDED, "unknown threshold strategy 'best'"),
            ('decisions = ["fixed", "fixed:0.5"]' + DECIDED, "the decision 'fixed' is there twice"),
            ('decisions = ["fixed"]\nbold = ["plain"]' + DECIDED, "bold is for specs without decisions"),
            ('decisions = ["fixed"]\nsettings = { patience = 3 }' + DECIDED, "which decisions are fitted to"),
            ('decisions = ["fixed"]\nsettings = { holdout = 0.2 }' + DECIDED, "a spec cannot set holdout; protocol"),
            ('settings = { patience = 3 }' + GOOD, "patience needs validation rows, which are used for training"),
            ('one_seed = ["seq_FUN"]' + GOOD, "one_seed: 'seq_FUN' is not one of spo_FUN, expr_FUN_rebuilt"),
            ('colour = "red"' + GOOD, "unknown setting 'colour'"),
            ('reductions = { of = "x", against = "plain", measures = ["f1"] }' + GOOD, "reductions: 'x' is not one of"),
            ('reductions = { of = "plain", against = "x", measures = ["f1"] }' + GOOD, "reductions: 'x' is not one of"),
            ('reductions = { of = "plain", against = "weighted", measures = ["f2"] }' + GOOD, "reductions.measures.0"),
            ('reductions = { of = "plain", against = "weighted", measures = [] }' + GOOD, "reductions.measures"),
            ('panels = [{ kind = "sweep", title = "t", measures = ["f1"], setting = "k" }]' + GOOD, "panel 't': 'k'"),
            ('panels = [{ kind = "nodes", title = "t", measures = ["f1"], methods = ["x"] }]' + GOOD, "panel 't': 'x'"),
            ('panels = [{ kind = "nodes", title = "t", measures = ["ap"] }]' + GOOD, "panel 't': 'ap' is not one of"),
            (changed(WEIGHTED, f"{WEIGHTED}datasets = []\n"), "methods.1.datasets"),
            (changed(WEIGHTED, f"{WEIGHTED}settings = {{ patience = 3 }}\n"), "patience needs validation"),
            (changed('["spo_FUN", ', '["spo_FUN", "spo_FUN", '), "'spo_FUN' is among the datasets twice"),
            ('title = "x"\ndatasets = ["spo_FUN"]\n', "there is no method"),
            ("title = ", "this is not TOML"),
            ("title = " + "9" * 5_001, "4300 digits"),
            ("title = " + "[" * 100_000, "nested too deeply"),
            ("", "title: Field required"),
        ],
    )
    def test_what_is_wrong_is_said_with_the_file(self, text: str, fault: str, tmp_path: Path) -> None:
        path = write(tmp_path, text)
        with pytest.raises(FileFormatError) as caught:
            load_spec(str(path))
        assert str(caught.value).startswith(f"{path}: ")
        assert fault in caught.value.problem
        assert len(caught.value.problem) < 500

    def test_a_binary_file_is_no_spec(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.toml"
        path.write_bytes(bytes(range(256)))
        with pytest.raises(FileFormatError, match="not UTF-8") as caught:
            load_spec(str(path))
        assert caught.value.path == path

    def test_a_misspelt_name_gets_the_right_one(self) -> None:
        with pytest.raises(MissingFileError, match=r"imbalance_fn is neither .* did you mean 'imbalance_fun'\?"):
            load_spec("imbalance_fn")

    def test_a_name_like_none_gets_them_all(self) -> None:
        with pytest.raises(MissingFileError) as caught:
            load_spec("qqqq")
        assert all(name in str(caught.value) for name in SHIPPED)

    def test_a_folder_is_no_spec(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match="neither a spec of rarenode nor a file"):
            load_spec(str(tmp_path))


@pytest.mark.parametrize("name", ["x" * 5000, "nul\0byte", "."])
def test_what_cannot_be_a_file_is_no_spec(name: str) -> None:
    with pytest.raises(MissingFileError, match="neither a spec of rarenode nor a file"):
        load_spec(name)
