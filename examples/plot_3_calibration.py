"""
Is it calibrated?
=================

An interval of 90 % should hold nine targets of ten. Whether it does can only be seen on held-out
rows.
"""

# %%
# The diabetes data, two fifths of them held out. The rows are few and noisy, so the fit starts from
# a smooth network: a large ``init_penalty``.

from dataclasses import asdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from bowtienet._old.evaluation import evaluate
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

from bowtienet import BowTieRegressor, FitOptions

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, new_X, y, new_y = train_test_split(X, y, test_size=0.4, random_state=0)
options = FitOptions(weighting="equal", init_penalty=10.0, tol=1e-3)
model = BowTieRegressor((10,), n_estimators=2, max_iter=400, random_state=0, options=options)
model.fit(X, y)
scores = evaluate(new_y, model.predict_dist(new_X), coverage=0.9)
pd.DataFrame([asdict(scores)]).round(3)

# %%
# A single number needs its error bar: ``binomial_band`` says how far the share inside moves by
# chance alone.

from bowtienet._old.evaluation import binomial_band

low, high = binomial_band([0.9], scores.n_rows)
print(f"inside: {scores.coverage:.3f}; by chance {low[0]:.3f} to {high[0]:.3f}")

# %%
# The same for all levels at once, and the ranks of the targets in their own distributions. On the
# left a curve inside the band is what a calibrated forecast looks like; on the right flat bars
# are.

from bowtienet._old.plotting import CalibrationCurveDisplay, PitHistogramDisplay

fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
CalibrationCurveDisplay.from_estimator(model, new_X, new_y, ax=left)
PitHistogramDisplay.from_estimator(model, new_X, new_y, ax=right)

# %%
# What an overconfident forecast looks like: the same means, with half the spread.

from bowtienet._old.prediction.mixture import build_mixture

mean, std = model.predict(new_X, return_std=True)
too_sure = build_mixture([1.0], mean[None], 0.5 * std[None])
fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
CalibrationCurveDisplay.from_predictions(new_y, too_sure, ax=left)
PitHistogramDisplay.from_predictions(new_y, too_sure, ax=right)
pd.DataFrame([asdict(evaluate(new_y, too_sure, coverage=0.9))]).round(3)

# %%
# The scorers go wherever scikit-learn takes ``scoring=``: here the mean log densities of three
# folds. Below are those of a linear model with normal noise on the same folds. With so few and so
# noisy rows the linear model is hard to beat, and a comparison like this is how to find out.

from bowtienet._old.evaluation import log_density_scorer
from scipy.stats import norm
from sklearn.model_selection import KFold, cross_val_score

folds = KFold(3, shuffle=True, random_state=0)
ours = cross_val_score(model, X, y, cv=folds, scoring=log_density_scorer)


def linear_log_density(linear, X, y):
    """Mean log density under the linear model's own normal distributions."""
    mean, std = linear.predict(X, return_std=True)
    return np.mean(norm.logpdf(y, mean, std))


linear = cross_val_score(BayesianRidge(), X, y, cv=folds, scoring=linear_log_density)
print("bow tie network:", ours.round(3))
print("BayesianRidge:  ", linear.round(3))
