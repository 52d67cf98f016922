"""The documentation builds, strictly, and its pages need nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rarenode.config import Settings
from tests.documentation.conftest import ROOT, build

LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(https?:)?//|<link\b[^>]*https?://"
)
CONFIG = """
INHERIT: {root}/mkdocs.yml
docs_dir: docs
nav: [index.md, other.md]
hooks: []
extra_css: []
plugins: [search]
"""


@pytest.mark.slow
class TestStrict:
    """What is wrong on a page is an error of the build."""

    PAGE = "# Page\n\n## Part\n\nSee [part](#part), [other](other.md#some-part).\n\n{more}\n"

    def built(self, folder: Path, more: str = "") -> tuple[int, str]:
        docs = folder / "docs"
        docs.mkdir(exist_ok=True)
        (docs / "index.md").write_text(self.PAGE.format(more=more), encoding="utf-8")
        (docs / "other.md").write_text("# Other\n\n## Some part\n", encoding="utf-8")
        (folder / "mkdocs.yml").write_text(CONFIG.format(root=ROOT), encoding="utf-8")
        done = build(folder / "mkdocs.yml", folder / "site")
        return done.returncode, done.stdout + done.stderr

    def test_what_is_right_builds(self, tmp_path: Path) -> None:
        code, said = self.built(tmp_path)
        assert code == 0
        assert "WARNING" not in said

    @pytest.mark.parametrize("link", ["gone.md", "other.md#gone", "#gone", "/other.md"])
    def test_a_link_that_leads_nowhere(self, tmp_path: Path, link: str) -> None:
        code, said = self.built(tmp_path, f"[nowhere]({link})")
        assert code != 0
        assert link in said

    def test_a_page_that_the_navigation_lacks(self, tmp_path: Path) -> None:
        (tmp_path / "docs" / "more").mkdir(parents=True)
        (tmp_path / "docs" / "more" / "page.md").write_text("# More\n", encoding="utf-8")
        code, said = self.built(tmp_path)
        assert code != 0
        assert "more/page.md" in said


@pytest.mark.slow
class TestBuilt:
    def test_nothing_is_loaded_from_elsewhere(self, site: Path) -> None:
        pages = list(site.rglob("*.html"))
        assert len(pages) > 50
        for page in pages:
            found = LOADED.search(page.read_text(encoding="utf-8").replace('<link rel="canonical"', ""))
            assert found is None, f"{page}: {found}"
        for sheet in site.rglob("*.css"):
            assert not re.search(r"@import|url\([\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet

    def test_every_command_and_setting_has_a_section(self, site: Path) -> None:
        commands = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
        for name in ("fit", "predict", "doctor", "data-sample", "hierarchy-convert", "paper-figure"):
            assert f'id="rarenode-{name}"' in commands
        assert "<code>--min-confidence P</code>" in commands
        assert "<code>--hidden-size" in commands
        assert "see <code>rarenode hierarchy --help</code>. Default" in commands
        settings = (site / "reference" / "settings.html").read_text(encoding="utf-8")
        assert all(f'id="{name}"' in settings for name in Settings.model_fields)

    def test_formulas_and_examples_are_drawn(self, site: Path) -> None:
        mathematics = (site / "mathematics.html").read_text(encoding="utf-8")
        assert mathematics.count('class="formula"') >= 8
        assert "arithmatex" not in mathematics
        objective = (site / "reference" / "objective.html").read_text(encoding="utf-8")
        assert '<span class="gp">&gt;&gt;&gt; </span>' in objective
        assert 'href="hierarchy.html#rarenode.Hierarchy"' in objective

    def test_links_out_of_docs_lead_to_pages(self, site: Path) -> None:
        page = (site / "guide" / "own-loss.html").read_text(encoding="utf-8")
        assert 'href="../source/examples/own_loop.py.html"' in page
        assert (site / "source" / "examples" / "own_loop.py.html").exists()
