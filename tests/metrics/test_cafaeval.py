"""`cafa_scores` against cafaeval, the public evaluator of the CAFA challenges, on the same files.

It runs in a process of its own, on files in its formats: an ontology in OBO, labels, predictions as rarenode writes
them, and information accretion.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rarenode.hierarchy import Hierarchy, read_hierarchy
from rarenode.metrics import CafaScores, cafa_scores, information_accretion
from rarenode.run import Predictions

ROWS = 60
ASPECTS = {"biological_process": 25, "molecular_function": 12}
EVALUATE = """
import json, sys
from cafaeval.evaluation import cafa_eval
found = []
for folder, no_orphans in json.loads(sys.argv[1]):
    files = (f"{folder}/{name}" for name in ("terms.obo", "predictions", "labels.tsv"))
    curves, _ = cafa_eval(*files, ia=f"{folder}/accretion.tsv", no_orphans=no_orphans, n_cpu=1)
    found.append(curves.reset_index()[["ns", "tau", "f", "cov", "s_w"]].to_dict("list"))
print(json.dumps(found))
"""


class Case(NamedTuple):
    seed: int
    aspects: tuple[str, ...]
    roots_count: bool


CASES = [Case(seed, tuple(ASPECTS), seed % 2 == 0) for seed in range(6)] + [Case(6, ("biological_process",), True)]


class Problem(NamedTuple):
    hierarchy: Hierarchy
    Y: NDArray[np.bool_]
    probs: NDArray[np.float32]
    scored: NDArray[np.bool_]
    accretion: NDArray[np.float64]

    @property
    def scores(self) -> dict[str, CafaScores]:
        return cafa_scores(self.Y, self.probs, self.hierarchy, self.accretion, scored=self.scored)


def write_obo(path: Path, case: Case, rng: np.random.Generator) -> None:
    """Random DAGs, one for each aspect; a node has up to three parents."""
    lines = ["format-version: 1.2", ""]
    for number, aspect in enumerate(case.aspects):
        ids = [f"GO:{number}{node:06d}" for node in range(ASPECTS[aspect])]
        for node, name in enumerate(ids):
            n_parents = min(node, int(rng.integers(1, 4)))
            parents = rng.permutation(node)[:n_parents].tolist()
            lines += ["[Term]", f"id: {name}", f"name: {name}", f"namespace: {aspect}"]
            lines += [f"is_a: {ids[parent]} ! parent" for parent in parents] + [""]
    path.write_text("\n".join(lines))


def write_problem(folder: Path, case: Case) -> Problem:
    """Rows without labels, in one aspect or all; without predictions; scores on thresholds, and below their children's.
    """
    rng = np.random.default_rng(case.seed)
    write_obo(folder / "terms.obo", case, rng)
    hierarchy = read_hierarchy(folder / "terms.obo")
    shape = ROWS, len(hierarchy)
    Y = rng.random(shape) < 0.06
    Y[:5] = False
    namespaces = np.array(hierarchy.terms.namespaces if hierarchy.terms else ())
    Y[5:15, namespaces == case.aspects[0]] = False
    Y = hierarchy.close(Y)
    probs = np.clip(rng.random(shape) ** 4 * 0.7 + Y * rng.random(shape) * 0.5, 0, 1)
    probs[:, ::2] = probs[:, ::2].round(2)
    probs[10:20] = 0
    probs[20:25] *= 0.1
    scored = np.ones(len(hierarchy), dtype=np.bool_) if case.roots_count else hierarchy.depth > 0
    # With no_orphans the evaluator still weighs roots in S; so that they do not count, they must weigh nothing.
    accretion = np.where(scored, information_accretion(Y, hierarchy), 0)
    problem = Problem(hierarchy, Y, probs.astype(np.float32), scored, accretion)
    write_files(folder, problem)
    return problem


def write_files(folder: Path, problem: Problem) -> None:
    nodes, rows = problem.hierarchy.nodes, tuple(f"P{row:03d}" for row in range(len(problem.Y)))
    labels = (f"{rows[row]}\t{nodes[node]}\n" for row, node in np.argwhere(problem.Y))
    (folder / "labels.tsv").write_text("".join(labels))
    bits = zip(nodes, problem.accretion.tolist(), strict=True)
    (folder / "accretion.tsv").write_text("".join(f"{node}\t{value!r}\n" for node, value in bits))
    (folder / "predictions").mkdir()
    probs = problem.probs[:, problem.scored]
    every = np.ones(probs.shape, dtype=np.bool_)
    predictions = Predictions(problem.hierarchy, problem.scored, probs, every, probs, "none", ids=rows)
    predictions.write(folder / "predictions" / "ours.tsv", layout="cafa")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, tuple[Problem, dict[str, list[Any]]]]:
    """Each problem, and cafaeval's scores at each aspect and threshold."""
    folders = [tmp_path_factory.mktemp("cafa") for _ in CASES]
    problems = [write_problem(folder, case) for folder, case in zip(folders, CASES, strict=True)]
    asked = [(str(folder), not case.roots_count) for folder, case in zip(folders, CASES, strict=True)]
    command = [sys.executable, "-W", "ignore", "-c", EVALUATE, json.dumps(asked)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(zip(CASES, zip(problems, json.loads(told), strict=True), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_f_max_s_min_and_coverage(case: Case, evaluated: dict[Case, tuple[Problem, dict[str, list[Any]]]]) -> None:
    problem, curves = evaluated[case]
    found = problem.scores
    aspect, threshold, f1, coverage, s = (np.array(curves[name]) for name in ("ns", "tau", "f", "cov", "s_w"))
    assert list(found) == sorted(case.aspects) == sorted(set(aspect.tolist()))
    for name, ours in found.items():
        f_of, s_of = (np.where(aspect == name, values, worst) for values, worst in ((f1, -1), (s, np.inf)))
        assert ours.f_max == pytest.approx(f_of.max(), abs=1e-6)
        assert ours.s_min == pytest.approx(s_of.min(), abs=1e-6)
        assert ours.f_max_threshold == pytest.approx(threshold[f_of.argmax()])
        assert ours.s_min_threshold == pytest.approx(threshold[s_of.argmin()])
        assert ours.coverage == pytest.approx(coverage[f_of.argmax()], abs=1e-6)
        assert 0 < ours.f_max < 1
        assert ours.rows < ROWS
    assert any(ours.coverage < 1 for ours in found.values())
