"""
Rows that do not fit in memory
==============================

A folder of Parquet files is fitted block by block, and rows that come later are taken in as they
come.
"""

# %%
# Five files of 2,000 rows stand for many more: a fit reads what it needs and never holds all.

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bowtienet import BowTieRegressor, FitOptions

rng = np.random.default_rng(0)


def trips(n: int) -> pa.Table:
    """Fares by distance and hour, with a surcharge in the evening."""
    distance, hour = rng.gamma(2.0, 3.0, size=n), rng.uniform(0.0, 24.0, size=n)
    evening = np.exp(-0.5 * ((hour - 19.0) / 2.0) ** 2)
    fare = 3.0 + 1.8 * distance * (1.0 + 0.4 * evening) + rng.normal(0.0, 1.0, size=n)
    return pa.table({"distance": distance, "hour": hour, "fare": fare})


scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name) / "trips"
folder.mkdir()
for month in range(5):
    pq.write_table(trips(2000), folder / f"month-{month + 1:02d}.parquet")
pq.write_table(trips(2000), Path(scratch.name) / "new.parquet")

# %%
# ``solver="svi"`` looks at a minibatch before every update, so memory does not grow with the rows.
# The default takes it above 50,000 rows; here it is asked for. The target is a column's name.

model = BowTieRegressor(
    (10,),
    solver="svi",
    n_estimators=1,
    max_iter=60,
    random_state=0,
    options=FitOptions(weighting="equal", batch_size=1000, tol=1e-3),
)
model.fit(folder, "fare")
print(model.solver_, "with", len(model.elbo_history_), "steps,", model.status_)

# %%
# The bound is that of single minibatches, and so it is noisy.

from bowtienet._old.plotting import ElboDisplay

ElboDisplay.from_estimator(model)

# %%
# Prediction takes sources too, and can write predictions larger than memory to a file. The noise of
# a fare has a standard deviation of 1.

model.predict_to_parquet(Path(scratch.name) / "new.parquet", Path(scratch.name) / "answers.parquet")
answers = pq.read_table(Path(scratch.name) / "answers.parquet")
print(answers.slice(0, 3).to_pandas().round(2))
fares = pq.read_table(Path(scratch.name) / "new.parquet")["fare"].to_numpy()
print("RMSE", np.sqrt(np.mean((answers["mean"].to_numpy() - fares) ** 2)).round(3))

# %%
# Rows that arrive over time. The first call is a fit; later ones move it on. The log density of
# rows that none of the calls has seen, after 300, 600, ... rows:

options = FitOptions(weighting="equal", tol=1e-3)
stream = BowTieRegressor((10,), n_estimators=1, max_iter=200, random_state=0, options=options)
for _ in range(5):
    batch = trips(300).to_pandas()
    stream.partial_fit(batch[["distance", "hour"]], batch["fare"])
    new = pq.read_table(Path(scratch.name) / "new.parquet").to_pandas()
    print(f"{stream.log_score(new[['distance', 'hour']], new['fare']):.3f}")

# %%
scratch.cleanup()
