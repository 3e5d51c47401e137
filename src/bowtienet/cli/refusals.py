"""How a command ends: with its result, or with all problems at once. Never a traceback."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from bowtienet._format import listed, printable
from bowtienet.cli.console import note, refuse

MISTAKE, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
"""Exit codes, as shells have them."""
MISTAKES = (ValueError, TypeError, ImportError, OSError, MemoryError, NotImplementedError)


class RefusalError(Exception):
    """All that is wrong with a command and its files."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


class Problems:
    """What is wrong, gathered so that it is said at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """One more."""
        if text not in self._texts:
            self._texts.append(text)

    @contextmanager
    def gather(self, about: str = "") -> Iterator[None]:
        """A mistake inside is a problem instead of the end."""
        try:
            yield
        except RefusalError as refusal:
            for text in refusal.problems:
                self.add(text)
        except MISTAKES as error:
            several = [line[2:] for line in str(error).splitlines() if line.startswith("- ")]
            for text in several or [sentence(error)]:
                self.add(about + text)

    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._texts)

    def refuse_if_any(self) -> None:
        """End the command if there are any."""
        if self._texts:
            raise RefusalError(self._texts)

    def choice(self, option: str, value: str, known: Sequence[str]) -> None:
        """A value must be one of a few."""
        if value not in known:
            self.add(f"{option} must be one of {', '.join(known)}, got {printable(value)!r}.")

    def share(self, option: str, value: float | None, *, least: float = 0.0) -> None:
        """A share of the rows lies between `least` and 1."""
        if value is not None and not least <= value < 1.0:
            self.add(f"{option} must be a share below 1, such as 0.2, got {value:g}.")

    def output(self, path: Path | None, *, force: bool) -> None:
        """A file that is to be written must not exist, and its folder must."""
        if path is None:
            return
        if path.is_dir():
            self.add(f"{path} is a folder: name a file.")
        elif path.exists() and not force:
            self.add(f"{path} exists: --force replaces it, or name another file.")
        elif not path.absolute().parent.is_dir():
            self.add(f"the folder {path.absolute().parent} does not exist: create it first.")

    def columns(self, option: str, names: Sequence[str], known: Sequence[str]) -> None:
        """Columns must be in the table."""
        for name in names:
            if name in known:
                continue
            close = [each for each in known if each.strip().lower() == name.strip().lower()]
            hint = f"did you mean {listed(close)}?" if close else f"it has {listed(known, 8)}."
            self.add(f"{option}: the table has no column '{printable(name)}'; {hint}")


def sentence(error: BaseException) -> str:
    """What an exception says, in one line."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename} does not exist."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory: use fewer rows. {text}".strip()
    return text or type(error).__name__


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends as programs should."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with _warnings_as_notes():
                command(*args, **options)
                sys.stdout.flush()
        except BrokenPipeError:
            os._exit(CLOSED_PIPE)  # at once: the interpreter would complain when it flushes
        except RefusalError as refusal:
            refuse(refusal.problems)
            raise typer.Exit(MISTAKE) from None
        except KeyboardInterrupt as error:
            refuse([sentence(error) if str(error) else "interrupted: nothing more was written."])
            raise typer.Exit(INTERRUPTED) from None
        except MISTAKES as error:
            if os.environ.get("BOWTIENET_DEBUG"):
                raise
            refuse([sentence(error)])
            raise typer.Exit(MISTAKE) from None

    return run


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Warnings for users become notes, each once, after the command's own lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(each.message) for each in caught):
                note(text)
