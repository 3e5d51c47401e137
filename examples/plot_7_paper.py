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
# The sizes of the first layer's weights, sorted: shrinkage leaves few of them.

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for prior, model in models.items():
    draws = model.to_arviz(draws=200).posterior["weights_1"].to_numpy()
    means = np.abs(draws.mean(axis=(0, 1)))[:, 1:]
    ax.plot(np.sort(means.ravel())[::-1], label=prior)
ax.set(yscale="log", xlabel="weight", ylabel="posterior mean, absolute")
ax.legend(frameon=False)

# %%
# Weights whose sign is sure, at a false discovery rate that q states, and the network of these.

model = models["student_t"]
print(model.selection(false_discovery_rate=0.01))
small = model.prune(false_discovery_rate=0.01)
display = NetworkDisplay.from_estimator(small)
