"""
Which features matter, and a smaller network
============================================

Six features, of which two have an effect. A shrinkage prior pulls the weights of the others towards
zero; ``prune`` takes away those whose sign is not sure.
"""

# %%
# If the structure is the question, fit to the end and from a smooth start, and let the bound
# choose among the starts.

import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor, FitOptions

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2.0, 2.0, size=(300, 6)), columns=list("abcdef"))
y = np.maximum(X["a"], 0.0) - np.maximum(X["b"] - 0.5, 0.0) + rng.normal(0.0, 0.2, size=300)
model = BowTieRegressor(
    (10,),
    n_estimators=2,
    max_iter=400,
    n_jobs=2,
    random_state=0,
    options=FitOptions(weighting="elbo", elbo_tempering=1.0, init_penalty=1.0, tol=1e-4),
).fit(X, y)

# %%
# Every weight has a probability that its sign is what it seems to be. The surest are kept, as many
# as leave the estimated share of wrong signs below the rate. It is a rate of weights, not of
# features.

pruned = model.prune(false_sign_rate=0.01)
print(pruned.sparsity_)

# %%
# What is left, feature by feature: the probability of a path to the target, and how strong it is at
# most.

pd.DataFrame(pruned.feature_relevance_._asdict()).round(3)

# %%
# The weights of the heaviest member before and after, and the network that is left of it.

from bowtienet.plotting import NetworkDisplay, RelevanceDisplay, WeightsDisplay

WeightsDisplay.from_estimator(model, pruned)

# %%
NetworkDisplay.from_estimator(pruned)

# %%
RelevanceDisplay.from_estimator(pruned)

# %%
# Predictions barely move, and the pruned model is an estimator like any other. On new rows:

new_X = pd.DataFrame(rng.uniform(-2.0, 2.0, size=(1000, 6)), columns=list("abcdef"))
truth = np.maximum(new_X["a"], 0.0) - np.maximum(new_X["b"] - 0.5, 0.0)
new_y = truth + rng.normal(0.0, 0.2, size=1000)
for name, found in (("fitted", model), ("pruned", pruned)):
    error = np.sqrt(np.mean((found.predict(new_X) - new_y) ** 2))
    print(f"{name}: RMSE {error:.3f} (noise 0.2), log density {found.log_score(new_X, new_y):.3f}")
