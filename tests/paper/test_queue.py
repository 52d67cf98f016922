from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from rarenode.errors import ArgumentError
from rarenode.paper.grid import Task, cell, tasks
from rarenode.paper.queue import REST, Entry, Queued, default_entries, make_queue, summarise
from rarenode.paper.spec import load_spec, spec_names
from rarenode.paper.store import write_record
from tests.paper.small_grid import decided, decided_record, made_up

NONE = Entry(title="none", spec="imbalance_fun", methods=("None",), datasets=("spo_FUN", "cellcycle_FUN"), seeds=1)


def told(queue: list[Queued], entry: str) -> list[str]:
    return [str(each.task) for each in queue if each.entry == entry]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Queued]:
    return make_queue(tmp_path_factory.mktemp("results"))


class TestOrder:
    def test_every_training_of_every_spec_once(self, whole: list[Queued]) -> None:
        specs = [load_spec(name) for name in spec_names()]
        wanted = {task.cell.fingerprint for spec in specs if spec.queued for task in tasks(spec)}
        queued = [each.task.cell.fingerprint for each in whole]
        assert len(queued) == len(set(queued))
        assert set(queued) == wanted

    def test_what_is_not_to_be_had_is_left_out(self, whole: list[Queued]) -> None:
        assert [name for name in spec_names() if not load_spec(name).queued] == ["benthicnet_e"]
        assert "benthicnet_e" not in {each.task.cell.dataset for each in whole}

    def test_the_experiments_on_images_are_whole_with_larvae_before_reef(self, whole: list[Queued]) -> None:
        titles = [entry.title for entry in default_entries() if entry.title.startswith("experiments on images")]
        its = [each.task.cell for each in whole if each.entry in titles]
        names = ("training_factor", "pictures_lpros", "data_ablation", "plankton", "untrained_encoder")
        specs = [load_spec(name) for name in names]
        assert {cell.fingerprint for cell in its} == {task.cell.fingerprint for spec in specs for task in tasks(spec)}
        of_paper = [cell.dataset for cell in its if cell.protocol == "paper"]
        assert of_paper == sorted(of_paper, key=["larvae", "reef"].index)

    def test_entries_come_in_their_order_and_the_rest_at_the_end(self, whole: list[Queued]) -> None:
        titles = [each.entry for each in whole]
        order = [entry.title for entry in default_entries()]
        assert list(dict.fromkeys(titles)) == [title for title in order if title in titles] + [REST]
        assert titles == sorted(titles, key=[*order, REST].index)

    def test_within_an_entry_published_rows_then_seeds_then_rows_per_time(self, whole: list[Queued]) -> None:
        for title in dict.fromkeys(each.entry for each in whole):
            its = [each for each in whole if each.entry == title]
            for one, other in pairwise(its):
                assert bool(one.rows) >= bool(other.rows)
                if bool(one.rows) == bool(other.rows):
                    seeds = one.task.cell.settings.seed, other.task.cell.settings.seed
                    assert seeds[0] <= seeds[1]
                    if seeds[0] == seeds[1]:
                        assert one.seconds / max(one.rows, 1) <= other.seconds / max(other.rows, 1)

    def test_entries_with_one_seed_come_before_those_with_more(self) -> None:
        one_seed = [entry.seeds == 1 for entry in default_entries()]
        assert any(one_seed)
        assert one_seed == sorted(one_seed, reverse=True)

    def test_the_first_ones(self, whole: list[Queued]) -> None:
        first = told(whole, default_entries()[0].title)
        assert len(first) == 8 * 2
        assert all("seed 0" in each for each in first)

    def test_a_training_of_two_tables_counts_for_both(self, tmp_path: Path) -> None:
        queue = make_queue(tmp_path, [])
        rows = {each.task.cell.fingerprint: each.rows for each in queue}
        spec = load_spec("imbalance_fun")
        assert rows[cell(spec, "spo_FUN", "w0=0.25", 0).fingerprint] == 2  # also in lpros_weighting
        assert rows[cell(spec, "spo_FUN", "None", 0).fingerprint] == 1
        assert rows[cell(spec, "spo_FUN", "w0=0.25, as described", 0).fingerprint] == 0


class TestWhatIsMissing:
    def test_records_are_not_in_it(self, tmp_path: Path) -> None:
        done, missing = (cell(load_spec("imbalance_fun"), dataset, "None", 0) for dataset in NONE.datasets or ())
        write_record(tmp_path, *made_up(done))
        queue = make_queue(tmp_path, [NONE])
        assert [each.task.cell for each in queue if each.entry == "none"] == [missing]
        assert done not in [each.task.cell for each in queue]

    def test_a_record_that_lacks_decisions_of_any_spec_is(self, tmp_path: Path) -> None:
        """The cell is in two specs, and each of them has decisions that the other does not have."""
        specs = load_spec("decisions"), load_spec("recipes")
        name = "network and forest"
        best = cell(specs[0], "cellcycle_FUN", name, 0)
        assert best == cell(specs[1], "cellcycle_FUN", name, 0)
        write_record(tmp_path, decided_record(best, *map(decided, specs[1].decisions)))
        (found,) = (each.task for each in make_queue(tmp_path, []) if each.task.cell == best)
        assert set(found.decisions) == {*specs[0].decisions_of(name), *specs[1].decisions_of(name)}
        write_record(tmp_path, decided_record(best, *map(decided, found.decisions)))
        assert best not in [each.task.cell for each in make_queue(tmp_path, [])]

    def test_names_that_a_spec_does_not_have(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="the spec has no method 'Nobody'"):
            make_queue(tmp_path, [NONE.model_copy(update={"methods": ("Nobody",)})])


def test_a_summary_has_the_time_of_each_entry() -> None:
    task = Task(cell(load_spec("imbalance_fun"), "spo_FUN", "None", 0), "None")
    queue = [Queued(entry, task, seconds, 1) for entry, seconds in (("a", 60.0), ("a", 30.0), ("b", 1.0))]
    assert [(each.entry, each.trainings, each.seconds) for each in summarise(queue)] == [("a", 2, 90.0), ("b", 1, 1.0)]
