"""`CSS`: how the classes of the charts look, in light, in dark and on paper.

Charts carry no colours and no styles of their own, so that they work in a page whose policy forbids inline styles. A
page may set any of the properties ``--rn-...``: the defaults have no specificity (``:where``) and give way. Each
colour also stands as itself before its property, for programs that draw SVG but do not know custom properties.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

HEADING, TEXT, SMALL = 18.0, 16.0, 14.0
"""Sizes of letters that charts are laid out for: those of a narrow screen, where a chart is drawn smaller."""
ON_WIDE = {HEADING: 15.0, TEXT: 13.0, SMALL: 11.5}
"""The sizes where there is room."""
NARROW_SCREEN = 520


def _on_map(fills: str, pale_letters: Container[int]) -> dict[str, str]:
    """Fills of a map of recall, and the letters on them: 0 is missed, 1 to 7 go up to 100 %, 8 has nothing to find."""
    found = {f"r{index}": fill for index, fill in enumerate(fills.split())}
    return found | {f"on-{name}": "#ffffff" if int(name[1:]) in pale_letters else "#11161c" for name in found}


LIGHT = {
    "ink": "#1b1f24",
    "muted": "#5b6470",
    "grid": "#dfe3e8",
    "paper": "#ffffff",
    "tint": "#1f6fb5",
    "1": "#005bb4",
    "2": "#bf5709",
    "3": "#02a685",
    "4": "#6d2b69",
    "5": "#a89239",
    "6": "#3581a8",
    "7": "#303338",
    "8": "#ad2751",
    **_on_map("#eb5520 #aae3ef #8fc5dd #74a9cb #5a8dba #4271a8 #2a5695 #153a83 #ebedef", (5, 6, 7)),
}
DARK = {
    "ink": "#e8eaed",
    "muted": "#a3acb8",
    "grid": "#2c323a",
    "paper": "#14171c",
    "tint": "#2f7fc4",
    "1": "#49a0ff",
    "2": "#fb8850",
    "3": "#4fe8bd",
    "4": "#b64a8d",
    "5": "#fbc94a",
    "6": "#93c3ea",
    "7": "#8b95a5",
    "8": "#dc4e55",
    **_on_map("#f96e31 #293b64 #36547b #436d91 #5187a9 #5fa2c0 #6dbed9 #7cdbf1 #2b2e32", (1, 2, 3, 8)),
}
DASHES = ("none", "7 4", "2 3", "10 3 2 3", "14 4", "5 2 1.5 2 1.5 2", "4 2", "1.5 4")
"""Of the lines, so that they differ without colour too."""


def _properties(colours: Mapping[str, str]) -> str:
    return "".join(f"--rn-{name}:{colour};" for name, colour in colours.items())


def _paint(what: str, name: str) -> str:
    return f"{what}:{LIGHT[name]};{what}:var(--rn-{name})"


def _sizes(sizes: Mapping[float, float]) -> str:
    names = {"rn-heading": HEADING, "rn-text": TEXT, "rn-small": SMALL}
    return "".join(f".rn-chart .{name}{{font-size:{sizes[size]:g}px}}" for name, size in names.items())


def _series(index: int, dash: str) -> str:
    me = f".rn-s{index}"
    return (
        f"{me}.rn-bar,{me}.rn-mark{{{_paint('fill', str(index))}}}"
        f"{me}.rn-line{{{_paint('stroke', str(index))};stroke-dasharray:{dash}}}\n"
    )


def _cell(index: int) -> str:
    name = f"r{index}"
    letters = f".rn-chart .rn-within.rn-{name}{{{_paint('fill', f'on-{name}')}}}"
    return f".rn-{name}.rn-cell,.rn-{name}.rn-strip{{{_paint('fill', name)}}}{letters}\n"


CSS = f""":where(:root){{{_properties(LIGHT)}}}
@media (prefers-color-scheme:dark){{:where(:root:not([data-theme=light])){{{_properties(DARK)}}}}}
:where(:root[data-theme=dark]){{{_properties(DARK)}}}
.rn-chart{{display:block;width:100%;max-width:720px;height:auto;font-family:system-ui,-apple-system,"Segoe UI",Roboto,\
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}}
.rn-chart text{{{_paint("fill", "ink")};unicode-bidi:isolate}}
.rn-chart .rn-heading{{font-weight:600}}
.rn-chart .rn-muted{{{_paint("fill", "muted")}}}
.rn-chart .rn-halo{{paint-order:stroke;{_paint("stroke", "paper")};stroke-width:3px;stroke-linejoin:round}}
{_sizes(ON_WIDE)}
@media (max-width:{NARROW_SCREEN}px){{{_sizes({size: size for size in ON_WIDE})}}}
.rn-grid,.rn-axis,.rn-diagonal,.rn-branch,.rn-leader{{fill:none;stroke-width:1;vector-effect:non-scaling-stroke}}
.rn-grid,.rn-branch,.rn-leader{{{_paint("stroke", "grid")}}}
.rn-axis,.rn-diagonal{{{_paint("stroke", "muted")}}}
.rn-diagonal{{stroke-dasharray:4 4}}
.rn-leader{{stroke-dasharray:1 4}}
.rn-whisker{{fill:none;{_paint("stroke", "ink")};stroke-width:1.25}}
.rn-whisker.rn-under{{{_paint("stroke", "paper")};stroke-width:3.25;stroke-opacity:.8}}
.rn-line{{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}}
.rn-mark{{{_paint("stroke", "paper")};stroke-width:1.25;stroke-linejoin:round}}
.rn-texture{{display:none;fill:none;{_paint("stroke", "paper")};stroke-width:1}}
.rn-box{{{_paint("fill", "tint")};{_paint("stroke", "tint")};stroke-width:.75}}
.rn-box.rn-empty{{fill:none;{_paint("stroke", "muted")};stroke-opacity:.55}}
.rn-chart .rn-gained{{{_paint("fill", "3")};font-weight:700}}
.rn-chart .rn-lost{{{_paint("fill", "2")};font-weight:700}}
.rn-hatch{{fill:none;{_paint("stroke", "muted")};stroke-opacity:.3;stroke-width:1}}
.rn-icicle .rn-texture{{stroke-opacity:.5}}
.rn-hatch,.rn-texture,.rn-within{{pointer-events:none}}
{"".join(_series(index, dash) for index, dash in enumerate(DASHES, 1))}\
{"".join(map(_cell, range(9)))}\
@media print{{.rn-chart{{{_properties(LIGHT)}}}.rn-texture{{display:inline}}}}
"""
