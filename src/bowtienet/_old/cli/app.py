"""All commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from bowtienet._old.cli.check import check
from bowtienet._old.cli.compare import compare
from bowtienet._old.cli.demo import demo
from bowtienet._old.cli.exits import guarded
from bowtienet._old.cli.fit import fit
from bowtienet._old.cli.inspect import inspect
from bowtienet._old.cli.plot import plot
from bowtienet._old.cli.predict import predict
from bowtienet._old.cli.prune import prune
from bowtienet._old.cli.report import report

app = typer.Typer(
    name="bowtienet",
    help="From a table to honest intervals: Bayesian bow tie networks with shrinkage priors.",
    no_args_is_help=True,
    # Plain text for help and mistakes: it reads the same in a terminal, a pipe and a log.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXAMPLES: dict[Callable[..., None], str] = {
    check: "bowtienet check data.csv --target y",
    fit: "bowtienet fit data.csv --target y --out model.btn",
    predict: "bowtienet predict model.btn new.csv --out pred.csv --coverage 0.9",
    prune: "bowtienet prune model.btn data.csv --out small.btn",
    inspect: "bowtienet inspect model.btn",
    plot: "bowtienet plot model.btn data.csv --kind band --feature x1",
    report: "bowtienet report model.btn data.csv --out report.html",
    compare: "bowtienet compare data.csv --target y --splits 1",
    demo: "bowtienet demo --out bowtienet-demo",
}
"""What the help of each command shows; the tests run them one after another."""
for command, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(guarded(command))


def _version(wanted: bool) -> None:
    if wanted:
        from bowtienet._old import __version__

        typer.echo(f"bowtienet {__version__}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """From a table to honest intervals: Bayesian bow tie networks with shrinkage priors."""
