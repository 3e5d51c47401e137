"""Every method of the experiments by its name, with what it needs and where its settings are from.

Libraries of competitors are imported when a method is made, and never here: a list of all methods
is there with none of them installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bowtienet._validation import suggestion
from bowtienet.evaluation.methods import Method

_NUMPYRO = ("jax", "numpyro")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method of the experiments."""

    label: str
    """As tables show it."""
    modules: tuple[str, ...]
    """What must be importable."""
    make: Callable[..., Method]
    """Hidden widths and settings to a method: ``make(hidden=(50,), **settings)``."""
    source: str
    """Where its settings come from."""
    stochastic: bool = True
    """Whether a second seed gives a second fit, as ensembles of several runs need."""


def missing(name: str) -> str | None:
    """Why a method cannot run here, or None if it can.

    Examples
    --------
    >>> missing("single") is None
    True
    """
    absent = [module for module in entry(name).modules if not _is_there(module)]
    if not absent:
        return None
    return f"{METHODS[name].label} needs {' and '.join(absent)}: pip install 'bowtienet[bench]'."


def entry(name: str) -> Entry:
    """The method of a name, or an error that says which there are."""
    if name not in METHODS:
        raise ValueError(f"there is no method {name!r}{suggestion(name, list(METHODS))}")
    return METHODS[name]


def _is_there(module: str) -> bool:
    """Whether a top-level module can be found, without the seconds that importing it takes."""
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # a module without a spec that someone put into sys.modules
        return True


def _from(place: str, *, layers: bool = True) -> Callable[..., Method]:
    """``file.function``, imported when it is called, and given widths if it has hidden layers."""
    file, function = place.split(".")

    def make(hidden: tuple[int, ...] = (50,), **settings: Any) -> Method:
        module = importlib.import_module(f"{__name__}.{file}")
        widths = {"hidden": tuple(hidden)} if layers else {}
        return getattr(module, function)(**widths, **settings)

    return make


METHODS: dict[str, Entry] = {
    "single": Entry(
        label="Bow tie",
        modules=(),
        make=_from("ours.single"),
        source="defaults of BowTieRegressor with one member.",
    ),
    "ensemble": Entry(
        label="Bow tie ensemble",
        modules=(),
        make=_from("ours.ensemble"),
        source="defaults of BowTieRegressor: eight members, stacked.",
    ),
    "svi": Entry(
        label="Bow tie SVI",
        modules=(),
        make=_from("ours.svi"),
        source="defaults of BowTieRegressor with one member and the stochastic solver.",
    ),
    "svi_ensemble": Entry(
        label="Bow tie SVI ensemble",
        modules=(),
        make=_from("ours.svi_ensemble"),
        source="defaults of BowTieRegressor with the stochastic solver.",
    ),
    "gaussian": Entry(
        label="Bow tie, Gaussian prior",
        modules=(),
        make=_from("ours.gaussian_prior"),
        source="defaults of BowTieRegressor with one member and no shrinkage.",
    ),
    "pruned": Entry(
        label="Bow tie, pruned",
        modules=(),
        make=_from("ours.pruned"),
        source="the single bow tie network, pruned at the paper's false discovery rate of 0.01.",
    ),
    "lasso": Entry(
        label="LassoCV",
        modules=(),
        make=_from("lasso.lasso", layers=False),
        source="defaults of scikit-learn, and the paper's residual standard deviation as noise.",
        stochastic=False,
    ),
    "gpr": Entry(
        label="Gaussian process",
        modules=(),
        make=_from("gpr.gpr", layers=False),
        source="scikit-learn with a length scale for each input and fitted noise.",
        stochastic=False,
    ),
    "ngboost": Entry(
        label="NGBoost",
        modules=("ngboost",),
        make=_from("boosting.ngboost", layers=False),
        source="Duan et al. (2020): rate 0.01, trees of depth 3, stages chosen by 20 % of rows.",
    ),
    "stochtree": Entry(
        label="BART",
        modules=("stochtree",),
        make=_from("bart.bart", layers=False),
        source="trees and priors of stochtree's defaults, but four chains of 500 steps.",
    ),
    "bde": Entry(
        label="Bayesian deep ensemble",
        modules=("jax", "bde"),
        make=_from("bde.bde"),
        source="the regression example of its documentation, with the widths of the experiment.",
    ),
    "mean_field": Entry(
        label="Mean-field VI",
        modules=_NUMPYRO,
        make=_from("mean_field.mean_field"),
        source="the model of NUTS in NumPyro; Adam at a rate of 0.02 that falls, chosen by a trial "
        "on energy, split 300, as the paper's 0.001 did worse.",
    ),
    "nuts": Entry(
        label="NUTS",
        modules=_NUMPYRO,
        make=_from("nuts.nuts"),
        source="the paper's model in NumPyro, but weights of variance 1/D for its 1/sqrt(D); one "
        "chain of 500 steps and 500 draws, trees of depth 7 at most for NumPyro's 10.",
    ),
    "nuts_deep": Entry(
        label="NUTS (deep trees)",
        modules=_NUMPYRO,
        make=_from("nuts.deep"),
        source="the same chain with NumPyro's own limit, trees of depth 10.",
    ),
    "horseshoe": Entry(
        label="Horseshoe VI",
        modules=_NUMPYRO,
        make=_from("horseshoe.horseshoe"),
        source="after Ghosh et al. (2019), written anew in NumPyro with constants of ours, tried "
        "on splits 300 and 301 of energy and slump; not the authors' program.",
    ),
    "backprop": Entry(
        label="Bayes by Backprop",
        modules=("torch",),
        make=_from("backprop.backprop"),
        source="Blundell et al. (2015) with the paper's rate of 0.01, which falls here, and most "
        "epochs, 1000; the fall and, of their prior scales, exp(-1) were chosen by a trial on "
        "energy and slump, split 300, after a constant rate had done badly on some of the "
        "published splits; batches of a tenth of the rows and a noise that is learnt are ours.",
    ),
    "deep_ensemble": Entry(
        label="Deep ensemble",
        modules=("torch",),
        make=_from("deep_ensemble.deep_ensemble"),
        source="Lakshminarayanan et al. (2017): five networks, 40 epochs, batches of 100, which "
        "are few steps for the smallest sets; a rate of 0.01 for their 0.1, with which some of "
        "the published splits, and splits 300 and 301, had wild errors.",
    ),
    "laplace": Entry(
        label="Laplace",
        modules=("torch", "laplace"),
        make=_from("laplace.laplace"),
        source="the regression example of laplace-torch, trained by the marginal likelihood, with "
        "the curvature renewed every 50 epochs.",
    ),
}
"""In the order of a table: ours, then those of scikit-learn, trees and Bayesian networks."""
