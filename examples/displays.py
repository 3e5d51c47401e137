"""Every plot of how a model predicts and of how it was fitted, for docs/guide/evaluation.md.

Four tenths of the diabetes data are held out. The paper's first figure needs no data at all. Run it
with a folder for the plots, or none for docs/figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bowtienet import BowTieRegressor
from bowtienet.evaluation import evaluate
from bowtienet.plotting import (
    ActivationDisplay,
    CalibrationCurveDisplay,
    ElboDisplay,
    PitHistogramDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
    ShrinkageDisplay,
)

FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def main(folder: Path = FIGURES, *, n_starts: int = 8, max_iter: int = 80) -> None:
    """Print the scores and write the plots."""
    bunch = load_diabetes(scaled=False)
    X, new_X, y, new_y = train_test_split(bunch.data, bunch.target, test_size=0.4, random_state=0)
    model = BowTieRegressor(n_estimators=n_starts, max_iter=max_iter, n_jobs=-1, random_state=0)
    model.fit(X, y)
    print(evaluate(new_y, model.predict_dist(new_X)))
    fig, axes = plt.subplots(2, 2, figsize=(10.0, 8.0), layout="constrained")
    bmi = bunch.feature_names.index("bmi")
    PredictiveBandDisplay.from_estimator(model, X, bmi, y=y, others="average", ax=axes[0, 0])
    axes[0, 0].set(xlabel="body mass index (others as in the data)", ylabel="progression")
    PredictedActualDisplay.from_estimator(
        model, new_X, new_y, target_name="progression", ax=axes[0, 1]
    )
    CalibrationCurveDisplay.from_estimator(model, new_X, new_y, ax=axes[1, 0])
    PitHistogramDisplay.from_estimator(model, new_X, new_y, ax=axes[1, 1])
    fig.savefig(folder / "displays.png", dpi=110)
    for name, display in (
        ("elbo", ElboDisplay.from_estimator(model)),
        ("shrinkage", ShrinkageDisplay.from_estimator(model)),
        ("activation", ActivationDisplay.from_parameters()),
    ):
        display.figure_.savefig(folder / f"{name}.png", dpi=110)
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
