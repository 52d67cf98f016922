"""How `make docs` reads docstrings: examples become code, names of the reference become links to it."""

from __future__ import annotations

import re
from typing import Any

import griffe

import rarenode

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
NAME = re.compile(r"(?<![`\[])`([A-Za-z]\w+)`(?!`)")
SETTINGS = "\n    settings: every field of `Settings`, by its name.\n"
"""In place of what the package fills in when it is imported."""
LINKED = set(rarenode.__all__) - {"metrics", "paper", "plots", "report", "thresholds", "training", "__version__"}


class Docstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Rewrite those of a package that was loaded."""
        _rewrite(pkg)


def _rewrite(obj: Any) -> None:
    if obj.docstring is not None:
        text = obj.docstring.value.replace("\n    SETTINGS\n", SETTINGS)
        text = NAME.sub(lambda name: _link(name[1], obj), text)
        obj.docstring.value = EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
    for member in obj.members.values():
        if not member.is_alias:
            _rewrite(member)


def _link(name: str, obj: Any) -> str:
    return f"[`{name}`][rarenode.{name}]" if name in LINKED and name != obj.name else f"`{name}`"
