"""What a call may do: answer, or refuse with a sentence of the library; all else is a failure."""

from __future__ import annotations

import linecache
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import bowtienet

SOURCE = Path(bowtienet.__file__).parent
REFUSALS = (ValueError, TypeError, NotImplementedError, OSError, ImportError)
"""With NotFittedError and scikit-learn's InvalidParameterError, which are ValueErrors."""
TOLD = (UserWarning, ConvergenceWarning, DataConversionWarning)
"""Warnings for users; these classes only, and no subclass, which would be another library's."""
NAMES_DIFFER = "The feature names should match"
"""The beginning of a message that scikit-learn's contract prescribes, with a list in it."""
LONGEST = 1200
"""Characters of a sentence."""


class Failure(Exception):  # noqa: N818 (it is what was found, not what went wrong here)
    """Something that must not be; `where` is the same for what is likely the same fault."""

    def __init__(self, where: str, detail: str = "") -> None:
        super().__init__(f"{where}: {detail}" if detail else where)
        self.where, self.detail = where, detail


@dataclass(frozen=True)
class Refusal:
    """A clean error, and its sentence."""

    kind: str
    sentence: str


def attempt(what: str, call: Callable[[], Any]) -> Any:
    """The answer of a call, or a `Refusal`; a `Failure` for any other end."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in TOLD:
            warnings.simplefilter("default", category)
        warnings.showwarning = _show
        try:
            return call()
        except Failure:
            raise
        except MemoryError as error:
            raise Failure(f"{what} takes all memory", place_of(error)) from error
        except Exception as error:
            _check_refusal(what, error)
            return Refusal(type(error).__name__, str(error))


def must(what: str, call: Callable[[], Any]) -> Any:
    """The answer of a call that has no reason to refuse."""
    found = attempt(what, call)
    if isinstance(found, Refusal):
        raise Failure(f"{what} is refused", f"{found.kind}: {found.sentence}")
    return found


def require(holds: Any, where: str, detail: Any = "") -> None:
    """A `Failure` unless the property holds; `detail` may be a function that makes the text."""
    if not holds:
        raise Failure(where, str(detail() if callable(detail) else detail)[:2000])


def place_of(error: BaseException) -> str:
    """The innermost frame of the library, and what was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(SOURCE)]
    last = (own or frames)[-1]
    name = Path(last.filename)
    shown = name.relative_to(SOURCE.parent) if own else name.name
    return f"{type(error).__name__} in {shown}, {last.name}"


def _show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if category not in TOLD:
        raise Failure(f"warning {category.__name__}", str(message))


def _check_refusal(what: str, error: Exception) -> None:
    """A refusal is raised by a line of the library, or by scikit-learn's checks of parameters."""
    if isinstance(error, Warning):
        raise Failure(f"{what} warns: {place_of(error)}", str(error)) from error
    if not isinstance(error, REFUSALS):
        raise Failure(f"{what} raises {place_of(error)}", str(error)) from error
    if not _is_own(error.__traceback__):
        raise Failure(f"{what} lets through a {place_of(error)}", str(error)) from error
    text = str(error)
    if text.startswith(NAMES_DIFFER):
        return
    is_sentence = text.strip() and len(text) <= LONGEST and text.rstrip()[-1] in ".?!)"
    if not is_sentence or not all(c.isprintable() for c in text):
        raise Failure(f"{what} says no sentence: {place_of(error)}", repr(text)) from error


def _is_own(trace: TracebackType | None) -> bool:
    """Whether the innermost frame stands at a `raise` of the library or of its checks."""
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_code.co_filename
    if "sklearn" in Path(name).parts and Path(name).name in (
        "_param_validation.py",
        "validation.py",
    ):
        return True
    line = linecache.getline(name, trace.tb_lineno).strip()
    return Path(name).is_relative_to(SOURCE) and line.startswith("raise")
