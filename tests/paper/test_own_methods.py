"""Python code that a method names: what it may be, what is trained with it, and what becomes of its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rarenode.errors import ArgumentError, FileFormatError, TrainingError
from rarenode.executors import Processes
from rarenode.paper.figures import figure_of
from rarenode.paper.grid import tasks
from rarenode.paper.measure import load_rows, measure
from rarenode.paper.own_training import checked_class, fit_own_model, how_of
from rarenode.paper.report import report_on_records
from rarenode.paper.runner import TrainingTimes, run_tasks
from rarenode.paper.spec import load_spec, spec_names
from rarenode.paper.store import record_path
from rarenode.paper.tables import write_table as table_of
from tests.paper.own_files import (
    DATA,
    DECIDED,
    HEAD,
    LOSS,
    MODEL,
    PLAIN,
    ROWS,
    load,
    method,
    records,
    train,
    write_code,
    write_data,
)

MINE = (
    method("loss", objective="loss.py:Loss"),
    method("rows", resampler="rows.py:Twice"),
    method("both", objective="loss.py:Loss", resampler="rows.py:Twice"),
    method("model", model="model.py:Nearest"),
)


@pytest.fixture
def folder(tmp_path: Path, one_thread: None) -> Path:
    write_data(tmp_path)
    for name, text in (("loss", LOSS), ("model", MODEL), ("rows", ROWS)):
        write_code(tmp_path, f"{name}.py", text)
    return tmp_path


class TestSpec:
    def test_reading_runs_nothing(self, folder: Path) -> None:
        write_code(folder, "loss.py", "raise SystemExit")
        spec = load(folder, HEAD, DATA, *MINE, PLAIN)
        results = folder / "results"
        assert len(tasks(spec)) == 5
        assert "5 of 5 trainings have no record yet" in table_of(spec, results)
        with pytest.raises(ArgumentError, match="no record of this spec yet"):
            figure_of(spec, results)

    def test_no_spec_that_ships_has_code(self) -> None:
        for name in spec_names():
            spec = load_spec(name)
            assert not spec.data and not any(each.codes for each in spec.all_methods)

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"objective": "loss.py"}, "method 'mine': objective must be a class in a Python file.*got 'loss.py'"),
            ({"objective": "loss:Loss"}, "method 'mine': objective must be a class in a Python file"),
            ({"model": 3}, "method 'mine': model must be a class in a Python file.*got 3"),
            ({"resampler": "gone.py:Twice"}, "method 'mine': resampler: there is no file .*gone.py"),
            ({"objektive": "loss.py:Loss"}, "objektive"),
            ({"objective": "loss.py:Loss", "model": "model.py:Nearest"}, "objective has no effect with model"),
            ({"model": "model.py:Nearest", "preset": "best"}, "preset has no effect with model"),
        ],
    )
    def test_what_cannot_be(self, folder: Path, values: dict[str, object], problem: str) -> None:
        with pytest.raises(FileFormatError, match=f"spec.toml: .*{problem}"):
            load(folder, HEAD, DATA, method("mine", **values))

    @pytest.mark.parametrize(
        ("key", "settings", "problem"),
        [
            ('objective = "loss.py:Loss"', 'focus = "gmu"', "setting focus has no effect with objective"),
            ('resampler = "rows.py:Twice"', 'resampling = "lpros"', "setting resampling has no effect with resampler"),
            ('model = "model.py:Nearest"', "epochs = 3", "setting epochs has no effect with model"),
            ('objective = "loss.py:Loss"', 'model = "forest"', "objective is for networks"),
            ('objective = "loss.py:Loss"', 'engine = "fused"', "objective needs engine"),
        ],
    )
    def test_settings_without_effect(self, folder: Path, key: str, settings: str, problem: str) -> None:
        with pytest.raises(FileFormatError, match=f"method 'mine': {problem}"):
            load(folder, HEAD, DATA, f"[[methods]]\nname = 'mine'\n{key}\nsettings = {{ {settings} }}\n")

    def test_settings_of_all_methods_give_way(self, folder: Path) -> None:
        head = HEAD.replace("epochs = 2", 'epochs = 2, focus = "gmu", n_members = 2, resampling = "lpros"')
        loss, rows, both, model = (task.cell.settings for task in tasks(load(folder, head, DATA, *MINE)))
        assert (loss.focus, loss.weighting, loss.n_members, loss.resampling) == ("none", "none", 2, "lpros")
        assert (rows.focus, rows.resampling, both.focus, both.resampling) == ("gmu", "none", "none", "none")
        assert (model.focus, model.n_members, model.resampling) == ("none", 1, "none")


class TestIdentity:
    def test_it_is_class_and_content(self, folder: Path) -> None:
        write_code(folder, "loss.py", LOSS + "\n    Other = Loss\n")
        its = [method("a", objective="loss.py:Loss"), method("b", objective="loss.py:Other")]
        first, second = tasks(load(folder, HEAD, DATA, *its))
        assert first.cell.fingerprint != second.cell.fingerprint
        assert "objective=Loss" in first.cell.name and "objective=Other" in second.cell.name
        (folder / "loss.py").rename(folder / "renamed.py")
        (renamed,) = tasks(load(folder, HEAD, DATA, method("c", objective="renamed.py:Loss")))
        assert renamed.cell.fingerprint == first.cell.fingerprint
        write_code(folder, "loss.py", LOSS + "\n    # a comment\n")
        (changed,) = tasks(load(folder, HEAD, DATA, its[0]))
        assert changed.cell.fingerprint != first.cell.fingerprint

    def test_a_dataset_of_rarenode_keeps_its_folder(self, folder: Path) -> None:
        spec = load(folder, HEAD.replace('["mine"]', '["spo_FUN"]'), method("loss", objective="loss.py:Loss"))
        assert tasks(spec)[0].cell.place == "spo_FUN"

    def test_the_code_that_runs_is_the_one_that_was_read(self, folder: Path) -> None:
        """The file may change, or not be there, where the training runs."""
        spec = load(folder, HEAD, DATA, method("loss", objective="loss.py:Loss"))
        (folder / "loss.py").unlink()
        assert len(train(spec, folder / "results").finished) == 1

    def test_its_times_say_nothing_about_other_trainings(self, folder: Path) -> None:
        spec, results = load(folder, HEAD, DATA, *MINE, PLAIN), folder / "results"
        train(spec, results)
        known = TrainingTimes.from_records(results)
        for task in tasks(spec):
            assert known.seconds(task.cell) == pytest.approx(records(spec, results)[task.method].seconds)
        other = tasks(load_spec("imbalance_fun"))[0].cell
        assert known.seconds(other) == TrainingTimes({}).seconds(other)


class TestTraining:
    def test_a_loss_like_ours_trains_as_ours(self, folder: Path) -> None:
        """The mean of its cells is the loss without weights; rounding differs."""
        spec, results = load(folder, HEAD, DATA, *MINE[:1], PLAIN), folder / "results"
        train(spec, results)
        ours, mine = (records(spec, results)[name] for name in ("plain", "loss"))
        assert mine.engine == "torch"
        assert mine.at_half.summary.ap == pytest.approx(ours.at_half.summary.ap, abs=1e-6)
        assert mine.own is not None and mine.own["objective"].startswith("Loss ")

    def test_a_loss_gets_all_members_and_what_the_network_learns_from(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        head = HEAD.replace("epochs = 2", "epochs = 1, n_members = 3")
        cell = tasks(load(folder, head, DATA, MINE[2]))[0].cell
        seen: list[tuple[int, ...]] = []
        assert cell.sources is not None and cell.sources.objective is not None
        loss = checked_class("objective", cell.sources.objective)
        forward = loss.forward

        def watched(self: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            seen.append(tuple(logits.shape))
            result: torch.Tensor = forward(self, logits, labels)
            return result

        monkeypatch.setattr(loss, "forward", watched)
        measure(cell)
        nodes = len(load_rows(cell, None).hierarchy)
        assert seen == [(3, 64, nodes), (3, 16, nodes)]  # 40 rows, each with a clone, in batches of 64

    def test_a_model_is_made_coherent(self, folder: Path) -> None:
        text = MODEL.replace(".mean(axis=1)", ".mean(axis=1) * np.linspace(0.5, 1, self.Y.shape[1])")
        write_code(folder, "model.py", text)
        cell = tasks(load(folder, HEAD, DATA, MINE[3]))[0].cell
        splits = load_rows(cell, None)
        probs = fit_own_model(cell, splits.train, prepare=True).predict_proba(splits.test.X)
        tree = splits.hierarchy
        assert (probs[:, tree.edge_parents] >= probs[:, tree.edge_children]).all()
        assert probs.max() == 1  # of the deepest nodes, and so of those above

    def test_record_table_report_and_figure(self, folder: Path) -> None:
        published = "\n[published.mine]\nplain = { f1 = [50.0, 1.0] }\n"
        spec, results = load(folder, HEAD, DATA, PLAIN, *MINE, published), folder / "results"
        train(spec, results)
        found = records(spec, results)
        assert found["model"].at_half.steps_per_epoch == 0 and found["model"].at_half.summary.f1 > 0.5
        for name, record in found.items():
            (planned,) = (task.cell for task in tasks(spec) if task.method == name)
            assert record.cell.fingerprint == planned.fingerprint
        lines = [line for line in table_of(spec, results).splitlines() if line.startswith("| mine")]
        assert len(lines) == 5 and "50.00 ± 1.00<br>" in lines[0]
        assert lines[4].endswith("| - |")  # a model has no steps
        path = record_path(results, found["both"].cell)
        part = report_on_records([path])
        assert "objective=Loss, resampler=Twice" in part.name
        assert figure_of(spec, results).missing == 0

    @pytest.mark.parametrize("protocol", ["held_out", "cross_fit"])
    def test_decisions(self, folder: Path, protocol: str) -> None:
        spec = load(folder, DECIDED.replace("held_out", protocol), DATA, *MINE)
        train(spec, folder / "results")
        found = records(spec, folder / "results")
        assert list(found) == ["loss", "rows", "both", "model"]
        assert all(record.decided.ap > 0.3 for record in found.values())
        assert "#### mine" in table_of(spec, folder / "results")

    def test_in_another_process(self, folder: Path) -> None:
        spec = load(folder, HEAD, DATA, *MINE)
        outcome = run_tasks(tasks(spec), folder / "results", Processes(1))
        assert len(outcome.finished) == 4

    def test_weights_of_rows_are_refused(self, folder: Path) -> None:
        for name in ("train", "test"):
            path = folder / f"{name}.csv"
            head, *rows = path.read_text().splitlines()
            path.write_text("\n".join([f"{head},weight", *(f"{row},2" for row in rows)]) + "\n")
        spec = load(folder, HEAD, DATA, 'weight = "weight"\n', *MINE[:1])
        with pytest.raises(TrainingError, match="counts all rows and labels the same; there are weights of rows"):
            train(spec, folder / "results")

    def test_a_resampler_is_checked_on_the_rows_themselves(self, folder: Path) -> None:
        write_code(folder, "rows.py", ROWS.replace("2)", "2)[: len(Y) if len(Y) == 36 else 5]"))
        with pytest.raises(TrainingError, match=r"rows.py:Twice breaks a rule of resamplers: every row must come once"):
            train(load(folder, HEAD, DATA, MINE[1]), folder / "results")

    def test_how_of_a_cell_without_code_is_empty(self, folder: Path) -> None:
        cell = tasks(load(folder, HEAD, DATA, PLAIN))[0].cell
        assert how_of(cell, load_rows(cell, None).hierarchy) == {}


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "old", "new", "problem"),
        [
            ("loss.py", "    class Loss", "    class Lost", "loss.py has no class 'Loss'"),
            ("loss.py", "class Loss", "clas Loss", r"loss.py, line 5: SyntaxError"),
            ("loss.py", "import torch", "import torch, a_module_that_nobody_has", "loss.py, line 2, in <module>: Mod"),
            ("loss.py", "super().__init__()", "{}['a']", r"loss.py, line 7, in __init__: KeyError: 'a'"),
            ("loss.py", ".mean()", ".median(dim=7)", r"loss.py, line 12, in forward: IndexError"),
            ("loss.py", ".mean()", "", "loss.py:Loss breaks a rule of objectives: it must return a torch tensor with"),
            ("model.py", "self.seed = seed", "raise SystemExit(1)", r"model.py, line 6, in __init__: SystemExit: 1"),
            ("model.py", "= X, Y", "= X.copy(), Y; X[:] = 0", "model.py:Nearest breaks a rule of models"),
            ("rows.py", "len(Y)), 2)", "len(Y)) + 1, 2)", "rows.py:Twice breaks a rule of resamplers"),
            ("rows.py", "len(Y)), 2)", "len(Y)), 2 // (len(Y) != 40))", r"rows.py, line 9, in resample: ZeroDiv"),
        ],
    )
    def test_they_name_the_line_and_others_go_on(
        self, folder: Path, name: str, old: str, new: str, problem: str
    ) -> None:
        text = {"loss.py": LOSS, "model.py": MODEL, "rows.py": ROWS}[name]
        assert old in text
        write_code(folder, name, text.replace(old, new))
        mine = {"loss.py": MINE[0], "model.py": MINE[3], "rows.py": MINE[1]}[name]
        spec, results = load(folder, HEAD, DATA, mine, PLAIN), folder / "results"
        with pytest.raises(TrainingError, match=f"1 of 2 trainings failed. mine, [a-z]+, seed 0: {problem}") as raised:
            train(spec, results)
        assert "\n" not in str(raised.value)
        assert list(records(spec, results)) == ["plain"]

    def test_an_error_of_rarenode_in_its_own_code_is_not_blamed_on_it(self, folder: Path) -> None:
        """The test file is damaged, whatever the method is."""
        (folder / "test.csv").write_text("name,a,b,taxa\n1,x,2,coral\n")
        with pytest.raises(TrainingError, match=r"\[data.mine\]: "):
            train(load(folder, HEAD, DATA, MINE[0]), folder / "results")


def test_a_loss_learns(folder: Path) -> None:
    """With more weight on what is there, more is predicted."""
    eager = LOSS.replace(".mean()", ".mul(1 + 30 * labels).mean()")
    write_code(folder, "loss.py", eager)
    head = HEAD.replace("epochs = 2", "epochs = 40")
    spec, results = load(folder, head, DATA, MINE[0], PLAIN), folder / "results"
    train(spec, results)
    found = {name: sum(record.at_half.nodes.predicted) for name, record in records(spec, results).items()}
    assert found["loss"] > found["plain"] and np.isfinite(found["loss"])
