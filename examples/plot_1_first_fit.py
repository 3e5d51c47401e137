"""
A first fit and its intervals
=============================

One feature, a curve, and noise. What does the model say where there are rows, and where there are
none?
"""

# %%
# Rows lie in two groups, with a gap between them and nothing outside.

import matplotlib.pyplot as plt
import numpy as np

from bowtienet import BowTieRegressor, FitOptions

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-3.0, -0.8, 80), rng.uniform(0.8, 2.5, 80)])[:, None]
y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.15, size=160)

# %%
# ``BowTieRegressor()`` needs no choice: held-out rows choose what its networks see and how long
# they are trained. This page fits each of eight members once instead, until its bound converges.

options = FitOptions(weighting="equal", init_penalty=0.001, tol=1e-3)
model = BowTieRegressor(max_iter=200, random_state=0, options=options).fit(X, y)

# %%
# ``predict`` gives mean and standard deviation of new targets, noise included;
# ``predict_interval`` the interval that holds a new target with the probability that you ask for.

new = np.array([[-2.0], [0.0], [1.5], [4.0]])
mean, std = model.predict(new, return_std=True)
low, high = model.predict_interval(new, coverage=0.9).T
print("    x   truth    mean     std   90 % interval")
for x, *row in zip(new[:, 0], np.sin(2.0 * new[:, 0]), mean, std, low, high, strict=True):
    print("{:5.1f} {:7.2f} {:7.2f} {:7.2f}   {:.2f} to {:.2f}".format(x, *row))

# %%
# The same along the whole axis. The dark and light bands hold 50 % and 90 % of new targets.

from bowtienet._old.plotting import PredictiveBandDisplay

grid = np.linspace(-5.0, 4.5, 200)
display = PredictiveBandDisplay.from_estimator(model, X, 0, y=y, grid=grid, target_name="y")
display.ax_.plot(grid, np.sin(2.0 * grid), ":", color="black", label="truth")
display.ax_.legend(frameon=False, loc="upper left", fontsize=8)

# %%
# In the gap and outside the bands are wider than among the rows. Outside, every member goes on in a
# straight line, and at the right the truth leaves the bands: far from all rows, wide bands are a
# warning and not a promise.
#
# A part of the spread is noise, which more rows will not take away. The rest is
# epistemic: the members disagree, and each is unsure of its weights.

parts = model.predict_components(grid[:, None])
fig, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
ax.plot(grid, np.sqrt(parts.epistemic_variance), label="epistemic")
ax.plot(grid, np.sqrt(parts.noise_variance), "--", label="noise")
ax.plot(X[:, 0], np.zeros(len(X)), "|", color="grey", label="rows")
ax.set(xlabel="x", ylabel="standard deviation")
ax.legend(frameon=False)
