"""The samples: they are what their description says, and a seed decides everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rarenode import Dataset
from rarenode.data.samples import write_sample
from rarenode.errors import ArgumentError
from rarenode.hierarchy import read_hierarchy


def test_the_survey(tmp_path: Path) -> None:
    assert {path.name for path in write_sample("survey", tmp_path)} == {
        "train.csv", "test.csv", "new.csv", "taxonomy.csv",
    }  # fmt: skip
    how: dict[str, Any] = {"labels": "taxa", "id": "image", "hierarchy": tmp_path / "taxonomy.csv"}
    train, test = (Dataset.read(tmp_path / f"{part}.csv", **how) for part in ("train", "test"))
    assert train.hierarchy == test.hierarchy == read_hierarchy(tmp_path / "taxonomy.csv")
    assert train.known is None
    assert train.X["substrate"].n_unique() == 5
    assert train.X["turbidity"].is_nan().mean() == pytest.approx(0.15, abs=0.05)
    new = pl.read_csv(tmp_path / "new.csv")
    assert "taxa" not in new.columns
    assert set(train.feature_names or ()) < set(new.columns)
    assert not set(train.ids or ()) & set(test.ids or ())


def test_the_genes(tmp_path: Path) -> None:
    write_sample("genes", tmp_path)
    data = Dataset.read(
        tmp_path / "genes.csv",
        labels=str(tmp_path / "annotations.gaf"),
        id="gene",
        hierarchy=tmp_path / "functions.obo",
        unknown="below",
    )
    assert data.known is not None
    assert data.known.any(axis=1).all()
    assert "\tNOT|involved_in\t" in (tmp_path / "annotations.gaf").read_text()
    assert "FN:0000001" in data.hierarchy.roots
    assert data.hierarchy.terms is not None
    assert data.hierarchy.terms.namespaces is not None
    assert len(set(data.hierarchy.terms.namespaces)) == len(data.hierarchy.roots)


def test_the_topics(tmp_path: Path) -> None:
    write_sample("topics", tmp_path)
    train = pl.read_csv(tmp_path / "train.csv")
    assert train.columns == ["document", "text", "topics"]
    counts = train.with_columns(length=pl.col("text").str.len_chars()).drop("text")
    assert Dataset.read(counts, labels="topics", id="document").hierarchy.depth.max() >= 1


@pytest.mark.parametrize("name", ["survey", "genes", "topics"])
def test_a_seed_decides_everything(tmp_path: Path, name: Any) -> None:
    files = {seed: write_sample(name, tmp_path / seed, seed=int(seed[0])) for seed in ("0", "0 again", "1")}
    for first, again, other in zip(*files.values(), strict=True):
        assert first.read_bytes() == again.read_bytes()
        assert first.name in ("taxonomy.csv", "functions.obo") or first.read_bytes() != other.read_bytes()


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="unknown sample 'fish'; choose one of survey, genes, topics, reef"):
        write_sample("fish", tmp_path)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="the sample cannot be written to"):
        write_sample("topics", tmp_path / "file")
