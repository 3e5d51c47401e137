"""What a fit says while it runs: one live line, and scikit-learn's callbacks where it has them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TextIO

import numpy as np

from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.estimators.attributes import ensemble_attributes
from bowtienet._old.inference.convergence import Status, relative_change
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.representation.representation import View

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks

except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = type("CallbackSupportMixin", (), {})

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Nothing to do where scikit-learn has no callbacks."""
        return method


INTERVAL = 0.1
"""Seconds between two renewals of the line."""


_LINE: ContextVar[Any] = ContextVar("line", default=None)
"""Where fits report to, in place of a `LiveLine`."""


@contextmanager
def reporting_to(line: Any) -> Iterator[None]:
    """Let fits report to `line`, which has the methods of `LiveLine`, whatever their `verbose`."""
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

    def show(self, text: str, share: float | None = None, **_: Any) -> None:
        """Renew the line, not more often than the eye can follow.

        `share` of what is known to come is done; others are told `left`, the seconds to come, and
        `short`, the text without figures of the pace and the bound.
        """
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

    def __init__(self, estimator: Any, data: dict[str, Any], known: dict[str, Any]) -> None:
        self.estimator, self.data = estimator, data
        self.known = known
        """Fitted attributes that tell of the columns."""
        self.line = _LINE.get() or (LiveLine() if estimator.verbose else None)
        self.started = time.monotonic()
        self.n_fits = self.total = 0
        self.before = 0
        """Fits of the stages before this one."""
        self.stopped = False
        self.context: Any = None
        self.member: Any = None
        """Callback contexts of the whole fit and of the member; None without callbacks."""
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def begin(self, ensemble: Ensemble, solver: str) -> None:
        """Rows are read: an ensemble of this representation is fitted."""
        self.ensemble, self.solver = ensemble, solver

    def say(
        self,
        text: str,
        share: float | None = None,
        left: float | None = None,
        *,
        detail: str = "",
    ) -> None:
        """What the whole fit is at; `share` of what is known to come is done."""
        if self.line is None:
            return
        promise = "" if left is None or detail else f"about {left:.0f} s to go, "
        whole = f"{promise}{text}{detail} | {time.monotonic() - self.started:.1f} s"
        self.line.show(whole, share, short=text, left=left)

    def expect(self, n_fits: int) -> None:
        """More fits are to come."""
        self.before = self.total
        self.total += n_fits

    def begin_fit(self, view: View) -> None:
        """The next of them begins here, of a network that sees the rows through this view."""
        self.n_fits += 1
        self.view = view
        self.bound: float | None = None
        self.first: tuple[float, int] | None = None
        """Time and rows visited at the first sweep: the start before it goes at another pace."""
        if getattr(self.estimator, "_skl_callbacks", None):
            self.member = self.context.subcontext(task_name="member", max_subtasks=None)
            self.member.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def __call__(self, progress: Progress) -> bool:
        """A sweep is done; a true answer stops its fit."""
        change = 0.0 if self.bound is None else relative_change(self.bound, progress.elbo)
        self.bound = progress.elbo
        self._show(
            f"sweep {progress.sweep} | ELBO {progress.elbo:.6g} | change {change:.1e}",
            self.n_fits - 1 + min(progress.n_visited / max(progress.n_at_most, 1), 1.0),
            self._pace(progress),
        )
        if self.member is None:
            return False
        sweep = self.member.subcontext(task_name="sweep")
        sweep.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        stop = sweep.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self._attributes(progress),
            **self.data,
        )
        return bool(stop)

    def end_fit(self) -> None:
        """It is over."""
        if self.member is not None:
            asked = self.member.call_on_fit_task_end(estimator=self.estimator, **self.data)
            self.stopped = self.stopped or bool(asked)

    def finished(self, elbo: float | None) -> None:
        """A fit that ran elsewhere came back."""
        self.n_fits += 1
        self._show("no finite ELBO" if elbo is None else f"ELBO {elbo:.6g}", self.n_fits)

    def close(self) -> None:
        """The whole fit is over."""
        if self.line is not None:
            self.line.close()
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def _show(self, text: str, done: float, pace: tuple[float, float] | None = None) -> None:
        """Something about one fit; `done` of all fits are."""
        share = (done - self.before) / max(self.total - self.before, 1)
        left = None
        if pace is not None:
            left = pace[1]
            text += f" | {pace[0]:,.0f} rows/s | at most {duration(left)} left"
        self.say(f"fit {self.n_fits}/{self.total}", share, left, detail=f" | {text}")

    def _pace(self, progress: Progress) -> tuple[float, float] | None:
        """Rows per second, and the seconds left if all fits take as many sweeps as they may."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, progress.n_visited)
            return None
        seconds, rows = now - self.first[0], progress.n_visited - self.first[1]
        if seconds <= 0.0 or rows <= 0:
            return None
        fits_after = self.total - self.n_fits
        to_come = max(0, (1 + fits_after) * progress.n_at_most - progress.n_visited)
        return rows / seconds, to_come * seconds / rows

    def _attributes(self, progress: Progress) -> dict[str, Any]:
        """Attributes of an estimator as it would be if the fit had ended with this sweep."""
        member = FitResult(
            model=progress.model,
            factors=progress.factors,
            elbo_terms=progress.elbo_terms,
            elbo_history=(progress.elbo,),
            n_sweeps=progress.sweep,
            status=Status.INTERRUPTED,
            pruning=progress.pruning,
        )
        ensemble = replace(
            self.ensemble,
            members=(member,),
            weights=np.ones(1),
            representation=replace(self.ensemble.representation, views=(self.view,)),
            views=(0,),
            groups=(0,),
        )
        return {**self.known, **ensemble_attributes(ensemble, self.solver)}


def duration(seconds: float) -> str:
    """A time as one would say it."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
