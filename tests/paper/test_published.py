from __future__ import annotations

import pytest

from rarenode.data.catalogue import catalogue
from rarenode.paper.published import best_published, published_none
from rarenode.paper.spec import load_spec, spec_names


@pytest.mark.parametrize("dataset", ["cellcycle_FUN", "seq_FUN", "gasch1_GO", "enron", "diatoms"])
def test_nothing_published_is_better(dataset: str) -> None:
    every = [
        spec.published_for(dataset, method)
        for spec in map(load_spec, spec_names())
        for method in spec.published.get(dataset, {})
    ]
    best, with_precision = best_published(dataset), best_published(dataset, "precision")
    assert best is not None
    assert with_precision is not None
    assert best.means["f1"] == max(row["f1"][0] for row in every)
    assert with_precision.means["f1"] == max(row["f1"][0] for row in every if "precision" in row)


def test_rows_of_the_paper() -> None:
    best, with_precision = best_published("cellcycle_FUN"), best_published("cellcycle_FUN", "precision")
    assert best is not None
    assert with_precision is not None
    assert (best.spec, best.method, best.means["f1"]) == ("dropout_compute", "ensemble", 7.46)
    assert (with_precision.spec, with_precision.method) == ("focal_fun", "bBMA")
    assert (with_precision.means["precision"], with_precision.means["recall"]) == (9.47, 7.65)


def test_a_rebuilt_dataset_has_the_rows_of_the_original() -> None:
    assert best_published("expr_FUN_rebuilt") == best_published("expr_FUN") is not None
    assert published_none("expr_GO_rebuilt") == published_none("expr_GO") is not None


def test_none_is_the_single_model_of_the_tables_on_imbalance() -> None:
    none = published_none("cellcycle_FUN")
    assert none is not None
    assert (none.spec, none.method, none.means["precision"]) == ("imbalance_fun", "None", 9.81)
    assert published_none("enron") is None


def test_every_dataset_of_the_decisions_has_a_best_row() -> None:
    for dataset in load_spec("decisions").datasets:
        assert best_published(dataset, "precision") is not None


def test_what_the_paper_does_not_have() -> None:
    assert "nowhere" not in catalogue()
    assert best_published("nowhere") is None
    assert published_none("nowhere") is None
