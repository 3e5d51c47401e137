"""One self-contained HTML page about one fitted model (``pip install 'bowtienet[report]'``).

`collect` turns a model and rows into numbers, words and plots, and `render` puts them into a page
that opens from disk and asks the network for nothing.
"""

from bowtienet._old.report.content import ReportContent, collect
from bowtienet._old.report.page import render, write_report

__all__ = ["ReportContent", "collect", "render", "write_report"]
