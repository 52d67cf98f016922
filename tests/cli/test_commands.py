"""The command line: what it prints, how it fails, its options. What it does is tested in tests/run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rarenode.cli.demo
import rarenode.data.samples
from rarenode import Run, Settings
from rarenode.cli import main
from rarenode.cli.app import app
from rarenode.cli.console import print_error
from rarenode.cli.tables import sparkline
from rarenode.data.catalogue import CatalogueEntry
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError, ResumeError
from rarenode.paper import settings_for
from tests.commands import fail, on_training_rows, run, succeed, write_arff

QUICK = ("--n-trees", "3", "--cv", "2", "--epochs", "2", "--hidden-size", "8", "--engine", "torch")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_arff(tmp_path / "small.arff")


@pytest.fixture
def trained(data: Path, tmp_path: Path) -> Path:
    succeed("fit", data, "--out", tmp_path / "run", *QUICK, "--quiet", "--no-report")
    return tmp_path / "run"


class TestFit:
    def test_every_setting_is_an_option(self, data: Path, tmp_path: Path) -> None:
        options = []
        expected = {
            "thresholds": "expected_f2", "rule": "drop_orphans", "holdout": 0.3, "model": "mlp+forest", "n_members": 2,
            "ensemble": "dropout", "hidden_size": 8, "n_layers": 2, "dropout": 0.1, "activation": "tanh", "n_trees": 2,
            "resampling": "lpros", "weighting": "as_described", "w0": 0.3, "side": "both", "classes": "binary",
            "focus": "gmu", "u0": 0.5, "k": 2.0, "schedule": "linear", "schedule_by": "batch",
            "schedule_towards": "w0", "mix": 0.5, "epochs": 1, "patience": 4, "batch_size": 8, "learning_rate": 0.01,
            "weight_decay": 0.0, "reduction": "sum", "seed": 7, "engine": "torch", "device": "cpu", "n_jobs": 1,
            "checkpoint_epochs": 1, "checkpoint_minutes": 2.0, "encoder": "vit", "image_size": 64,
            "train_encoder": False, "encoder_learning_rate": 0.01, "encoder_batchnorm": "frozen",
            "augmentation": "flip", "precision": "float32", "blend": "learned", "guaranteed_recall": 0.8,
            "compile": False, "output_bias": "random", "n_components": 50,
        }  # fmt: skip
        assert set(expected) == set(Settings.model_fields) - {"cv"}
        for name, value in expected.items():
            option = name.replace("_", "-")
            options += [f"--no-{option}"] if value is False else [f"--{option}", str(value)]
        succeed("fit", data, "--out", tmp_path / "run", *options, "--quiet", "--no-report")
        assert Run(tmp_path / "run").settings.to_dict() == expected | {"cv": None}

    def test_old_names_of_options(self, data: Path, tmp_path: Path) -> None:
        old = ("--members", "2", "--trees=3", "--folds", "2", "--early-stopping", "0", "--decision", "prior")
        succeed("fit", data, "--out", tmp_path / "run", *old, "--epochs", "1", "--engine", "torch", "--quiet")
        found = Run(tmp_path / "run").settings
        assert (found.n_members, found.n_trees, found.cv, found.patience, found.thresholds) == (2, 3, 2, None, "prior")
        assert "--members" not in succeed("fit", "--help")

    def test_options_override_the_file_and_the_file_the_preset(self, data: Path, tmp_path: Path) -> None:
        file = tmp_path / "mine.toml"
        file.write_text('hidden_size = 8\nepochs = 2\nweighting = "none"\nengine = "torch"\n')
        command = ("fit", data, "--preset", "paper", "--settings", file, "--epochs", "1", "--quiet")
        succeed(*command, "--out", tmp_path / "run")
        changes = {"hidden_size": 8, "epochs": 1, "weighting": "none", "engine": "torch"}
        assert Run(tmp_path / "run").settings == Settings.preset("paper", **changes)

    def test_a_file_may_contain_a_single_setting(self, data: Path, tmp_path: Path) -> None:
        file = tmp_path / "mine.toml"
        for name, value in (("thresholds", '"expected_f2"'), ("cv", "0"), ("holdout", "0.3")):
            file.write_text(f"{name} = {value}")
            options = ("--thresholds", "fixed", "--patience", "0") if name == "cv" else ()
            small = ("--n-trees", "3", "--epochs", "1", "--hidden-size", "8", "--engine", "torch", "--quiet")
            succeed("fit", data, "--out", tmp_path / name, "--settings", file, *options, *small, "--no-report")
        assert Run(tmp_path / "thresholds").settings.thresholds == "expected_f2"
        assert (Run(tmp_path / "holdout").settings.cv, Run(tmp_path / "holdout").settings.holdout) == (None, 0.3)

    def test_the_settings_of_a_run_can_be_used_again(self, trained: Path, data: Path, tmp_path: Path) -> None:
        for preset in ("best", "paper"):
            out = tmp_path / preset
            file = trained / "settings.toml"
            succeed("fit", data, "--out", out, "--settings", file, "--preset", preset, "--quiet", "--no-report")
            assert Run(out).settings == Run(trained).settings

    def test_what_it_prints(self, data: Path, tmp_path: Path) -> None:
        result = run("fit", data, "--out", tmp_path / "run", *QUICK)
        page = tmp_path / "run" / "report.html"
        assert f"{page}: which nodes are found, which are missed, and why" in result.stdout
        assert "midpoint" in result.stdout
        assert "fold 1 of 2: training up to 2 epochs" in result.stderr
        assert run("fit", data, "--out", tmp_path / "quiet", *QUICK, "--quiet").output == ""
        plain = succeed("fit", data, "--out", tmp_path / "plain", "--preset", "paper", "--epochs", "1")
        assert f"no report, because all rows were used for training; `rarenode report {tmp_path / 'plain'}" in plain

    def test_a_resumed_run_keeps_its_settings(self, trained: Path, data: Path) -> None:
        assert "midpoint" in succeed("fit", data, "--out", trained, "--resume", "--no-report")
        told = fail(ResumeError, "fit", data, "--out", trained, "--resume", "--epochs", "9", "--quiet")
        assert "epochs was 2 and is now 9" in told

    def test_a_preset_that_contradicts_the_run_is_refused(self, trained: Path, data: Path) -> None:
        told = fail(ResumeError, "fit", data, "--out", trained, "--resume", "--preset", "paper", *QUICK)
        assert "weighting was 'none' and is now 'as_published'" in told
        succeed("fit", data, "--out", trained, "--resume", "--preset", "best", *QUICK, "--no-report")

    def test_why_there_is_no_report(self, trained: Path, data: Path) -> None:
        resume = ("fit", data, "--out", trained, "--resume")
        assert f"{trained / 'report.html'}: which nodes are found" in succeed(*resume)
        (trained / "report.html").unlink()
        (trained / "held_out.safetensors").unlink()
        assert f"no report, because {trained / 'held_out.safetensors'} is missing" in succeed(*resume)

    @pytest.mark.parametrize("command", ["fit", "evaluate"])
    def test_an_empty_path_is_not_the_current_folder(
        self, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        before = set(tmp_path.iterdir())
        result = run("fit", data, "--out", "", *QUICK) if command == "fit" else run("evaluate", "", data)
        assert result.exit_code == 2
        assert "the path is empty" in result.stderr
        assert set(tmp_path.iterdir()) == before

    def test_the_papers_hyperparameters(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        """A dataset of the paper has its own, any other data those of the preset."""
        from rarenode.cli.fit import _preset

        assert _preset("paper", "cellcycle_FUN", None) == settings_for("cellcycle_FUN")
        assert _preset("paper", "mine.arff", None) == Settings.preset("paper")
        assert _preset("best", "cellcycle_FUN", None) == _preset("best", "photos.csv", "resnet50") == Settings()
        heads = _preset("paper", "photos.csv", "random:resnet18")
        assert (heads.n_members, heads.hidden_size, heads.encoder) == (20, 512, "random:resnet18")

    def test_invalid_settings(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        assert "epochs" in fail(ArgumentError, "fit", data, "--out", out, "--epochs", "0")
        file = tmp_path / "mine.toml"
        file.write_text("hiden_size = 8\n")
        assert "did you mean 'hidden_size'" in fail(FileFormatError, "fit", data, "--out", out, "--settings", file)
        assert "'most'" in fail(ArgumentError, "fit", data, "--out", out, "--thresholds", "most")
        assert "set one of them" in fail(ArgumentError, "fit", data, "--out", out, "--cv", "2", "--holdout", "0.2")
        for wrong in (("--weighting", "some"), ("--preset", "worst"), ("--rule", "none")):
            assert run("fit", data, "--out", out, *wrong).exit_code == 2
        assert not out.exists()


def test_warnings_are_one_line(data: Path, tmp_path: Path) -> None:
    lines = data.read_text().splitlines()
    lines[-1] = ",".join([*lines[-1].split(",")[:-1], "?"])
    data.write_text("\n".join(lines))
    command = [sys.executable, "-m", "rarenode", "fit", str(data), "--out", str(tmp_path / "run"), *QUICK, "--quiet"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert shown == f"rarenode: warning: {data}: 1 of 24 rows have no labels and are not used for training\n"


def test_long_errors_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"there is no column {'a' * 5000}")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rarenode: there is no column aaa")
    assert line.endswith("aaa... (5,019 characters)")
    assert len(line) < 4100


def test_errors_of_the_system_are_one_line(data: Path, tmp_path: Path) -> None:
    huge = ("--hidden-size", "1000000")
    for command, told in (
        (("data", "info", "cellcycle_FUN", "--root", "x" * 300), "File name too long"),
        (("fit", str(data), "--out", str(tmp_path / "run"), *huge), "not enough memory: .*hidden_size=1000000"),
    ):
        result = subprocess.run(
            [sys.executable, "-m", "rarenode", *command], capture_output=True, text=True, check=False
        )
        assert result.returncode == 1
        assert re.search(rf"(^|\n)rarenode: .*{told}.*\n$", result.stderr), result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [["settings"], ["data", "list"], ["--version"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output(command: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        arguments = [sys.executable, "-m", "rarenode", *command]
        env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        result = subprocess.run(arguments, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert re.fullmatch("rarenode: .*No space left on device\n", result.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix closes it")
@pytest.mark.parametrize("command", ["data list", "--version"])
def test_a_closed_standard_output(command: str) -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m rarenode {command} >&-'],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert re.fullmatch("rarenode: standard output cannot be written: Bad file descriptor\n", result.stderr)


class TestEvaluate:
    def test_a_table_in_percent(self, trained: Path, data: Path) -> None:
        shown = succeed("evaluate", trained, data)
        assert "24 rows" in shown
        assert "the model was trained on these rows; scores on new rows will be lower" in shown
        assert "depth" in shown

    def test_a_second_table_by_aspect(self, trained: Path, data: Path) -> None:
        shown = succeed("evaluate", trained, data)
        with on_training_rows():
            found = Run(trained).evaluate(data)
        decided, best = found.hierarchical["all"], found.cafa["all"]
        percent = [f"{100 * v:.2f}" for v in (decided.precision, decided.recall, decided.f1, best.f_max, best.coverage)]
        bits = [f"{v:.2f}" for v in (best.f_max_threshold, best.s_min, best.s_min_threshold) if v is not None]
        assert shown.splitlines()[-2].split() == ["all", "24", *percent[:4], bits[0], percent[4], *bits[1:]]

    def test_a_model_without_the_counts_for_s_min(self, trained: Path, data: Path) -> None:
        record = json.loads((trained / "model.json").read_text())
        record.pop("parents_together")
        (trained / "model.json").write_text(json.dumps(record))
        *_, line, _, note, end = succeed("evaluate", trained, data).split("\n")
        assert line.split()[-2:] == ["-", "-"]
        assert (note[:20], end) == ("S-min is left out: a", "")

    @pytest.mark.parametrize(("encoding", "bars"), [("utf-8", "█ ▁▄"), ("ascii", "@ .=")])
    def test_bars_that_the_terminal_can_show(self, encoding: str, bars: str) -> None:
        assert sparkline([8, 0, 1, 4], encoding) == bars
        assert sparkline([], encoding) == ""
        assert sparkline([0, 0], encoding) == "  "

    def test_data_that_do_not_fit(self, trained: Path, tmp_path: Path) -> None:
        other = write_arff(tmp_path / "other.arff", features=("a", "b", "x"))
        assert "lacks features of the model: 'c'" in fail(DataError, "evaluate", trained, other)
        assert "complete model" in fail(MissingFileError, "evaluate", tmp_path, other)


class TestPredict:
    def test_what_it_prints(self, trained: Path, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "p.csv"
        assert succeed("predict", trained, data, "--out", out) == f"{out}: 24 rows x 5 nodes, 120 lines\n"
        decided = int(Run(trained).predict(data).decided.sum())
        shown = succeed("predict", trained, data, "--out", out, "--decided-only")
        assert shown == f"{out}: 24 rows x 5 nodes, {decided} lines\n"
        assert succeed("predict", trained, data, "--out", out, "--quiet") == ""

    def test_a_device(self, trained: Path, data: Path, tmp_path: Path) -> None:
        texts = []
        for place, options in enumerate(((), ("--device", "cpu"))):
            succeed("predict", trained, data, "--out", tmp_path / f"{place}.csv", *options)
            texts.append((tmp_path / f"{place}.csv").read_text())
        assert texts[0] == texts[1]
        for command in (("predict", trained, data, "--out", tmp_path / "x.csv"), ("evaluate", trained, data)):
            assert "device 'cuda:99' is not available; choose auto" in fail(
                ArgumentError, *command, "--device", "cuda:99"
            )

    def test_a_bad_name_is_refused_before_anything_is_computed(self, trained: Path, tmp_path: Path) -> None:
        told = fail(ArgumentError, "predict", trained, tmp_path / "no.arff", "--out", tmp_path / "p.txt")
        assert "must end in" in told


class TestDemo:
    def test_a_table_and_a_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rarenode.data.samples, "SURVEY_ROWS", {"train": 120, "test": 60, "new": 1})
        small = {"hidden_size": 8, "learning_rate": 1e-2, "batch_size": 32, "epochs": 1, "engine": "torch"}
        monkeypatch.setattr(rarenode.cli.demo, "TRAINING", small)
        out = tmp_path / "demo.html"
        shown = succeed("demo", "--out", out, "--quiet")
        assert all(name in shown for name in ("plain", "weights", "best", "found", "F1"))
        assert out.exists()

    def test_a_bad_name_is_refused_before_any_training(self, tmp_path: Path) -> None:
        assert "html" in fail(ArgumentError, "demo", "--out", tmp_path / "demo.pdf")


COMMANDS = (
    "demo", "fit", "evaluate", "predict", "doctor", "report", "settings", "data list", "data sample", "hierarchy show",
    "hierarchy check", "hierarchy convert", "paper run", "paper table",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_examples(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert "Examples:\n" in shown
    assert f"rarenode {command}" in shown


def test_settings_prints_a_file_that_can_be_used() -> None:
    shown = succeed("settings", "--preset", "paper")
    assert 'thresholds = "fixed"' in shown
    assert shown.count("# ") >= len(Settings.model_fields)


@pytest.mark.parametrize("start", [["-m", "rarenode"], ["-c", "from rarenode.cli import main; main()"]])
def test_it_starts_as_a_module_and_help_needs_no_torch(start: list[str]) -> None:
    code = "import sys; from rarenode.cli.app import app; import rarenode.cli.fit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    shown = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == f"rarenode {rarenode.__version__}\n"


def test_importing_changes_no_environment() -> None:
    """But for what scikit-learn itself sets."""
    code = (
        "import os, sklearn; before = dict(os.environ); import rarenode; rarenode.RareNodeClassifier; "
        "assert dict(os.environ) == before, set(os.environ) ^ set(before)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ctrl_c_in_any_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the program replaces it
    monkeypatch.setattr(Settings, "preset", press)
    monkeypatch.setattr(sys, "argv", ["rarenode", "settings"])
    with pytest.raises(SystemExit, match="130"):
        main()
    assert capsys.readouterr().err == "rarenode: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize("start", [["-m", "rarenode"], ["-c", "from rarenode.cli import main; main()"]])
@pytest.mark.parametrize("module", ["rarenode.cli.app", "typer", "numpy", "rarenode.cli.fit"])
def test_ctrl_c_while_modules_are_imported(start: list[str], module: str, tmp_path: Path) -> None:
    """The keys are pressed when the program begins to import a module."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(rarenode.__file__).parents[1])])
    command = [sys.executable, *start, "settings"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path})
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "rarenode: interrupted\n")
