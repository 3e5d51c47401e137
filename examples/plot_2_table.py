"""
A table with text and missing values
====================================

``fit`` takes a raw table: text is one-hot encoded, missing values are imputed beside an
indicator, and the names of the columns do the rest.
"""

# %%
# Flats: the rent for a square metre depends on the district, older flats are cheaper, and the year
# is missing for some of them. Each flat has a number, which says nothing about its rent.

import numpy as np
import pandas as pd

import bowtienet as bt

rng = np.random.default_rng(0)
n = 400
area = rng.uniform(20.0, 120.0, size=n).round()
district = rng.choice(["centre", "harbour", "hills"], size=n)
year = rng.integers(1950, 2020, size=n).astype(float)
rate = pd.Series(district).map({"centre": 16.0, "harbour": 11.0, "hills": 13.0}).to_numpy()
rent = 150.0 + rate * area + 2.0 * (year - 1985.0) + rng.normal(0.0, 60.0, size=n)
flats = pd.DataFrame(
    {
        "flat": [f"No. {number:03d}" for number in range(n)],
        "area": area,
        "district": district,
        "year": np.where(rng.random(n) < 0.15, np.nan, year),
        "rent": rent.round(),
    }
)
train, test = flats[:300], flats[300:]
train.head()

# %%
# The target is named, and all other columns are features. The settings make this page quick; the
# defaults need none. A warning says that the numbers of the flats were left out.

import warnings

model = bt.BowTieRegressor(
    (20,),
    n_estimators=4,
    max_iter=300,
    random_state=0,
    options=bt.FitOptions(weighting="equal", init_penalty=1.0, tol=1e-3),
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(train, "rent")
print(caught[0].message)

# %%
# What became of each column:

from bowtienet._old.representation.columns import describe

for column in model.columns_:
    print(f"{column.name}: {describe(column)}")

# %%
# Prediction takes the same columns, and ignores the target if it is there. Intervals of a frame are
# a frame with the same index, so that they can be put beside it.

intervals = model.predict_interval(test, coverage=0.9)
test.assign(mean=model.predict(test)).join(intervals).round().head()

# %%
# What the fit says of itself; the scores are of rows that it held out in turn.

model.summary()

# %%
# The rent along the area, for a flat of the most frequent district, and by district, averaged over
# the other columns as they are in the table.

import matplotlib.pyplot as plt
from bowtienet._old.plotting import PredictiveBandDisplay

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
PredictiveBandDisplay.from_estimator(model, train, "area", y="rent", ax=left)
PredictiveBandDisplay.from_estimator(model, train, "district", y="rent", others="average", ax=right)

# %%
# How good is it on held-out rows? The noise of the rent has a standard deviation of 60. Where the
# year is missing nobody can predict that well; there are few such rows here, so look at the error
# and not at its last digit. The model has one noise for all rows, so it cannot give them wider
# intervals.

from dataclasses import asdict

from bowtienet._old.evaluation import evaluate, rmse

for name, rows in (("known", test["year"].notna()), ("missing", test["year"].isna())):
    error = rmse(test["rent"][rows], model.predict(test[rows]))
    std = model.predict(test[rows], return_std=True)[1].mean()
    print(f"year {name}: {rows.sum()} rows, RMSE {error:.0f}, predicted deviation {std:.0f}")
pd.DataFrame([asdict(evaluate(test["rent"], model.predict_dist(test)))]).round(2)

# %%
# One file keeps the networks and what was learnt of the columns, and runs no code when it is read.

import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "flats.btn"
    model.save(path)
    again = bt.load(path)
    print((again.predict(test) == model.predict(test)).all())
