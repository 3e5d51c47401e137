"""
Compare with other models
=========================

The quickest way to see whether you need this library: other models on the same splits.
"""

# %%
# ``compare`` fits a linear model, a constant and boosted trees, and LightGBM and CatBoost where
# they are installed. The lower the CRPS, the better; differences are those of the same rows.

from sklearn.datasets import load_diabetes

from bowtienet import BowTieRegressor, compare
from bowtienet.evaluation import default_models

X, y = load_diabetes(return_X_y=True)
models = {
    **default_models("numbers"),
    "bow tie": BowTieRegressor(effort="fast", random_state=0),
}
result = compare(X, y, models, cv=3)
print(result)

# %%
# On this table a linear model is about as good, and a hundred times as fast: use it. A comparison
# that says so is worth as much as one that we win.
