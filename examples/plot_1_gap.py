"""
A band that widens in a gap
===========================

One feature, a curve, and no rows in the middle: where does each model say that it does not know?
"""

# %%
# Rows lie in two groups.

import matplotlib.pyplot as plt
import numpy as np

from bowtienet import BowTieNetwork, BowTieRegressor

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-3.0, -0.8, 80), rng.uniform(0.8, 2.5, 80)])[:, None]
y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.15, size=160)

# %%
# The practical ensemble with its defaults, and the paper's network with momentum: four members that
# start at random and are fitted until their bounds converge.

models = {
    "BowTieRegressor": BowTieRegressor(random_state=0),
    "BowTieNetwork, random starts": BowTieNetwork.as_in_paper(
        hidden_layer_sizes=(10,),
        accelerate=True,
        max_iter=1500,
        tol=1e-2,
        n_members=4,
        random_state=0,
    ),
}
for model in models.values():
    model.fit(X, y)

# %%
# The dark band is epistemic: where the mean may lie by what the weights leave open. The light band
# holds 90 % of new targets.

grid = np.linspace(-3.5, 3.5, 200)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    parts = model.predict_components(grid[:, None])
    low, high = model.predict_interval(grid[:, None], coverage=0.9).T
    ax.fill_between(grid, low, high, alpha=0.2, color="C0", label="90 % of new targets")
    ax.fill_between(
        grid,
        parts.mean - 1.64 * parts.epistemic,
        parts.mean + 1.64 * parts.epistemic,
        alpha=0.4,
        color="C0",
        label="epistemic",
    )
    ax.plot(grid, parts.mean, color="C0")
    ax.plot(grid, np.sin(2.0 * grid), ":", color="black", label="truth")
    ax.plot(X[:, 0], y, ".", color="0.5", markersize=3)
    ax.set(title=name, xlabel="x", ylim=(-3.0, 3.0))
axes[0].set_ylabel("y")
axes[1].legend(frameon=False, loc="upper left", fontsize=8)

# %%
# In the gap and outside the rows the bands widen. Outside no model knows how the curve continues:
# read a wide band as a warning, not as a probability.
