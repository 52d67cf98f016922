"""The vocabulary of records, and all records under version control."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.config import Settings
from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError
from rarenode.paper.grid import simplest, tasks
from rarenode.paper.pictures import PICTURES
from rarenode.paper.record_settings import DEFAULTS, from_record, to_record
from rarenode.paper.spec import load_spec, spec_names
from rarenode.paper.store import load_record, read_nodes, record_files, record_path

RESULTS = Path(__file__).parent.parent.parent / "results"

some_settings = st.fixed_dictionaries(
    {},
    optional={
        "hidden_size": st.integers(1, 9000),
        "n_layers": st.integers(1, 5),
        "resampling": st.sampled_from(["none", "lpros", "hros-pd"]),
        "n_members": st.integers(1, 20),
        "model": st.sampled_from(["mlp", "forest", "mlp+forest"]),
        "n_trees": st.integers(1, 900),
        "side": st.sampled_from(["auto", "negatives", "both"]),
        "focus": st.sampled_from(["none", "focal", "gmu"]),
        "patience": st.none() | st.integers(1, 9),
        "w0": st.floats(0, 2),
        "schedule_towards": st.sampled_from([1, "w0"]),
        "weighting": st.sampled_from(["none", "as_published", "as_described"]),
        "seed": st.integers(0, 2**40),
    },
)


class TestVocabulary:
    @given(some_settings)
    def test_there_and_back(self, values: dict[str, Any]) -> None:
        settings = Settings(**values)
        written = json.loads(json.dumps(to_record(settings)))
        assert simplest(from_record(written)) == simplest(settings)
        assert to_record(from_record(written)) == written

    def test_names_and_values_of_the_first_version(self) -> None:
        settings = Settings.preset("paper", hidden_size=7, n_layers=2, resampling="lpros", n_members=10, focus="none")
        assert to_record(settings) == {**DEFAULTS, **{"hidden": 7, "layers": 2, "resample": "lpros", "members": 10}}
        assert to_record(Settings()) == {**DEFAULTS, **{
            "trees": 200, "weighting": "none", "learning_rate": 1e-3, "batch_size": 32, "early_stopping": 5,
            "decision": "midpoint", "folds": 3, "model": "mlp+forest+neighbours", "blend": "learned",
            "output_bias": "prior",
        }}  # fmt: skip

    def test_what_is_absent_has_the_default_of_the_first_version(self) -> None:
        assert from_record({}) == Settings.preset("paper")
        assert from_record({"trees": 3}).models == ("mlp", "forest")

    def test_a_setting_that_came_later_is_written_only_if_it_is_set(self) -> None:
        changed = Settings(encoder="vit", train_encoder=True)
        assert to_record(changed) == to_record(Settings()) | {"encoder": "vit", "train_encoder": True}
        assert from_record(to_record(changed)) == changed

    @pytest.mark.parametrize("values", [{"hidden_size": 5}, {"n_trees": 5}, {"device": "cpu"}, {"hiden": 5}])
    def test_other_names_are_refused(self, values: dict[str, Any]) -> None:
        with pytest.raises(ArgumentError, match=next(iter(values))):
            from_record(values)


class TestKeptRecords:
    FILES = tuple(record_files(RESULTS))

    def test_each_is_read_and_has_the_name_of_its_content(self) -> None:
        assert len(self.FILES) >= 275
        for path in self.FILES:
            record = load_record(path)
            assert record_path(RESULTS, record.cell) == path
            assert record.is_of(record.cell)

    def test_each_would_be_written_as_it_is(self) -> None:
        later = {"trees", "decision", "rule", "holdout", "folds"}  # not yet in the first records
        for path in self.FILES:
            content, again = json.loads(path.read_text(encoding="utf-8")), load_record(path).to_file()
            content["settings"] |= {name: DEFAULTS[name] for name in later - content["settings"].keys()}
            assert json.loads(json.dumps(again)) == content

    def test_each_belongs_to_a_spec(self) -> None:
        wanted = {
            record_path(RESULTS, task.cell)
            for name in spec_names()
            for task in tasks(load_spec(name), seeds=max(3, load_spec(name).seeds))
        }
        assert set(self.FILES) <= wanted

    def test_datasets_have_their_nodes(self) -> None:
        for dataset in {path.parent.name for path in self.FILES if path.parent.parent == RESULTS}:
            known = PICTURES[dataset] if dataset in PICTURES else find_entry(dataset)
            assert len(read_nodes(RESULTS, dataset).names) == known.nodes
