"""All commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from bowtienet.cli.check import check
from bowtienet.cli.compare import compare
from bowtienet.cli.demo import demo
from bowtienet.cli.fit import fit
from bowtienet.cli.predict import predict
from bowtienet.cli.refusals import guarded
from bowtienet.cli.report import report

app = typer.Typer(
    name="bowtienet",
    help=f"Calibrated prediction from tables with bow tie networks, version {version('bowtienet')}",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help reads the same in a terminal, a pipe and a log
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def start(
    show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """The option without a command."""
    if show:
        print(version("bowtienet"))
        raise typer.Exit


for command, example in (
    (demo, "bowtienet demo"),
    (check, "bowtienet check houses.csv --target price"),
    (fit, "bowtienet fit houses.csv --target price --report houses.html"),
    (predict, "bowtienet predict houses.btn new.csv --out predictions.csv --id address"),
    (compare, "bowtienet compare houses.csv --target price"),
    (report, "bowtienet report houses.btn held_out.csv"),
):
    app.command(epilog=f"Example: {example}")(guarded(command))
