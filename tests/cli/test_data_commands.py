from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

import rarenode.cli
import rarenode.cli.data
import rarenode.data.catalogue
from rarenode.cli import main
from rarenode.cli.app import app
from rarenode.data.catalogue import CatalogueEntry, catalogue
from rarenode.errors import ArgumentError, UnknownDatasetError
from tests.data.serving import Server, failing, small_entry, small_file

SOURCES = Path(rarenode.cli.__file__).parents[2]
BODY = b"some content"


@pytest.fixture
def small(server: Server, monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    """The catalogue has one dataset, and its name is rich markup."""
    files = small_file(BODY), small_file(BODY, "test")
    server.content = {quote(str(file.path)): BODY for file in files}
    entry = small_entry(server.address, *files)
    for module in (rarenode.data.catalogue, rarenode.cli.data):
        monkeypatch.setattr(module, "catalogue", lambda: {entry.name: entry})
    return entry


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


def words(text: str) -> list[str]:
    return text.split()


class TestList:
    def test_every_dataset_has_a_line(self, run: CliRunner, tmp_path: Path) -> None:
        result = run.invoke(app, ["data", "list", "--root", str(tmp_path)])
        assert result.exit_code == 0
        lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.split()}
        assert set(catalogue()) <= set(lines)
        assert lines["cellcycle_FUN"] == ["tree", "1628", "848", "1281", "77", "500", "499", "no"]
        assert lines["enron"] == ["tree", "988", "-", "660", "1001", "57", "56", "no"]
        assert str(tmp_path) in result.stdout

    def test_it_shows_what_has_been_fetched(self, run: CliRunner, small: CatalogueEntry, tmp_path: Path) -> None:
        def line() -> str:
            result = run.invoke(app, ["data", "list"], env={"RARENODE_DATA": str(tmp_path)})
            return next(line for line in result.stdout.splitlines() if "small" in line).rstrip()

        assert line().lstrip().startswith("small[bold] ")
        assert line().endswith(" no")
        for file, then in zip(small.files, (" 1 of 2", " yes"), strict=True):
            (tmp_path / file.path).parent.mkdir(exist_ok=True)
            (tmp_path / file.path).write_bytes(BODY)
            assert line().endswith(then)


class TestInfo:
    def test_everything_is_there(self, run: CliRunner, tmp_path: Path) -> None:
        result = run.invoke(app, ["data", "info", "cellcycle_GO", "--root", str(tmp_path)])
        assert result.exit_code == 0
        entry = catalogue()["cellcycle_GO"]
        output = " ".join(words(result.stdout))
        for fact in (
            "dag, 4,126 nodes (4,122 scored), 5,827 edges",
            "root, GO0003674, GO0005575, GO0008150",
            entry.source,
            *entry.citations,
            entry.licence,
            *(str(file.path) for file in entry.files),
            *(str(file.sha256) for file in entry.files),
        ):
            assert fact in output
        assert output.count("absent") == 3

    def test_files_are_verified(self, run: CliRunner, small: CatalogueEntry, tmp_path: Path) -> None:
        train, test = (tmp_path / file.path for file in small.files)
        train.parent.mkdir()
        train.write_bytes(BODY)
        test.write_bytes(b"other content")
        output = run.invoke(app, ["data", "info", small.name, "--root", str(tmp_path)]).stdout
        assert "present, sha256 verified" in output
        assert "present, but its sha256 differs from the catalogue" in output
        assert "one letter [red]and markup" in output

    def test_unpublished_files_and_unknown_checksums(self, run: CliRunner, tmp_path: Path) -> None:
        output = run.invoke(app, ["data", "info", "expr_FUN_rebuilt", "--root", str(tmp_path)]).stdout
        assert "not published anywhere" in output
        output = run.invoke(app, ["data", "info", "expr_FUN", "--root", str(tmp_path)]).stdout
        assert "size unknown" in output
        assert "sha256 unknown" in output

    def test_unknown_name(self, run: CliRunner) -> None:
        result = run.invoke(app, ["data", "info", "enrom"])
        assert isinstance(result.exception, UnknownDatasetError)


class TestFetch:
    def test_plain_lines_away_from_a_terminal(self, run: CliRunner, small: CatalogueEntry, tmp_path: Path) -> None:
        result = run.invoke(app, ["data", "fetch", small.name, "--root", str(tmp_path)])
        assert result.exit_code == 0
        assert result.stderr.splitlines() == ["fetching train.arff, 12 bytes", "fetching test.arff, 12 bytes"]
        assert result.stdout.splitlines() == [
            f"{tmp_path / file.path}: 12 bytes, fetched, sha256 verified" for file in small.files
        ]
        again = run.invoke(app, ["data", "fetch", "all", "--root", str(tmp_path)])
        assert again.stderr == ""
        assert again.stdout.count("already present") == 2

    def test_bars_on_a_terminal(
        self, run: CliRunner, small: CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        result = run.invoke(app, ["data", "fetch", small.name, "--root", str(tmp_path)])
        assert result.exit_code == 0
        assert "fetching" not in result.stderr
        assert "train.arff" in result.stderr
        assert len(result.stdout.splitlines()) == 2

    def test_quiet(self, run: CliRunner, small: CatalogueEntry, tmp_path: Path) -> None:
        result = run.invoke(app, ["data", "fetch", small.name, "--quiet", "--root", str(tmp_path)])
        assert (result.exit_code, result.output) == (0, "")
        assert (tmp_path / small.files[0].path).read_bytes() == BODY

    def test_mirror(self, run: CliRunner, small: CatalogueEntry, server: Server, tmp_path: Path) -> None:
        server.content = {f"mirror/{path}": body for path, body in server.content.items()}
        mirror = f"{server.address}mirror"
        result = run.invoke(app, ["data", "fetch", small.name, "--mirror", mirror, "--root", str(tmp_path)])
        assert result.exit_code == 0
        assert all(path.startswith("/mirror/") for path in server.paths)

    def test_invalid_mirror(self, run: CliRunner, small: CatalogueEntry, tmp_path: Path) -> None:
        result = run.invoke(app, ["data", "fetch", small.name, "--mirror", "file:///srv", "--root", str(tmp_path)])
        assert isinstance(result.exception, ArgumentError)

    def test_failure_of_one_does_not_stop_the_others(
        self, run: CliRunner, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entries = [small_entry(server.address, small_file(BODY, split)) for split in ("train", "test")]
        server.content = {quote(str(entry.files[0].path)): BODY for entry in entries}
        server.script.append(failing(404))
        monkeypatch.setattr(rarenode.cli.data, "find_entries", lambda _names: entries)
        result = run.invoke(app, ["data", "fetch", "one", "two", "--root", str(tmp_path)])
        assert result.exit_code == 1
        assert f"rarenode: {server.address}small%20data/train.arff: the server answered HTTP 404" in result.stderr
        assert "test.arff: 12 bytes, fetched" in result.stdout

    def test_names_are_checked_before_anything_is_fetched(
        self, run: CliRunner, small: CatalogueEntry, server: Server, tmp_path: Path
    ) -> None:
        result = run.invoke(app, ["data", "fetch", small.name, "nonsense", "--root", str(tmp_path)])
        assert isinstance(result.exception, UnknownDatasetError)
        assert server.paths == []


class TestHelp:
    @pytest.mark.parametrize("command", [[], ["data"], ["data", "list"], ["data", "info"], ["data", "fetch"]])
    def test_it_shows_examples(self, command: list[str], run: CliRunner) -> None:
        result = run.invoke(app, [*command, "--help"])
        assert result.exit_code == 0
        assert "Examples:\n" in result.stdout
        assert f"  rarenode {' '.join(command)}".rstrip() in result.stdout

    def test_version(self, run: CliRunner) -> None:
        result = run.invoke(app, ["--version"])
        assert result.exit_code == 0
        assert result.stdout == f"rarenode {rarenode.__version__}\n"


class TestMain:
    def test_error_is_one_harmless_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["rarenode", "data", "fetch", "enron", "--mirror", "ftp://x/\x1b[31m\ny"])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("rarenode: ")
        assert captured.err.count("\n") == 1
        assert "\x1b" not in captured.err

    def test_as_a_process(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "from rarenode.cli import main; main()", "data", "info", "celcycle_FUN"]
        environment = os.environ | {"PYTHONPATH": str(SOURCES), "RARENODE_DATA": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("rarenode: There is no dataset 'celcycle_FUN'")
        assert "Did you mean 'cellcycle_FUN'?" in line

    def test_it_starts_without_torch(self) -> None:
        code = "import sys, rarenode.cli.app; sys.exit('torch' in sys.modules)"
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60).returncode == 0
