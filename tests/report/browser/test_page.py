"""The page in a real browser: what a reader does with it, and what hostile names try."""

from __future__ import annotations

import copy
import csv
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rarenode.diagnosis import REASONS
from tests.report.browser.driver import Opener, ask, keep, until
from tests.report.browser.sample import HOSTILE, Data, Kind, assembled, sample_data, sample_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
FOUND, MISSED = 0, 1
NAMES = "#nodes-table .grid-body [role=row]:not([hidden])"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def nodes_of(data: Data, run: int = -1) -> dict[str, list[Any]]:
    figures: dict[str, list[Any]] = data["runs"][run]["nodes"]
    return figures


def table_columns(page: Page) -> list[int]:
    """The nodes in sight in the table, from top to bottom."""
    rows = page.locator(NAMES).evaluate_all(
        "rows => rows.map(row => [Number(row.getAttribute('aria-rowindex')), Number(row.dataset.column)])"
    )
    return [column for _, column in sorted(rows)]


def shown_after(page: Page, count: int) -> None:
    until(page, f"window.rarenodeReport.shown() === {count}")


def go_to(page: Page, anchor: str) -> None:
    """Changes the address, and returns when the page has been told."""
    page.evaluate(
        "anchor => new Promise(told => { addEventListener('hashchange', told); location.hash = anchor; })",
        anchor,
    )


def colour_of(page: Page, selector: str) -> list[int]:
    said: str = page.locator(selector).evaluate("each => getComputedStyle(each).backgroundColor")
    return [int(number) for number in re.findall(r"\d+", said)][:3]


def fits_the_width(page: Page) -> bool:
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return fits


@pytest.mark.parametrize(
    ("nodes", "runs", "kind"),
    [(13, 1, ""), (13, 4, ""), (500, 2, ""), (4000, 4, ""), (13, 1, "bare"), (400, 1, "star")],
)
def test_it_loads_and_shows_every_node(open_page: Opener, pages: Path, nodes: int, runs: int, kind: Kind) -> None:
    page = open_page(sample_page(pages, nodes, runs, kind))
    assert ask(page, "shown()") == nodes
    assert ask(page, "chosen()") == ask(page, "zoomed()") == -1
    assert page.locator("#run-choice").is_visible() == (runs > 1)
    assert page.locator("#comparison").is_visible() == (runs > 1)
    keep(page, f"desktop-{nodes}-{runs}{kind and '-'}{kind}", full=True)


def test_what_is_unknown_is_not_offered(open_page: Opener, pages: Path) -> None:
    bare = open_page(sample_page(pages, 13, 1, "bare"))
    full = open_page(sample_page(pages, 13, 1))
    for page, there in ((bare, 0), (full, 1)):
        assert page.locator("#colour-by option[value=uncertainty]").count() == there
        assert page.locator("[data-key=threshold]").count() == there
        assert page.locator("[data-key=uncertainty]").count() == there


def test_search_finds_a_node_and_leads_to_it(open_page: Opener, pages: Path) -> None:
    data = sample_data(4000, 1)
    page = open_page(sample_page(pages, 4000, 1))
    page.fill("#search", "go:0003210")
    page.locator("#search-hits [role=option]").wait_for()
    page.keyboard.press("Enter")
    assert ask(page, "chosen()") == 3210
    assert data["hierarchy"]["names"][3210] in page.locator("#details h3").inner_text()
    assert ask(page, "zoomed()") in (3210, data["hierarchy"]["parent"][3210])
    page.click("#tab-tree")
    chosen = page.locator("[role=treeitem][aria-selected=true]")
    assert chosen.get_attribute("data-column") == "3210"
    assert int(chosen.get_attribute("aria-level") or 0) == data["hierarchy"]["depth"][3210] + 1
    assert chosen.locator("> .line").is_visible()


def test_search_shows_fifty_hits_by_keyboard(open_page: Opener, pages: Path) -> None:
    data = sample_data(4000, 1)
    matching = [column for column, name in enumerate(data["hierarchy"]["names"]) if "kinase" in name]
    page = open_page(sample_page(pages, 4000, 1))
    page.fill("#search", "KINASE")
    hits = page.locator("#search-hits [role=option]")
    hits.first.wait_for()
    assert hits.count() == 50 < len(matching)
    assert f"{len(matching):,}" in page.locator("#search-count").inner_text()
    page.keyboard.press("ArrowDown")
    wanted = int(hits.nth(1).get_attribute("data-column") or -1)
    keep(page, "search")
    page.keyboard.press("Enter")
    assert ask(page, "chosen()") == wanted
    assert wanted in matching
    page.fill("#search", "no such node")
    until(page, "document.querySelectorAll('#search-hits li').length === 0")
    assert page.locator("#search-count").inner_text().startswith("No node")


def test_a_click_zooms_in_and_the_first_column_zooms_out(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 4000, 1))
    parent = sample_data(4000, 1)["hierarchy"]["parent"]
    canvas = page.locator("#icicle-canvas")
    canvas.click(position={"x": 200, "y": 60})
    zoomed = ask(page, "zoomed()")
    assert parent[zoomed] == 0
    assert ask(page, "chosen()") == zoomed
    assert page.locator("#crumbs .crumb").count() == 3
    keep(page, "zoomed")
    canvas.click(position={"x": 5, "y": 60})
    assert ask(page, "zoomed()") == 0
    page.locator("#crumbs .crumb").first.click()
    assert ask(page, "zoomed()") == -1


def test_keys_walk_through_the_map(open_page: Opener, pages: Path) -> None:
    parent = sample_data(4000, 1)["hierarchy"]["parent"]
    first, second = [column for column, above in enumerate(parent) if above == 0][:2]
    page = open_page(sample_page(pages, 4000, 1))
    page.locator("#panel-icicle .crumb").first.evaluate("each => each.closest('section').scrollIntoView()")
    page.locator("#size-by").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "icicle-canvas"
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert ask(page, "chosen()") == ask(page, "zoomed()") == second
    for key in ("Escape", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert ask(page, "zoomed()") == first
    for key in ("Backspace", "Escape", "Escape"):
        page.keyboard.press(key)
    assert ask(page, "zoomed()") == -1


def test_pointing_tells_about_a_node(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 4000, 1))
    page.locator("#icicle-canvas").hover(position={"x": 30, "y": 60})
    assert "root" in page.locator("#tip .tip-name").inner_text()
    page.locator("h1").hover()
    assert page.locator("#tip").is_hidden()


def test_every_colour_and_size_can_be_drawn(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 500, 2))
    picture = "document.getElementById('icicle-canvas').toDataURL()"
    colours = page.locator("#colour-by option").evaluate_all("options => options.map(option => option.value)")
    assert colours == ["recall", "f1", "reason", "change", "rows", "training", "uncertainty"]
    pictures = set()
    for colour in colours:
        page.select_option("#colour-by", colour)
        pictures.add(page.evaluate(picture))
        assert page.locator("#legend > *").count() > 0
    for size in ("rows", "training"):
        page.select_option("#size-by", size)
        pictures.add(page.evaluate(picture))
    assert len(pictures) == len(colours) + 2


def orders(data: Data, key: str) -> tuple[list[int], list[int]]:
    """The nodes by a figure, rising and falling; those without it come last in both."""
    figures: list[float | None] = list(data["hierarchy"]["depth"] if key == "depth" else nodes_of(data)[key])
    for column, state in enumerate(nodes_of(data)["state"]):
        if key == "recall" and state > MISSED:
            figures[column] = None
        if key == "threshold" and figures[column] is None:
            figures[column] = math.inf  # never decided
    known = [(value, column) for column, value in enumerate(figures) if value is not None]
    unknown = [column for column, value in enumerate(figures) if value is None]
    rising = [column for _, column in sorted(known)]
    falling = [column for _, column in sorted(known, key=lambda pair: (-pair[0], pair[1]))]
    return rising + unknown, falling + unknown


def test_sorting_by_a_column_and_back(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)
    page = open_page(sample_page(pages, 500, 2))
    for key in ("depth", "training", "recall", "threshold", "uncertainty", "state"):
        head = page.locator(f"[data-key={key}]")
        for order, word in zip(orders(data, key), ("ascending", "descending"), strict=True):
            head.locator("button").click()
            seen = table_columns(page)
            assert len(seen) >= 10
            assert seen == order[: len(seen)]
            assert head.get_attribute("aria-sort") == word
    page.locator("#nodes-table").evaluate("table => { table.scrollTop = table.scrollHeight; }")
    until(page, "document.querySelector('#nodes-table [aria-rowindex=\"501\"]') !== null")
    assert table_columns(page)[-1] == orders(data, "state")[1][-1]


def test_sorting_by_name_takes_numbers_by_value(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 13, 1))
    page.locator("[data-key=node] button").focus()
    page.keyboard.press("Enter")
    assert table_columns(page) == list(range(13))
    page.keyboard.press("Enter")
    assert table_columns(page) == list(range(12, -1, -1))


COLUMNS = [
    "node", "state", "change", "recall", "f1", "rows", "training", "reason", "depth", "precision", "decided", "found",
    "threshold", "uncertainty",
]  # fmt: skip


def columns_in_sight(page: Page) -> list[str]:
    keys: list[str] = page.locator("#nodes-table").evaluate(
        """table => {
          const room = table.getBoundingClientRect();
          const names = table.querySelector('[role=columnheader]').getBoundingClientRect().right;
          return [...table.querySelectorAll('[role=columnheader]')].filter((head, at) => {
            const { left, right } = head.getBoundingClientRect();
            return right <= room.left + table.clientLeft + table.clientWidth + 1 && (at === 0 || left >= names - 1);
          }).map(head => head.dataset.key);
        }"""
    )
    return keys


def shades(page: Page) -> tuple[float, float]:
    """How visible the shade is: beside the names, and at the right edge."""
    before, after = (
        float(page.evaluate(f"getComputedStyle(document.getElementById('table-frame'), '{side}').opacity"))
        for side in ("::before", "::after")
    )
    return before, after


@pytest.mark.parametrize(
    ("width", "runs", "last"),
    [(1300, 2, "reason"), (1440, 2, "reason"), (1440, 4, "reason"), (1440, 1, "reason"), (1920, 4, "uncertainty")],
)
def test_the_columns_that_matter_are_in_sight(open_page: Opener, pages: Path, width: int, runs: int, last: str) -> None:
    page = open_page(sample_page(pages, 500 if runs == 2 else 4000, runs), width=width)
    there = [key for key in COLUMNS if runs > 1 or key != "change"]
    seen = columns_in_sight(page)
    assert seen == there[: len(seen)]
    assert last in seen
    hint = page.locator("#more-columns")
    until(page, f"document.getElementById('more-columns').hidden === {'true' if len(seen) == len(there) else 'false'}")
    if hint.is_visible():
        assert hint.inner_text() == f"{len(there) - len(seen)} more columns →"
    keep(page, f"columns-{width}-{runs}", full=True)


@pytest.mark.parametrize("states", ["0", "1", "23"])
def test_no_heading_and_no_figure_is_cut(open_page: Opener, pages: Path, states: str) -> None:
    page = open_page(sample_page(pages, 4000, 4))
    for state in set("0123") - set(states):
        page.locator(f".chip:has([value='{state}'])").click()
    for key in COLUMNS[1:]:
        for _ in range(2):
            page.locator(f"[data-key={key}] button").evaluate("button => button.click()")
            cut = page.locator("[role=columnheader] button, .grid-body [role=gridcell]:not(:first-child)").evaluate_all(
                "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
            )
            assert cut == []


@pytest.mark.parametrize("width", [300, 390, 1440])
def test_a_shade_and_a_button_tell_of_columns_out_of_sight(open_page: Opener, pages: Path, width: int) -> None:
    page = open_page(sample_page(pages, 500, 2), width=width)
    hint = page.locator("#more-columns")
    hint.wait_for()
    assert shades(page) == (0, 1)
    place = "document.querySelector('[data-key=node]').getBoundingClientRect().left"
    scrolled = "document.getElementById('nodes-table').scrollLeft"
    names = page.evaluate(place)
    seen = set(columns_in_sight(page))
    for _ in COLUMNS:
        if "more" not in hint.inner_text():
            break
        before = page.evaluate(scrolled)
        hint.click()
        until(page, f"{scrolled} > {before}")
        page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert shades(page)[0] == 1
        seen |= set(columns_in_sight(page))
    assert shades(page) == (1, 0)
    assert set(COLUMNS) - seen <= ({"reason"} if width == 300 else set())  # none is skipped; one is wider than the room
    assert page.evaluate(place) == names
    hint.click()
    until(page, f"{scrolled} === 0")
    until(page, "document.getElementById('more-columns').textContent.includes('more')")
    assert shades(page) == (0, 1)


def test_filters_leave_what_passes_all_of_them(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)
    depth, names = data["hierarchy"]["depth"], data["hierarchy"]["names"]
    nodes, first = nodes_of(data), nodes_of(data, 0)
    everyone = range(500)
    page = open_page(sample_page(pages, 500, 2))

    for state in ("0", "2", "3"):
        page.locator(f".chip:has([value='{state}'])").click()
    missed = [column for column in everyone if nodes["state"][column] == MISSED]
    shown_after(page, len(missed))
    assert page.locator("#shown-count").inner_text() == f"{len(missed)} of 500 nodes"
    page.select_option("[name=reason]", "2")
    shown_after(page, len([column for column in missed if nodes["reason"][column] == 2]))
    page.locator("#filters [type=reset]").click()
    shown_after(page, 500)

    page.fill("[name=depth-from]", "2")
    page.fill("[name=depth-to]", "3")
    page.fill("[name=training-to]", "9")
    rare = [column for column in everyone if 2 <= depth[column] <= 3 and nodes["training"][column] <= 9]
    shown_after(page, len(rare))
    page.fill("[name=text]", "Kinase")
    wanted = [column for column in rare if "kinase" in names[column].lower()]
    assert 0 < len(wanted) < len(rare)
    shown_after(page, len(wanted))
    assert table_columns(page) == wanted
    page.fill("[name=text]", "no such node")
    shown_after(page, 0)
    page.locator("#filters [type=reset]").click()

    gained = [c for c in everyone if first["state"][c] != FOUND and nodes["state"][c] == FOUND]
    lost = [c for c in everyone if first["state"][c] == FOUND and nodes["state"][c] != FOUND]
    assert gained
    assert lost
    for change, columns in (("1", gained), ("2", lost)):
        page.select_option("[name=change]", change)
        shown_after(page, len(columns))
    page.select_option("[name=change]", "0")
    shown_after(page, 500 - len(gained) - len(lost))


def test_a_reason_leads_to_its_nodes(open_page: Opener, pages: Path) -> None:
    nodes, blocked = nodes_of(sample_data(500, 2)), list(REASONS).index("blocked_by_ancestor")
    page = open_page(sample_page(pages, 500, 2))
    page.locator(".reason", has_text="blocked by an ancestor").click()
    shown_after(page, nodes["reason"].count(blocked))
    page.locator(NAMES).first.click()
    assert nodes["reason"][ask(page, "chosen()")] == blocked
    assert page.locator("#details .why-label").first.inner_text() == "Missed: blocked by an ancestor"


def test_missed_nodes_without_a_known_reason_are_counted_and_lead_to_the_table(open_page: Opener, pages: Path) -> None:
    nodes = nodes_of(sample_data(500, 2, "bare"))
    missed = [column for column in range(500) if nodes["state"][column] == MISSED]
    unknown = [column for column in missed if nodes["reason"][column] == -1]
    assert 0 < len(unknown) < len(missed)
    page = open_page(sample_page(pages, 500, 2, "bare"))
    line = page.locator(".reason-list li").last
    share = f"{100 * len(unknown) / len(missed):.1f}%"
    assert line.locator("button").inner_text().split("\n") == ["reason not known", str(len(unknown)), share]
    assert "rarenode fit has reasons" in line.locator("p").inner_text()
    widths = [part.bounding_box() for part in page.locator(".share-bar span").all()]
    known, grey = (box["width"] for box in widths if box)
    assert grey / (known + grey) == pytest.approx(len(unknown) / len(missed), abs=0.01)
    red, green, blue = colour_of(page, ".share-bar span:last-child")
    assert max(red, green, blue) - min(red, green, blue) < 20
    line.locator("button").click()
    shown_after(page, len(unknown))
    seen = table_columns(page)
    assert seen == unknown[: len(seen)]
    assert page.locator("[name=reason] option:checked").inner_text() == "reason not known"
    page.locator(NAMES).first.click()
    assert page.locator("#details .why-label").first.inner_text() == "Missed: reason not known"
    keep(page, "reason-not-known")


def test_where_every_reason_is_known_none_is_said_to_be_unknown(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 500, 2))
    reasons = sample_data(500, 2)["reasons"]
    assert page.locator("[name=reason] option").all_inner_texts() == ["any", *(reason["label"] for reason in reasons)]
    assert page.locator(".reason").count() == len({r for r in nodes_of(sample_data(500, 2))["reason"] if r >= 0})
    assert "not known" not in page.locator("#reasons").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_reason_has_a_different_colour(open_page: Opener, tmp_path: Path, theme: Any) -> None:
    data = copy.deepcopy(sample_data(500, 1))
    nodes = nodes_of(data)
    for number, column in enumerate(c for c in range(500) if nodes["state"][c] == MISSED):
        nodes["reason"][column] = number % len(REASONS)
    path = tmp_path / "colours.html"
    path.write_text(assembled(data, "colours"), encoding="utf-8")
    page = open_page(path, color_scheme=theme)
    colours = page.locator("#reasons .share-bar span").evaluate_all(
        "parts => parts.map(part => getComputedStyle(part).backgroundColor)"
    )
    assert len(colours) == len(set(colours)) == len(REASONS)


def test_further_reasons_are_named_with_their_help(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)
    also = data["runs"][1]["also"]
    column, further = next((column, further) for column, further in also.items() if len(further) > 1)
    page = open_page(sample_page(pages, 500, 2), anchor=f"#node={column}")
    part = page.locator("#details .why:not(.why-other)")
    wanted = [data["reasons"][number] for number in further]
    assert part.locator("p").last.inner_text() == "Also: " + ", ".join(reason["label"] for reason in wanted)
    helps = part.locator(".also span").evaluate_all("each => each.map(reason => reason.title)")
    assert helps == [reason["help"] for reason in wanted]
    keep(page, "also")
    alone = next(c for c, state in enumerate(nodes_of(data)["state"]) if state == MISSED and str(c) not in also)
    go_to(page, f"#node={alone}")
    assert part.locator(".why-label").is_visible()
    assert part.locator(".also").count() == 0


def test_runs_whose_further_reasons_differ_are_told_apart(open_page: Opener, tmp_path: Path) -> None:
    data = copy.deepcopy(sample_data(500, 3))
    column = next(c for c in range(500) if all(nodes_of(data, run)["state"][c] == MISSED for run in range(3)))
    for run, further in zip(data["runs"], ([4], [5], []), strict=True):
        run["nodes"]["reason"][column] = 2
        run["explanations"][str(column)] = "It is blocked."
        run["also"][str(column)] = further
    path = tmp_path / "differ.html"
    path.write_text(assembled(data, "differ"), encoding="utf-8")
    page = open_page(path, anchor=f"#node={column}")
    assert page.locator("#details .why").count() == 3
    told = page.locator("#details .why-other .also").all_inner_texts()
    assert told == ["Also: members disagree", "Also: confused with a sibling"]


def test_a_row_of_the_table_shows_details_by_click_and_by_key(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)
    page = open_page(sample_page(pages, 500, 2))
    page.locator("#nodes-table [data-column='7']").click()
    assert ask(page, "chosen()") == 7
    assert page.url.endswith("#node=7")
    figures = page.locator("#details tr", has=page.locator("th", has_text="Training rows")).locator("td")
    assert figures.all_inner_texts() == [f"{nodes_of(data, run)['training'][7]:,}" for run in (0, 1)]
    page.locator("#nodes-table").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert ask(page, "chosen()") == 9
    for key in ("End", "Enter"):
        page.keyboard.press(key)
    assert ask(page, "chosen()") == 499
    keep(page, "details")


def test_guaranteed_sets_or_why_there_is_none(open_page: Opener, pages: Path) -> None:
    sets = sample_data(500, 1, "guaranteed")["runs"][0]["guaranteed"]
    some = {
        "sure": next(column for column, each in enumerate(sets["threshold"]) if each is not None),
        "few": next(column for column, rows in enumerate(sets["rows"]) if rows < 22),
        "zero": next(c for c, each in enumerate(sets["threshold"]) if each is None and sets["rows"][c] >= 22),
    }
    for kind, column in some.items():
        page = open_page(sample_page(pages, 500, 1, "guaranteed"), anchor=f"#node={column}")
        heads = page.locator("[role=columnheader]").evaluate_all("heads => heads.map(head => head.dataset.key)")
        assert heads[-3:] == [f"guaranteed_{name}" for name in ("threshold", "size", "recall")]
        row = page.locator("#details tr", has=page.locator("th", has_text="Guaranteed from")).locator("td")
        words = page.locator("#details").inner_text()
        if kind == "sure":
            assert "Cannot be guaranteed" not in words
            assert float(row.nth(0).inner_text()) == pytest.approx(sets["threshold"][column], rel=0.01)
        elif kind == "few":
            assert f"Cannot be guaranteed: {sets['rows'][column]} of 22 rows." in words
        else:
            assert "Cannot be guaranteed: its probability is 0 in held-out rows" in words
        keep(page, f"guaranteed-{kind}")
    two = open_page(sample_page(pages, 500, 2, "guaranteed"), anchor=f"#node={some['sure']}")
    row = two.locator("#details tr", has=two.locator("th", has_text="Guaranteed from")).locator("td")
    assert row.nth(1).inner_text() == "\u2013"  # a dash: the other run has none
    plain = open_page(sample_page(pages, 500, 2))
    assert plain.locator("[data-key^=guaranteed]").count() == 0
    assert "Guaranteed" not in plain.locator("#nodes-table").inner_text()


def test_other_parents_are_named(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)["hierarchy"]
    column, (other,) = next((int(key), value) for key, value in data["others"].items())
    page = open_page(sample_page(pages, 500, 2), anchor=f"#node={column}")
    link = page.locator("#details .others button")
    assert link.inner_text() == data["names"][other]
    link.click()
    assert ask(page, "chosen()") == other


def test_the_comparison_shows_gained_and_lost_nodes(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2)
    names, before, after = data["hierarchy"]["names"], nodes_of(data, 0), nodes_of(data)
    gained = {n for n, b, a in zip(names, before["state"], after["state"], strict=True) if b != FOUND == a}
    page = open_page(sample_page(pages, 500, 2))
    assert f"{len(gained)} gained" in page.locator(".changes-gained h3").inner_text()
    shown = page.locator(".changes-gained td.words").all_inner_texts()
    assert set(shown) <= gained
    assert len(shown) == min(len(gained), 25)
    keep(page, "comparison")
    page.locator(".changes-gained td.words button").first.click()
    assert names[ask(page, "chosen()")] == shown[0]
    page.select_option("#run", "0")
    assert page.locator(".changes-gained").count() == 0
    assert page.locator("#nodes [data-shown-run] strong").inner_text() == data["runs"][0]["name"]


@pytest.mark.parametrize(("runs", "columns"), [(2, 2), (4, 2)])
def test_the_tree_has_a_box_for_each_run(open_page: Opener, pages: Path, runs: int, columns: int) -> None:
    data = sample_data(4000 if runs == 4 else 500, runs)
    page = open_page(sample_page(pages, 4000 if runs == 4 else 500, runs))
    page.click("#tab-tree")
    boxes = page.locator("[role=treeitem][data-column='0'] > .line .box")
    assert [float(text) for text in boxes.all_inner_texts()] == [
        round(100 * run["nodes"]["f1"][0], 1) for run in data["runs"]
    ]
    places = {box["x"] for at in range(runs) if (box := boxes.nth(at).bounding_box())}
    assert len(places) == columns
    keep(page, f"tree-{runs}")


def test_the_tree_opens_by_keys_and_in_portions(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 400, 1, "star"))
    page.click("#tab-tree")
    items = page.locator("[role=treeitem]")
    assert items.count() == 101
    items.first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    assert ask(page, "chosen()") == 1
    for key in ("ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    assert items.first.get_attribute("aria-expanded") == "false"
    assert items.nth(1).is_hidden()
    page.keyboard.press("ArrowRight")
    page.locator("#tree .more").click()
    assert items.count() == 201
    go_to(page, "#node=390")
    assert page.locator("[data-column='390'][aria-selected=true]").is_visible()
    assert items.count() < 400  # only the part around it was made


def test_the_theme_can_be_chosen(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 4000, 4))
    background = "getComputedStyle(document.body).backgroundColor"
    picture = "document.getElementById('icicle-canvas').toDataURL()"
    light = page.evaluate(background), page.evaluate(picture)
    page.locator("#theme button", has_text="Dark").click()
    dark = page.evaluate(background), page.evaluate(picture)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    keep(page, "dark", full=True)
    page.keyboard.press("ArrowLeft")
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert (page.evaluate(background), page.evaluate(picture)) == light
    by_system = open_page(sample_page(pages, 4000, 4), color_scheme="dark")
    assert by_system.evaluate(background) == dark[0]


@pytest.mark.parametrize(("nodes", "runs", "kind"), [(13, 4, ""), (4000, 4, ""), (500, 2, "hostile")])
@pytest.mark.parametrize("width", [380, 820])
def test_a_narrow_screen_has_nothing_beside_it(
    open_page: Opener, pages: Path, nodes: int, runs: int, kind: Kind, width: int
) -> None:
    page = open_page(sample_page(pages, nodes, runs, kind), width=width, height=844, has_touch=True)
    assert fits_the_width(page)
    keep(page, f"phone-{width}-{nodes}{kind and '-'}{kind}", full=True)
    page.locator("#icicle-canvas").tap(position={"x": width / 2, "y": 40})
    assert page.locator("#details").is_visible()
    assert fits_the_width(page)
    page.locator("#details .close").tap()
    assert page.locator("#details").is_hidden()
    page.locator("#tab-tree").tap()
    assert fits_the_width(page)


def test_45_000_nodes(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 45_000, 2))
    assert ask(page, "shown()") == 45_000
    assert ask(page, "drawMilliseconds") > 0
    before = page.evaluate("document.getElementById('icicle-canvas').toDataURL()")
    page.locator("#icicle-canvas").click(position={"x": 200, "y": 100})
    assert ask(page, "zoomed()") > 0
    assert page.evaluate("document.getElementById('icicle-canvas').toDataURL()") != before
    keep(page, "large")
    page.locator("[data-key=f1] button").click()
    page.locator("#nodes-table").focus()
    page.keyboard.press("End")
    assert page.locator("#nodes-table [aria-rowindex='45001']").is_visible()
    assert page.locator("#nodes-table .grid-body [role=row]").count() < 100


def test_an_address_leads_to_a_node_of_this_hierarchy_only(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 13, 1), anchor="#node=5")
    assert ask(page, "chosen()") == 5
    for anchor in ("#node=13", "#node=-1", "#node=1e1", "#node=<b>", "#map", "#node="):
        go_to(page, anchor)
        assert ask(page, "chosen()") == 5
    go_to(page, "#node=12")
    assert ask(page, "chosen()") == 12
    assert ask(open_page(sample_page(pages, 13, 1), anchor="#node=13"), "chosen()") == -1


def test_hostile_names_stay_text(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2, "hostile")
    page = open_page(sample_page(pages, 500, 2, "hostile"))
    page.click("#tab-tree")
    for column in range(1, len(HOSTILE) + 1):
        go_to(page, f"#node={column}")
        assert ask(page, "chosen()") == column
        assert page.locator("#details h3").inner_text().strip()
    shown = page.locator("#nodes-table [data-column='4'] bdi").text_content()
    assert shown == "detrevni and isolated"  # nothing turns it round
    for words in ("<script", "onerror", "\u202e", "__proto__"):
        page.fill("#search", words)
        page.wait_for_timeout(200)
    assert page.evaluate("document.scripts.length") == 2
    assert page.locator("img, iframe, object, b").count() == 0
    shown = page.locator("#nodes-table [data-column='1'] bdi").inner_text()
    assert shown == data["hierarchy"]["names"][1]
    assert page.locator("#nodes-table [data-column='7']").inner_text().startswith("(blank name, node 7)")
    keep(page, "hostile")


def test_the_rows_that_pass_can_be_downloaded(open_page: Opener, pages: Path) -> None:
    data = sample_data(500, 2, "hostile")
    page = open_page(sample_page(pages, 500, 2, "hostile"))
    page.fill("[name=depth-to]", "1")
    wanted = [column for column, depth in enumerate(data["hierarchy"]["depth"]) if depth <= 1]
    shown_after(page, len(wanted))
    with page.expect_download() as waiting:
        page.locator("#download").click()
    text = Path(waiting.value.path()).read_bytes().decode()
    rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    names = [re.sub("[\ud800-\udfff]", "\ufffd", data["hierarchy"]["names"][column]) for column in wanted]
    assert [row["node"] for row in rows] == names
    assert [int(row["training"]) for row in rows] == [nodes_of(data)["training"][column] for column in wanted]


def test_paper_has_the_figures_and_no_controls(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 4000, 4), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for there in ("#overview", "#comparison", "#charts", "#card", "#icicle-canvas", "#card pre"):
        assert page.locator(there).is_visible(), there
    for gone in (".bar", "#theme", "#nodes", "#details", "#search", "#colour-by"):
        assert page.locator(gone).is_hidden(), gone
    assert fits_the_width(page)
    keep(page, "print", full=True)
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_scripts_the_ready_made_parts_are_there(open_page: Opener, pages: Path) -> None:
    page = open_page(sample_page(pages, 13, 1), java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    for there in ("#overview", "#charts", "#card"):
        assert page.locator(there).is_visible(), there
    assert page.locator("#explore").is_hidden()
