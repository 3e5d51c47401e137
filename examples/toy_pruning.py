"""The paper's simulated example: two features, of which one matters, in 1, 2 and 4 layers.

Networks of 20 units a layer are fitted, pruned by what held-out rows miss, and drawn: what they
predict along each feature before and after, and what is left of them. Run it with a folder for the
plots, or none for docs/figures.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from bowtienet._old.data.toy import simulate_toy, toy_function
from bowtienet._old.plotting import NetworkDisplay, WeightsDisplay

from bowtienet import BowTieRegressor, FitOptions

DEPTHS = (1, 2, 4)
WIDTH = 20
FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def draw_slice(ax: plt.Axes, models: dict[str, BowTieRegressor], column: int) -> None:
    """Mean and central 90 % of new targets along one feature, the other at 0."""
    X, y = simulate_toy(300, np.random.default_rng(0))
    along = np.linspace(-2.0, 2.0, 200)
    new = np.zeros((200, 2))
    new[:, column] = along
    # Partial residuals: the targets themselves follow the other feature, too.
    at = np.zeros_like(X)
    at[:, column] = X[:, column]
    fitted = models["fitted"]
    dots = fitted.predict(at) + y - fitted.predict(X)
    ax.plot(X[:, column], dots, ".", color="#999999", markersize=3, label="partial residuals")
    expected = toy_function(along) if column == 0 else np.zeros(200)
    ax.plot(along, expected, color="black", linewidth=1, linestyle=":", label="truth")
    styles = (("#0072B2", "-"), ("#D55E00", "--"))
    for (name, model), (color, style) in zip(models.items(), styles, strict=True):
        low, high = model.predict_interval(new, coverage=0.9).T
        ax.plot(along, model.predict(new), style, color=color, linewidth=1.5, label=name)
        if name == "fitted":
            ax.fill_between(along, low, high, color=color, alpha=0.15, linewidth=0)
        else:
            ax.plot(along, np.column_stack([low, high]), style, color=color, linewidth=0.8)
    ax.set_xlabel(f"x{column}" + (" (x1 = 0)" if column == 0 else " (x0 = 0)"))


def main(folder: Path = FIGURES, *, n_starts: int = 4, max_iter: int = 1000) -> None:
    """Print the table and write the plots."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = simulate_toy(300, np.random.default_rng(0))
    test_X, test_y = simulate_toy(2000, np.random.default_rng(1))
    size = (4.2 * len(DEPTHS), 10.5)
    fig, axes = plt.subplots(3, len(DEPTHS), figsize=size, layout="constrained")
    print(f"{'layers':<8}{'':<8}{'RMSE':>6}{'NLL':>7}{'nodes':>7}{'weights':>9}   relevance x0, x1")
    for column, depth in enumerate(DEPTHS):
        begin = time.perf_counter()
        # The start whose bound is highest counts, all but alone.
        model = BowTieRegressor(
            (WIDTH,) * depth,
            n_estimators=n_starts,
            max_iter=max_iter,
            n_jobs=-1,
            random_state=0,
            options=FitOptions(weighting="elbo", elbo_tempering=1.0, tol=1e-4),
        ).fit(X, y)
        seconds = time.perf_counter() - begin
        pruned = model.prune(X, y, tolerance=0.01)
        for name, found in (("fitted", model), ("pruned", pruned)):
            error = np.sqrt(np.mean((found.predict(test_X) - test_y) ** 2))
            relevance, sparsity = found.feature_relevance_, found.sparsity_
            best = int(np.argmax(found.member_weights_))
            print(
                f"{depth:<8}{name:<8}{error:6.2f}{-found.log_score(test_X, test_y):7.2f}"
                f"{sparsity.nodes_after[best]:7d}{sparsity.weights_after[best]:9d}   "
                + ", ".join(f"{strength:.3f}" for strength in relevance.strength)
                + (f"   fit {seconds:.0f} s" if found is model else "")
            )
        models = {"fitted": model, "pruned": pruned}
        draw_slice(axes[0, column], models, 0)
        draw_slice(axes[1, column], models, 1)
        axes[0, column].set_title(f"{depth} hidden layer{'s' if depth > 1 else ''} of {WIDTH}")
        NetworkDisplay.from_estimator(pruned, ax=axes[2, column])
        if depth == DEPTHS[0]:
            weights = WeightsDisplay.from_estimator(model, pruned)
            weights.figure_.savefig(folder / "toy_weights.png", dpi=130)
    axes[0, 0].legend(frameon=False)
    fig.savefig(folder / "toy_pruning.png", dpi=110)
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
