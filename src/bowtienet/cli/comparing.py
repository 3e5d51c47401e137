"""``bowtienet compare``: this library beside scikit-learn's own models, on the same splits."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from bowtienet.cli import options, rendering
from bowtienet.cli.commands import guarded, stop_if_interrupted
from bowtienet.cli.console import Output, number
from bowtienet.cli.fitting import SHARE, hidden_sizes
from bowtienet.cli.tables import TextFormat, read, split_columns
from bowtienet.estimators.preparing import TablePreparer
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.evaluation import average_scores
from bowtienet.evaluation import compare as compare_methods
from bowtienet.evaluation.methods import default_methods
from bowtienet.prediction.intervals import check_coverage


@guarded
def compare(
    data: options.Data,
    target: Annotated[
        str, typer.Option("--target", "-t", show_default=False, help="Column to predict.")
    ],
    drop: options.Drop = None,
    splits: Annotated[int, typer.Option("--splits", min=1, help="Random splits.")] = 3,
    test_size: Annotated[
        float, typer.Option("--test-size", help="Share of the rows held out in each split.")
    ] = SHARE,
    coverage: options.Coverage = 0.9,
    hidden: options.Hidden = "50",
    prior: options.Prior = "student_t",
    members: options.Members = 8,
    combine: options.Combine = "stacking",
    max_iter: options.Sweeps = 80,
    max_categories: options.Categories = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Compare with Bayesian ridge regression, a Gaussian process and boosted quantiles.

    Split i holds out a share of the rows with the seed plus i; figures are means over the splits,
    in the unit of the target. Seconds are those of a fit.
    """
    output = Output(as_json)
    check_coverage(coverage)
    regressor = BowTieRegressor(
        hidden_sizes(hidden),
        prior=prior,
        n_estimators=members,
        combine=combine,
        max_iter=max_iter,
        n_jobs=jobs,
    )
    text = TextFormat(delimiter=delimiter, decimal=decimal, encoding=encoding)
    rows = split_columns(read(data, text, output), [target], drop or [], None, data.name, output)
    total, done = splits * len(default_methods()), 0
    with output.stage("comparing") as bar:

        def advance(method: str, split: int) -> None:
            nonlocal done
            done += 1
            stop_if_interrupted()
            bar.show(f"{method}, split {split + 1} of {splits}", done / total)

        found = compare_methods(
            rows.table.drop_columns([target]),
            rows.targets,
            regressor=regressor,
            n_splits=splits,
            test_size=test_size,
            random_state=seed,
            coverage=coverage,
            prepare=TablePreparer(max_categories=max_categories),
            callback=advance,
        )
    means = [average_scores(one.scores) for one in found]
    size = f"{rows.n_rows:,} rows, {splits} split{'s' if splits > 1 else ''}"
    output.table(
        (size, "RMSE", "NLL", "CRPS", f"{100 * coverage:g} % coverage", "seconds"),
        [
            (one.method, *map(number, (mean.rmse, mean.nll, mean.crps, mean.coverage)), seconds)
            for one, mean in zip(found, means, strict=True)
            for seconds in [f"{np.mean(one.seconds):.1f}"]
        ],
    )
    notes = {one.method: one.note for one in found if one.note}
    for method, note in notes.items():
        output.say(f"{method}: {note}")
    output.result(
        {
            "rows": rows.n_rows,
            "splits": splits,
            "methods": [
                {
                    "method": one.method,
                    "mean": rendering.as_plain(mean),
                    "splits": [rendering.as_plain(score) for score in one.scores],
                    "seconds": [round(s, 3) for s in one.seconds],
                    "note": one.note,
                }
                for one, mean in zip(found, means, strict=True)
            ],
        }
    )
