"""Every public name is on a page of the reference."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module

import pytest

import rarenode
from rarenode import errors
from tests.pages import DOCS

PACKAGES = ("metrics", "paper", "plots", "report", "thresholds", "training")
SHOWN = Counter(
    name for page in (DOCS / "reference").glob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
)


def test_names_of_the_package() -> None:
    names = {f"rarenode.{name}" for name in rarenode.__all__} - {f"rarenode.{name}" for name in PACKAGES}
    assert names - {"rarenode.__version__"} <= SHOWN.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_names_of_packages(package: str) -> None:
    module = import_module(f"rarenode.{package}")
    for name in module.__all__:
        shown = f"rarenode.{name}" if name in rarenode.__all__ else f"rarenode.{package}.{name}"
        assert shown in SHOWN


def test_errors() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {f"rarenode.errors.{name}" for name in kinds - {"RarenodeError"}} <= SHOWN.keys()


def test_nothing_is_shown_twice_or_does_not_exist() -> None:
    assert set(SHOWN.values()) == {1}
    for path in SHOWN:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name)
