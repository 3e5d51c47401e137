"""
Counts, with exposures
======================

Visitors of a stand are counted, some days for one hour and some days for ten. What is to be learnt
is the rate by hour; what is to be predicted are whole numbers.
"""

# %%
# The rate depends on temperature and on rain. Counts vary by more than Poisson counts do: their
# variance is m + m² / 4 for a mean of m.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor


def days(size, rng):
    """Features, hours of counting, counts, and rates by hour."""
    frame = pd.DataFrame(
        {
            "temperature": rng.uniform(0.0, 35.0, size=size).round(1),
            "rain": rng.choice(["no", "yes"], size=size, p=[0.7, 0.3]),
        }
    )
    hours = rng.integers(1, 11, size=size).astype(float)
    rates = rate(frame)
    return frame, hours, rng.poisson(rng.gamma(4.0, rates * hours / 4.0)), rates


def rate(frame):
    """Visitors by hour."""
    dry = 9.0 * np.exp(-0.5 * ((frame["temperature"] - 23.0) / 7.0) ** 2) + 0.5
    return np.where(frame["rain"] == "yes", 0.4, 1.0) * dry


rng = np.random.default_rng(0)
X, hours, counts, _ = days(400, rng)
model = BowTieRegressor((20,), outcome="counts", effort="fast", random_state=0)
model.fit(X, counts, exposure=hours)

# %%
# Predictions are for exposure 1 unless one is given. The mean need not be a whole number; the ends
# of intervals are.

new = pd.DataFrame({"temperature": [5.0, 23.0, 23.0], "rain": ["no", "no", "yes"]})
shown = new.assign(hour=model.predict(new), day=model.predict(new, exposure=[8.0, 8.0, 8.0]))
shown.join(model.predict_interval(new, coverage=0.9, exposure=[8.0, 8.0, 8.0])).round(2)

# %%
# Rates over the temperature, with the rates of the truth, and intervals of 90 % for one hour of
# counting: stairs, since counts are whole numbers.

line = np.linspace(0.0, 35.0, 141)
fig, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained", sharey=True)
for ax, rain in zip(axes, ("no", "yes"), strict=True):
    along = pd.DataFrame({"temperature": line, "rain": rain})
    band = model.predict_interval(along, coverage=0.9)
    ax.fill_between(
        line,
        band["lower"],
        band["upper"],
        step="mid",
        alpha=0.25,
        label="90 % of counts in an hour",
    )
    ax.plot(line, model.predict(along), label="predicted rate")
    ax.plot(line, rate(along), color="black", linestyle=":", label="true rate")
    own = X["rain"] == rain
    ax.scatter(X["temperature"][own], counts[own] / hours[own], s=6, color="grey", alpha=0.6)
    ax.set(title=f"Rain: {rain}", xlabel="temperature")
axes[0].set_ylabel("visitors by hour")
axes[1].legend(loc="upper left")

# %%
# The distribution of a row has probabilities of counts, in the manner of SciPy.

fig, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
numbers = np.arange(60)
for place, row in enumerate(("cold", "warm", "warm, rain")):
    one = model.predict_dist(new.iloc[[place] * 60], exposure=np.full(60, 4.0))
    ax.step(numbers, one.pmf(numbers), where="mid", label=row)
ax.set(xlabel="visitors in four hours", ylabel="probability")
ax.legend()

# %%
# What of the variance is epistemic, left open in the rate, and what is noise of the counts?

model.predict_components(new).round(3)

# %%
# Are the intervals right? Whole numbers cannot hold exactly nine of ten: an interval is the
# shortest central one that holds at least that share, so that coverage is a little higher. The PIT
# of counts is randomised, and flat if the distributions are right; bars that fall to the right say
# that predicted counts are too high.

from bowtienet._old.evaluation import evaluate_counts
from bowtienet._old.plotting import CalibrationCurveDisplay, PitHistogramDisplay

new_X, new_hours, new_counts, _ = days(1500, rng)
found = model.predict_dist(new_X, exposure=new_hours)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
CalibrationCurveDisplay.from_predictions(new_counts, found, ax=left)
PitHistogramDisplay.from_predictions(new_counts, found, ax=right)

# %%
intervals = model.predict_interval(new_X, coverage=0.9, exposure=new_hours)
scores = evaluate_counts(new_counts, found, coverage=0.9, intervals=intervals)
scores.to_frame().round(3)
