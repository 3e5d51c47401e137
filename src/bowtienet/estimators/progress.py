"""What a fit says while it runs: one live line, and scikit-learn's callbacks where it has them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, TypeVar

from bowtienet.inference.convergence import relative_change
from bowtienet.inference.iterate import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    WARNING_LEVEL = 6
    """Frames from a warning up to the line that called `fit`, through scikit-learn's wrappers."""
except ImportError:  # scikit-learn before 1.9
    WARNING_LEVEL = 5
    CallbackSupportMixin = type("CallbackSupportMixin", (), {})

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Nothing to do where scikit-learn has no callbacks."""
        return method


__all__ = [
    "WARNING_LEVEL",
    "CallbackSupportMixin",
    "Line",
    "LiveLine",
    "Reporter",
    "reporting_to",
    "with_callbacks",
]

INTERVAL = 0.1
"""Seconds between two renewals of the line."""


class HasRows(Protocol):
    """A part of the rows that was read."""

    @property
    def n_rows(self) -> int:
        """How many there were."""


Counted = TypeVar("Counted", bound=HasRows)


class Line(Protocol):
    """Where a fit says how far it is."""

    def show(self, text: str, share: float | None = None) -> None:
        """Renew the text; `share` of the fits that are known to come is done."""

    def close(self) -> None:
        """The fit is over."""


_LINE: ContextVar[Line | None] = ContextVar("line", default=None)


@contextmanager
def reporting_to(line: Line) -> Iterator[None]:
    """Let fits report to `line` meanwhile, whatever their `verbose` is."""
    token = _LINE.set(line)
    try:
        yield
    finally:
        _LINE.reset(token)


class LiveLine:
    """A line of text that is overwritten in a terminal, and written once at the end elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.live = bool(getattr(self.stream, "isatty", lambda: False)())
        self.text = ""
        self.width = 0
        self.last = 0.0

    def show(self, text: str, share: float | None = None) -> None:
        """Renew the line, not more often than the eye can follow."""
        self.text = text
        now = time.monotonic()
        if self.live and now - self.last >= INTERVAL:
            self.last = now
            self._write(text)

    def close(self) -> None:
        """Leave the last text standing."""
        if self.text:
            self._write(self.text)
            self.stream.write("\n")
            self.stream.flush()

    def _write(self, text: str) -> None:
        self.stream.write(("\r" if self.live else "") + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)


class Reporter:
    """Tells the live line and the callbacks of `estimator` about fits and their sweeps."""

    def __init__(self, estimator: Any, data: dict[str, Any]) -> None:
        self.estimator = estimator
        self.data = data
        self.line = _LINE.get() or (LiveLine() if estimator.verbose else None)
        self.begin = time.monotonic()
        self.n_fits = 0
        self.total = 0
        self.before = 0
        """Fits of the stages before this one."""
        self.stopped = False
        self.watched = bool(getattr(estimator, "_skl_callbacks", None))
        self.context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def reading(self, pieces: Iterable[Counted]) -> Iterator[Counted]:
        """Pass on what a first reading of the rows finds, and say how far it is."""
        n_rows = 0
        for piece in pieces:
            n_rows += piece.n_rows
            self.say(f"reading | {n_rows:,} rows")
            yield piece

    def say(self, text: str, share: float | None = None) -> None:
        """Something about the whole fit."""
        if self.line is not None:
            self.line.show(f"{text} | {time.monotonic() - self.begin:.1f} s", share)

    def expect(self, n_fits: int) -> None:
        """So many more fits are to come."""
        self.before = self.total
        self.total += n_fits

    def member(self, attributes: Callable[[Progress], dict[str, Any]]) -> MemberReporter:
        """Reporter of the next fit; `attributes` builds a fitted estimator's from its progress."""
        self.n_fits += 1
        return MemberReporter(self, attributes)

    def finished(self, elbo: float) -> None:
        """A fit that ran elsewhere came back."""
        self.n_fits += 1
        self._show(f"ELBO {elbo:.6g}", self.n_fits)

    def close(self) -> None:
        """The whole fit is over."""
        if self.line is not None:
            self.line.close()
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def _show(self, text: str, done: float) -> None:
        share = (done - self.before) / max(self.total - self.before, 1)
        self.say(f"fit {self.n_fits}/{self.total} | {text}", share)


class MemberReporter:
    """The engine's callback for one fit."""

    def __init__(self, parent: Reporter, attributes: Callable[[Progress], dict[str, Any]]) -> None:
        self.parent = parent
        self.attributes = attributes
        self.before: float | None = None
        self.first: tuple[float, int] | None = None
        """Time and rows visited at the first sweep: the start before it goes at another pace."""
        self.context: Any = None
        if parent.context is not None and parent.watched:
            self.context = parent.context.subcontext(task_name="member", max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=parent.estimator, **parent.data)

    def __call__(self, progress: Progress) -> bool:
        change = 0.0 if self.before is None else relative_change(self.before, progress.elbo)
        self.before = progress.elbo
        self.parent._show(
            f"sweep {progress.sweep} | ELBO {progress.elbo:.6g} | change {change:.1e}"
            + self._pace(progress),
            self.parent.n_fits - 1 + min(progress.n_visited / max(progress.n_at_most, 1), 1.0),
        )
        if self.context is None:
            return False
        sweep = self.context.subcontext(task_name="sweep")
        estimator = self.parent.estimator
        sweep.call_on_fit_task_begin(estimator=estimator, **self.parent.data)
        return bool(
            sweep.call_on_fit_task_end(
                estimator=estimator,
                reconstruction_attributes=lambda: self.attributes(progress),
                **self.parent.data,
            )
        )

    def _pace(self, progress: Progress) -> str:
        """Rows per second, and the time left if all fits take as many sweeps as they may."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, progress.n_visited)
            return ""
        seconds, rows = now - self.first[0], progress.n_visited - self.first[1]
        if seconds <= 0.0 or rows <= 0:
            return ""
        fits_after = self.parent.total - self.parent.n_fits
        to_come = max(0, (1 + fits_after) * progress.n_at_most - progress.n_visited)
        left = duration(to_come * seconds / rows)
        return f" | {rows / seconds:,.0f} rows/s | at most {left} left"

    def close(self) -> None:
        """The fit is over."""
        if self.context is not None:
            asked = self.context.call_on_fit_task_end(
                estimator=self.parent.estimator, **self.parent.data
            )
            self.parent.stopped = self.parent.stopped or bool(asked)


def duration(seconds: float) -> str:
    """A time as one would say it."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
