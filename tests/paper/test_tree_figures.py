"""The hierarchy with scores in its nodes: what is in the cells, where the boxes are, and what becomes of long names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from rarenode.data.reef import TAXA
from rarenode.errors import FileFormatError
from rarenode.hierarchy import Hierarchy
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures import figure_of
from rarenode.paper.figures.charts import Chart, FigureData, Line, Tree
from rarenode.paper.figures.drawing import draw
from rarenode.paper.figures.tree_drawing import MOST_LINES, PER_LINE, _box_height, _box_width, _places, wrapped
from rarenode.paper.figures.trees import MOST_NODES
from rarenode.paper.grid import cell
from rarenode.paper.pictures import benthicnet_e_hierarchy, hierarchy_from_names
from rarenode.paper.record import DatasetNodes, PredictedNodes
from rarenode.paper.spec import Spec
from rarenode.paper.store import write_record
from tests.paper.small_grid import made_up, small_spec
from tests.paper.test_figure import HOSTILE, only, png_size, texts

REEF = Hierarchy.from_paths(TAXA)
METHODS = ("untrained", "untrained, weighted", "trained", "trained, weighted")


def spec_of(*methods: str, dataset: str = "reef", measure: str = "f1") -> Spec:
    panel = {"kind": "hierarchy", "title": "Nodes", "measures": [measure], "methods": list(methods or METHODS)}
    made = [{"name": name, "settings": {"w0": 0.1 * number}} for number, name in enumerate(METHODS)]
    return small_spec(*made, datasets=[dataset], seeds=2, panels=[panel])


def nodes_of(hierarchy: Hierarchy, **changes: Any) -> DatasetNodes:
    """The first has 10 test rows, the second 11, and so on; the root is not scored."""
    count = len(hierarchy)
    values: dict[str, Any] = {
        "hierarchy": hierarchy.fingerprint,
        "names": hierarchy.nodes,
        "scored": (False, *[True] * (count - 1)),
        "training_rows": tuple(range(1000, 1000 + count)),
        "test_rows": tuple(range(10, 10 + count)),
    }
    return DatasetNodes(**values | changes)


def keep(folder: Path, spec: Spec, method: str, nodes: DatasetNodes, *found: dict[int, tuple[int, int]]) -> None:
    """Records of the seeds 0, 1, ...: column -> predicted, and rightly so."""
    for seed, counts in enumerate(found):
        predicted, hits = [tuple(each) for each in zip(*counts.values(), strict=True)] or [(), ()]
        listed = PredictedNodes(column=tuple(counts), predicted=predicted, true_positives=hits)
        record, _ = made_up(cell(spec, spec.datasets[0], method, seed), nodes=listed)
        write_record(folder, record, nodes)


class TestNumbers:
    def test_a_cell_is_the_mean_over_seeds(self, tmp_path: Path) -> None:
        spec = spec_of()
        keep(tmp_path, spec, "trained", nodes_of(REEF), {1: (9, 5), 2: (8, 8)}, {1: (11, 11)})
        chart = only(figure_of(spec, tmp_path))
        trained = chart.lines[2]
        assert [each.label for each in chart.lines] == list(METHODS)
        means = [None if point is None else point.mean for point in trained.ours]
        first = (100 * 2 * 5 / (9 + 11) + 100 * 2 * 11 / (11 + 11)) / 2
        second = 100 * 2 * 8 / (8 + 12) / 2
        assert means == [None, pytest.approx(first), pytest.approx(second), *[0.0] * 10]
        assert chart.lines[0].ours == (None,) * 13
        assert chart.note == "not complete: untrained, untrained, weighted, trained, weighted"

    def test_cells_are_in_the_order_of_the_panel(self, tmp_path: Path) -> None:
        """The paper has untrained above trained, and unweighted left of weighted, whatever the order of methods is."""
        spec = spec_of("trained", "untrained")
        for method in METHODS:
            keep(tmp_path, spec, method, nodes_of(REEF), {})
        assert [each.label for each in only(figure_of(spec, tmp_path)).lines] == ["trained", "untrained"]

    @pytest.mark.parametrize(("measure", "value"), [("recall", 100 * 6 / 11), ("precision", 100 * 6 / 9)])
    def test_other_measures(self, tmp_path: Path, measure: str, value: float) -> None:
        spec = spec_of("trained", measure=measure)
        keep(tmp_path, spec, "trained", nodes_of(REEF), {1: (9, 6)})
        point = only(figure_of(spec, tmp_path)).lines[0].ours[1]
        assert point is not None
        assert point.mean == pytest.approx(value)

    def test_the_tree_has_short_names_and_training_rows(self, tmp_path: Path) -> None:
        spec = spec_of()
        keep(tmp_path, spec, "trained", nodes_of(REEF), {})
        chart = only(figure_of(spec, tmp_path))
        assert (chart.kind, chart.title, chart.scale) == ("hierarchy", "Nodes, reef", "F1 (%)")
        assert chart.names is not None and chart.tree is not None
        assert chart.names[0] == "Echinoderms"
        assert chart.tree.rows[:2] == (1000, 1001)
        parents = {
            name: None if parent is None else chart.names[parent]
            for name, parent in zip(chart.names, chart.tree.parents, strict=True)
        }
        assert parents["Echinoderms"] is None
        assert parents["Sea stars"] == "Echinoderms"
        assert parents["Basket stars"] == "Ophiuroids"

    def test_a_node_that_no_test_row_has_has_no_score(self, tmp_path: Path) -> None:
        spec = spec_of("trained")
        nodes = nodes_of(REEF, test_rows=(10, 0, *range(12, 23)))
        keep(tmp_path, spec, "trained", nodes, {1: (4, 0), 2: (4, 4)})
        _, none, some, *_ = only(figure_of(spec, tmp_path)).lines[0].ours
        assert none is None
        assert some is not None

    def test_benthicnet_e_is_known_by_its_numbers(self, tmp_path: Path) -> None:
        spec = spec_of(dataset="benthicnet_e")
        keep(tmp_path, spec, "trained", nodes_of(benthicnet_e_hierarchy()), {})
        names = only(figure_of(spec, tmp_path)).names
        assert names is not None
        assert names[0] == "Echinoderms" and "Regular urchins" in names

    def test_a_hierarchy_that_the_names_do_not_tell_is_not_made_up(self, tmp_path: Path) -> None:
        methods = [{"name": "A"}]
        panels: list[dict[str, Any]] = [
            {"kind": "hierarchy", "title": "Nodes", "measures": ["f1"], "methods": ["A"]},
            {"kind": "methods", "title": "M", "measures": ["f1"]},
        ]
        spec = small_spec(*methods, datasets=["cellcycle_FUN"], panels=panels)
        keep(tmp_path, spec, "A", nodes_of(Hierarchy.from_edges([("root", "01"), ("01", "01/02")])), {})
        tree, _ = figure_of(spec, tmp_path).charts
        assert tree.lines == ()
        assert tree.note == "the names of the nodes of cellcycle_FUN do not tell a tree, which this needs"
        draw(figure_of(spec, tmp_path), tmp_path / "out", "x")

    def test_more_nodes_than_are_legible(self, tmp_path: Path) -> None:
        spec = spec_of()
        large = Hierarchy.from_paths([f"all > {number}" for number in range(MOST_NODES)])
        keep(tmp_path, spec, "trained", nodes_of(large), {})
        with pytest.raises(Exception, match=f"reef has {MOST_NODES + 1} nodes; at most {MOST_NODES} can be drawn"):
            figure_of(spec, tmp_path)

    def test_impossible_counts_name_the_record(self, tmp_path: Path) -> None:
        spec = spec_of()
        keep(tmp_path, spec, "trained", nodes_of(REEF), {1: (3, 4)})
        with pytest.raises(FileFormatError, match="column 1 has more true positives"):
            figure_of(spec, tmp_path)


class TestToldHierarchy:
    def test_a_branch_of_paths(self) -> None:
        branch = Hierarchy.from_edges([("a > b", "a > b > c"), ("a > b", "a > b > d")])
        made = hierarchy_from_names(branch.nodes, branch.fingerprint)
        assert made == branch
        assert made is not None and made.titles == ("b", "c", "d")

    @pytest.mark.parametrize("names", [("a", "a > b", "a > c"), ("a > b", "a"), ("a", "a"), ("a", "a > b", "a > b")])
    def test_other_names_or_another_order(self, names: tuple[str, ...]) -> None:
        assert hierarchy_from_names(names, Hierarchy.from_paths(["a > b"]).fingerprint) is None

    def test_edges_that_names_do_not_show(self) -> None:
        hidden = Hierarchy.from_edges([("a", "b")])
        assert hierarchy_from_names(hidden.nodes, hidden.fingerprint) is None


def tree_chart(names: Sequence[str], parents: Sequence[int | None], methods: int = 4, value: float = 12.3) -> Chart:
    count = len(names)
    points = (None, *[Estimate(value, None)] * (count - 1))
    lines = tuple(Line(f"method {number}", points, (None,) * count) for number in range(methods))
    tree = Tree(tuple(parents), tuple(range(count)), (False, *[True] * (count - 1)))
    return Chart("hierarchy", "T", "", "", "F1 (%)", tuple(map(float, range(count))), tuple(names), lines, tree)


def forty(methods: int = 4) -> Chart:
    names = ["root", *(f"group_{n}" for n in range(9)), *(f"a_long_name_of_a_species_{n}" for n in range(30))]
    return tree_chart(names, [None, *[0] * 9, *(1 + n % 9 for n in range(30))], methods)


class TestDrawing:
    def test_names_rows_scores_and_methods_are_text(self, tmp_path: Path) -> None:
        chart = tree_chart(["root", "left", "right"], [None, 0, 0])
        svg, png = draw(FigureData("A title", (chart,), 4, 1), tmp_path, "x")
        png_size(png)
        shown = texts(svg)
        assert {"A title (1 of 4 trainings is missing)", "T", "root", "left", "right", "0 rows", "1 row"} <= set(shown)
        assert shown.count("12.3") == 2 * 4  # the root is not scored
        assert {f"method {number}" for number in range(4)} | {"F1 (%)", "above 0"} <= set(shown)

    def test_colours_are_those_of_the_map_in_the_report(self, tmp_path: Path) -> None:
        for value, colour in ((0.0, "#eb5520"), (0.5, "#aae3ef"), (95.0, "#153a83")):
            chart = tree_chart(["root", "node"], [None, 0], methods=1, value=value)
            svg = draw(FigureData("T", (chart,), 1, 0), tmp_path, "x")[0].read_text(encoding="utf-8")
            assert len(re.findall(f"fill: {colour}", svg)) == 2  # the cell, and its place in the key

    def test_the_same_numbers_give_the_same_bytes(self, tmp_path: Path) -> None:
        first, second = (draw(FigureData("T", (forty(),), 1, 0), tmp_path / name, "x") for name in "ab")
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]

    @pytest.mark.parametrize("methods", [1, 2, 4, 8])
    def test_boxes_do_not_touch(self, methods: int) -> None:
        chart = forty(methods)
        assert chart.tree is not None
        places = _places(chart, chart.tree)
        wide, high = _box_width(chart), _box_height(chart)
        for (left, middle), (other_left, other_middle) in combinations(places, 2):
            assert abs(left - other_left) > wide or abs(middle - other_middle) > high
        for (left, _), parent in zip(places, chart.tree.parents, strict=True):
            assert parent is None or left > places[parent][0]

    def test_trees_beside_other_charts_get_rows_of_their_own(self, tmp_path: Path) -> None:
        small = tree_chart(["root", "left", "right"], [None, 0, 0])
        sweep = Chart("sweep", "S", "", "k", "F1 (%)", (1.0, 2.0), None, (Line("A", (None, None), (None, None)),))
        one, both = (
            png_size(draw(FigureData("T", charts, 1, 0), tmp_path, "x")[1])
            for charts in ((sweep, sweep), (sweep, small, sweep, forty()))
        )
        assert both[1] > 3 * one[1]
        assert max(both) < 15_000
        empty = Chart("hierarchy", "E", "nothing yet", "", "", (), None, ())
        shown = texts(draw(FigureData("T", (small, empty, sweep), 1, 0), tmp_path, "x")[0])
        assert {"a) T", "b) E", "c) S", "nothing yet"} <= set(shown)

    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_only_ever_text(self, tmp_path: Path, name: str) -> None:
        chart = tree_chart(["root", name, name], [None, 0, 0])
        svg, png = draw(FigureData(name, (chart,), 1, 0), tmp_path, "x")
        png_size(png)
        shown = texts(svg)
        assert all(shown.count(each) >= 2 for each in wrapped(name))
        assert "<script>" not in svg.read_text(encoding="utf-8")


class TestWrapped:
    @pytest.mark.parametrize("name", [*HOSTILE, "x" * 300, "a" * PER_LINE, "a " * 80, "echinoderm_larva_seastar_x"])
    def test_lines_are_few_and_short(self, name: str) -> None:
        lines = wrapped(name)
        assert 1 <= len(lines) <= MOST_LINES
        assert all(0 < len(each) <= PER_LINE for each in lines)

    def test_what_fits_is_whole(self) -> None:
        assert wrapped("Brittle/snake stars") == ["Brittle/snake stars"]
        assert wrapped("Pelagic/swimming sea cucumbers") == ["Pelagic/swimming sea", "cucumbers"]
