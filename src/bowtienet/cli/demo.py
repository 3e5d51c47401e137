"""`bowtienet demo`: every command on a real table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bowtienet.cli import options


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER")] = Path("bowtienet-demo"),
    force: options.Force = False,
) -> None:
    """Run every command on a real table."""
