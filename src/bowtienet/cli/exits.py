"""How a command ends: its result, one sentence for a mistake, or Ctrl-C. Never a traceback."""

from __future__ import annotations

import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

import typer

from bowtienet.cli import INTERRUPTED
from bowtienet.cli.console import Output, fail

MISTAKE = 2
CLOSED = 141
"""As if the signal of a closed pipe had ended the program."""
_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, RuntimeWarning)
"""Warnings for those who write programs."""
_signals: list[int] = []
"""Numbers of the signals that came since the command began."""

Function = TypeVar("Function", bound=Callable[..., Any])


def guarded(function: Function) -> Function:
    """Let a command end as programs should: 0, 2 for a user's mistake, 130 for Ctrl-C."""

    @functools.wraps(function)
    def run(*args: Any, **settings: Any) -> None:
        code = 0
        try:
            with _interruptible(), _noted():
                function(*args, **settings)
                sys.stdout.flush()
        except KeyboardInterrupt:
            fail("interrupted: nothing more was written.")
            code = INTERRUPTED
        except BrokenPipeError:
            # The reader of a pipe has seen enough; the interpreter would complain once more.
            _silence()
            code = CLOSED
        except (ValueError, ImportError, OSError, MemoryError, NotImplementedError) as error:
            if os.environ.get("BOWTIENET_DEBUG"):
                raise
            fail(sentence(error))
            code = MISTAKE
        if code:
            raise typer.Exit(code)

    return run  # type: ignore[return-value]


def sentence(error: BaseException) -> str:
    """What went wrong and what to do, in one sentence."""
    if isinstance(error, MemoryError):
        return "the memory of this machine is not enough: give fewer rows or columns."
    if isinstance(error, OSError) and error.errno is not None:
        return (
            f"{error.filename or 'the output'} cannot be read or written ({error.strerror}): check "
            "permissions and free space, or choose another place."
        )
    return str(error) or type(error).__name__


def _silence() -> None:
    """Send to nowhere what is still to be written, also when the interpreter ends."""
    with suppress(OSError, ValueError):  # a stream without a descriptor has no such end
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _interrupt(number: int, frame: Any) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt


def stop_if_interrupted() -> None:
    """Go no further after Ctrl-C, which a fit takes as a wish to end early with what it has."""
    if _signals:
        raise KeyboardInterrupt


@contextmanager
def _interruptible() -> Iterator[None]:
    """Remember Ctrl-C for `stop_if_interrupted`."""
    _signals.clear()
    try:
        before = signal.signal(signal.SIGINT, _interrupt)
    except ValueError:  # not the main thread, where signals arrive
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _noted() -> Iterator[None]:
    """Warnings as notes on standard error, each once."""
    output, told = Output(as_json=False), set[str]()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # What a fit says of its early end is of no use here.
        if not _signals and str(message) not in told:
            told.add(str(message))
            output.note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _HIDDEN:
            warnings.simplefilter("ignore", category)
        # scikit-learn's, of tables with names for models without.
        warnings.filterwarnings("ignore", "X has feature names")
        warnings.showwarning = show
        yield
