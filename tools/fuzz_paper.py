"""Targets of the fuzzer: specs, records and probabilities of the reproduction of the paper."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from rarenode.paper.as_published import settings_for
from rarenode.paper.comparison.scores import compare
from rarenode.paper.grid import Cell
from rarenode.paper.record import Training
from rarenode.paper.record_settings import RecordSettings
from rarenode.paper.spec import load_spec
from rarenode.paper.store import Probabilities, gather, load_record, read_nodes, read_probabilities, write_probabilities
from rarenode.paper.tables.scores import as_markdown
from tools.fuzz_mutations import Files
from tools.fuzz_promises import promise

PROJECT = Path(__file__).parent.parent
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
