"""How a command ends: with its result, or with one sentence for a mistake. Never a traceback."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from bowtienet._old.cli import MISTAKE
from bowtienet._old.cli.console import fail, note

CLOSED = 141
"""As if the signal of a closed pipe had ended the program."""
_MISTAKES = (ValueError, ImportError, OSError, MemoryError, NotImplementedError)
_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, RuntimeWarning)
"""Warnings for those who write programs."""

Function = TypeVar("Function", bound=Callable[..., Any])


def guarded(function: Function) -> Function:
    """Let a command end as programs should: with 0, or with 2 for a user's mistake."""

    @functools.wraps(function)
    def run(*args: Any, **settings: Any) -> None:
        try:
            with _noted():
                function(*args, **settings)
                sys.stdout.flush()
        except BrokenPipeError:
            # At once: the interpreter would complain of what it can no longer write.
            os._exit(CLOSED)
        except _MISTAKES as error:
            if os.environ.get("BOWTIENET_DEBUG"):
                raise
            fail(sentence(error))
            raise typer.Exit(MISTAKE) from None

    return run  # type: ignore[return-value]


def sentence(error: BaseException) -> str:
    """What went wrong and what to do, in one sentence."""
    # A plain one is ours and has a sentence; NumPy's is of a class of its own.
    if isinstance(error, MemoryError) and (type(error) is not MemoryError or not str(error)):
        return "the memory of this machine is not enough: give fewer rows or columns."
    if isinstance(error, OSError) and error.errno is not None:
        return (
            f"{error.filename or 'the output'} cannot be read or written ({error.strerror}): check "
            "permissions and free space, or choose another place."
        )
    return str(error) or type(error).__name__


@contextmanager
def _noted() -> Iterator[None]:
    """Warnings as notes on standard error, each once."""
    told = set[str]()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _HIDDEN:
            warnings.simplefilter("ignore", category)
        # scikit-learn's, of tables with names for models without.
        warnings.filterwarnings("ignore", "X has feature names")
        warnings.showwarning = show
        yield
