"""Figures as SVG for a web page: small, without styles, scripts and references, in the page's light or dark colours.

matplotlib writes ``style`` attributes, which a strict Content-Security-Policy forbids, and identifiers, which could
collide between the charts of a page. `to_svg` turns styles into presentation attributes, puts markers where they are
used, and drops what is not drawn. Colours stay those of `style.LIGHT`, so any program can show the file; where `CSS`
applies, each of them is replaced by the property ``--rn-...`` of its role, which is another one in dark pages.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from html import escape
from xml.etree import ElementTree

from matplotlib.figure import Figure

from rarenode.plots.style import DARK, HEADING, LIGHT, SMALL, TEXT
from rarenode.plots.text import plain

Element = ElementTree.Element
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d+\.\d+")
SPACES = re.compile(r"\s+")
CLASSES = {HEADING: "rn-heading", TEXT: "rn-text", SMALL: "rn-small"}
ON_WIDE = {HEADING: 15.0, TEXT: 13.0, SMALL: 11.5}
"""Font sizes where there is room; charts are laid out for the larger sizes of a narrow screen."""
NARROW_SCREEN = 520
DROPPED = frozenset(("font-family", "font-style", "clip-path", "id", "font-size"))
USUAL = frozenset(
    (("text-anchor", "start"), ("font-weight", "400"), ("stroke-linecap", "butt"), ("stroke-linejoin", "round"))
)
"""What applies to the whole chart, or to any SVG, anyway."""
MARGIN = 16.0
FONTS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def to_svg(figure: Figure, title: str, description: str) -> str:
    """An SVG element to stand in a page that has `CSS` in a style sheet.

    Call it inside `style.chart_style`, in which the figure was made; the same figure then gives the same text.

    Args:
        figure: the figure.
        title: what it shows, for a tooltip and for readers who do not see it.
        description: what more such readers should know.

    >>> from rarenode.plots import plot_training_curve
    >>> from rarenode.plots.style import chart_style
    >>> with chart_style():
    ...     svg = to_svg(plot_training_curve({"mine": ([1, 2], [0.5, 0.25])}).figure, "Loss", "Falls.")
    >>> svg[:69]
    '<svg xmlns="http://www.w3.org/2000/svg" class="rn-chart" viewBox="0 0'
    """
    written = io.BytesIO()
    figure.savefig(
        written, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    source = ElementTree.fromstring(written.getvalue())  # noqa: S314 (matplotlib has just written it)
    markers = {path.get("id", ""): path for path in source.iter(f"{SVG}path") if path.get("id")}
    drawn = "".join(_written(child, markers) for child in source)
    name = escape(plain(title, 500), quote=True)
    spoken = escape(f"{plain(title, 500)}. {plain(description, 1000)}", quote=True)
    view = _rounded(source.get("viewBox", ""))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rn-chart" viewBox="{view}" stroke-linejoin="round" role="img" '
        f'aria-label="{spoken}"><title>{name}</title>{drawn}</svg>'
    )


def standalone(svg: str) -> str:
    """What `to_svg` returned, as the content of a file: with a size, a margin, a background and its style sheet."""
    wide, tall = (float(value) + 2 * MARGIN for value in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    size = f'viewBox="-{MARGIN:g} -{MARGIN:g} {wide:g} {tall:g}" width="{wide:g}" height="{tall:g}"'
    sheet = escape(f"{CSS}.rn-chart{{width:{wide:g}px;max-width:100%}}\n", quote=False)
    paper = f'<rect x="-{MARGIN:g}" y="-{MARGIN:g}" width="{wide:g}" height="{tall:g}" fill="{LIGHT["paper"]}"/>'
    head, _, drawn = re.sub(r'viewBox="[^"]*"', size, svg, count=1).partition("</title>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}</title><style>{sheet}</style>{paper}{drawn}\n'


def _written(element: Element, markers: Mapping[str, Element]) -> str:
    """An element and what is in it, as text. Paths and texts are written, and nothing else."""
    tag = element.tag.removeprefix(SVG)
    if tag == "g":
        inside = "".join(_written(child, markers) for child in element)
        attributes = _attributes(element)
        return f"<g{attributes}>{inside}</g>" if attributes and inside else inside
    if tag == "use":
        marker = markers[element.get(LINK, "").removeprefix("#")]
        place = _rounded(f"translate({element.get('x', '0')} {element.get('y', '0')})")
        return f'<path d="{_path(marker)}" transform="{place}"{_attributes(element, marker)}/>'
    if tag == "path":
        return f'<path d="{_path(element)}"{_attributes(element)}/>'
    if tag == "text":
        return f"<text{_attributes(element)}>{escape(element.text or '', quote=False)}</text>"
    return ""


def _attributes(element: Element, marker: Element | None = None) -> str:
    """Attributes and styles as presentation attributes; those of a mark are its marker's, unless it has its own."""
    skipped = ("d", "style", LINK) if marker is None else ("d", "style", LINK, "x", "y")
    found: dict[str, str] = {}
    for each in (element,) if marker is None else (marker, element):
        found |= {name: value for name, value in each.attrib.items() if name not in skipped}
        found |= dict(_declarations(each.get("style", "")))
    size = found.get("font-size", "")
    look = CLASSES.get(float(size.removesuffix("px"))) if size else None
    kept = {name: value for name, value in found.items() if name not in DROPPED and (name, value) not in USUAL}
    if kept.get("transform", "").startswith("rotate(-0 "):
        del kept["transform"]
    if look:
        kept = {"class": look} | kept
    elif size:
        kept["font-size"] = size
    return "".join(f' {name}="{escape(_shortened(name, value), quote=True)}"' for name, value in kept.items())


def _shortened(name: str, value: str) -> str:
    return _rounded(value, 1 if name in ("x", "y", "transform") else 2)


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        if value:
            yield name.strip(), value.strip()


def _path(element: Element) -> str:
    return SPACES.sub(" ", _rounded(element.get("d", ""))).strip().replace(" L ", "L").replace("M ", "M")


def _rounded(text: str, digits: int = 1) -> str:
    """Numbers with few digits: a tenth of a point is less than a pixel of most screens.

    >>> _rounded("translate(12.500000 0.333333) -0.000001")
    'translate(12.5 0.3) 0'
    """
    return NUMBER.sub(lambda found: f"{round(float(found[0]), digits) + 0.0:g}", text)


def _properties(colours: Mapping[str, str]) -> str:
    return "".join(f"--rn-{name}:{colour};" for name, colour in colours.items())


def _sizes(sizes: Mapping[float, float]) -> str:
    return "".join(f".rn-chart .{CLASSES[size]}{{font-size:{shown:g}px}}" for size, shown in sizes.items())


def _paints() -> str:
    return "".join(
        f'.rn-chart [{what}="{colour}"]{{{what}:var(--rn-{name})}}'
        for name, colour in LIGHT.items()
        for what in (("fill",) if re.search(r"r\d$", name) else ("fill", "stroke"))  # the map has no lines
    )


CSS = f""":where(:root){{{_properties(LIGHT)}}}
@media (prefers-color-scheme:dark){{:where(:root:not([data-theme=light])){{{_properties(DARK)}}}}}
:where(:root[data-theme=dark]){{{_properties(DARK)}}}
.rn-chart{{display:block;width:100%;max-width:720px;height:auto;font-family:{FONTS};font-variant-numeric:tabular-nums}}
.rn-chart text{{unicode-bidi:isolate}}
.rn-chart .rn-heading{{font-weight:600}}
{_sizes(ON_WIDE)}
@media (max-width:{NARROW_SCREEN}px){{{_sizes({size: size for size in ON_WIDE})}}}
{_paints()}
@media print{{.rn-chart{{{_properties(LIGHT)}}}}}
"""
"""The style sheet of charts in a page. A page may set any property ``--rn-...``: the defaults give way."""
