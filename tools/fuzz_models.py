"""Targets of the fuzzer: what rarenode itself wrote, which others may have changed."""

from __future__ import annotations

import hashlib
import json
import tempfile
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rarenode import Hierarchy, RareNodeClassifier, Run, make_hierarchical
from rarenode._io.arrays import Arrays, layout_of
from rarenode.config import Settings
from rarenode.run.model_rows import own_unseen_rows
from rarenode.run.unseen import kept_rows
from rarenode.training import TrainedModel
from rarenode.training.checkpoint import FILE, Checkpoints, Position, TrainingKey
from rarenode.training.embedding_cache import EmbeddingCache
from tools.fuzz_data import (
    PATHS,
    make_table,
)
from tools.fuzz_mutations import Files
from tools.fuzz_promises import check_probabilities, check_rows, promise

PROJECT = Path(__file__).parent.parent
QUICK: dict[str, Any] = {
    "hidden_size": 4, "n_layers": 1, "epochs": 1, "batch_size": 16, "holdout": 0.3, "n_members": 2, "engine": "torch",
}  # fmt: skip
OPTIONS = {"labels": "taxa", "id": "id"}


# --- settings, models, runs ----------------------------------------------------------------------------------------


def read_settings(folder: Path) -> None:
    """A file of settings; written and read again they are the same."""
    settings = Settings.from_toml(folder / "settings.toml")
    (folder / "again.toml").write_text(settings.to_toml(), encoding="utf-8")
    promise(Settings.from_toml(folder / "again.toml") == settings, "settings that are others when read again")


@cache
def _runs() -> tuple[Files, ...]:
    """The folders of two finished runs, a network's and a blend's, with the table they were trained on."""
    found = []
    with tempfile.TemporaryDirectory() as name, chdir(name):
        rows = make_table({"taxa": list(PATHS)}, 60)
        for kind in ("mlp", "forest"):
            rows.write_csv("rows.csv")
            settings = Settings(**QUICK, model=kind, n_trees=2)
            run = Run.fit("rows.csv", kind, settings, options=OPTIONS, report=False)
            files = {f"run/{path.name}": path.read_bytes() for path in Path(kind).iterdir() if path.is_file()}
            del files["run/README.md"]
            table = json.loads(files["run/table.json"])
            files["run/table.json"] = json.dumps(table | {"folder": None}, indent=1).encode()
            files["rows.csv"] = Path("rows.csv").read_bytes()
            rows.head(3).write_csv("new.csv")
            run.predict_to_folder("new.csv", "out")
            files["new.csv"] = Path("new.csv").read_bytes()
            files |= {f"out/{path.name}": path.read_bytes() for path in Path("out").iterdir()}
            found.append(files)
            for path in Path("out").iterdir():
                path.unlink()
        data = make_hierarchical(rows=80, nodes=6, depth=3, features=3).train
        Run.fit(data, "arrays", Settings(**QUICK, model="mlp"), report=False)
        found.append({f"run/{path.name}": path.read_bytes() for path in Path("arrays").iterdir()})
    return tuple(found)


def models() -> list[Files]:
    """Models in their folders, also one of the estimator."""
    data = make_hierarchical(rows=60, nodes=6, depth=3, features=3).train
    with tempfile.TemporaryDirectory() as name:
        RareNodeClassifier(data.hierarchy, **QUICK, model="mlp").fit(data.X, data.Y).save(name)
        estimator = {f"run/{path.name}": path.read_bytes() for path in Path(name).iterdir()}
    parts = ("run/model.json", "run/model.safetensors", "run/estimator.json")
    return [{name: files[name] for name in parts if name in files} for files in (*_runs(), estimator)]


def seal_model(files: Files) -> None:
    """Make the checksums in ``model.json`` those of what is there."""
    with suppress(Exception):
        record = json.loads(files["run/model.json"])
        record["fingerprints"]["parameters"] = hashlib.sha256(files["run/model.safetensors"]).hexdigest()
        names = record["hierarchy"]["nodes"]
        edges = [(names[above], names[below]) for above, below in record["hierarchy"]["edges"]]
        record["fingerprints"]["hierarchy"] = Hierarchy.from_edges(edges, names).fingerprint
        files["run/model.json"] = json.dumps(record).encode()


def read_model(folder: Path) -> None:
    """A model: its probabilities are some, and no child has a higher one than its parent."""
    model = TrainedModel.load(folder / "run")
    rng = np.random.default_rng(0)
    width = model.expects.features
    n_features = model.model.n_features if width is None else len(width)
    if n_features <= 10_000:
        X: Any = rng.normal(size=(5, n_features))
        if model.expects.text:
            X = pl.DataFrame(
                {
                    name: ["x", "y", None, "", "other"] if name in model.expects.text else X[:, place]
                    for place, name in enumerate(width or ())
                }
            )
        check_probabilities(model, model.predict_proba(X))
        promise(model.hierarchy.is_closed(model.predict(X)), "decisions without their ancestors")
    str(model.card())
    RareNodeClassifier.load(folder / "run")


def read_run(folder: Path) -> None:
    """Everything in the folder of a run, and the rows that it held out."""
    with chdir(folder):
        run = Run("run")
        run.files.settings(), run.files.start(), run.files.examination()
        unseen = kept_rows(run) or own_unseen_rows(run, None, None)
        check_rows(unseen.rows)
        if unseen.probs is not None:
            promise(unseen.probs.shape == unseen.rows.Y.shape, "predictions of other rows")
            promise(((unseen.probs >= 0) & (unseen.probs <= 1)).all(), "predictions that are no probabilities")


def predict_new(folder: Path) -> None:
    """New rows for a model."""
    predictions = Run(folder / "run").predict(folder / "new.csv")
    check_probabilities(Run(folder / "run").model, predictions.probs)
    promise(predictions.ids is None or len(predictions.ids) == len(predictions.probs), "ids of other rows")


def predict_again(folder: Path) -> None:
    """A folder of predictions with a manifest: nothing else changes, and all is done in the end."""
    with chdir(folder):
        written = Run("run").predict_to_folder("new.csv", "out")
        promise(written.files + written.skipped == 1, "a file that is neither predicted nor skipped")
        promise({path.name for path in Path("out").iterdir()} >= {"new.csv", "predictions.json"}, "a file is not there")


KEY = TrainingKey(rows="a", valid=None, hierarchy="b", engine="torch", settings={"epochs": 3})
STATE: Arrays = {
    "steps": np.array(5, dtype=np.int64),
    "weight": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
}


def _checkpoints(folder: Path) -> Checkpoints:
    return Checkpoints(folder, KEY, Settings(**QUICK | {"epochs": 3}), batches=4)


def checkpoints() -> list[Files]:
    """A checkpoint in the second epoch."""
    from rarenode.training import EpochRecord  # noqa: PLC0415

    history = [EpochRecord(epoch=1, loss=0.5, seconds=0.5, steps_per_second=10.0, valid=None)]
    with tempfile.TemporaryDirectory() as name:
        _checkpoints(Path(name)).save(Position(epoch=1, batch=1, loss=0.25, history=history), STATE)
        return [{FILE: Path(name, FILE).read_bytes()}]


def read_checkpoint(folder: Path) -> None:
    """A checkpoint: a position within the training, and arrays of its shapes."""
    found = _checkpoints(folder).load(True, STATE, STATE)
    promise(found is not None, "a checkpoint that is not there")
    if found is not None:
        position, arrays = found
        promise(layout_of(arrays) == layout_of(STATE), "arrays of other shapes")
        promise(position.epoch * 4 + position.batch == int(arrays["steps"]), "a position that is none")


def embeddings() -> list[Files]:
    """Embeddings of two pictures."""
    with tempfile.TemporaryDirectory() as name:
        kept = EmbeddingCache(Path(name), 3)
        kept.add([b"a" * 32, b"b" * 32], np.ones((2, 3), dtype=np.float32), ["", "odd"])
        kept.flush()
        return [{"kept.safetensors": path.read_bytes()} for path in Path(name).iterdir()]


def read_embeddings(folder: Path) -> None:
    """Embeddings that were kept: those that are there have the right shape; a damaged file counts for nothing."""
    kept = EmbeddingCache(folder, 3)
    digests = [digest for digest in (b"a" * 32, b"b" * 32) if kept.has(digest)]
    values, there, _ = kept.get(digests)
    promise(values.shape == (len(digests), 3) and len(there) == len(digests), "embeddings of another width")


def settings() -> list[Files]:
    """All settings, and some."""
    return [{"settings.toml": Settings(**QUICK).to_toml().encode()}, {"settings.toml": b"epochs = 3\nmodel = 'mlp'\n"}]


def run_folders() -> list[Files]:
    """Folders of runs, with the table that two of them were trained on."""
    return [{name: content for name, content in files.items() if not name.startswith("out/")} for files in _runs()]


def runs_with_new_rows() -> list[Files]:
    """Runs with new rows, and predictions of these."""
    return [files for files in _runs() if "new.csv" in files]
