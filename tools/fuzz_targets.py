"""What is fuzzed: for each kind of file a few valid samples, how it is read, and what must hold for what is read.

A reader gets a folder with the files of an input. It raises `BrokenPromiseError` if it read what it should not have.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import chdir, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from rarenode import Hierarchy, RareNodeClassifier, Run, make_hierarchical
from rarenode._io.arrays import Arrays, layout_of
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.decoding import decode
from rarenode.data.images import Images
from rarenode.data.readers import read
from rarenode.data.table_options import TableOptions
from rarenode.hierarchy.files import read_hierarchy, write_hierarchy
from rarenode.paper.as_published import settings_for
from rarenode.paper.comparison.scores import compare
from rarenode.paper.grid import Cell
from rarenode.paper.record import Training
from rarenode.paper.record_settings import RecordSettings
from rarenode.paper.spec import load_spec
from rarenode.paper.store import Probabilities, gather, load_record, read_nodes, read_probabilities, write_probabilities
from rarenode.paper.tables.scores import as_markdown
from rarenode.run.model_rows import own_unseen_rows
from rarenode.run.unseen import kept_rows
from rarenode.training import TrainedModel
from rarenode.training.checkpoint import FILE, Checkpoints, Position, TrainingKey
from rarenode.training.embedding_cache import EmbeddingCache
from tools.fuzz_mutations import Files

PROJECT = Path(__file__).parent.parent
QUICK: dict[str, Any] = {
    "hidden_size": 4, "n_layers": 1, "epochs": 1, "batch_size": 16, "holdout": 0.3, "n_members": 2, "engine": "torch",
}  # fmt: skip
OPTIONS = {"labels": "taxa", "id": "id"}


class BrokenPromiseError(Exception):
    """What was read is not what it must be."""


def promise(holds: object, what: str) -> None:
    """Raise an error if something does not hold."""
    if not holds:
        raise BrokenPromiseError(what)


@dataclass(frozen=True)
class Target:
    """A kind of input."""

    read: Callable[[Path], None]
    """Reads the files in a folder, and checks what it got."""
    samples: Callable[[], list[Files]]
    spoil: tuple[str, ...] = ()
    """How the names begin of files that are spoiled; empty: all."""
    seal: Callable[[Files], None] | None = None
    """Makes checksums right again."""
    share: float = 1.0
    """How often it comes, where others come once."""
    kept: list[Files] = field(default_factory=list)

    def made(self) -> list[Files]:
        """The samples, made once."""
        if not self.kept:
            self.kept.extend(self.samples())
        return self.kept


# --- tables and hierarchies ----------------------------------------------------------------------------------------

PATHS = ("A > B", "A > C", "D", "A > B > E")
TREE = Hierarchy.from_edges([("A", "B"), ("A", "C"), ("B", "E"), ("C", "E"), ("A", "D")])
ARFF = """@RELATION small
@ATTRIBUTE a numeric
@ATTRIBUTE 'b c' {x,y,'z z'}
@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1
@DATA
1,x,1/1@2
?,y,1/2
-2.5e3,'z z',2/1
"""
SPARSE_ARFF = (
    "@RELATION s\n@ATTRIBUTE a numeric\n@ATTRIBUTE b numeric\n@ATTRIBUTE class hierarchical root/a,a/b\n@DATA\n"
)
SPARSE_ARFF += "{0 1.5, 2 a}\n{1 2, 2 b}\n"
OBO = """format-version: 1.2
[Term]
id: T:1
name: all
namespace: x

[Term]
id: T:2
name: "some" ! thing
namespace: x
is_a: T:1 ! all
alt_id: T:9

[Term]
id: T:3
is_a: T:2
relationship: part_of T:1
is_obsolete: false
"""


def _gaf() -> str:
    lines = [
        ("G1", "involved_in", "T:2", "IDA"),
        ("G2", "NOT|involved_in", "T:3", "IEA"),
        ("G3", "enables", "T:1", "EXP"),
    ]
    rows = [["DB", key, key, how, term, "R", code, "", "P", *[""] * 8] for key, how, term, code in lines]
    return "!gaf-version: 2.2\n" + "\n".join("\t".join(row) for row in rows) + "\n"


def _table(labels: Mapping[str, list[Any]], rows: int = 12) -> pl.DataFrame:
    """A table with numbers and categories, and columns of labels."""
    columns = {
        "id": [f"r{row}" for row in range(rows)],
        "a": [None if row == 5 else row * 0.5 for row in range(rows)],
        "b": [("x", "y", None)[row % 3] for row in range(rows)],
        "n": [row % 4 for row in range(rows)],
    }
    return pl.DataFrame(columns | {name: (values * rows)[:rows] for name, values in labels.items()})


def _in_formats(frame: pl.DataFrame, **beside: str) -> list[Files]:
    """A table in every format."""
    parquet, arrow = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc(arrow)
    flat = frame.with_columns(pl.col(pl.List(pl.String)).list.join(";"))
    csv, rest = flat.write_csv(), {name.replace("__", "."): text.encode() for name, text in beside.items()}
    tables = {
        "rows.csv": csv.encode(),
        "rows.tsv": flat.write_csv(separator="\t").encode(),
        "rows.csv.gz": gzip.compress(csv.encode(), mtime=0),
        "rows.parquet": parquet.getvalue(),
        "rows.arrow": arrow.getvalue(),
    }
    return [{name: content} | rest for name, content in tables.items()]


def read_rows(options: Mapping[str, Any], hierarchy: str | None, folder: Path) -> None:
    """A table or ARFF file, whatever its format."""
    beside = {name: str(folder / name) for name in options.get("labels", ()) if (folder / name).is_file()}
    given = dict(options)
    if beside:
        given["labels"] = tuple(beside.values())
    tree = None if hierarchy is None else folder / hierarchy
    source = next(path for path in sorted(folder.iterdir()) if path.name.startswith("rows."))
    check_rows(read(source, options=TableOptions(**given), hierarchy=tree))


def check_rows(data: Dataset | DatasetSplits) -> None:
    """What holds for every dataset."""
    if isinstance(data, DatasetSplits):
        for part in (data.train, data.valid, data.test):
            if part is not None:
                check_rows(part)
        return
    rows, nodes = len(data), len(data.hierarchy)
    Y = data.with_dense_labels().Y
    promise(Y.shape == (rows, nodes) and Y.dtype == np.bool_, "Y is no matrix of labels")
    promise(data.hierarchy.is_closed(Y), "labels without their ancestors")
    promise(data.X.shape[0] == rows, "X and Y have different numbers of rows")
    promise(data.scored.shape == (nodes,), "scored is not of the hierarchy")
    promise(data.ids is None or len(set(data.ids)) == len(data.ids) == rows, "ids are not unique")
    if data.known is not None:
        promise(not (Y & ~data.known).any(), "labels that are unknown")
    if data.sample_weight is not None:
        promise(np.isfinite(data.sample_weight).all() and (data.sample_weight >= 0).all(), "weights that are none")
    if isinstance(data.X, pl.DataFrame):
        for column in data.X:
            infinite = column.dtype.is_float() and column.is_infinite().any()
            promise(
                column.dtype in (pl.Float64, pl.String) and not infinite, "features that are infinite or of odd type"
            )
    elif not isinstance(data.X, Images):
        values = data.X.data if hasattr(data.X, "tocsr") else data.X
        promise(not np.isinf(values).any(), "features that are infinite")
    check_tree(data.hierarchy)
    str(data), data.fingerprint


def check_tree(tree: Hierarchy) -> None:
    """What holds for every hierarchy."""
    promise(len(tree) > 0 and len(set(tree.nodes)) == len(tree), "a hierarchy with equal names, or without any")
    promise((tree.depth[tree.edge_parents] < tree.depth[tree.edge_children]).all(), "a child that is above its parent")
    again = Hierarchy.from_edges(tree.edges, tree.nodes)
    promise(again.fingerprint == tree.fingerprint, "a hierarchy that is not that of its edges")


def read_tree(folder: Path) -> None:
    """A hierarchy in any format; written and read again it is the same."""
    source = next(folder.iterdir())
    tree = read_hierarchy(source)
    check_tree(tree)
    with suppress(ValueError):  # some names cannot be written, and it says so
        write_hierarchy(tree, folder / "again.json")
        promise(read_hierarchy(folder / "again.json") == tree, "a hierarchy that is another one when read again")


def hierarchies() -> list[Files]:
    """A hierarchy in every format."""
    edges = "parent,child\nA,B\nA,C\nB,E\nC,E\n"
    files: Files = {
        "h.obo": OBO.encode(),
        "h.obo.gz": gzip.compress(OBO.encode(), mtime=0),
        "h.csv": edges.encode(),
        "h.tsv": b"id\tparent\ttitle\nA\t\tall\nB\tA\tb\nC\tA\t\nE\tB;C\te\n",
        "paths.csv": ("path\n" + "\n".join(PATHS) + "\n").encode(),
        "paths.txt": ("\n".join(PATHS) + "\n").encode(),
        "levels.csv": b"kingdom,family,genus\nA,B,E\nA,C,\nD,,\n",
        "edges.json": json.dumps(
            {"edges": [["A", "B"], ["B", "C"]], "titles": {"A": "all"}, "nodes": ["A", "Z"]}
        ).encode(),
        "nested.json": json.dumps({"A": {"B": {"E": {}}, "C": {}}, "D": {}}).encode(),
        "list.json": json.dumps(list(PATHS)).encode(),
    }
    return [{name: content} for name, content in files.items()]


def labelled(kind: str) -> list[Files]:
    """Tables with labels of one form."""
    tree = json.dumps({"edges": TREE.edges})
    names = ["B", "E;D", None, "C"]
    match kind:
        case "sets":
            lists = pl.Series("taxa", [["B"], ["E", "D"], None, ["C"]] * 3, dtype=pl.List(pl.String))
            return (
                _in_formats(_table({"taxa": names}), tree__json=tree)
                + _in_formats(_table({}).with_columns(lists), tree__json=tree)[3:]
            )
        case "paths":
            return _in_formats(_table({"taxa": list(PATHS)}))
        case "levels":
            return _in_formats(
                _table({"l1": ["A", "A", "D", "A"], "l2": ["B", "C", None, "B"], "l3": ["E", None, None, ""]})
            )
        case "indicators":
            return _in_formats(
                _table({"B": [1, 0, None, 1], "C": ["yes", "no", "?", ""], "E": [True, False]}), tree__json=tree
            )
        case "weights":
            parts: dict[str, list[Any]] = {"taxa": list(PATHS), "w": [1.0, 0.5, 0.0, 2.0]}
            return _in_formats(_table(parts | {"part": ["train", "train", "test", "valid"]}))
        case "label_file":
            labels = "id,label,value\nr0,B,1\nr1,E,1\nr2,C,0\nr3,D,yes\nr9,A,?\n"
            return [
                _in_formats(_table({}), tree__json=tree, labels__csv=labels)[0],
                {
                    "rows.csv": _table({}).write_csv().encode(),
                    "tree.json": tree.encode(),
                    "labels.csv": b"r0,B\nr1,E\nr1,D\n",
                },
            ]
        case _:
            table = b"id,a\nG1,1\nG2,2\nG3,3\n"
            return [{"rows.csv": table, "labels.gaf": _gaf().encode(), "tree.obo": OBO.encode()}]


TABLES: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "sets": ({"labels": ("taxa",), "id": "id"}, "tree.json"),
    "paths": ({"labels": ("taxa",), "id": "id", "unknown": "below"}, None),
    "levels": ({"labels": ("l*",), "ignore": ("b",)}, None),
    "indicators": ({"labels": ("B", "C", "E"), "id": "id"}, "tree.json"),
    "weights": ({"labels": ("taxa",), "weight": "w", "partition": "part", "id": "id"}, None),
    "label_file": ({"labels": ("labels.csv",), "id": "id"}, "tree.json"),
    "gaf": ({"labels": ("labels.gaf",), "id": "id", "relations": ("is_a", "part_of")}, "tree.obo"),
}


# --- pictures ------------------------------------------------------------------------------------------------------


def _pictures() -> Files:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (12, 9, 3), dtype=np.uint8))
    made = {}
    for suffix, change in (
        ("jpg", image), ("png", image.convert("RGBA")), ("gif", image.convert("P")), ("bmp", image),
        ("tif", image.convert("F")), ("webp", image), ("PNG", image.convert("I;16")),
    ):  # fmt: skip
        file = io.BytesIO()
        change.save(file, {"jpg": "jpeg", "tif": "tiff"}.get(suffix.lower(), suffix))
        made[f"p.{suffix}"] = file.getvalue()
    return made


def read_picture(folder: Path) -> None:
    """A picture, at its full size and at a smaller one."""
    content = next(folder.iterdir()).read_bytes()
    for near in (None, 8):
        image = decode(content, near).image
        promise(image.mode == "RGB" and min(image.size) > 0, "a picture that is none")


def archives() -> list[Files]:
    """A zip archive with folders of pictures, as `zip` and as other programs pack it."""
    packed = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for place, (name, content) in enumerate(_pictures().items()):
                archive.writestr(zipfile.ZipInfo(f"corals/{'é' * (place % 2)}{place % 3}/{name}"), content)
        packed.append({"rows.zip": file.getvalue()})
    return packed


def read_archive(folder: Path) -> None:
    """All pictures of an archive."""
    data = read(folder / "rows.zip")
    check_rows(data)
    for file in data.X.files:
        decode(file.read())


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
        rows = _table({"taxa": list(PATHS)}, 60)
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


def check_probabilities(model: TrainedModel, probs: Any) -> None:
    """What holds for the probabilities of every model."""
    tree = model.hierarchy
    promise(probs.shape[1] == len(tree) and np.isfinite(probs).all(), "probabilities that are not finite")
    promise((probs >= 0).all() and (probs <= 1).all(), "probabilities beyond 0 and 1")
    promise(
        (probs[:, tree.edge_children] <= probs[:, tree.edge_parents]).all(), "a child more probable than its parent"
    )


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


# --- the paper -----------------------------------------------------------------------------------------------------


def records() -> list[Files]:
    """Small records of both protocols, each with the nodes of its dataset."""
    found = []
    for pattern in ("*/*.json", "*/decisions/*.json"):
        paths = [path for path in (PROJECT / "results").glob(pattern) if path.name != "nodes.json"]
        for path in sorted(paths, key=lambda path: (path.stat().st_size, path))[:2]:
            dataset = path.relative_to(PROJECT / "results").parts[0]
            shared = path.with_name("nodes.json")
            nodes = {f"{dataset}/nodes.json": shared.read_bytes()} if shared.exists() else {}
            found.append({str(path.relative_to(PROJECT / "results")): path.read_bytes()} | nodes)
    return found


def read_records(folder: Path) -> None:
    """A record: written and read again it is the same; and the table of a spec that it may belong to."""
    for path in sorted(folder.rglob("*.json")):
        if path.name == "nodes.json":
            read_nodes(folder, path.parent.name)
            continue
        record = load_record(path)
        again = path.with_suffix(".again")
        again.write_text(json.dumps(record.to_file()), encoding="utf-8")
        promise(load_record(again) == record, "a record that is another one when read again")
        if record.fixed is not None:
            for spec in (load_spec("imbalance_fun"), load_spec("imbalance_go")):
                if record.dataset in spec.datasets:
                    as_markdown(compare(spec, gather(spec, folder, [record.dataset])))


CELL = Cell("cellcycle_FUN", settings_for("cellcycle_FUN"), "held_out")


def probabilities() -> list[Files]:
    """Probabilities of held-out and test rows."""
    values = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    training = Training(
        dataset=CELL.dataset,
        settings=RecordSettings.model_validate(CELL.settings.to_dict()),
        protocol="held_out",
        engine="torch",
        versions={},
        machine="",
        threads=1,
        seconds=1.0,
    )
    with tempfile.TemporaryDirectory() as name:
        write_probabilities(Path(name), Probabilities(training, 1, values, values[:1]))
        paths = [path for path in Path(name).rglob("*") if path.is_file()]
        return [{str(path.relative_to(name)): path.read_bytes() for path in paths}]


def read_scores(folder: Path) -> None:
    """Probabilities between 0 and 1."""
    found = read_probabilities(folder, CELL)
    if found is not None:
        for values in (found.held_out, found.test):
            promise(((values >= 0) & (values <= 1)).all(), "probabilities beyond 0 and 1")


def specs() -> list[Files]:
    """Specs of the package, the smallest."""
    paths = sorted((PROJECT / "src/rarenode/paper/specs").glob("*.toml"), key=lambda path: path.stat().st_size)
    return [{"spec.toml": path.read_bytes()} for path in paths[:8]]


def read_spec(folder: Path) -> None:
    """A spec, and all its methods."""
    spec = load_spec(str(folder / "spec.toml"))
    for method in spec.all_methods[:50]:
        for dataset in spec.datasets[:20]:
            spec.seeds_of(method, dataset), spec.published_for(dataset, method.name)


def _each(files: Files) -> list[Files]:
    return [{name: content} for name, content in files.items()]


def _arffs() -> list[Files]:
    return [
        {"rows.arff": ARFF.encode()},
        {"rows.arff": SPARSE_ARFF.encode()},
        {"rows.arff.gz": gzip.compress(ARFF.encode(), mtime=0)},
    ]


def _settings() -> list[Files]:
    return [{"settings.toml": Settings(**QUICK).to_toml().encode()}, {"settings.toml": b"epochs = 3\nmodel = 'mlp'\n"}]


def _run_folders() -> list[Files]:
    return [{name: content for name, content in files.items() if not name.startswith("out/")} for files in _runs()]


def _with_new_rows() -> list[Files]:
    return [files for files in _runs() if "new.csv" in files]


TARGETS: Mapping[str, Target] = {
    "arff": Target(partial(read_rows, {}, None), _arffs, share=2),
    **{
        f"table_{kind}": Target(partial(read_rows, options, tree), partial(labelled, kind), spoil=("rows", "labels"))
        for kind, (options, tree) in TABLES.items()
    },
    "hierarchy": Target(read_tree, hierarchies, share=3),
    "settings": Target(read_settings, _settings),
    "spec": Target(read_spec, specs),
    "record": Target(read_records, records),
    "probabilities": Target(read_scores, probabilities),
    "checkpoint": Target(read_checkpoint, checkpoints),
    "embeddings": Target(read_embeddings, embeddings),
    "picture": Target(read_picture, lambda: _each(_pictures()), share=2),
    "archive": Target(read_archive, archives),
    "model": Target(read_model, models, seal=seal_model, share=2),
    "run": Target(read_run, _run_folders, spoil=("run/settings", "run/table", "run/exam", "run/held"), seal=seal_model),
    "predict": Target(predict_new, _with_new_rows, spoil=("new",), share=0.5),
    "manifest": Target(predict_again, _with_new_rows, spoil=("out/",), share=0.3),
}
