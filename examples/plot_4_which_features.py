"""
Which features matter, and a smaller network
============================================

Six features, of which two have an effect. ``structure`` tests which ones; a shrinkage prior pulls
the weights of the others towards zero, and ``prune`` takes away what held-out rows do not miss.
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
# Each column is tested given all others. Of those that are named, a share of at most the rate is
# false, on average.

print(model.structure(X, y, false_discovery_rate=0.05))

# %%
# One network is estimated anew with as few columns, units and weights as held-out rows allow: their
# error may be larger than that of the whole network by two percent.

pruned = model.prune(X, y, tolerance=0.02)
print(pruned.pruning_)

# %%
# What is left, feature by feature: how strong its paths to the target are at most, and the p-value
# of its test.

pd.DataFrame(pruned.feature_relevance_._asdict()).round(3)

# %%
# The weights of the heaviest member, those of the pruned network, and the network itself.

from bowtienet._old.plotting import NetworkDisplay, RelevanceDisplay, WeightsDisplay

WeightsDisplay.from_estimator(model, pruned)

# %%
NetworkDisplay.from_estimator(pruned)

# %%
RelevanceDisplay.from_estimator(pruned)

# %%
# The pruned model is an estimator like any other. On new rows:

new_X = pd.DataFrame(rng.uniform(-2.0, 2.0, size=(1000, 6)), columns=list("abcdef"))
truth = np.maximum(new_X["a"], 0.0) - np.maximum(new_X["b"] - 0.5, 0.0)
new_y = truth + rng.normal(0.0, 0.2, size=1000)
for name, found in (("fitted", model), ("pruned", pruned)):
    error = np.sqrt(np.mean((found.predict(new_X) - new_y) ** 2))
    print(f"{name}: RMSE {error:.3f} (noise 0.2), log density {found.log_score(new_X, new_y):.3f}")
