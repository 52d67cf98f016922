"""What is fuzzed: for each kind of file a few valid samples, how it is read, and what must hold for what is read.

A reader gets a folder with the files of an input. It raises `BrokenPromiseError` if it read what it should not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tools.fuzz_data import (
    TABLES,
    archives,
    arffs,
    hierarchies,
    labelled,
    pictures,
    read_archive,
    read_picture,
    read_rows,
    read_tree,
)
from tools.fuzz_models import (
    checkpoints,
    embeddings,
    models,
    predict_again,
    predict_new,
    read_checkpoint,
    read_embeddings,
    read_model,
    read_run,
    read_settings,
    run_folders,
    runs_with_new_rows,
    seal_model,
    settings,
)
from tools.fuzz_mutations import Files
from tools.fuzz_paper import probabilities, read_records, read_scores, read_spec, records, specs


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


def _each(files: Files) -> list[Files]:
    return [{name: content} for name, content in files.items()]


TARGETS: Mapping[str, Target] = {
    "arff": Target(partial(read_rows, {}, None), arffs, share=2),
    **{
        f"table_{kind}": Target(partial(read_rows, options, tree), partial(labelled, kind), spoil=("rows", "labels"))
        for kind, (options, tree) in TABLES.items()
    },
    "hierarchy": Target(read_tree, hierarchies, share=3),
    "settings": Target(read_settings, settings),
    "spec": Target(read_spec, specs),
    "record": Target(read_records, records),
    "probabilities": Target(read_scores, probabilities),
    "checkpoint": Target(read_checkpoint, checkpoints),
    "embeddings": Target(read_embeddings, embeddings),
    "picture": Target(read_picture, lambda: _each(pictures()), share=2),
    "archive": Target(read_archive, archives),
    "model": Target(read_model, models, seal=seal_model, share=2),
    "run": Target(read_run, run_folders, spoil=("run/settings", "run/table", "run/exam", "run/held"), seal=seal_model),
    "predict": Target(predict_new, runs_with_new_rows, spoil=("new",), share=0.5),
    "manifest": Target(predict_again, runs_with_new_rows, spoil=("out/",), share=0.3),
}
