"""The command line ``bowtienet`` (``pip install 'bowtienet[cli]'``): a module for each command.

Commands read files, call what Python users call, and say what came of it; they compute nothing.
``--help`` and ``--version`` are quick: what a command needs is imported when it runs.
"""

from __future__ import annotations

import sys

_NEEDED = ("pyarrow", "rich", "typer")
INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


def main() -> None:
    """Run the command that the arguments of the program name."""
    try:
        from bowtienet.cli.app import app

        app(prog_name="bowtienet")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ImportError as error:
        if error.name not in _NEEDED:
            raise
        print(
            f"Error: the command line needs {error.name}: pip install 'bowtienet[cli]'.",
            file=sys.stderr,
        )
        sys.exit(2)
