"""
Which features matter
=====================

Two questions with two answers: which columns say something that no other column says, and how much
do predictions lose without them?
"""

# %%
# Six columns. The target depends on the first two; the third is nearly a copy of the first.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance

from bowtienet import BowTieRegressor, select_features
from bowtienet.evaluation import log_score

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(300, 6)), columns=["a", "b", "copy of a", "d", "e", "f"])
X["copy of a"] = X["a"] + 0.3 * X["copy of a"]
y = np.sin(2.0 * X["a"]) + X["b"] ** 2 + rng.normal(0.0, 0.3, size=300)

# %%
# ``select_features`` tests each column given all others. Among the selected columns a share of at
# most 0.1 is false on average.

print(select_features(X, y, false_discovery_rate=0.1))

# %%
# scikit-learn's ``permutation_importance`` with our scorer: how much log density is lost when a
# column is permuted in held-out rows.

model = BowTieRegressor(effort="fast", random_state=0).fit(X[:200], y[:200])
loss = permutation_importance(
    model, X[200:], y[200:], scoring=log_score, n_repeats=5, random_state=0
)
order = np.argsort(loss.importances_mean)
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(X.columns[order], loss.importances_mean[order], xerr=loss.importances_std[order])
ax.set_xlabel("loss of log density when permuted")

# %%
# The copy may have some importance, because the model uses it a little; it is not selected, because
# it says nothing beyond what the first column says.
