"""The paper's diabetes example: which of ten features matter, beside a cross-validated Lasso.

A network of 20 units is fitted to all rows and pruned by what held-out rows miss. The plots show
the Lasso's coefficients, the weights before and after, the pruned network, and what the models
predict along four features. The relevance of the features is compared with
scikit-learn's permutation importance. Run it with a folder for the plots, or none for docs/figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from bowtienet._old.plotting import (
    NetworkDisplay,
    PredictiveBandDisplay,
    RelevanceDisplay,
    WeightsDisplay,
)
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet import BowTieRegressor, FitOptions

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
NAMES = {
    "s1": "total cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "glucose",
}
"""What the data set's description says of its serum measurements."""
ALONG = ("bmi", "bp", "log triglycerides", "age")


def draw_slices(
    X: pd.DataFrame, y: pd.Series, model: BowTieRegressor, pruned: BowTieRegressor, lasso: object
) -> plt.Figure:
    """Mean and central 90 % of new targets along four features, the others at their medians."""
    fig, axes = plt.subplots(1, 4, figsize=(14, 4.0), layout="constrained", sharey=True)
    typical = X.quantile(0.5, interpolation="lower")
    for ax, name in zip(axes, ALONG, strict=True):
        display = PredictiveBandDisplay.from_estimator(
            model, X, name, y=y, coverages=[0.9], target_name="progression", ax=ax, label="fitted"
        )
        new = pd.DataFrame([typical] * len(display.x)).assign(**{name: display.x})
        orange = {"color": "#D55E00", "linestyle": "--", "zorder": 4}
        ax.plot(display.x, pruned.predict(new), label="pruned", **orange)
        ends = pruned.predict_interval(new, coverage=0.9)
        ax.plot(display.x, ends, linewidth=0.8, **orange)
        ax.plot(display.x, lasso.predict(new), color="black", linestyle=":", label="LassoCV")
        ax.set(title=name, xlabel="")
        ax.get_legend().remove()
        ax.yaxis.label.set_visible(ax is axes[0])
    fig.suptitle("Predicted progression along four features, the others at their medians")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return fig


def main(folder: Path = FIGURES, *, n_starts: int = 4, max_iter: int = 1000) -> None:
    """Print the table and write the plots."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.rename(columns=NAMES)
    lasso = make_pipeline(StandardScaler(), LassoCV(random_state=0)).fit(X, y)
    # The start whose bound is highest counts most.
    model = BowTieRegressor(
        (20,),
        n_estimators=n_starts,
        max_iter=max_iter,
        n_jobs=-1,
        random_state=0,
        features="standard",
        target_transform="none",
        options=FitOptions(
            weighting="elbo", elbo_tempering=1.0, gate_temperature=0.01, init_penalty=10.0, tol=1e-4
        ),
    ).fit(X, y)
    pruned = model.prune(X, y, tolerance=0.01)
    print(pruned.pruning_)
    relevance = pruned.feature_relevance_
    importance = permutation_importance(model, X, y, n_repeats=20, random_state=0).importances_mean
    table = relevance.to_frame()
    table["permutation"] = importance
    table["LassoCV"] = lasso[-1].coef_
    print(table.sort_values("permutation", ascending=False).round(3).to_string())
    correlation = spearmanr(relevance.strength, importance).statistic
    print(f"rank correlation of strength and permutation importance: {correlation:.2f}")
    moved = np.sqrt(np.mean((pruned.predict(X) - model.predict(X)) ** 2))
    deviation = model.predict(X, return_std=True)[1].mean()
    print(
        f"pruning moves predictions by {moved:.1f} rms; their standard deviation is {deviation:.1f}"
    )

    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.barh(list(X.columns)[::-1], lasso[-1].coef_[::-1])
    left.set_title("LassoCV, coefficients")
    RelevanceDisplay.from_estimator(pruned, title="pruned network, strength", ax=right)
    fig.savefig(folder / "diabetes_relevance.png", dpi=120)
    weights = WeightsDisplay.from_estimator(model, pruned)
    weights.figure_.savefig(folder / "diabetes_weights.png", dpi=120)
    network = NetworkDisplay.from_estimator(pruned)
    network.figure_.savefig(folder / "diabetes_network.png", dpi=120)
    draw_slices(X, y, model, pruned, lasso).savefig(folder / "diabetes_slices.png", dpi=110)
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
