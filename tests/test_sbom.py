"""The bill of materials: what CycloneDX demands of one, and that nothing of the lock file is missing."""

from __future__ import annotations

import re

import pytest
from tools import sbom
from tools.sbom import LOCK, PAGE, Package, bill, page, read_packages

from rarenode.version import __version__

PACKAGES = read_packages(LOCK)


def test_every_package_of_the_lock_file() -> None:
    pins = re.findall(r"^([^#\s]+)==(\S+)$", LOCK.read_text(), re.MULTILINE)
    assert [(each.name, each.version) for each in PACKAGES] == pins
    uses = {each.name: each.use for each in PACKAGES}
    assert uses["numpy"] == uses["torch"] == uses["pydantic_core"] == "rarenode"
    assert (uses["transformers"], uses["ray"], uses["mypy"]) == ("vision", "cluster", "development")
    assert next(each for each in PACKAGES if each.name == "pandas").needs[0] == "numpy"


def test_what_a_bill_must_have() -> None:
    made = bill(PACKAGES)
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    assert made["metadata"]["component"]["version"] == __version__
    refs = [each["bom-ref"] for each in made["components"]]
    assert len(set(refs)) == len(refs) == len(PACKAGES)
    for each in made["components"]:
        assert each["type"] == "library"
        assert each["name"]
        assert each["scope"] in ("required", "optional")
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[^\s@]+", each["purl"])
        for licence in each.get("licenses", ()):
            (kind,) = licence
            assert licence["expression"] if kind == "expression" else licence["license"]["name"]
    root, *others = made["dependencies"]
    assert root["ref"] == made["metadata"]["component"]["bom-ref"]
    assert "pkg:pypi/numpy@" in "".join(root["dependsOn"])
    assert [each["ref"] for each in others] == refs
    assert all(ref in refs for each in made["dependencies"] for ref in each["dependsOn"])
    assert bill(PACKAGES) == made


def test_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["sbom", "--check"])
    sbom.main()
    assert page(PACKAGES) == PAGE.read_text(encoding="utf-8")
    assert "| a | 1 | not stated | rarenode |" in page([Package("a", "1", "", False, "rarenode", ())])
    monkeypatch.setattr(sbom, "page", lambda packages: "another")
    with pytest.raises(SystemExit, match="run `make sbom`"):
        sbom.main()
