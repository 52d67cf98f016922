"""`decision_charts`: the numbers that the figure of a spec with decisions shows.

For each family of datasets and each method, precision over recall: a line for each band of rarity, micro-averaged over
the cells (row, node) of the band, then the mean over datasets that have positive cells in it. For each method, the
reliability of its probabilities: in bins of probability, the mean probability and the share of positive cells, a line
for each calibration, with the cells of all datasets and seeds together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import get_args

from rarenode.metrics import RARITY_BANDS
from rarenode.metrics.average_precision import POINTS
from rarenode.paper.comparison.decisions import compare_decisions, families
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures.charts import Chart, FigureData, Line
from rarenode.paper.record import CalibrationName, Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records
from rarenode.thresholds.calibration_error import BINS

RECALLS = tuple(100 * point / POINTS for point in range(1, POINTS + 1))


def decision_charts(spec: Spec, records: Records, datasets: Sequence[str] | None = None) -> FigureData:
    """The numbers of a figure.

    Raises:
        ArgumentError: the spec has no such dataset.
    """
    state = compare_decisions(spec, records, datasets)
    return FigureData(spec.title, (*_curves(records), *_reliabilities(records)), state.trainings, state.missing)


def _curves(records: Records) -> Iterator[Chart]:
    for family, method, its in families(records):
        lines = (_curve(band, its) for band in RARITY_BANDS)
        yield Chart(
            kind="curves",
            title=f"{family}, {method}",
            note=f"mean over {len(its)} datasets" if len(its) > 1 else its[0][0].dataset,
            axis="Recall (%)",
            scale="Precision (%)",
            positions=RECALLS,
            names=None,
            lines=tuple(line for line in lines if line is not None),
        )


def _curve(band: str, its: Sequence[Sequence[Record]]) -> Line | None:
    by_dataset = []
    for records in its:
        known = [curve for record in records if (curve := record.decided.curves.get(band)) is not None]
        if known:
            by_dataset.append([fmean(values) for values in zip(*known, strict=True)])
    if not by_dataset:
        return None
    means = tuple(Estimate(100 * fmean(values), None) for values in zip(*by_dataset, strict=True))
    return Line(f"{band} training rows", means, (None,) * len(means))


def _reliabilities(records: Records) -> Iterator[Chart]:
    for method in dict.fromkeys(method for _, method in records):
        its = [record for (_, name), found in records.items() if name == method for record in found]
        if its:
            datasets = len({record.dataset for record in its})
            yield Chart(
                kind="reliability",
                title=f"Reliability, {method}",
                note=f"cells of {datasets} datasets" if datasets > 1 else its[0].dataset,
                axis="Mean probability",
                scale="Share of positive cells",
                positions=(),
                names=None,
                lines=tuple(_reliability(name, its) for name in get_args(CalibrationName)),
            )


def _reliability(calibration: CalibrationName, records: Sequence[Record]) -> Line:
    shown = [record.decided.reliability[calibration] for record in records]
    probabilities, shares = [], []
    for place in range(len(BINS) - 1):
        cells = sum(each.cells[place] for each in shown)
        if cells:
            probabilities.append(sum(each.cells[place] * (each.mean_probability[place] or 0) for each in shown) / cells)
            shares.append(sum(each.cells[place] * (each.frequency[place] or 0) for each in shown) / cells)
    label = "not calibrated" if calibration == "none" else calibration.replace("_", " ")
    points = tuple(Estimate(share, None) for share in shares)
    return Line(label, points, (None,) * len(points), tuple(probabilities))
