"""What a default fit reaches, and what its parts are worth for prediction.

Fits the five sets of the paper and kin40k (5,000 rows; from the folder that the environment
variable BOWTIENET_DATA names) with the split seeds 500, 501, ... and scores the rows put aside
(`benchmarks._old.accuracy.study`). Only the default runs unless `--variants` asks for more: other
efforts and noise, one view, single parts of the procedure held fixed; and, on the same splits,
NUTS with deep trees (`make reproduce` installs NumPyro) and `HistGradientBoostingRegressor`, which
has an RMSE alone. `make study-fit` runs it and prints Markdown; docs/measurements/accuracy.md holds
a run.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from unittest import mock

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks._old.accuracy.study import Variant, options, ours, report, run, seeds_in_words
from benchmarks._old.paper.methods.common import Fitted
from benchmarks._old.paper.methods.relu_posterior import nuts_deep
from bowtienet._old import FitOptions
from bowtienet._old.ensemble import fold_networks, member, recipes
from bowtienet._old.ensemble.fold_networks import density
from bowtienet._old.ensemble.settings import EFFORTS

SETS = ("slump", "yacht", "boston", "energy", "concrete", "kin40k")
FIRST_SEED = 500


def boosted(X: np.ndarray, y: np.ndarray, seed: int) -> HistGradientBoostingRegressor:
    """Boosted trees of scikit-learn at their defaults."""
    return HistGradientBoostingRegressor(random_state=seed).fit(X, y)


class Peer:
    """A method of `benchmarks._old.paper`, fitted."""

    def __init__(self, fitted: Fitted) -> None:
        self.predict_dist = fitted.predict


def nuts(X: np.ndarray, y: np.ndarray, seed: int) -> Peer:
    """The Hamiltonian sampler of NumPyro with deep trees, on networks as wide as ours."""
    return Peer(nuts_deep((50,))(X, y, seed))


def with_sweeps(n_sweeps: int) -> Variant:
    """So many sweeps, whatever held-out rows say."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> object:
        fixed = replace(EFFORTS["balanced"], sweeps=(n_sweeps,))
        with mock.patch.dict(EFFORTS, {"balanced": fixed}):
            return ours()(X, y, seed)

    return fit


def with_constants(module: ModuleType, **changes: object) -> Variant:
    """Other constants of a module."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> object:
        with mock.patch.multiple(module, **changes):
            return ours()(X, y, seed)

    return fit


VARIANTS: dict[str, Variant] = {
    "default": ours(),
    "effort=fast": ours(effort="fast"),
    "effort=best": ours(effort="best"),
    "noise=constant": ours(noise="constant"),
    "features=standard": ours(features="standard"),
    "target_transform=none": ours(target_transform="none"),
    "n_estimators=1": ours(n_estimators=1),
    **{f"sweeps={count}": with_sweeps(count) for count in (1, 3, 10, 30)},
    **{
        f"gate_temperature={value:g}": ours(options=FitOptions(gate_temperature=value))
        for value in (0.01, 0.1)
    },
    **{
        f"hidden_noise={scale:g}": with_constants(member, HIDDEN_NOISE=(2.0, scale))
        for scale in (0.001, 0.1, 1.0)
    },
    "prior=gaussian": ours(prior="gaussian"),
    "no warped companion": with_constants(recipes, WARPED_ROWS=0),
    "further_part=0": with_constants(fold_networks, FURTHER_PART=0.0),
    "warps by density": with_constants(recipes, WARPED_ROWS=0, score=density),
    "NUTS": nuts,
    "HistGradientBoosting": boosted,
}


def main(given: list[str] | None = None) -> None:
    parser = options(
        __doc__, list(VARIANTS), SETS, first_seed=FIRST_SEED, splits=10, default=["default"]
    )
    chosen = parser.parse_args(given)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.splits)
    variants = {name: VARIANTS[name] for name in chosen.variants}
    table = run(variants, chosen.sets, seeds, chosen.n_jobs)
    print(report(chosen.sets, chosen.variants, table))
    print(f"\n{seeds_in_words(seeds)}")


if __name__ == "__main__":
    main()
