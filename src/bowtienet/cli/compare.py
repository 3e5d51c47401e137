"""``bowtienet compare``: this library beside scikit-learn's own models, on the same splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bowtienet.cli import options
from bowtienet.cli.console import Output, number
from bowtienet.cli.exits import guarded, stop_if_interrupted

if TYPE_CHECKING:
    from bowtienet.evaluation import Comparison


@guarded
def compare(
    data: options.Data,
    target: options.Target,
    drop: options.Drop = None,
    splits: Annotated[int, typer.Option("--splits", min=1, help="Random splits.")] = 3,
    test_size: Annotated[
        float, options.share_option("--test-size", "Share of the rows held out in each split.")
    ] = 0.1,
    coverage: options.Coverage = 0.9,
    hidden: options.Hidden = "50",
    prior: options.Prior = "student_t",
    members: options.Members = 8,
    weighting: options.Weighting = "stacking",
    max_iter: options.Sweeps = 80,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Compare with scikit-learn's models on the same splits.

    These are Bayesian ridge regression, a Gaussian process and boosted quantiles. Split i holds out
    a share of the rows with the seed plus i; figures are means over the splits, in the unit of the
    target. Seconds are those of a fit.
    """
    from bowtienet.cli.reading import open_rows, read
    from bowtienet.evaluation import compare as compare_methods
    from bowtienet.evaluation import default_methods

    output = Output(as_json)
    if len(target) > 1:
        raise ValueError("compare takes one target at a time: name --target once.")
    regressor = options.make_regressor(
        hidden=hidden,
        prior=prior,
        members=members,
        weighting=weighting,
        max_iter=max_iter,
        max_categories=max_categories,
        jobs=jobs,
        seed=None,
    )
    table = read(data, output, delimiter, decimal, encoding)
    rows = open_rows(table, data.name, output, targets=target, drop=drop or [])
    total, done = splits * len(default_methods()), 0
    with output.stage("comparing") as bar:

        def advance(method: str, split: int) -> None:
            nonlocal done
            done += 1
            stop_if_interrupted()
            bar.show(f"split {split + 1}/{splits}: {method} done", done / total)

        found = compare_methods(
            rows.source,
            regressor=regressor,
            n_splits=splits,
            test_size=test_size,
            random_state=seed,
            coverage=coverage,
            max_categories=max_categories,
            callback=advance,
        )
    _show(found, rows.n_rows, splits, coverage, output)


def _show(
    found: list[Comparison], n_rows: int, splits: int, coverage: float, output: Output
) -> None:
    """The table, what must be known to read it, and all of it for machines."""
    from bowtienet.evaluation import average_scores

    means = [average_scores(one.scores) for one in found]
    size = f"{n_rows:,} rows, {splits} split{'s' if splits > 1 else ''}"
    output.table(
        (size, "RMSE", "NLL", "CRPS", f"{100 * coverage:g} % coverage", "seconds"),
        [
            (
                one.method,
                *map(number, (mean.rmse, mean.nll, mean.crps, mean.coverage)),
                number(round(sum(one.seconds) / len(one.seconds), 2)),
            )
            for one, mean in zip(found, means, strict=True)
        ],
    )
    notes = {one.method: one.note for one in found if one.note}
    for method, note in notes.items():
        output.explain(f"{method}: {note}.")
    output.result(
        {
            "rows": n_rows,
            "splits": splits,
            "methods": [
                {
                    "method": one.method,
                    "mean": mean,
                    "splits": one.scores,
                    "seconds": [round(s, 3) for s in one.seconds],
                    "note": one.note,
                }
                for one, mean in zip(found, means, strict=True)
            ],
        }
    )
