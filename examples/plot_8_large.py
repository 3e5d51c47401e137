"""
A folder of Parquet files
=========================

Rows that need not fit in memory: a fit of a folder, and predictions in slices.
"""

# %%
# Four files, as a database or Spark would write them.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for part in range(4):
    table = pd.DataFrame(rng.uniform(-2.0, 2.0, size=(500, 3)), columns=["a", "b", "c"])
    table["y"] = np.sin(2.0 * table["a"]) + table["b"] + rng.normal(0.0, 0.2, size=500)
    table.to_parquet(folder / f"part-{part}.parquet")

# %%
# A path takes the place of the table; the target is a column.

model = BowTieRegressor(effort="fast", random_state=0).fit(folder, "y")
print(model.summary())

# %%
# New rows are predicted in slices, so that predictions need little memory.

new = pd.DataFrame(rng.uniform(-2.0, 2.0, size=(100_000, 3)), columns=["a", "b", "c"])
mean, std = model.predict(new, return_std=True)
print(mean.shape, f"error {np.std(mean - np.sin(2.0 * new['a']) - new['b']):.2f}")
