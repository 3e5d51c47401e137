"""Every method of the experiments by its name, with what it needs and where its settings are from.

Libraries of competitors are imported when a method is fitted, and never here: the list of methods
is there with none of them installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from benchmarks._old.paper.methods import (
    backprop,
    bde,
    boosting,
    deep_ensemble,
    horseshoe,
    laplace,
    mlp_piecewise,
    ours,
    pretrained,
    relu_posterior,
    scikit,
    trees,
)
from benchmarks._old.paper.methods.common import Fit


class Entry(NamedTuple):
    """A method of the experiments."""

    label: str
    """Its name in tables."""
    make: Callable[..., Fit]
    """Hidden widths and settings to the method: ``make((50,), **settings)``."""
    source: str
    """Where its settings come from."""
    needs: tuple[str, ...] = ()
    """Modules that must be importable."""
    absent: str | None = None
    """Why it can run nowhere."""


def missing(name: str) -> str | None:
    """Why a method cannot run here, or None if it can."""
    method = METHODS[name]
    if method.absent:
        return f"{method.label} is missing: {method.absent}."
    lacking = [module for module in method.needs if importlib.util.find_spec(module) is None]
    if not lacking:
        return None
    return f"{method.label} needs {' and '.join(lacking)}: pip install 'bowtienet[bench]'."


_NUMPYRO = ("jax", "numpyro")
METHODS: dict[str, Entry] = {
    "single": Entry("Bow tie", ours.single, "defaults of BowTieRegressor with one member."),
    "ensemble": Entry(
        "Bow tie ensemble",
        ours.ensemble,
        "defaults of BowTieRegressor: several members, stacked.",
    ),
    "svi": Entry(
        "Bow tie SVI",
        ours.svi,
        "defaults of BowTieRegressor with one member and the stochastic solver.",
    ),
    "svi_ensemble": Entry(
        "Bow tie SVI ensemble",
        ours.svi_ensemble,
        "defaults of BowTieRegressor with the stochastic solver.",
    ),
    "gaussian": Entry(
        "Bow tie, Gaussian prior",
        ours.gaussian_prior,
        "defaults of BowTieRegressor with one member and no shrinkage.",
    ),
    "pruned": Entry(
        "Bow tie, pruned",
        ours.pruned,
        "prune(X, y) of the ensemble, both at their defaults: one small network, fitted anew.",
    ),
    "pruned_signs": Entry(
        "Bow tie, pruned by signs",
        ours.pruned_signs,
        "the single bow tie network, pruned at the paper's false discovery rate of 0.01.",
    ),
    "lasso": Entry(
        "LassoCV",
        scikit.lasso,
        "defaults of scikit-learn, and the paper's residual standard deviation as noise.",
    ),
    "gpr": Entry(
        "Gaussian process",
        scikit.gpr,
        "scikit-learn with a length scale for each input and fitted noise.",
    ),
    "ngboost": Entry(
        "NGBoost",
        trees.ngboost,
        "Duan et al. (2020): rate 0.01, trees of depth 3, stages chosen by 20 % of rows.",
        ("ngboost",),
    ),
    "catboost": Entry(
        "CatBoost",
        boosting.catboost,
        "its defaults (trees of depth 6, 1000 stages), five seeds; the density by the loss "
        "RMSEWithUncertainty with stages chosen by 20 % of rows, the mean by the usual loss, which "
        "had the lower RMSE on splits 500 to 502 of four sets.",
        ("catboost",),
    ),
    "hist_quantiles": Entry(
        "Boosted quantiles",
        boosting.hist_quantiles,
        "defaults of scikit-learn's HistGradientBoostingRegressor for the mean and 21 quantiles, "
        "put in order; between them the distribution function is linear and beyond them "
        "exponential, with a Gaussian for each bin, which is a choice of ours.",
    ),
    "stochtree": Entry(
        "BART",
        trees.bart,
        "trees and priors of stochtree's defaults, but four chains of 500 steps.",
        ("stochtree",),
    ),
    "bde": Entry(
        "Bayesian deep ensemble",
        bde.bde,
        "the regression example of its documentation, with the widths of the experiment.",
        ("jax", "bde"),
    ),
    "mean_field": Entry(
        "Mean-field VI",
        relu_posterior.mean_field,
        "the model of NUTS in NumPyro; Adam at a rate of 0.02 that falls, chosen by a trial "
        "on energy, split 300, as the paper's 0.001 did worse.",
        _NUMPYRO,
    ),
    "nuts": Entry(
        "NUTS",
        relu_posterior.nuts,
        "the paper's model in NumPyro, but weights of variance 1/D for its 1/sqrt(D); one "
        "chain of 500 steps and 500 draws, trees of depth 7 at most for NumPyro's 10.",
        _NUMPYRO,
    ),
    "nuts_deep": Entry(
        "NUTS (deep trees)",
        relu_posterior.nuts_deep,
        "the same chain with NumPyro's own limit, trees of depth 10.",
        _NUMPYRO,
    ),
    "horseshoe": Entry(
        "Horseshoe VI",
        horseshoe.horseshoe,
        "after Ghosh et al. (2019), written anew in NumPyro with constants of ours, tried "
        "on splits 300 and 301 of energy and slump; not the authors' program.",
        _NUMPYRO,
    ),
    "backprop": Entry(
        "Bayes by Backprop",
        backprop.backprop,
        "Blundell et al. (2015) with the paper's rate of 0.01, which falls here, and most "
        "epochs, 1000; the fall and, of their prior scales, exp(-1) were chosen by a trial on "
        "energy and slump, split 300, after a constant rate had done badly on some of the "
        "published splits; batches of a tenth of the rows and a noise that is learnt are ours.",
        ("torch",),
    ),
    "deep_ensemble": Entry(
        "Deep ensemble",
        deep_ensemble.deep_ensemble,
        "Lakshminarayanan et al. (2017): five networks, 40 epochs, batches of 100, which "
        "are few steps for the smallest sets; a rate of 0.01 for their 0.1, with which some of "
        "the published splits, and splits 300 and 301, had wild errors.",
        ("torch",),
    ),
    "laplace": Entry(
        "Laplace",
        laplace.laplace,
        "the regression example of laplace-torch, trained by the marginal likelihood, with "
        "the curvature renewed every 50 epochs.",
        ("torch", "laplace"),
    ),
    "mlp_piecewise": Entry(
        "Tuned networks",
        mlp_piecewise.mlp_piecewise,
        "five networks with heads for mean and variance, AdamW for at most 500 epochs, stopped by "
        "a tenth of the rows, which did better than 200 on splits 500 and 501 of concrete; "
        "columns plain or in 8 piecewise linear bins, one layer of 64 or two of 128 units, rate "
        "0.003 or 0.01 and weight decay 0 or 0.1 by the NLL of a tenth of the training rows.",
        ("torch",),
    ),
    "tabpfn": Entry("TabPFN", pretrained.not_here, "not run.", absent=pretrained.REASON),
    "tabicl": Entry("TabICL", pretrained.not_here, "not run.", absent=pretrained.REASON),
}
"""In the order of a table: ours, then those of scikit-learn, trees and networks."""
