"""
Counts with an exposure
=======================

Claims of policies that ran for different times: the exposure multiplies the rate.
"""

# %%
# The rate depends on two columns; a policy that ran for half a year has half the expected claims.

import numpy as np

from bowtienet import BowTieCountRegressor
from bowtienet.evaluation import coverage
from bowtienet.plotting import PredictiveBandDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(800, 2))
years = rng.uniform(0.2, 3.0, size=800)
rate = np.exp(0.5 + np.sin(3.0 * X[:, 0])) * rng.gamma(4.0, 0.25, size=800)
claims = rng.poisson(years * rate)

model = BowTieCountRegressor(effort="fast", random_state=0)
model.fit(X[:600], claims[:600], exposure=years[:600])
print(model.summary())

# %%
# Intervals are whole numbers and hold at least the stated share.

interval = model.predict_interval(X[600:], coverage=0.9, exposure=years[600:])
print(interval[:3], f"hold {coverage(claims[600:], interval):.0%}")

# %%
# The expected count for an exposure of one year.

display = PredictiveBandDisplay.from_estimator(model, X[600:], 0)
