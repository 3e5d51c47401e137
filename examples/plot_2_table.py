"""
A table with text, dates and missing values
===========================================

Frames are fitted as they are. The summary says what the fit chose, and the plots how good it is.
"""

# %%
# A year of hourly bicycle counts, made up: a season, a working day, rain, and a sensor that fails.

import numpy as np
import pandas as pd

from bowtienet import BowTieRegressor

rng = np.random.default_rng(0)
n = 900
time = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366 * 24, n), unit="h")
weather = rng.choice(["dry", "rain", "snow"], p=[0.7, 0.25, 0.05], size=n)
season = np.sin(2.0 * np.pi * (time.dayofyear.to_numpy() - 100) / 366)
temperature = np.array(10.0 + 9.0 * season + rng.normal(0.0, 3.0, n))
hour, is_workday = time.hour.to_numpy(), time.dayofweek.to_numpy() < 5
peak = np.exp(-((hour - 8) ** 2) / 6.0) + np.exp(-((hour - 17) ** 2) / 8.0)
rides = 200.0 + 12.0 * temperature + 300.0 * peak * is_workday
rides *= np.select([weather == "rain", weather == "snow"], [0.6, 0.3], 1.0)
rides = rides * (1.0 + 0.15 * rng.normal(size=n))
temperature[rng.random(n) < 0.1] = np.nan
table = pd.DataFrame({"time": time, "weather": weather, "temperature": temperature, "rides": rides})
table.head()

# %%
# The target is a column of the frame; all others are features. Dates become days, the season, the
# weekday and the hour; missing numbers their median and an indicator.

train, test = table[:700], table[700:]
model = BowTieRegressor(effort="fast", random_state=0).fit(train, "rides")
print(model.summary())

# %%
# Four plots of held-out rows: predicted and actual values, calibration, and predictions along the
# columns that move them most.

plots = model.plot(test, "rides")
