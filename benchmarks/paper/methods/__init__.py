"""Every method of the experiments by its name, with what it needs and where its settings are from.

Libraries of competitors are imported when a method is fitted, and never here: the list of methods
is there with none of them installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.paper.methods import (
    backprop,
    bde,
    deep_ensemble,
    horseshoe,
    laplace,
    ours,
    relu_posterior,
    scikit,
    trees,
)
from benchmarks.paper.methods.common import Fit


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


def missing(name: str) -> str | None:
    """Why a method cannot run here, or None if it can."""
    label, _, _, needs = METHODS[name]
    absent = [module for module in needs if importlib.util.find_spec(module) is None]
    if not absent:
        return None
    return f"{label} needs {' and '.join(absent)}: pip install 'bowtienet[bench]'."


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
}
"""In the order of a table: ours, then those of scikit-learn, trees and Bayesian networks."""
