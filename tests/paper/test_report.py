"""Records as a run: means and deviations over seeds, medians of counts, and errors."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rarenode import Settings, Summary, load_dataset
from rarenode.data.reef import TAXA
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.hierarchy import Hierarchy
from rarenode.paper.as_published import settings_for
from rarenode.paper.grid import Cell
from rarenode.paper.record import DatasetNodes, PredictedNodes
from rarenode.paper.report import group_by_seed, report_on_records
from rarenode.paper.store import record_path, write_record
from rarenode.report import Report, write_report
from rarenode.report.run_report import by_depth, by_rarity
from tests.paper.small_grid import TINY, decided_record, made_up, tiny_alone, tiny_cell

NODES = TINY.nodes
SCORED = (False, *[True] * (NODES - 1))
TRAINING = (40, 30, 9, 0, 4, 2)
TEST = (33, 20, 10, 3, 5, 0)


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The catalogue has one dataset, named tiny; where its files are."""
    with tiny_alone(tmp_path_factory.mktemp("data")) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RARENODE_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def hierarchy(root: Path) -> Hierarchy:
    return load_dataset("tiny").hierarchy


def cell_of(**changes: Any) -> Cell:
    return Cell("tiny", Settings.preset("paper", **changes))


def write(folder: Path, hierarchy: Hierarchy, cell: Cell | None = None, **changes: Any) -> Path:
    """A record, and ``nodes.json`` if there is none yet."""
    cell = cell_of() if cell is None else cell
    nodes = DatasetNodes(
        hierarchy=hierarchy.fingerprint,
        names=hierarchy.nodes,
        scored=SCORED,
        training_rows=TRAINING,
        test_rows=TEST,
    )
    record, _ = made_up(cell, **({"nodes": COUNTS[0]} | changes))
    write_record(folder, record, nodes)
    return record_path(folder, cell)


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


SUMMARIES = (
    Summary(0.25, 0.5, 0.125, 0.1, 0.2, nodes=5, nodes_predicted=4, nodes_found=3),
    Summary(0.5, 0.25, 0.375, 0.4, 0.6, nodes=5, nodes_predicted=3, nodes_found=3),
    Summary(0.375, 0.75, 0.875, 0.1, 0.7, nodes=5, nodes_predicted=4, nodes_found=5),
)
COUNTS = (
    PredictedNodes(column=(0, 1, 2, 4), predicted=(33, 12, 9, 1), true_positives=(33, 7, 3, 0)),
    PredictedNodes(column=(0, 1, 3), predicted=(33, 30, 8), true_positives=(33, 20, 0)),
    PredictedNodes(column=(), predicted=(), true_positives=()),
)


SCORES = ("precision", "recall", "f1")


def by_column(listed: PredictedNodes) -> dict[int, tuple[int, int]]:
    """How often each node was predicted, and how often rightly."""
    return {c: (p, t) for c, p, t in zip(listed.column, listed.predicted, listed.true_positives, strict=True)}


def scores_of(claimed: int, hits: int, rows: int) -> tuple[Fraction, Fraction, Fraction]:
    """Precision, recall and F1 of one node with one seed, 0 where they are undefined."""
    precision = Fraction(hits, claimed) if claimed else Fraction(0)
    recall = Fraction(hits, rows) if rows else Fraction(0)
    f1 = 2 * precision * recall / (precision + recall) if hits else Fraction(0)
    return precision, recall, f1


@pytest.fixture
def three(tmp_path: Path, hierarchy: Hierarchy) -> list[Path]:
    """Records of one training with three seeds."""
    return [
        write(tmp_path, hierarchy, cell_of(seed=seed), summary=summary, nodes=counts)
        for seed, summary, counts in zip((3, 4, 7), SUMMARIES, COUNTS, strict=True)
    ]


class TestOneRun:
    def test_a_single_record(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        run = report_on_records([write(tmp_path, hierarchy, cell_of(seed=5), summary=SUMMARIES[0])])
        assert (run.summary, run.deviations, run.deviations_of) == (SUMMARIES[0], None, "")
        assert run.about == "tiny, test rows; nodes decided at 0.5; seed 5"
        assert run.name == "as in the paper"
        scores = run.nodes.scores
        assert scores.true_positives.tolist() == [33, 7, 3, 0, 0, 0]
        assert scores.predicted.tolist() == [33, 12, 9, 0, 1, 0]
        assert scores.support.tolist() == list(TEST)
        assert run.nodes.training_rows.tolist() == list(TRAINING)
        assert run.nodes.state.tolist() == ["not_scored", "found", "found", "missed", "missed", "no_rows"]
        assert run.nodes.reasons == ((), (), (), ("no_training_rows",), (), ())
        assert set(run.nodes.thresholds.tolist()) == {0.5}
        assert (run.curves, run.reliability, run.history, run.unsure_rows) == ({}, {}, (), ())

    def test_figures_are_means_over_seeds_with_their_deviations(self, three: list[Path]) -> None:
        run = report_on_records(three)
        for name in ("f1", "precision", "recall", "bin_ap", "ap", "nodes_found"):
            values = [Fraction(getattr(summary, name)) for summary in SUMMARIES]
            mean = sum(values) / 3
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
            assert run.deviations is not None
            assert getattr(run.deviations, name) == pytest.approx(deviation)
            expected = float(mean) if name != "nodes_found" else round(mean)
            assert getattr(run.summary, name) == pytest.approx(expected)
        assert (run.summary.nodes, run.summary.nodes_predicted) == (5, 4)
        assert run.deviations_of == "3 trainings with different seeds"
        assert run.about.endswith("seeds 3, 4, 7")

    @pytest.mark.parametrize("seeds", [1, 2, 3])
    def test_scores_are_means_over_seeds_and_counts_the_middle_ones(self, three: list[Path], seeds: int) -> None:
        scores = report_on_records(three[:seeds]).nodes.scores
        counts = [by_column(listed) for listed in COUNTS[:seeds]]
        assert scores.support.tolist() == list(TEST)
        for column in range(NODES):
            found = [of_seed.get(column, (0, 0)) for of_seed in counts]
            of_seeds = [scores_of(*each, TEST[column]) for each in found]
            for place, name in enumerate(SCORES):
                mean = sum((of_seed[place] for of_seed in of_seeds), Fraction(0)) / seeds
                assert getattr(scores, name)[column] == pytest.approx(float(mean)), (name, column)
            claimed, hits = zip(*found, strict=True)
            assert scores.predicted[column] == statistics.median_high(claimed)
            assert scores.true_positives[column] == statistics.median_high(hits)

    def test_means_of_groups_are_those_of_the_summaries(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        """Each record sums up its own counts, as `measure` does; both ways lead to the same figures of the run."""
        paths = []
        for seed, listed in enumerate(COUNTS):
            counts = by_column(listed)
            own = [scores_of(*counts.get(column, (0, 0)), TEST[column]) for column in range(NODES) if SCORED[column]]
            precision, recall, f1 = (float(sum(values, Fraction(0))) / len(own) for values in zip(*own, strict=True))
            summary = Summary(f1, precision, recall, 0.1, 0.2, nodes=5, nodes_predicted=3, nodes_found=2)
            paths.append(write(tmp_path, hierarchy, cell_of(seed=seed), summary=summary, nodes=listed))
        run = report_on_records(paths)
        for groups in (by_depth(run.nodes), by_rarity(run.nodes)):
            assert len(groups) > 1
            assert sum(group.nodes for group in groups) == 5
            for name in SCORES:
                over_all = sum(group.nodes * getattr(group, name) for group in groups) / 5
                assert over_all == pytest.approx(getattr(run.summary, name))

    @pytest.mark.parametrize(("found", "state"), [((4, 0), "found"), ((4, 0, 0), "missed"), ((4, 1, 0), "found")])
    def test_a_node_is_found_if_half_of_the_seeds_find_it(
        self, tmp_path: Path, hierarchy: Hierarchy, found: tuple[int, ...], state: str
    ) -> None:
        paths = []
        for seed, hits in enumerate(found):
            nodes = PredictedNodes(column=(4,), predicted=(9,), true_positives=(hits,))
            paths.append(write(tmp_path, hierarchy, cell_of(seed=seed), nodes=nodes))
        run = report_on_records(paths)
        assert run.nodes.state[4] == state
        assert run.nodes.scores.recall[4] == pytest.approx(sum(found) / (5 * len(found)))

    def test_its_name_is_what_differs_from_the_paper(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        path = write(tmp_path, hierarchy, cell_of(seed=2, w0=0.5, n_members=3))
        assert report_on_records([path]).name == "n_members=3, w0=0.5"
        assert report_on_records([path], name="mine").name == "mine"

    def test_the_folder_of_the_data(self, tmp_path: Path, hierarchy: Hierarchy, root: Path) -> None:
        path = write(tmp_path, hierarchy)
        with pytest.raises(MissingFileError, match=r"tiny\.train\.arff is not there"):
            report_on_records([path], root=tmp_path)
        assert report_on_records([path], root=root).hierarchy == hierarchy

    def test_its_files_and_card(self, three: list[Path], tmp_path: Path, hierarchy: Hierarchy) -> None:
        page, *beside = write_report(Report((report_on_records(three),)), tmp_path / "out" / "paper.html")
        assert {path.name for path in beside} == {
            *("report.json", "headline.csv", "nodes.csv", "groups.csv", "reasons.csv", "cards.md"),
            *("map.svg", *(f"{score}_by_{by}.svg" for score in ("recall", "f1") for by in ("depth", "rarity"))),
        }
        found = page.read_text(encoding="utf-8")
        for words in ("Records contain no probabilities", hierarchy.fingerprint, "hidden_size = 500"):
            assert words in found

    def test_hostile_words_in_a_record(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        versions = {"<b>rare</b>\u202e|": "<i>1</i>"}
        path = write(tmp_path, hierarchy, versions=versions, engine="<img src=x>", machine="a`b\n|c")
        page, *_ = write_report(Report((report_on_records([path]),)), tmp_path / "page.html")
        found = page.read_text(encoding="utf-8")
        assert not any(words in found for words in ("<b>rare", "<img", "<i>1", "\u202e"))
        assert " b rare /b " in found


class TestGroups:
    def test_records_that_differ_by_the_seed_alone_are_one(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        plain = [write(tmp_path, hierarchy, cell_of(seed=seed)) for seed in (0, 1, 2)]
        weighted = [write(tmp_path, hierarchy, cell_of(seed=seed, w0=0.5)) for seed in (0, 1)]
        mixed = [weighted[1], plain[2], plain[0], weighted[0], plain[1]]
        assert group_by_seed(mixed) == [[weighted[1], weighted[0]], [plain[2], plain[0], plain[1]]]
        assert group_by_seed([]) == []

    def test_another_factor_or_part_of_the_rows_is_another_training(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        plain = cell_of()
        cells = [plain, replace(plain, factor=0.0), replace(plain, factor=0.5), replace(plain, fraction=0.5)]
        paths = [write(tmp_path, hierarchy, each) for each in cells]
        assert group_by_seed(paths) == [[path] for path in paths]
        assert [report_on_records([path]).name for path in paths] == [
            "as in the paper", "factor=0", "factor=0.5", "fraction=0.5",
        ]  # fmt: skip

    def test_the_engine_makes_no_other_training(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        paths = [write(tmp_path, hierarchy, cell_of(seed=n, engine=e)) for n, e in ((0, "torch"), (1, "fused"))]
        assert group_by_seed(paths) == [paths]

    def test_records_of_different_data_are_apart(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        paths = [write(tmp_path, hierarchy, cell_of(seed=seed)) for seed in (0, 1)]
        change(paths[1], dataset="other")
        assert group_by_seed(paths) == [[paths[0]], [paths[1]]]

    def test_the_file_of_nodes_beside_records_is_skipped(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        record = write(tmp_path, hierarchy)
        beside = sorted(record.parent.glob("*.json"))
        assert {path.name for path in beside} == {record.name, "nodes.json"}
        assert group_by_seed(beside) == [[record]]

    def test_the_same_training_twice_is_refused(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        """Counted twice, it would pull the means to itself and the deviations to 0."""
        first, other = (write(tmp_path, hierarchy, cell_of(seed=seed)) for seed in (0, 1))
        again = write(tmp_path / "again", hierarchy, cell_of(seed=0, engine="fused"))
        for twice in (again, first):
            with pytest.raises(ArgumentError, match="of the same training; give one of them") as caught:
                group_by_seed([first, other, twice])
            assert str(caught.value).startswith(f"{twice} and {first} are ")
        weighted = write(tmp_path / "again", hierarchy, cell_of(seed=0, w0=0.5))
        assert group_by_seed([first, weighted, other]) == [[first, other], [weighted]]

    def test_what_is_no_record(self, tmp_path: Path, hierarchy: Hierarchy) -> None:
        other = tmp_path / "other.json"
        other.write_text('{"names": []}')
        with pytest.raises(FileFormatError, match=r"other\.json: this is not a record"):
            group_by_seed([write(tmp_path, hierarchy), other])
        with pytest.raises(FileFormatError, match="cannot be read"):
            group_by_seed([tmp_path / "none.json"])


class TestPictures:
    def test_the_hierarchy_is_told_by_the_names_and_no_data_are_needed(self, tmp_path: Path) -> None:
        reef = Hierarchy.from_paths(TAXA[:NODES])
        training = Cell("reef", settings_for("reef"), factor=0.5)
        page, *_ = write_report(Report((report_on_records([write(tmp_path, reef, training)]),)), tmp_path / "page.html")
        text = page.read_text(encoding="utf-8")
        assert "Basket stars" in text
        assert "rarenode fit reef" not in text  # `fit` knows no such name

    def test_names_that_tell_none(self, tmp_path: Path) -> None:
        path = write(tmp_path, Hierarchy.from_paths(TAXA[:NODES]), Cell("reef", settings_for("reef")))
        change(path.with_name("nodes.json"), hierarchy="another")
        with pytest.raises(DataError, match="do not tell their hierarchy"):
            report_on_records([path])


def test_records_of_decisions_are_recognised_and_have_no_report(tmp_path: Path) -> None:
    cell = tiny_cell("held_out")
    write_record(tmp_path, decided_record(cell))
    with pytest.raises(ArgumentError, match="has scores of decisions, and none of single nodes"):
        group_by_seed([record_path(tmp_path, cell)])


def listed(column: Sequence[int], predicted: Sequence[int], true_positives: Sequence[int]) -> Callable[[Path], None]:
    content = {"column": column, "predicted": predicted, "true_positives": true_positives}
    return lambda path: change(path, nodes=content)


def nodes_json(**changes: Any) -> Callable[[Path], None]:
    return lambda path: change(path.with_name("nodes.json"), **changes)


DAMAGE: dict[str, tuple[Callable[[Path], object], type[DataError], str]] = {
    "no JSON": (lambda path: path.write_text("{"), FileFormatError, "this is not a record"),
    "no nodes.json": (lambda path: path.with_name("nodes.json").unlink(), FileFormatError, "it is missing"),
    "damaged nodes.json": (lambda path: path.with_name("nodes.json").write_text("["), FileFormatError, "nodes.json"),
    "column": (listed([6], [1], [1]), FileFormatError, "columns beyond the 6 nodes of nodes.json"),
    "column twice": (listed([1, 1], [20, 20], [20, 20]), FileFormatError, "twice"),
    "found more than claimed": (listed([1], [2], [3]), FileFormatError, "more true positives"),
    "found more than labelled": (listed([3], [9], [4]), FileFormatError, "more true positives"),
    "huge column": (listed([10**30], [1], [1]), FileFormatError, "column"),
    "huge count": (listed([1], [10**30], [1]), FileFormatError, "predicted"),
    "huge rows": (nodes_json(test_rows=[10**30] * 6), FileFormatError, "nodes.json.*test_rows"),
    "other hierarchy": (nodes_json(hierarchy="ab12"), DataError, "nodes.json is of another hierarchy than tiny"),
    "fewer nodes": (
        nodes_json(names=["root"], scored=[True], training_rows=[1], test_rows=[33]),
        DataError,
        "nodes.json is of another hierarchy than tiny",
    ),
    "another dataset": (lambda path: change(path, dataset="tinny"), FileFormatError, "Did you mean 'tiny'"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_records_that_say_what_cannot_be(tmp_path: Path, hierarchy: Hierarchy, what: str) -> None:
    damage, error, says = DAMAGE[what]
    good, path = (write(tmp_path, hierarchy, cell_of(seed=seed)) for seed in (0, 1))
    report_on_records([good, path])
    damage(path)
    with pytest.raises(error, match=says) as caught:
        report_on_records([path] if what == "another dataset" else [good, path])
    if isinstance(caught.value, FileFormatError):
        assert caught.value.path in (path, path.with_name("nodes.json"))


def test_records_over_different_nodes_are_no_run(tmp_path: Path, hierarchy: Hierarchy) -> None:
    """They lie in two folders, each with its own nodes.json."""
    one = write(tmp_path / "one", hierarchy, cell_of(seed=0))
    other = write(tmp_path / "other", hierarchy, cell_of(seed=1))
    assert report_on_records([one, other]).nodes.scores.support.tolist() == list(TEST)
    change(other.with_name("nodes.json"), test_rows=[1] * NODES)
    with pytest.raises(DataError, match=r"other.*nodes\.json and .* are of different data"):
        report_on_records([one, other])
