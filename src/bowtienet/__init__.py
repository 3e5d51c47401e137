"""Bayesian bow tie neural networks with shrinkage priors, fitted by closed-form updates.

Rows in, a fitted network out:

>>> import numpy as np
>>> import bowtienet as bt
>>> rng = np.random.default_rng(0)
>>> inputs = rng.uniform(-2.0, 2.0, size=(200, 2))
>>> targets = np.sin(2.0 * inputs[:, 0]) + rng.normal(0.0, 0.1, size=200)
>>> rows = bt.build_rows(inputs, targets)
>>> architecture = bt.build_architecture(n_inputs=2, hidden=(20,), n_outputs=1)
>>> model = bt.default_model(architecture, inputs, targets)
>>> result = bt.fit(model, rows, bt.initialize(model, rows, rng), max_sweeps=50)
>>> new = bt.predict(result.model, result.factors, inputs[:3])
>>> new.mean.shape
(3, 1)
"""

from bowtienet.data.files import read_file
from bowtienet.data.rows import Rows, build_rows
from bowtienet.data.scaling import (
    Scaling,
    fit_scaling,
    restore_deviation,
    restore_mean,
    standardize,
)
from bowtienet.data.sources import Source, open_source
from bowtienet.estimators.preparing import TablePreparer
from bowtienet.estimators.pruning import FeatureRelevance, Sparsity
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.estimators.table_pipeline import TablePipeline, load, make_table_pipeline
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.inference.elbo import ElboTerms
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.inference.pruning import Pruning, prune
from bowtienet.inference.stochastic import fit_stochastic, minibatches
from bowtienet.model.architecture import Architecture, build_architecture
from bowtienet.model.priors import BowTieModel, Prior, build_model, default_model
from bowtienet.model.shrinkage import build_shrinkage
from bowtienet.model.simulate import Parameters, Simulation, sample_model, sample_prior
from bowtienet.posterior.factors import GlobalFactors, LayerFactors
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction.predictive import Predictive, predict

__all__ = [
    "Architecture",
    "BowTieModel",
    "BowTieRegressor",
    "ElboTerms",
    "FeatureRelevance",
    "FitResult",
    "GlobalFactors",
    "LayerFactors",
    "Parameters",
    "Predictive",
    "Prior",
    "Progress",
    "Pruning",
    "Rows",
    "Scaling",
    "Simulation",
    "Source",
    "Sparsity",
    "Status",
    "TablePipeline",
    "TablePreparer",
    "build_architecture",
    "build_model",
    "build_rows",
    "build_shrinkage",
    "default_model",
    "fit",
    "fit_scaling",
    "fit_stochastic",
    "initialize",
    "load",
    "make_table_pipeline",
    "minibatches",
    "open_source",
    "predict",
    "prune",
    "read_file",
    "restore_deviation",
    "restore_mean",
    "sample_model",
    "sample_prior",
    "standardize",
]
