"""`bowtienet check`."""

from bowtienet.cli import options


def check(data: options.Data, target: options.Target) -> None:
    """Check."""
