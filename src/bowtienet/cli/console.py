"""What a command prints: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bowtienet._format import printable

WIDTH_OF_A_PIPE = 100
"""Columns of text where no terminal says how many it has."""


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: data are never markup."""
    stream: Any = sys.stderr if stderr else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # a name may hold what it cannot show
    width = None if stream.isatty() else WIDTH_OF_A_PIPE
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def say(text: str = "", style: str = "") -> None:
    """A line of the result."""
    _print(console(), Text(printable(text), style=style))


def say_aside(text: str) -> None:
    """A line about a result that went elsewhere."""
    console(stderr=True).print(Text(printable(text)))


def note(text: str) -> None:
    """Something worth knowing that is no result."""
    _hanging("Note: ", " ".join(text.split()), "yellow")


def refuse(problems: Sequence[str]) -> None:
    """All that is wrong."""
    if len(problems) == 1:
        _hanging("Error: ", problems[0], "bold red")
        return
    console(stderr=True).print(Text(f"{len(problems)} problems:", style="bold red"))
    for number, problem in enumerate(problems, start=1):
        _hanging(f"  {number}. ", problem, "bold red")


def _hanging(label: str, text: str, style: str) -> None:
    """A label, and a paragraph that stands to its right."""
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


def as_json(content: dict[str, Any]) -> None:
    """The result for machines; JSON has no word for NaN and infinity, and null stands for both."""
    print(json.dumps(_plain(content), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def bar(title: str, total: int) -> Iterator[Any]:
    """One line with percent and time left, which goes when its work ends; call it per step."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(compact=True),
    )
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as line:
        task = line.add_task(printable(title), total=total)

        def step(text: str = title) -> None:
            line.update(task, advance=1, description=printable(text))

        yield step
