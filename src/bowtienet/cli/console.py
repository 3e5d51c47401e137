"""What a command says: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:  # slow to import, and not needed for --help
    from rich.console import Console
    from rich.progress import Progress

_BESIDE = 32
"""Columns of text that a bar takes beside its text."""
_WIDE = 120
"""Columns of text where nobody looks at a terminal."""


class Bar:
    """A bar in the terminal that a fit, or a loop, can report to."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(printable(title), total=None)

    def show(self, text: str, share: float | None = None) -> None:
        """Renew the text, and how much is done if that is known."""
        total = None if share is None else 1.0
        room = max(self._progress.console.width - _BESIDE, 0)
        self._progress.update(
            self._task, description=printable(text)[:room], total=total, completed=share or 0.0
        )

    def close(self) -> None:
        """Nothing is left to do: the bar goes when its stage ends."""


class Output:
    """Tables for people, or one JSON object for machines."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        stream: Any = sys.stdout
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name may hold what it cannot show

    def say(self, text: str = "") -> None:
        """Lines for people, such as paths."""
        if not self.as_json:
            print(printable(text))

    def explain(self, text: str) -> None:
        """A sentence for people."""
        self.say(_wrapped(text, sys.stdout))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], n_texts: int = 1) -> None:
        """A table for people: the first columns are texts, those after them numbers."""
        if self.as_json:
            return
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for index, name in enumerate(header):
            side = "left" if index < n_texts else "right"
            table.add_column(printable(name), justify=side, overflow="fold")  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*(printable(cell) for cell in row))
        console = _console(stderr=False)
        with console.capture() as captured:
            console.print(table)
        print(captured.get(), end="")

    def result(self, content: dict[str, Any]) -> None:
        """What machines read."""
        if self.as_json:
            print(json.dumps(_plain(content), indent=2, allow_nan=False))

    @contextmanager
    def stage(self, title: str) -> Iterator[Bar]:
        """A bar for something that may take long; none is drawn where no terminal shows it."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        console = _console(stderr=True)
        hidden = not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
            yield Bar(progress, title)


def note(text: str) -> None:
    """Something that is worth knowing, but no result."""
    _complain(f"Note: {text}")


def fail(sentence: str) -> None:
    """The one sentence about a mistake."""
    _complain(f"Error: {sentence}")


def printable(text: str) -> str:
    """`text` without characters that a terminal would obey, such as those that names may hold."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def number(value: float | None, digits: int = 4) -> str:
    """A number as people read it."""
    return "–" if value is None or value != value else f"{value:.{digits}g}"


def _complain(text: str) -> None:
    # By `print`, since a console of its own would write into the line of a bar.
    print(_wrapped(text, sys.stderr), file=sys.stderr)


def _wrapped(text: str, stream: TextIO) -> str:
    """A sentence in one line; in as many as it needs, between words, if a terminal shows it."""
    line = " ".join(printable(text).split())
    if not stream.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _plain(content: Any) -> Any:
    """Content as JSON holds it; it has no word for NaN and infinity, and null stands for both."""
    if is_dataclass(content) and not isinstance(content, type):
        content = asdict(content)
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if hasattr(content, "tolist"):  # arrays and numbers of NumPy
        content = content.tolist()
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _WIDE
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
