"""docs/results is made from records, and `make lint` notices when it is not what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.write_results import find_stale, make_pages, write

from rarenode.data.reef import TAXA
from rarenode.hierarchy import Hierarchy
from rarenode.paper.grid import cell
from rarenode.paper.record import DatasetNodes
from rarenode.paper.spec import load_spec
from rarenode.paper.store import record_path, write_record
from tests.paper.small_grid import decided, decided_record, made_up


def keep(folder: Path, method: str, seed: int = 0) -> Path:
    training = cell(load_spec("imbalance_fun"), "cellcycle_FUN", method, seed)
    write_record(folder, *made_up(training))
    return record_path(folder, training)


@pytest.mark.slow
def test_pages_are_what_the_records_say_until_these_change(tmp_path: Path) -> None:
    records, pages = tmp_path / "results", tmp_path / "docs"
    keep(records, "w0=0.25")
    (tmp_path / "docs").mkdir()
    (pages / "README.md").write_text("by hand", encoding="utf-8")
    (pages / "gone.md").write_text("a spec that is no more", encoding="utf-8")
    write(records, pages)
    written = {page.name for page in pages.iterdir()}
    assert {"README.md", "tally.md", "imbalance_fun.md", "imbalance_fun.svg", "imbalance_fun.png"} <= written
    assert "gone.md" not in written
    assert find_stale(records, pages) == []
    keep(records, "w0=0.25", seed=1)
    assert "imbalance_fun.md" in find_stale(records, pages)
    write(records, pages)
    (pages / "gone.md").write_text("", encoding="utf-8")
    (pages / "tally.md").unlink()
    assert find_stale(records, pages) == ["gone.md", "tally.md"]


def test_rows_that_specs_share_are_counted_once(tmp_path: Path) -> None:
    """w0=0.25 stands in imbalance_fun and, as the best so far, in lpros_weighting, with the same published F1."""
    keep(tmp_path, "w0=0.25")
    pages = make_pages(tmp_path)
    assert {"imbalance_fun.md", "lpros_weighting.md"} <= pages.keys()
    assert "of 1 row within 2" in pages["tally.md"]


def test_decisions_have_a_page_of_their_own(tmp_path: Path) -> None:
    records, pages = tmp_path / "results", tmp_path / "docs"
    training = cell(load_spec("decisions"), "cellcycle_FUN", "None", 0)
    write_record(records, decided_record(training))
    write(records, pages)
    assert {page.name for page in pages.iterdir()} == {"decisions.md", "decisions.svg", "decisions.png"}
    text = (pages / "decisions.md").read_text(encoding="utf-8")
    assert "| cellcycle_FUN | None | expected_f1 | 1 | 2 → 2 of 4 | 25.00 → 50.00 |" in text
    assert "(decisions.svg)" in text
    assert find_stale(records, pages) == []
    write_record(records, decided_record(training, decided("fixed", 0.1), decided("expected_f1", 0.2)))
    assert find_stale(records, pages) == ["decisions.md"]


class TestPictures:
    """Records of pictures, of which only a few are there yet."""

    REEF = Hierarchy.from_paths(TAXA)

    def keep(self, folder: Path, spec: str, dataset: str, *methods: str) -> None:
        count = len(self.REEF)
        nodes = DatasetNodes(
            hierarchy=self.REEF.fingerprint,
            names=self.REEF.nodes,
            scored=(False, *[True] * (count - 1)),
            training_rows=(50,) * count,
            test_rows=(20,) * count,
        )
        for method in methods:
            record, _ = made_up(cell(load_spec(spec), dataset, method, 0), steps_per_second=0.42)
            write_record(folder, record, nodes)

    def test_a_page_with_what_there_is_and_its_figure(self, tmp_path: Path) -> None:
        records, pages = tmp_path / "results", tmp_path / "docs"
        both = ("unweighted, training factor=0.25", "GMU, training factor=0.25")
        self.keep(records, "training_factor", "reef", *both, "GMU, training factor=1.0")
        write(records, pages)
        assert {page.name for page in pages.iterdir()} == {
            *("training_factor.md", "training_factor.svg", "training_factor.png", "tally.md")
        }
        text = (pages / "training_factor.md").read_text(encoding="utf-8")
        assert "39 of 42 trainings have no record yet" in text
        assert "| reef | GMU, training factor=0.25 | 1 | 33.33 |" in text
        assert "| 0.4 |\n" in text  # not 0 steps a second
        assert "(training_factor.svg)" in text
        drawn = (pages / "training_factor.svg").read_text(encoding="utf-8")
        for words in ("F1 over the training factor, reef", "GMU minus unweighted, reef", "Basket stars"):
            assert words in drawn
        assert "larvae" not in drawn
        assert "not complete: bBMA" not in drawn  # which is not meant to be trained on the reef
        assert find_stale(records, pages) == []

    def test_a_page_where_nothing_can_be_compared_yet(self, tmp_path: Path) -> None:
        """One series alone has no advantage: there is a table, and no figure."""
        self.keep(tmp_path, "data_ablation", "reef", "ResNet-18, 1 epoch, weighted, fraction=0.1")
        pages = make_pages(tmp_path)
        assert "71 of 72 trainings have no record yet" in pages["data_ablation.md"]
        assert ".svg" not in pages["data_ablation.md"]

    def test_methods_are_one_chart_for_each_dataset(self, tmp_path: Path) -> None:
        self.keep(tmp_path, "pictures_lpros", "reef", "LPROS")
        assert "(pictures_lpros.svg)" in make_pages(tmp_path)["pictures_lpros.md"]

    def test_decisions_on_pictures_are_compared_with_nothing_published(self, tmp_path: Path) -> None:
        spec = load_spec("plankton")
        for method in ("None", "best"):
            decisions = map(decided, spec.decisions_of(method))
            write_record(tmp_path, decided_record(cell(spec, "plankton", method, 0), *decisions))
        text = make_pages(tmp_path)["plankton.md"]
        assert "13 of 15 trainings have no record of all decisions yet" in text
        assert "- best: at least 2 times the nodes that None finds here at 0.5 on 0 of 1.\n" in text
        assert "| pictures | best | 1 | expected_f1 |" in text
        assert "0 of 0" not in text
        assert "Recall at the paper's precision" not in text


def test_without_records_there_are_no_pages(tmp_path: Path) -> None:
    assert make_pages(tmp_path) == {}
