"""The names that others rely on are pinned: removing or renaming one must fail here first."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import rarenode

PUBLIC = {
    "Callback", "Dataset", "DatasetSplits", "Encoder", "HROSPD", "HierarchicalSplit", "Hierarchy", "Images",
    "LPROS", "NodeDiagnosis", "NodeScores", "NodeWeights", "Preparation", "RareNodeClassifier", "RareNodeLoss",
    "RarenodeError", "Run", "Settings", "Summary", "TableOptions", "TrainedModel", "WeightSchedule", "__version__",
    "catalogue", "constrain", "diagnose", "examine", "fetch_dataset", "load_dataset", "load_encoder",
    "make_hierarchical", "make_reef", "metrics", "node_scores", "node_weights", "paper", "plots", "read_arff",
    "read_hierarchy", "report", "thresholds", "training", "uncertainty", "write_hierarchy",
}  # fmt: skip


def test_public_names_are_pinned_and_there() -> None:
    assert set(rarenode.__all__) == PUBLIC
    assert set(dir(rarenode)) == PUBLIC
    for name in PUBLIC:
        assert getattr(rarenode, name) is not None


def test_the_version_is_that_of_the_package() -> None:
    assert rarenode.__version__ == version("rarenode")


def test_the_version_is_that_of_the_newest_release_in_the_changelog_and_of_the_citation() -> None:
    root = Path(__file__).parent.parent
    releases = re.findall(r"^## (\d\S*) - (\S+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert releases[0][0] == rarenode.__version__
    assert f"\nversion: {rarenode.__version__}\n" in citation
    assert f"\ndate-released: {releases[0][1]}\n" in citation


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = rarenode.nonsense  # type: ignore[attr-defined]


def test_importing_and_using_the_data_layer_does_not_load_torch() -> None:
    code = "import sys, rarenode; rarenode.make_hierarchical(20); rarenode.Settings(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
