"""What `make docs` adds to the pages in docs: files from outside, reference pages of commands and settings, formulas.

MkDocs calls the functions whose names begin with ``on_``. The pages in docs stay ordinary Markdown whose relative links
also work where the code is hosted: a link to a file outside docs leads to the page that is made of it here.
"""

from __future__ import annotations

import html
import posixpath
import re
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from rarenode.cli.app import app
from rarenode.config import Settings
from rarenode.config.settings import describe

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it opens its font in a way that Python has two minds about
    from ziamath.zmath import Latex

ROOT = Path(__file__).parent.parent
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md")
"""Pages outside docs that are in the navigation. Other files get a page if a page links to them."""
LINK = re.compile(r"(\]\(|^\[[^]]+\]: )([^):#\s]+)", re.MULTILINE)
REMARK = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
HEADING = re.compile(r"^#(#+ )", re.MULTILINE)
NESTED = re.compile(r"^  (?=- )", re.MULTILINE)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
SIZE = 16
"""Of the letters of formulas, in units of their drawings."""
ALL = "/*"
"""Ends an entry of the navigation that stands for all other pages of a folder."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the entries of the navigation that stand for a whole folder."""
    for section in config.nav or []:
        for title, entries in section.items():
            named = {entry for entry in entries if isinstance(entry, str)}
            section[title] = [page for entry in entries for page in _pages(entry, named, Path(config.docs_dir))]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside docs."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, content=(ROOT / path).read_text(encoding="utf-8")))
    for path in sorted(_linked(files) - set(OUTSIDE)):
        listing = f"# {path}\n\n```{Path(path).suffix[1:]}\n{(ROOT / path).read_text(encoding='utf-8')}```\n"
        files.append(File.generated(config, _page_of(path), content=listing, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and point links at the pages of files outside docs."""
    markdown = markdown.replace("<!-- commands -->", "\n".join(_commands()))
    markdown = markdown.replace("<!-- settings -->", "\n".join(_settings()))
    markdown = REMARK.sub("", markdown)
    if markdown.startswith("## "):
        markdown = HEADING.sub(r"\1", markdown)  # its first heading is the title of the page
    markdown = NESTED.sub("    ", markdown)  # lists in lists: two spaces elsewhere, four here
    here = page.file.src_uri
    return LINK.sub(lambda link: link[1] + _target(link[2], here), markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw formulas, so that pages need neither a script nor a font for them."""
    return FORMULA.sub(lambda found: _formula(html.unescape(found[2]), block=found[1] == "div"), content)


def _pages(entry: Any, named: set[str], docs: Path) -> list[Any]:
    if not (isinstance(entry, str) and entry.endswith(ALL)):
        return [entry]
    pages = sorted(path.relative_to(docs).as_posix() for path in (docs / entry.removesuffix(ALL)).glob("*.md"))
    return [page for page in pages if page not in named]


def _linked(files: Files) -> set[str]:
    """The files outside docs that pages link to."""
    pages = {file.src_uri: file.content_string for file in files.documentation_pages()}
    links = {_in_repository(link[2], page) for page, text in pages.items() for link in LINK.finditer(text)}
    return {path for path in links if not path.startswith(("docs/", "..")) and (ROOT / path).is_file()}


def _in_repository(link: str, page: str) -> str:
    """Where a link of a page leads, as a path in the repository."""
    source = page if page in OUTSIDE else f"docs/{page}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _page_of(path: str) -> str:
    return path.removeprefix("docs/") if path in OUTSIDE or path.startswith("docs/") else f"source/{path}.md"


def _target(link: str, page: str) -> str:
    """A link of a file of the repository, as a link between pages."""
    path = _in_repository(link, page)
    return posixpath.relpath(_page_of(path), posixpath.dirname(page) or ".") if (ROOT / path).is_file() else link


def _formula(latex: str, *, block: bool) -> str:
    """A formula as a drawing that is as large as the text around it."""
    drawn = Latex(latex.strip(), size=SIZE, color="currentColor", inline=not block)
    svg = drawn.svgxml()
    width, height = (float(svg.attrib[side]) / SIZE for side in ("width", "height"))
    below = 0 if block else drawn.getyofst() / SIZE
    svg.set("style", f"width:{width:.3f}em;height:{height:.3f}em;vertical-align:{below:.3f}em")
    svg.set("role", "img")
    svg.set("aria-label", " ".join(latex.split()))
    written = ElementTree.tostring(svg, encoding="unicode")
    return f'<div class="formula">{written}</div>' if block else written


# --- the command line ------------------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    root = typer.main.get_command(app)
    yield from _command("rarenode", root, 2)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    """A section about a command, and one about each of its subcommands."""
    yield f"\n{'#' * level} {name}\n"
    context = typer.Context(command, info_name=name)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"    {name} {pieces}\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield _paragraph(paragraph)
    given = [option for option in command.params if not option.hidden and option.help]
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        listed = [each for each in given if each.param_type_name == kind]
        if listed:
            yield f"\n**{title}**\n"
            yield from (_definition(each, context) for each in listed)
    for sub in getattr(command, "commands", {}).values():
        if not sub.hidden:
            yield from _command(f"{name} {sub.name}", sub, min(level + 1, 3))


def _paragraph(text: str) -> str:
    """A paragraph of a help text; after a backspace, lines are kept as they are."""
    verbatim, text = text.startswith("\b"), text.removeprefix("\b").strip("\n")
    if not verbatim:
        return f"{_escaped(' '.join(text.split()))}\n"
    title, _, lines = text.partition("\n")
    return f"{title}\n\n```text\n{textwrap.dedent(lines)}\n```\n"


def _definition(parameter: Any, context: typer.Context) -> str:
    names, what = parameter.get_help_record(context) or (parameter.make_metavar(context), parameter.help)
    return f"`{names}`\n:   {_escaped(' '.join(what.split()))}\n"


def _escaped(text: str) -> str:
    """Plain text as Markdown, with options as code; what is code already stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    for place in range(0, len(parts), 2):
        plain = re.sub(r"([*_])", r"\\\1", html.escape(parts[place], quote=False))
        parts[place] = re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", plain)
    return "".join(parts)


# --- settings --------------------------------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    """A section for each group of settings, and in it one for each setting."""
    groups: dict[str, list[str]] = {}
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        groups.setdefault(str(extra["group"]), []).append(name)
    defaults = Settings().to_dict()
    for group, names in groups.items():
        yield f"\n## {group}\n"
        for name in names:
            default = "not set" if defaults[name] is None else f"`{defaults[name]}`"
            yield f"### {name}\n\n{_escaped(describe(name))}\n\nDefault: {default}.\n"
