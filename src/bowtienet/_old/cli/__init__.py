"""The command line ``bowtienet`` (``pip install 'bowtienet[cli]'``): a module for each command.

Commands read files, call what Python users call, and say what came of it; they compute nothing.
``--help`` and ``--version`` are quick: what a command needs is imported when it runs.
"""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn

_NEEDED = ("pyarrow", "rich", "typer")
MISTAKE = 2
_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


class Interrupted(BaseException):
    """Ctrl-C. No KeyboardInterrupt, after which a fit would end early with what it has."""


def main() -> None:
    """Run the command that the arguments of the program name."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        from bowtienet._old.cli.app import app

        app(prog_name="bowtienet")
    except Interrupted:
        _end("interrupted: nothing more was written.", _INTERRUPTED)
    except ImportError as error:
        if error.name not in _NEEDED:
            raise
        _end(f"the command line needs {error.name}: pip install 'bowtienet[cli]'.", MISTAKE)


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise Interrupted


def _end(sentence: str, code: int) -> NoReturn:
    print(f"Error: {sentence}", file=sys.stderr)
    sys.exit(code)
