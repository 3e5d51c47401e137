"""
Five priors of the paper's network
==================================

One data set, five shrinkage priors of :class:`bowtienet.BowTieNetwork`, and the weights that are
left. Two of six columns matter. Every fit starts from the same random network and climbs to the
optimum of its bound.
"""

# %%
# The first two columns interact; the other four say nothing.

import matplotlib.pyplot as plt
import numpy as np

from bowtienet import BowTieNetwork
from bowtienet.plotting import NetworkDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(200, 6))
y = X[:, 0] * X[:, 1] + rng.normal(0.0, 0.3, size=200)
X_new = rng.uniform(-2.0, 2.0, size=(500, 6))

# %%
# With momentum and some thousand sweeps each fit climbs to the optimum of its bound.

priors = ("gaussian", "student_t", "laplace", "normal_gamma", "horseshoe")
settings = {"hidden_layer_sizes": (20,), "accelerate": True, "max_iter": 5000, "tol": 1e-3}
models = [
    BowTieNetwork.as_in_paper(prior=prior, random_state=0, **settings).fit(X, y) for prior in priors
]

# %%
# ``prune`` keeps the weights whose sign q is sure of, drops what is on no path from a column to the
# target, and fits the smaller network again. A Gaussian prior keeps most weights; those that shrink
# keep few.

figure, axes = plt.subplots(1, len(priors), figsize=(14, 3.5), layout="constrained")
for prior, model, ax in zip(priors, models, axes, strict=True):
    small = model.prune(false_discovery_rate=0.01)
    NetworkDisplay.from_estimator(small, ax=ax)
    ax.set_title(f"{prior}\n{ax.get_title(loc='left')}", loc="left", fontsize="small")
    error = np.sqrt(np.mean((small.predict(X_new) - X_new[:, 0] * X_new[:, 1]) ** 2))
    print(f"{prior:12s} bound {model.elbo_history_[-1]:7.1f}   error of the mean {error:.3f}")
plt.show()
