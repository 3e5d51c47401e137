"""
The paper's network, its priors and a smaller one
=================================================

Shrinkage priors side by side, and the network that remains when weights of doubtful sign go.
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
    for prior in ("gaussian", "student_t", "horseshoe")
}

# %%
# Posterior means of the weights, the wider the larger in its layer: with shrinkage few are left.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, (prior, model) in zip(axes, models.items(), strict=True):
    NetworkDisplay.from_estimator(model, ax=ax)
    ax.set_title(prior, loc="left")

# %%
# Weights whose sign is sure, at a false discovery rate that q states, and the network of these.

model = models["student_t"]
print(model.selection(false_discovery_rate=0.01))
small = model.prune(false_discovery_rate=0.01)
display = NetworkDisplay.from_estimator(small)
