"""
Where to measure next
=====================

A machine has run at 300 settings, most of them near the usual one. What came of a setting is known
once it has been measured in the laboratory, and the laboratory is expensive. Which settings should
it measure, so that predictions are good for the whole range of the machine?
"""

# %%
# Two features, a quality that depends on both of them together, and a little noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor


def quality(X):
    """What a measurement would give, but for its noise."""
    heat, speed = X.T
    return np.sin(3.0 * heat) + np.cos(2.0 * speed) * heat


def settings(rng):
    """300 settings that the machine has run at."""
    return np.clip(rng.normal(-0.4, 0.35, size=(300, 2)), -1.0, 1.0)


def fit(X, y):
    """A small and quick model."""
    return BowTieRegressor((20,), effort="fast", random_state=0).fit(X, y)


# %%
# Thirty settings were measured. ``next_points`` looks at the others and gives the places of ten
# that would lower the epistemic variance of the rows to predict most: all of the range. It counts
# what they say of each other, so that the batch is spread out, and how noisy they are. No target of
# theirs is known.

rng = np.random.default_rng(500)
X = settings(rng)
y = quality(X) + rng.normal(0.0, 0.1, size=300)
measured = rng.choice(300, size=30, replace=False)
others = np.setdiff1d(np.arange(300), measured)
model = fit(X[measured], y[measured])
side = np.linspace(-1.0, 1.0, 15)
whole_range = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
batch = others[model.next_points(X[others], 10, to_predict=whole_range)]

side = np.linspace(-1.0, 1.0, 60)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
epistemic = np.sqrt(model.predict_components(grid).epistemic_variance).reshape(60, 60)
fig, axes = plt.subplots(1, 2, figsize=(9.4, 4.4), layout="constrained", sharey=True)
images = (quality(grid).reshape(60, 60), epistemic)
titles = ("The quality, which nobody knows", "Epistemic standard deviation")
for ax, image, title in zip(axes, images, titles, strict=True):
    found = ax.imshow(image, origin="lower", extent=(-1.0, 1.0, -1.0, 1.0), cmap="viridis")
    fig.colorbar(found, ax=ax, shrink=0.85)
    ax.scatter(*X[others].T, s=9, color="white", edgecolor="#444444", lw=0.4, label="candidate")
    ax.scatter(*X[measured].T, s=30, color="#111111", edgecolor="white", label="measured")
    ax.scatter(*X[batch].T, s=70, marker="X", color="#d55e00", edgecolor="white", label="batch")
    ax.set(title=title, xlabel="heat", ylabel="speed", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
handles, labels = axes[1].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=3)

# %%
# Is that better than ten settings at random? Six machines with settings, starts and noise of
# their own; two batches each; the error of predictions over the whole range after every batch.


def errors(choose, seed, n_batches=2):
    """RMSE over the whole range after each batch."""
    rng = np.random.default_rng(seed)
    X = settings(rng)
    y = quality(X) + rng.normal(0.0, 0.1, size=300)
    rows, found = rng.choice(300, size=30, replace=False), []
    for _ in range(n_batches + 1):
        model = fit(X[rows], y[rows])
        found.append(np.sqrt(np.mean((model.predict(grid) - quality(grid)) ** 2)))
        others = np.setdiff1d(np.arange(300), rows)
        rows = np.append(rows, others[choose(model, X[others], rng)])
    return found


def at_random(model, candidates, rng):
    """Ten candidates, whatever the model says."""
    return rng.choice(len(candidates), size=10, replace=False)


def by_model(model, candidates, rng):
    """The batch that the model asks for."""
    return model.next_points(candidates, 10, to_predict=whole_range)


seeds, sizes = range(500, 506), [30, 40, 50]
curves = {
    name: np.array([errors(choose, seed) for seed in seeds])
    for name, choose in (("at random", at_random), ("next_points", by_model))
}
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, found), colour in zip(curves.items(), ("#767676", "#d55e00"), strict=True):
    ax.plot(sizes, found.T, color=colour, alpha=0.3, linewidth=1.0)
    median = np.median(found, axis=0)
    ax.plot(sizes, median, color=colour, marker="o", linewidth=2.5, label=name)
ax.set(
    title="Six machines (thin) and their median",
    xlabel="measured settings",
    ylabel="RMSE over the whole range",
    xticks=sizes,
    ylim=(0.0, None),
)
ax.legend()

# %%
# The medians, and the mean ratio of the two errors machine by machine, with its standard error.

ratios = curves["next_points"] / curves["at random"]
medians = {name: np.median(found, axis=0) for name, found in curves.items()}
table = pd.DataFrame(medians, index=sizes)
table["ratio"] = ratios.mean(axis=0)
table["± of the ratio"] = ratios.std(axis=0, ddof=1) / np.sqrt(len(ratios))
table.rename_axis("measured").round(2)

# %%
# The gain is from candidates that are uneven: at random, nearly all of a batch falls where much is
# known. If candidates are spread as evenly as the rows to predict, there is less to gain.
