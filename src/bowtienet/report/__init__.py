"""One page about a fitted model: how good, how sure, which columns, and where not to trust it."""

from bowtienet.report.page import write_report

__all__ = ["write_report"]
