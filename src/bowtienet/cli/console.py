"""What a command prints: results to standard output, all else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bowtienet._format import printable


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: data are never markup."""
    stream: Any = sys.stderr if stderr else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # a name may hold what it cannot show
    width = None if stream.isatty() else 100  # a pipe has no width
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def say(text: str = "", style: str = "", *, stderr: bool = False) -> None:
    """A line of the result, or about a result that went elsewhere."""
    _print(console(stderr=stderr), Text(printable(text), style=style))


def note(text: str) -> None:
    """Something worth knowing that is no result."""
    _hanging("Note: ", " ".join(text.split()), "yellow")


def refuse(problems: Sequence[str]) -> None:
    """All that is wrong."""
    if len(problems) > 1:
        say(f"{len(problems)} problems:", style="bold red", stderr=True)
    for number, problem in enumerate(problems, start=1):
        _hanging("Error: " if len(problems) == 1 else f"  {number}. ", problem, "bold red")


def _hanging(label: str, text: str, style: str) -> None:
    """A label, and a paragraph to its right."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=style), Text(printable(text)))
    _print(console(stderr=True), grid)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], n_texts: int = 1) -> None:
    """A table: the first columns are texts, the others numbers."""
    frame = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for index, name in enumerate(header):
        justify: Any = "left" if index < n_texts else "right"
        frame.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        frame.add_row(*(Text(printable(cell)) for cell in row))
    _print(console(), Padding(frame, (1, 0)))


def _print(screen: Console, content: Any) -> None:
    """Print without spaces at the ends of lines, which a pipe would keep."""
    with screen.capture() as captured:
        screen.print(content)
    print("\n".join(map(str.rstrip, captured.get().splitlines())), file=screen.file)
