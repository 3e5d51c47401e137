"""What the constants of the practical wing are worth: one change at a time, on the same splits.

python -m benchmarks portfolio --out docs/measurements/portfolio.jsonl \
    --page docs/measurements/portfolio.md
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._run import Record, options, run, write
from benchmarks.data import FIVE_SETS, split_of
from benchmarks.fit import Split, generated, smooth, steps
from bowtienet import BowTieRegressor
from bowtienet.ensemble import ensemble, fit, forecasts, judgement, portfolio, problem, stacking
from bowtienet.ensemble.ensemble import variances
from bowtienet.tables import views


def rows_first(name: str, rows: int, seed: int) -> Split:
    """Fewer training rows of a split."""
    X, X_test, y, y_test = split_of(name, seed)
    return X[:rows], X_test, y[:rows], y_test


TABLES: dict[str, Callable[[int], Split]] = {
    **{name: partial(split_of, name) for name in (*FIVE_SETS, "airfoil", "autompg")},
    "200 x 10, noisy": partial(generated, smooth, 200, 10, 1.0),
    "3,000 x 26": partial(generated, smooth, 3_000, 26, 0.3),
    "kin40k, 4,000": partial(rows_first, "kin40k", 4_000),
    "6,000 x 12, steps": partial(generated, steps, 6_000, 12, 0.2),
}
Change = tuple[Any, str, Any]
"""A module, a name in it, and its other value."""


def first_steps(number: int) -> list[Change]:
    """First trainings of another length; rounds are multiples of it."""
    return [(module, "FIRST_STEPS", number) for module in (forecasts, fit)]


def penalties(weak: float, strong: float, shrinking: float) -> list[Change]:
    """Others for numbers."""
    return [(portfolio, "PENALTIES", (weak, strong, shrinking))]


def without_linear(*arguments: Any, **options: Any) -> Any:
    """The portfolio less its last recipe, the linear one."""
    return portfolio.portfolio(*arguments, **options)[:-1]


def nothing_open(*arguments: Any) -> Any:
    """No variance of what rows leave open."""
    return 0.0 * variances(*arguments)


VARIANTS: dict[str, tuple[dict[str, Any], list[Change]]] = {
    "defaults": ({}, []),
    "weak penalty 0.1": ({}, penalties(0.1, 10.0, 1.0)),
    "strong penalty 3": ({}, penalties(0.03, 3.0, 1.0)),
    "strong penalty 30": ({}, penalties(0.03, 30.0, 1.0)),
    "shrinking penalty 0.3": ({}, penalties(0.03, 10.0, 0.3)),
    "shrinking penalty 3": ({}, penalties(0.03, 10.0, 3.0)),
    "no shrinking recipes": ({"prior": "gaussian"}, []),
    "standard columns alone": ({"encoding": "standard"}, []),
    "pieces alone": ({"encoding": "piecewise"}, []),
    "no linear recipe": ({}, [(fit, "portfolio", without_linear)]),
    "no warps": ({"target_transform": "none"}, []),
    "warps join always": ({}, [(judgement, "LOSS_OF_WARP", np.inf)]),
    "two recipes kept": ({}, [(fit, "KEPT", 2)]),
    "six recipes kept": ({}, [(fit, "KEPT", 6)]),
    "constant noise": ({"noise": "constant"}, []),
    "two levels": ({}, [(problem, "LEVELS", (0.3, 2.0))]),
    "gates penalised by 3": ({}, [(stacking, "GATE_PENALTY", 3.0)]),
    "gates penalised by 30": ({}, [(stacking, "GATE_PENALTY", 30.0)]),
    "first steps 500": ({}, first_steps(500)),
    "first steps 2,000": ({}, first_steps(2_000)),
    "no rounds": ({"effort": "fast"}, []),
    "four rounds, wider layers": ({"effort": "best"}, []),
    "disagreement as it is": ({}, [(ensemble, "SHARED", 1.0)]),
    "a fifth of the disagreement": ({}, [(ensemble, "SHARED", 0.2)]),
    "no last layer in doubt": ({}, [(ensemble, "variances", nothing_open)]),
    "one layer of 50": ({"hidden_layer_sizes": (50,)}, []),
    "one layer of 128": ({"hidden_layer_sizes": (128,)}, []),
    "two layers of 50": ({"hidden_layer_sizes": (50, 50)}, []),
    "two layers of 64": ({"hidden_layer_sizes": (64, 64)}, []),
    "10 rows a bin": ({}, [(views, "ROWS_PER_BIN", 10)]),
    "40 rows a bin": ({}, [(views, "ROWS_PER_BIN", 40)]),
    "at most 16 bins": ({}, [(views, "MANY_BINS", 16)]),
}


@contextmanager
def changed(changes: Iterable[Change]) -> Iterator[None]:
    """Constants with other values."""
    with ExitStack() as stack:
        for module, name, value in changes:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def run_case(table: str, variant: str, seed: int) -> Record:
    """Scores of the test rows and processor seconds of the fit."""
    X, X_test, y, y_test = TABLES[table](seed)
    settings, changes = VARIANTS[variant]
    with changed(changes):
        began = time.process_time()
        model = BowTieRegressor(random_state=seed, **settings).fit(X, y)
        seconds = time.process_time() - began
        predicted = model.predict_dist(X_test)
    return {
        "rmse": float(np.sqrt(np.mean((predicted.mean() - y_test) ** 2)) / y_test.std()),
        "nll": -float(np.mean(predicted.logpdf(y_test))),
        "coverage": float(np.mean(np.abs(predicted.cdf(y_test) - 0.5) <= 0.45)),
        "seconds": seconds,
    }


HEAD = """# The portfolio, one change at a time

Written by `python -m benchmarks portfolio`. Each line changes one constant or parameter of
`BowTieRegressor`; changes of the negative log-likelihood and of log RMSE (in per cent) against the
defaults are paired by split, means over {tables} tables of {low} to {high} training rows, ± their
standard errors if there are several splits; coverage is that of 90 % intervals; seconds are
processor seconds of all fits over those of the defaults. Splits are from 500 on.

"""


def page(records: Iterable[Record]) -> str:
    """A row for each variant, then the changes of NLL by table."""
    runs = {(r["table"], r["variant"], r["seed"]): r for r in records}
    seeds = sorted({seed for _, _, seed in runs})
    lines = ["| variant | splits | NLL | RMSE, % | coverage | seconds |", "|---" * 6 + "|"]
    by_table = [f"| variant | {' | '.join(TABLES)} |", "|---" * (1 + len(TABLES)) + "|"]
    for variant in VARIANTS:
        cases = [s for s in seeds if all((t, variant, s) in runs for t in TABLES)]
        if not cases:
            continue
        new, first = (
            {
                score: np.array([[runs[t, v, s][score] for s in cases] for t in TABLES])
                for score in ("nll", "rmse", "coverage", "seconds")
            }
            for v in (variant, "defaults")
        )
        worse = new["nll"] - first["nll"], 100.0 * np.log(new["rmse"] / first["rmse"])
        errors = [f" ± {_error(x):.3f}" if len(cases) > 1 else "" for x in worse]
        cells = [f"{x.mean():+.3f}{error}" for x, error in zip(worse, errors, strict=True)]
        ratio = new["seconds"].sum() / first["seconds"].sum()
        lines.append(
            f"| {variant} | {len(cases)} | {' | '.join(cells)} | {new['coverage'].mean():.3f} | "
            f"{ratio:.2f} |"
        )
        by_table.append(f"| {variant} | {' | '.join(f'{x:+.3f}' for x in worse[0].mean(1))} |")
    sizes = [len(TABLES[table](500)[0]) for table in TABLES]
    head = HEAD.format(tables=len(TABLES), low=min(sizes), high=f"{max(sizes):,}")
    middle = "\n\nChange of the negative log-likelihood by table:\n\n"
    return head + "\n".join(lines) + middle + "\n".join(by_table) + "\n"


def _error(changes: np.ndarray) -> float:
    """Standard error of the mean over tables, from the splits of each."""
    return float(np.sqrt(np.mean(changes.var(axis=1, ddof=1)) / changes.size))


def main() -> None:
    """Run what is missing and write the page."""
    parser = options("portfolio", __doc__, seeds=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    arguments = parser.parse_args()
    seeds = range(*arguments.seeds)
    cases = [(t, v, s) for v, s, t in itertools.product(arguments.variants, seeds, TABLES)]
    write(page(run(run_case, ("table", "variant", "seed"), cases, arguments)), arguments.page)


if __name__ == "__main__":
    main()
