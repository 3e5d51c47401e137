"""How a command ends: with its result, or with all problems at once. Never a traceback."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from bowtienet._format import listed, printable
from bowtienet.cli.console import note, refuse

MISTAKES = (ValueError, TypeError, ImportError, OSError, MemoryError, NotImplementedError)


class Problems(list[str]):
    """What is wrong, gathered so that it is said at once."""

    @contextmanager
    def gather(self, about: str = "") -> Iterator[None]:
        """A mistake inside is a problem instead of the end."""
        try:
            yield
        except MISTAKES as error:
            self.extend(about + text for text in texts_of(error))

    def refuse_if_any(self) -> None:
        """End the command if there are any."""
        if self:
            raise ValueError("\n".join(f"- {text}" for text in dict.fromkeys(self)))

    def output(self, path: Path | None, *inputs: str | Path) -> None:
        """A file to be written needs a folder, and must not replace what is read."""
        if path is None:
            return
        if path.is_dir() or str(path) in map(str, inputs):
            self.append(
                f"{path} is {'a folder' if path.is_dir() else 'the input'}: name a new file."
            )
        elif not path.absolute().parent.is_dir():
            self.append(f"the folder {path.absolute().parent} does not exist: create it first.")

    def columns(self, option: str, names: Sequence[str], known: Collection[str]) -> None:
        """Columns must be in the table."""
        for name in names:
            if name not in known:
                close = [each for each in known if each.strip().lower() == name.strip().lower()]
                hint = f"did you mean {listed(close)}?" if close else f"it has {listed(known, 8)}."
                self.append(f"{option}: the table has no column '{printable(name)}'; {hint}")


def texts_of(error: BaseException) -> list[str]:
    """What an exception says: a line of a list each, or one sentence."""
    if isinstance(error, OSError) and error.strerror:
        return [f"{error.filename}: {error.strerror}."]
    several = [line[2:] for line in str(error).splitlines() if line.startswith("- ")]
    return several or [" ".join(str(error).split()) or type(error).__name__]


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends as programs should, and says warnings once, after its own lines."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        failure: BaseException | None = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            try:
                command(*args, **options)
                sys.stdout.flush()
            except BrokenPipeError:
                raise  # typer ends quietly if nobody reads any more
            except (*MISTAKES, KeyboardInterrupt) as error:
                failure = error
        for text in dict.fromkeys(str(each.message) for each in caught):
            note(text)
        if failure is not None:
            refuse(texts_of(failure))
            raise typer.Exit(130 if isinstance(failure, KeyboardInterrupt) else 2)  # as in shells

    return run
