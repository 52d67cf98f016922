"""Human genes, their protein domains, and the Gene Ontology: what fits at real size, how well, how long, how large.

    RARENODE_DATA=folder python tools/measure_human_go.py best
    RARENODE_DATA=folder python tools/measure_human_go.py weighted
    RARENODE_DATA=folder python tools/measure_human_go.py logistic neighbours

Features are the Pfam domains of a gene, sparse, 0 or 1. Labels are the terms that people annotated, without electronic
annotations (IEA), some of which were derived from these very domains. The ontology is cut to the terms in use. A fifth
of the genes, drawn at random, is for testing. Each method runs in a process of its own and writes its figures to
``bench/human_go/METHOD.json``; F-max and S-min of the run are checked by cafaeval, the public evaluator of CAFA.

``best`` is the preset of rarenode, ``weighted`` three networks with the paper's loss (node weights as published, GMU)
in 20 epochs, both from fit to report and predictions. The others are what scikit-learn
offers for so many terms: a logistic regression for each term, and the ten nearest neighbours; parents get at least the
probability of their children.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rarenode import Hierarchy, Run, Settings, read_hierarchy
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.metrics import cafa_scores, information_accretion, macro_average_precision
from rarenode.metrics.average_precision import average_precision
from rarenode.objective.constraint import constrain
from rarenode.run.predictions import Choice

RESULTS = Path("bench/human_go")
TEST_SHARE = 0.2
OURS: Mapping[str, Settings] = {
    "best": Settings(),
    "weighted": Settings(model="mlp", n_members=3, weighting="as_published", focus="gmu", holdout=0.2, epochs=20),
}
CAFAEVAL = """
import json, sys
from cafaeval.evaluation import cafa_eval
curves, _ = cafa_eval(*sys.argv[1:4], ia=sys.argv[4], no_orphans=True, n_cpu=1)
curves = curves.reset_index()
print(json.dumps({name: [float(part["f"].max()), float(part["s_w"].min())] for name, part in curves.groupby("ns")}))
"""


def main() -> None:
    """Run the methods that are named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+", choices=[*OURS, *OTHERS])
    parser.add_argument("--genes", type=int, help="only so many genes, to try it out")
    parser.add_argument("--out", type=Path, default=Path("build/human_go"), help="the folder of the runs")
    asked = parser.parse_args()
    if len(asked.methods) > 1:  # peak memory is that of a process
        for method in asked.methods:
            subprocess.run([sys.executable, __file__, method, *sys.argv[1 + len(asked.methods) :]], check=True)
        return
    splits = read_data(asked.genes)
    print(splits, flush=True)
    method = asked.methods[0]
    record = {
        "method": method,
        "genes": [len(splits.train), len(splits.test)],
        "domains": splits.train.n_features,
        "terms": len(splits.hierarchy),
        "peak_bytes": 0,
        **(run_ours(method, splits, asked.out / method) if method in OURS else run_other(method, splits)),
    }
    record["peak_bytes"] = record["peak_bytes"] or peak_bytes()
    folder = RESULTS if asked.genes is None else asked.out
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{method}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


def read_data(genes: int | None) -> DatasetSplits:
    """Genes that have a domain and an annotation."""
    folder = Path(os.environ["RARENODE_DATA"]) / "go_human"
    pairs = pl.read_csv(folder / "human_pfam.tsv.gz", separator="\t", schema_overrides={"gene": pl.String}).unique()
    names, domains = sorted(pairs["gene"].unique()), sorted(pairs["pfam"].unique())
    ontology = read_hierarchy(folder / "go-basic.obo.gz")
    # A table of ids, to which the reader of GAF joins the annotations; features follow.
    table = pl.DataFrame({"gene": names, "nothing": np.zeros(len(names))})
    labelled = Dataset.read(
        table, id="gene", labels=str(folder / "human.gaf.gz"), hierarchy=ontology, exclude_evidence="IEA"
    ).with_labels_only()
    assert labelled.ids is not None
    place = {name: row for row, name in enumerate(labelled.ids)}
    kept = pairs.filter(pl.col("gene").is_in(list(place)))
    rows = np.array([place[name] for name in kept["gene"]], dtype=np.int32)  # scikit-learn takes no longer indices
    column_of = {name: column for column, name in enumerate(domains)}
    columns = kept["pfam"].replace_strict(column_of).to_numpy().astype(np.int32)
    X = csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(place), len(domains)))
    order = np.random.default_rng(0).permutation(len(place))[:genes]
    in_use = np.flatnonzero(np.asarray(labelled.Y[order].sum(axis=0)).ravel())
    used = set(in_use.tolist())
    edges = [(ontology.nodes[p], ontology.nodes[c]) for p, c in zip(*_edges(ontology), strict=True) if c in used]
    cut = Hierarchy.from_edges(edges, [ontology.nodes[column] for column in in_use])
    old = np.array([ontology.index[node] for node in cut.nodes])
    assert ontology.terms is not None
    assert ontology.terms.namespaces is not None
    cut = cut.with_terms(
        type(ontology.terms)(
            tuple(ontology.titles[column] for column in old),
            tuple(ontology.terms.namespaces[column] for column in old),
        )
    )
    scored = np.array([node not in cut.roots for node in cut.nodes])
    held_out = len(order) - round(len(order) * TEST_SHARE)

    def part(chosen: NDArray[np.int64], name: str) -> Dataset:
        ids = tuple(labelled.ids[row] for row in chosen) if labelled.ids is not None else None
        return Dataset(X[chosen], csr_array(labelled.Y[chosen])[:, old], cut, scored, ids=ids, name=name)

    return DatasetSplits("human_go", part(order[:held_out], "training"), None, part(order[held_out:], "test"))


def _edges(ontology: Hierarchy) -> tuple[list[int], list[int]]:
    return ontology.edge_parents.tolist(), ontology.edge_children.tolist()


def run_ours(name: str, splits: DatasetSplits, folder: Path) -> dict[str, Any]:
    """From fit to report and predictions."""
    seconds: dict[str, list[float]] = {}
    kept = folder / "fit.json"  # of a fit that is finished: the rest may be measured again
    with timed("fit", seconds):
        run = Run.fit(splits.train, folder, OURS[name], resume=folder.exists(), report=False)
    if not kept.exists():
        kept.write_text(json.dumps({"seconds": seconds["fit"], "peak_bytes": peak_bytes()}), encoding="utf-8")
    fit = json.loads(kept.read_text(encoding="utf-8"))
    seconds["fit"] = fit["seconds"]
    with timed("evaluate", seconds):
        evaluation = run.evaluate(splits.test)
    with timed("report", seconds):
        page = run.report(folder / "test.html", splits.test)
    with timed("predict", seconds):
        written = run.predict_to_file(splits.test, folder / "test.tsv", choice=Choice("cafa", most_terms=10**6))
    probs = run.model.predict_proba(splits.test.X)
    return {
        "seconds": seconds,
        "report_bytes": page.stat().st_size,
        "lines_predicted": written.lines,
        "scores": {name: getattr(evaluation.scores.all, name) for name in ("f1", "precision", "recall", "nodes_found")},
        **ranking(splits, probs),
        "cafaeval": by_cafaeval(splits, folder / "test.tsv"),
        "peak_bytes": max(fit["peak_bytes"], peak_bytes()),
    }


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_other(name: str, splits: DatasetSplits) -> dict[str, Any]:
    """Fit and predict with scikit-learn."""
    seconds: dict[str, list[float]] = {}
    with timed("fit and predict", seconds):
        probs = constrain(OTHERS[name](splits), splits.hierarchy)
    return {"seconds": seconds} | ranking(splits, probs)


def logistic(splits: DatasetSplits) -> NDArray[np.float32]:
    """One regression for each term that some rows have and others have not."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    train, probs = splits.train, np.zeros(splits.test.Y.shape, dtype=np.float32)
    by_term = csr_array(train.Y).tocsc()
    for term, support in enumerate(train.support.tolist()):
        if not 0 < support < len(train):
            probs[:, term] = support / len(train)
            continue
        y = np.zeros(len(train), dtype=np.int8)
        y[by_term.indices[by_term.indptr[term] : by_term.indptr[term + 1]]] = 1
        probs[:, term] = LogisticRegression(solver="liblinear").fit(train.X, y).predict_proba(splits.test.X)[:, 1]
    return probs


def neighbours(splits: DatasetSplits) -> NDArray[np.float32]:
    """The share among the ten nearest genes by cosine, weighted by similarity."""
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415

    found = NearestNeighbors(n_neighbors=10, metric="cosine").fit(splits.train.X)
    distances, rows = found.kneighbors(splits.test.X)
    weights = np.maximum(1 - distances, 1e-6)
    weights /= weights.sum(axis=1, keepdims=True)
    shape = (len(splits.test), len(splits.train))
    starts = np.arange(0, rows.size + 1, rows.shape[1])
    sparse = csr_array((weights.ravel(), rows.ravel(), starts), shape=shape) @ csr_array(splits.train.Y, dtype=float)
    probs: NDArray[np.float32] = np.minimum(sparse.toarray(), 1).astype(np.float32)
    return probs


OTHERS: dict[str, Callable[[DatasetSplits], NDArray[np.float32]]] = {"logistic": logistic, "neighbours": neighbours}


def ranking(splits: DatasetSplits, probs: NDArray[np.float32]) -> dict[str, Any]:
    """AP over all cells, macro AP, and F-max and S-min by aspect."""
    Y, scored = splits.test.Y.toarray(), splits.test.scored
    accretion = information_accretion(splits.train.Y, splits.hierarchy)
    by_aspect = cafa_scores(Y, probs, splits.hierarchy, accretion, scored=scored)
    return {
        "ap": average_precision(Y[:, scored], probs[:, scored]),
        "macro_ap": macro_average_precision(Y[:, scored], probs[:, scored]),
        "cafa": {aspect: [scores.f_max, scores.s_min] for aspect, scores in by_aspect.items()},
    }


def by_cafaeval(splits: DatasetSplits, predictions: Path) -> dict[str, list[float]]:
    """F-max and S-min by aspect, as the public evaluator computes them from files."""
    tree, test = splits.hierarchy, splits.test
    assert tree.terms is not None
    assert tree.terms.namespaces is not None
    accretion = information_accretion(splits.train.Y, tree)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        above = {node: tree.parents(node) for node in tree.nodes}
        terms = (
            [f"[Term]\nid: {node}\nname: {node}\nnamespace: {space}", *(f"is_a: {each}" for each in above[node])]
            for node, space in zip(tree.nodes, tree.terms.namespaces, strict=True)
        )
        (folder / "terms.obo").write_text("format-version: 1.2\n\n" + "\n\n".join("\n".join(term) for term in terms))
        assert test.ids is not None
        pairs = csr_array(test.Y).tocoo()
        rows, columns = (part.tolist() for part in pairs.coords)
        (folder / "labels.tsv").write_text(
            "".join(f"{test.ids[row]}\t{tree.nodes[column]}\n" for row, column in zip(rows, columns, strict=True))
        )
        (folder / "accretion.tsv").write_text(
            "".join(f"{node}\t{value}\n" for node, value in zip(tree.nodes, accretion.tolist(), strict=True))
        )
        (folder / "predictions").mkdir()
        (folder / "predictions" / predictions.name).symlink_to(predictions.resolve())
        files = [str(folder / each) for each in ("terms.obo", "predictions", "labels.tsv", "accretion.tsv")]
        done = subprocess.run([sys.executable, "-c", CAFAEVAL, *files], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def timed(what: str, seconds: dict[str, list[float]]) -> Iterator[None]:
    """Seconds by the clock, and of processor time."""
    began, used = time.perf_counter(), time.process_time()
    yield
    seconds[what] = [round(time.perf_counter() - began, 1), round(time.process_time() - used, 1)]
    print(f"{what}: {seconds[what][0]} s, {seconds[what][1]} s of processor time", flush=True)


if __name__ == "__main__":
    main()
