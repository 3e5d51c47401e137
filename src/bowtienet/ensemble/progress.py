"""How far a fit is, and how it is interrupted."""

from __future__ import annotations

import sys
import threading
import time

from bowtienet._format import duration


class Progress:
    """Work that is done and expected, from all threads; a bar on standard error if wanted.

    Work is in steps x weights x rows of a minibatch, which take about the same time everywhere.
    """

    seconds_between = 0.5
    """Between two looks of the bar."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._lock = threading.Lock()
        self._began = self._last = time.monotonic()
        self._done, self._expected = 0.0, 1.0
        self.interrupted = threading.Event()

    def expect(self, work: float) -> None:
        """Work that is still to come."""
        with self._lock:
            self._expected = self._done + work

    def advance(self, work: float) -> None:
        """Work that was done; raises KeyboardInterrupt in the threads of an interrupted fit."""
        if self.interrupted.is_set():
            raise KeyboardInterrupt
        with self._lock:
            self._done += work
            now = time.monotonic()
            if self._shown and now - self._last >= self.seconds_between:
                self._last = now
                self._write(now - self._began)

    def close(self) -> None:
        """The last line."""
        if self._shown:
            line = f"\rfitted in {duration(time.monotonic() - self._began):<50}"
            print(line, file=sys.stderr)

    def _write(self, seconds: float) -> None:
        share = min(self._done / max(self._expected, 1e-9), 0.99)
        bar = "#" * round(30 * share)
        left = duration(seconds * (1.0 - share) / share) if share > 0.0 else "?"
        line = f"\r{bar:-<30} {100 * share:3.0f} %, {left} left"
        print(f"{line:<58}", end="", file=sys.stderr, flush=True)
