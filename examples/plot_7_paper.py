"""
The paper's network, its priors and a smaller one
=================================================

Five priors on the same data, the weights that are left, and the smaller network of these.
"""

# %%
# Five columns, of which one matters.

import matplotlib.pyplot as plt
import numpy as np

from bowtienet import BowTieNetwork
from bowtienet.plotting import NetworkDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(200, 5))
y = 3.0 * np.sin(1.5 * X[:, 0]) + rng.normal(0.0, 0.3, size=200)

settings = {
    "hidden_layer_sizes": (8,),
    "accelerate": True,
    "max_iter": 1500,
    "tol": 1e-3,
    "random_state": 0,
}
models = {
    prior: BowTieNetwork.as_in_paper(prior=prior, **settings).fit(X, y)
    for prior in ("gaussian", "laplace", "student_t", "horseshoe", "regularized_horseshoe")
}

# %%
# Posterior means of the weights, drawn wider if larger in their layer, and how many are left at a
# false discovery rate that q states. With a Gaussian prior most weights stay; heavier tails of the
# prior shrink small weights and spare large ones, so that few are left.

figure, axes = plt.subplots(1, 5, figsize=(16, 4), layout="constrained")
for ax, (prior, model) in zip(axes, models.items(), strict=True):
    NetworkDisplay.from_estimator(model, ax=ax)
    ax.set_title(prior, loc="left")
    kept = model.selection(false_discovery_rate=0.01)
    print(f"{prior:22s} {kept.weights} of {kept.n_weights} weights, columns {kept.columns}")

# %%
# The network of the weights that are left, fitted again.

model = models["student_t"]
print(model.selection(false_discovery_rate=0.01))
small = model.prune(false_discovery_rate=0.01)
display = NetworkDisplay.from_estimator(small)
