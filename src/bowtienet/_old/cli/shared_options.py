"""Arguments and options that several commands share, and the regressor that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bowtienet._old.estimators.regressor import BowTieRegressor


def _between_0_and_1(value: float | None) -> float | None:
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{value:g} does not lie strictly between 0 and 1.")
    return value


def share(words: str, name: str) -> Any:
    """An option for a share or probability."""
    return typer.Option(name, callback=_between_0_and_1, help=words)


def unset(words: str, metavar: str, *names: str) -> Any:
    """An option without a default."""
    return typer.Option(*names, metavar=metavar, show_default=False, help=words)


def _argument(words: str, metavar: str) -> Any:
    return typer.Argument(metavar=metavar, show_default=False, help=words)


_KNOWN_ROWS = _argument("Rows with targets, best such as the model has not seen.", "DATA")
KnownRows = Annotated[Path, _KNOWN_ROWS]
OptionalKnownRows = Annotated[Path | None, _KNOWN_ROWS]
Data = Annotated[Path, _argument("Table with named columns: CSV, TSV, Parquet or Arrow.", "DATA")]
Model = Annotated[Path, _argument("File that fit or save wrote.", "MODEL")]
Target = Annotated[
    list[str], unset("Column to predict; repeat it for several.", "COLUMN", "--target", "-t")
]
KnownTarget = Annotated[
    list[str] | None,
    unset(
        "Column of the target, if its name is not that of training; repeat it for several.",
        "COLUMN",
        "--target",
        "-t",
    ),
]
Drop = Annotated[
    list[str] | None, unset("Column to leave out; repeat it for several.", "COLUMN", "--drop")
]
Weight = Annotated[
    str | None, unset("Column that says how often a row counts.", "COLUMN", "--weight")
]
TargetTask = Annotated[
    str | None,
    unset(
        "What the target is: numbers, classes or counts; by default texts, booleans and two "
        "different whole numbers are classes.",
        "TASK",
        "--task",
    ),
]
Exposure = Annotated[
    str | None,
    unset(
        "Column with the exposure of counts: for how long, or among how many, a row counted.",
        "COLUMN",
        "--exposure",
    ),
]
Coverage = Annotated[float, share("Probability of the intervals, between 0 and 1.", "--coverage")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Fits at the same time; -1 for all cores.")]
Delimiter = Annotated[
    str | None,
    unset(
        "Character between the columns of a text file; found from its content by default, as are "
        "the next three.",
        "TEXT",
        "--delimiter",
    ),
]
Decimal = Annotated[str | None, unset("Decimal sign of a text file.", "TEXT", "--decimal")]
Encoding = Annotated[str | None, unset("Encoding of a text file.", "TEXT", "--encoding")]
DateFormat = Annotated[
    str | None,
    unset("How dates of a text file are written, such as %d/%m/%Y.", "FORMAT", "--date-format"),
]
Keep = Annotated[
    list[str] | None,
    unset(
        "Column to keep though it looks like an identifier; repeat it for several.",
        "COLUMN",
        "--keep",
    ),
]
DropDuplicates = Annotated[
    bool, typer.Option("--drop-duplicates", help="Of rows that are equal keep the first.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the ELBO and the pace beside the bar.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Write texts in CSV and TSV unchanged; otherwise those that a spreadsheet would take "
        "for a formula get an apostrophe in front.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Categories = Annotated[
    int,
    typer.Option("--max-categories", min=1, help="Most different texts that a column may hold."),
]
TestSize = Annotated[
    float | None,
    unset(
        "Share of the rows to hold out and score: 0.1 from 20 rows on; 0 for none.",
        "SHARE",
        "--test-size",
    ),
]
Hidden = Annotated[
    str, typer.Option("--hidden", help="Widths of the hidden layers, such as 50 or 50,20.")
]
Prior = Annotated[str, typer.Option("--prior", help="Shrinkage prior of the weights.")]
Features = Annotated[
    str,
    typer.Option(
        "--features",
        help="What networks see of numbers: auto, standard, piecewise, principal, or a number of "
        "bins.",
    ),
]
TargetTransform = Annotated[
    str,
    typer.Option(
        "--target-transform", help="What networks are fitted to: auto, none or yeo-johnson."
    ),
]
Effort = Annotated[
    str,
    typer.Option(
        "--effort", help="How much is tried: fast for a look, balanced, or best for a paper."
    ),
]
Noise = Annotated[
    str,
    typer.Option("--noise", help="auto lets noise differ between rows; or constant."),
]
Members = Annotated[
    int | None,
    typer.Option(
        "--members",
        min=1,
        show_default=False,
        help="Networks in the ensemble; as many as the effort brings, mostly ten.",
    ),
]
Weighting = Annotated[
    str,
    typer.Option("--weighting", help="Where ensemble weights come from: stacking, elbo or equal."),
]
Sweeps = Annotated[int, typer.Option("--max-iter", min=1, help="Most sweeps of a fit.")]


def make_regressor(
    hidden: str, weighting: str, max_categories: int, jobs: int, **settings: Any
) -> BowTieRegressor:
    """The regressor of some settings, which are checked before anything is read or printed."""
    from bowtienet._old.estimators.fit_options import FitOptions
    from bowtienet._old.estimators.regressor import BowTieRegressor

    if jobs == 0:
        raise ValueError("--jobs must not be 0: give a number of fits, or -1 for all cores.")
    options = FitOptions(weighting=weighting, max_categories=max_categories)
    features = settings.pop("features")
    settings["features"] = int(features) if features.isdecimal() else features
    regressor = BowTieRegressor(_sizes(hidden), n_jobs=jobs, options=options, **settings)
    regressor._validate_params()
    options._validate_params()
    return regressor


def for_task(regressor: BowTieRegressor, task: str) -> Any:
    """The estimator with the settings of a regressor that fits numbers, classes or counts."""
    from bowtienet._old.estimators.classifier import BowTieClassifier

    if task == "numbers":
        return regressor
    for name in ("noise", "target_transform"):
        if getattr(regressor, name) != "auto":
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for numbers, but {task} are fitted: leave it out.")
    if task == "counts":
        return regressor.set_params(outcome="counts")
    known = BowTieClassifier().get_params(deep=False)
    settings = regressor.get_params(deep=False)
    return BowTieClassifier(**{name: settings[name] for name in known if name in settings})


def _sizes(text: str) -> tuple[int, ...]:
    """Widths from a text such as "50,20"; no hidden layer for "0"."""
    if text.strip() == "0":
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(
            f"--hidden must be widths separated by commas, such as 50,20, or 0 for none; got "
            f"{text!r}."
        )
    return tuple(map(int, parts))
