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
from bowtienet._old.evaluation import evaluate
from bowtienet._old.plotting import ActivationDisplay, ElboDisplay, ShrinkageDisplay
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bowtienet import BowTieRegressor, FitOptions

FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def main(folder: Path = FIGURES, *, n_starts: int = 8, max_iter: int = 80) -> None:
    """Print the scores and write the plots."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, y = X.rename(columns={"bmi": "body mass index"}), y.rename("progression")
    X, new_X, y, new_y = train_test_split(X, y, test_size=0.4, random_state=0)
    model = BowTieRegressor(n_estimators=n_starts, max_iter=max_iter, n_jobs=-1, random_state=0)
    model.fit(X, y)
    print(evaluate(new_y, model.predict_dist(new_X)))
    overview = model.plot(new_X, new_y, feature="body mass index")
    overview.figure_.savefig(folder / "displays.png", dpi=100)
    # A default fit makes one sweep from a network: the bound of a longer one has more to show.
    longer = BowTieRegressor(
        (20,),
        n_estimators=1,
        max_iter=10 * max_iter,
        random_state=0,
        options=FitOptions(weighting="equal", tol=1e-4),
    ).fit(X, y)
    for name, display in (
        ("elbo", ElboDisplay.from_estimator(longer)),
        ("shrinkage", ShrinkageDisplay.from_estimator(model)),
        ("activation", ActivationDisplay.from_parameters()),
    ):
        display.figure_.savefig(folder / f"{name}.png", dpi=110)
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
