"""What rarenode is built on: a software bill of materials (SBOM), build/sbom.json, and docs/dependencies.md.

The bill is CycloneDX 1.5, made of requirements.lock and of what the installed packages say about themselves. The same
environment always gives the same bytes. `--check` only says whether the page is what would be written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rarenode.version import __version__

PROJECT = Path(__file__).parent.parent
LOCK, BILL, PAGE = PROJECT / "requirements.lock", PROJECT / "build" / "sbom.json", PROJECT / "docs" / "dependencies.md"
USES = {"": "rarenode", "vision": "vision", "cluster": "cluster", "docs": "documentation", "dev": "development"}
"""Extra -> what it is for; a package is listed under the first that needs it."""
LONGEST_NAME = 60
"""Characters of a licence; some packages put its whole text there."""
HEAD = """<!-- Made by `make sbom`; do not edit. -->

# Dependencies

The versions that `make setup` installs, from requirements.lock, and their licences, as the packages state them. *Used
by* is `rarenode` for what every installation has, the name of an extra, `documentation` or `development`.
`make sbom` writes the same as a CycloneDX file, build/sbom.json; `pip-audit -r requirements.lock` compares it with
known vulnerabilities.

| package | version | licence | used by |
|:--|:--|:--|:--|
"""


@dataclass(frozen=True)
class Package:
    """One line of the lock file."""

    name: str
    version: str
    licence: str
    """Empty if the package does not say."""
    is_expression: bool
    """Whether the licence is an SPDX expression."""
    use: str
    needs: tuple[str, ...]
    """Names of packages, normalised."""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{_normal(self.name)}@{self.version}"


def main() -> None:
    """Write, or with --check compare."""
    packages = read_packages(LOCK)
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(packages):
            sys.exit("docs/dependencies.md is not what requirements.lock says; run `make sbom`")
        return
    PAGE.write_text(page(packages), encoding="utf-8")
    BILL.parent.mkdir(exist_ok=True)
    BILL.write_text(json.dumps(bill(packages), indent=1) + "\n", encoding="utf-8")
    print(f"{BILL.relative_to(PROJECT)}: {len(packages)} packages")


def read_packages(lock: Path) -> list[Package]:
    """The packages of a lock file, in its order."""
    lines = (line for line in lock.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    pins = dict(line.split("==") for line in lines)
    uses, names = _uses(), {_normal(name) for name in pins}
    found = []
    for name, version in pins.items():
        about = _installed(name)
        licence, is_expression = ("", False) if about is None else _licence(about)
        needs = tuple(each for each in _needs(name) if each in names)
        found.append(Package(name, version, licence, is_expression, uses.get(_normal(name), USES["dev"]), needs))
    return found


def page(packages: Iterable[Package]) -> str:
    """The table as Markdown."""
    rows = (f"| {each.name} | {each.version} | {each.licence or 'not stated'} | {each.use} |" for each in packages)
    return HEAD + "\n".join(rows) + "\n"


def bill(packages: Iterable[Package]) -> dict[str, Any]:
    """The content of a CycloneDX file."""
    packages = list(packages)
    refs = {_normal(each.name): each.purl for each in packages}
    root = f"pkg:pypi/rarenode@{__version__}"
    content: dict[str, Any] = {
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": "rarenode",
                "version": __version__,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [_component(each) for each in packages],
        "dependencies": [
            {"ref": root, "dependsOn": sorted(refs[each] for each in _needs("rarenode") if each in refs)},
            *({"ref": each.purl, "dependsOn": [refs[need] for need in each.needs]} for each in packages),
        ],
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | content


def _component(package: Package) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "scope": "required" if package.use == USES[""] else "optional",
    }
    if package.licence:
        known = {"expression": package.licence} if package.is_expression else {"license": {"name": package.licence}}
        made["licenses"] = [known]
    return made


def _licence(about: Distribution) -> tuple[str, bool]:
    """The licence that a package states, and whether it is an SPDX expression."""
    metadata: Mapping[str, Any] = about.metadata  # type: ignore[assignment]
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression), True
    classifiers = [each for each in about.metadata.get_all("Classifier") or () if each.startswith("License ::")]
    named = [each.rpartition(" :: ")[2] for each in classifiers if each != "License :: OSI Approved"]
    text = str(metadata.get("License") or "").strip()
    is_name = text and "\n" not in text and len(text) <= LONGEST_NAME
    return (text if is_name else ", ".join(named)), False


def _uses() -> dict[str, str]:
    """Normalised name -> for what it is installed."""
    found: dict[str, str] = {}
    for extra, use in USES.items():
        todo = list(_needs("rarenode", extra))
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = use
                todo.extend(_needs(name))
    return found


@cache
def _needs(name: str, extra: str = "") -> tuple[str, ...]:
    """Normalised names of what a package requires on this machine."""
    about = _installed(name)
    requirements = [Requirement(each) for each in (about.requires if about is not None else None) or ()]
    wanted = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra})]
    return tuple(sorted({_normal(each.name) for each in wanted}))


def _normal(name: str) -> str:
    return str(canonicalize_name(name))


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
