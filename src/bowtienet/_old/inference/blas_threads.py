"""The threads of the linear algebra library: one, while somebody computes block by block.

The setting of most libraries belongs to the process. Of several fits at the same time the first one
in sets it and the last one out restores it, whichever thread that is. Libraries that were built
with OpenMP have a setting for each thread, which that thread restores.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController


class _BlasGuard:
    """Holds the linear algebra library to one thread while anyone asks for it.

    The libraries are looked up once, which takes milliseconds.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.holders: Counter[int] = Counter()
        """How often each thread asks for it now."""
        self.looked_up = False
        self.shared: list[Any] = []
        self.by_thread: list[Any] = []
        """Libraries by whom their setting belongs to: the process, or each thread."""
        self.before: list[int] = []
        """Threads of the shared libraries before the first one in."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        thread = get_ident()
        with self.lock:
            self._look_up()
            if not self.holders:
                self.before = [library.num_threads for library in self.shared]
            for library in self.shared:
                _set_threads(library, 1)
            own = self._limit_this_thread()
            self.holders[thread] += 1
        try:
            yield
        finally:
            for library, n_threads in zip(self.by_thread, own, strict=True):
                _set_threads(library, n_threads)
            with self.lock:
                self._leave(thread)

    def begin_thread(self) -> None:
        """A thread that works for one inside begins; it ends with the work."""
        self._limit_this_thread()

    def after_fork(self) -> None:
        """Only the thread that forked lives on in the child, and only what it asked for counts."""
        thread, was_held = get_ident(), bool(self.holders)
        own = self.holders[thread]
        self.lock = Lock()  # another thread may have held the old one
        self.holders = Counter({thread: own} if own else {})
        if was_held and not own:
            self._restore()

    def _leave(self, thread: int) -> None:
        if not self.holders[thread]:
            return  # what another thread held before a fork
        self.holders[thread] -= 1
        if not self.holders[thread]:
            del self.holders[thread]
        if not self.holders:
            self._restore()

    def _look_up(self) -> None:
        if self.looked_up:
            return
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            alone = getattr(library, "threading_layer", None) == "openmp"
            (self.by_thread if alone else self.shared).append(library)
        self.looked_up = True

    def _limit_this_thread(self) -> list[int]:
        before = [library.num_threads for library in self.by_thread]
        for library in self.by_thread:
            _set_threads(library, 1)
        return before

    def _restore(self) -> None:
        for library, n_threads in zip(self.shared, self.before, strict=True):
            # Another number is that of somebody else, who has set it meanwhile.
            if library.num_threads == 1:
                _set_threads(library, n_threads)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the threads of a library, whichever thread has set them before.

    `set_num_threads` of recent versions of threadpoolctl does nothing in all threads but the one
    that set a limit first, as long as that one lives: the last one out could not restore it.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


one_blas_thread = _BlasGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_blas_thread.after_fork)
