"""The engine under the estimator: models, factors, both solvers, prediction, pruning.

Rows in, a fitted network out:

>>> import numpy as np
>>> from bowtienet import engine as bt
>>> rng = np.random.default_rng(0)
>>> inputs = rng.uniform(-2.0, 2.0, size=(200, 2))
>>> targets = np.sin(2.0 * inputs[:, 0]) + rng.normal(0.0, 0.1, size=200)
>>> rows = bt.build_rows(inputs, targets)
>>> architecture = bt.build_architecture(n_inputs=2, hidden_layer_sizes=(20,), n_outputs=1)
>>> model = bt.default_model(architecture, inputs, targets)
>>> result = bt.fit(model, rows, bt.initialize(model, rows, rng), max_iter=50)
>>> new = bt.predict(result.model, result.factors, inputs[:3])
>>> new.mean.shape
(3, 1)
"""

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.elbo import ElboTerms
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.pruning import Pruning, prune
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.stochastic import fit_stochastic, minibatches
from bowtienet._old.model.architecture import Architecture, build_architecture
from bowtienet._old.model.outcomes import Binary, Classes, Counts, Gaussian, Outcome, StudentT
from bowtienet._old.model.priors import BowTieModel, Prior, build_model, default_model
from bowtienet._old.model.shrinkage import build_shrinkage
from bowtienet._old.model.simulate import Parameters, Simulation, sample_model, sample_prior
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors
from bowtienet._old.prediction.predictive import Predictive, predict
from bowtienet._old.representation.scaling import (
    Scaling,
    fit_scaling,
    restore_deviation,
    restore_mean,
    standardize,
)

__all__ = [
    "Architecture",
    "Binary",
    "BowTieModel",
    "Classes",
    "Counts",
    "ElboTerms",
    "FitResult",
    "Gaussian",
    "GlobalFactors",
    "LayerFactors",
    "Outcome",
    "Parameters",
    "Predictive",
    "Prior",
    "Progress",
    "Pruning",
    "Rows",
    "Scaling",
    "Simulation",
    "Status",
    "StudentT",
    "build_architecture",
    "build_model",
    "build_rows",
    "build_shrinkage",
    "default_model",
    "fit",
    "fit_scaling",
    "fit_stochastic",
    "initialize",
    "minibatches",
    "predict",
    "prune",
    "restore_deviation",
    "restore_mean",
    "sample_model",
    "sample_prior",
    "standardize",
]
