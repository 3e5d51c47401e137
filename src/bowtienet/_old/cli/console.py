"""What a command says: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TextIO

from bowtienet._old._validation import printable

if TYPE_CHECKING:  # slow to import, and not needed for --help
    from rich.console import Console
    from rich.progress import Progress

_BESIDE = 36
"""Columns of text beside that of a bar: a spinner, the bar, and "119 min left"."""
_WIDE = 120
"""Columns of text where nobody looks at a terminal."""


class Bar:
    """One line in the terminal that a fit, or a loop, can report to."""

    def __init__(self, progress: Progress, title: str, *, verbose: bool = False) -> None:
        self._progress, self._title, self._verbose = progress, title, verbose
        self._began = time.monotonic()
        self._share: float | None = None
        self._deadline: float | None = None
        self._task = progress.add_task(printable(title), total=None, share=None, deadline=None)

    def show(
        self,
        text: str,
        share: float | None = None,
        *,
        short: str | None = None,
        left: float | None = None,
    ) -> None:
        """Renew the text, how much is done if that is known, and the time that is left."""
        now = time.monotonic()
        if share is not None:
            self._share = min(max(share, self._share or 0.0), 1.0)
            if left is None and self._share > 0.0:
                left = (now - self._began) * (1.0 - self._share) / self._share
        if left is not None:
            self._deadline = now + left
        text = text if self._verbose or short is None else short
        room = max(self._progress.console.width - _BESIDE, 0)
        self._progress.update(
            self._task,
            description=printable(text)[:room],
            share=self._share,
            deadline=self._deadline,
        )

    def close(self) -> None:
        """Nothing is left to do: the bar goes when its stage ends."""


def time_left(deadline: float | None, now: float) -> str:
    """The time until then as one would say it; nothing if that is not known.

    Examples
    --------
    >>> time_left(100.0, 40.0), time_left(500.0, 20.0), time_left(None, 0.0), time_left(1.0, 2.0)
    ('60 s left', '8 min left', '', '0 s left')
    """
    if deadline is None:
        return ""
    seconds = max(deadline - now, 0.0)
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit} left"
    return f"{seconds:.0f} s left"


class Output:
    """Tables for people, or one JSON object for machines."""

    def __init__(self, as_json: bool, *, verbose: bool = False) -> None:
        self.as_json, self.verbose = as_json, verbose
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
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def result(self, content: dict[str, Any]) -> None:
        """What machines read."""
        if self.as_json:
            print(json.dumps(_plain(content), indent=2, allow_nan=False))

    @contextmanager
    def stage(self, title: str) -> Iterator[Bar]:
        """A bar for something that may take long; none is drawn where no terminal shows it."""
        from rich.progress import Progress, SpinnerColumn, TextColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            *_bar_columns(),
        )
        console = _console(stderr=True)
        hidden = not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
            yield Bar(progress, title, verbose=self.verbose)


def _bar_columns() -> tuple[Any, ...]:
    """A bar and the time left, of what a `Bar` was told last."""
    from rich.progress import ProgressColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    class ShareBar(ProgressColumn):
        """How much is done; it moves to and fro while that is not known."""

        def render(self, task: Any) -> ProgressBar:
            share = task.fields["share"]
            total = None if share is None else 1.0
            clock = task.get_time()
            return ProgressBar(total=total, completed=share or 0.0, width=20, animation_time=clock)

    class TimeLeft(ProgressColumn):
        """One time, that which is left."""

        def render(self, task: Any) -> Text:
            return Text(time_left(task.fields["deadline"], time.monotonic()))

    return ShareBar(), TimeLeft()


def note(text: str) -> None:
    """Something that is worth knowing, but no result."""
    _complain(f"Note: {text}")


def fail(sentence: str) -> None:
    """The one sentence about a mistake."""
    _complain(f"Error: {sentence}")


def number(value: float | None, digits: int = 4) -> str:
    """A number as people read it: its first digits, and thousands apart from five figures on.

    Numbers of four figures stand without a comma, since many of them are years.

    Examples
    --------
    >>> [number(x) for x in (1891, 12345.678, 1234567, 0.00123456, -2.0, 1e-7, float("nan"))]
    ['1891', '12,346', '1,234,567', '0.001235', '-2', '1e-07', '–']
    """
    if value is None or value != value:
        return "–"
    size = abs(value)
    if size >= 1e15 or 0.0 < size < 1e-4 or size < 10.0 ** (digits - 1):
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if size >= 9999.5 else f"{value:.0f}"


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
