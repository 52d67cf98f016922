"""The report: one self-contained HTML page about one or several runs, and its numbers and charts as files."""

from rarenode.report.files import folder_of, require_page_name, write_report
from rarenode.report.from_model import report_on_model, report_on_predictions
from rarenode.report.pictures import Pictures
from rarenode.report.run_report import MOST_RUNS, Report, RunReport

__all__ = [
    "MOST_RUNS",
    "Pictures",
    "Report",
    "RunReport",
    "folder_of",
    "report_on_model",
    "report_on_predictions",
    "require_page_name",
    "write_report",
]
