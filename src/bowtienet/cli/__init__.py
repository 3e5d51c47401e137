"""The command line: `bowtienet check`, `fit`, `predict`, `compare`, `report` and `demo`.

Commands read, call the library and print; they compute nothing of their own.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    try:
        from bowtienet.cli.app import app
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.startswith("bowtienet"):
            raise
        raise SystemExit(
            f"Error: the command line needs {missing}: pip install 'bowtienet[cli]'."
        ) from None
    app()
