"""The report: from runs to one self-contained HTML page, and the same as CSV, JSON and SVG files."""

from rarenode.report.files import folder_of, require_page_name, write_report
from rarenode.report.from_model import report_on_model, report_on_probabilities
from rarenode.report.from_records import group_by_seed, report_on_records
from rarenode.report.run_report import MOST_RUNS, Report, RunReport

__all__ = [
    "MOST_RUNS",
    "Report",
    "RunReport",
    "folder_of",
    "group_by_seed",
    "report_on_model",
    "report_on_probabilities",
    "report_on_records",
    "require_page_name",
    "write_report",
]
