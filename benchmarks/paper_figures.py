"""The paper's other experiments, its figures drawn again next to what it prints.

    python -m benchmarks paper_figures

All networks are `BowTieNetwork.as_in_paper`.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import split_of
from benchmarks.paper import METHODS, SCORES, gaussian_scores, published
from bowtienet import BowTieNetwork
from bowtienet.posterior.factors import network
from bowtienet.posterior.selection import select

RUNS = 5  # of each fit to simulated tables
DEPTHS, BATCHES, RATES = (1, 2, 4), (10, 50, 100), (0.55, 0.65, 0.75, 0.85, 0.95)
OURS = "method | ours | printed"
LABELS = ("RMSE", "NLL", "coverage of 95 %", "seconds")
paper = partial(BowTieNetwork.as_in_paper, hidden_layer_sizes=(20,))
gaussian = partial(paper, prior="gaussian")


def simulated(seed: int) -> list[np.ndarray]:
    """The paper's simulated example, 270 rows to train and 1,000 to test: X, X_test, y, y_test."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(1270, 2))
    y = 0.1 * X[:, 0] ** 2 + 10.0 * np.sin(X[:, 0]) + rng.normal(0.0, np.sqrt(0.5), size=1270)
    return [X[:270], X[270:], y[:270], y[270:]]


def run(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> tuple[float, ...]:
    """Scores of a fit, and its processor seconds."""
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    if isinstance(model, BowTieNetwork):
        mean, std = model.predict(X_test, return_std=True)
    else:
        mean, std = model.predict(X_test), np.full(len(X_test), np.std(y - model.predict(X)))
    scores = gaussian_scores(y_test, mean, std)
    return (*(scores[name] for name in SCORES), seconds)


def cell(runs: Any) -> str:
    """Means of RMSE / loss / coverage."""
    return " / ".join(f"{value:.2f}" for value in np.mean(np.atleast_2d(runs), axis=0)[:3])


def section(title: str, about: str, names: str, lines: list[str], path: Path) -> str:
    """Markdown of a section; draws its figure."""
    plt.savefig(path, dpi=80)
    head = f"| {names} |\n|" + "---|" * (names.count("|") + 1)
    picture = f"![{title}](../figures/{path.name})"
    return "\n".join((f"## {title}\n", about, "", head, *lines, "", picture, ""))


def draw(ax: Any, x: np.ndarray, model: Any, small: Any, rows: np.ndarray) -> None:
    """Predictive mean with its 95 % interval, and the mean of the pruned network."""
    mean, std = model.predict(rows, return_std=True)
    ax.plot(x, mean, "C0", label="all weights")
    ax.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color="C0", alpha=0.2, lw=0)
    ax.plot(x, small.predict(rows), "C1--", label="pruned")


def simulated_example(folder: Path) -> str:
    """Depths 1, 2 and 4 of 20 units each."""
    tables = [simulated(seed) for seed in range(RUNS)]
    _, axes = plt.subplots(3, 3, figsize=(11, 9.5), layout="constrained")
    lines = []
    for method, make in (("GVBNN", gaussian), ("VBNN", paper)):
        models = [
            [make(hidden_layer_sizes=(20,) * d, random_state=s) for s in range(RUNS)]
            for d in DEPTHS
        ]
        runs = [[run(m, *tables[s]) for s, m in enumerate(each)] for each in models]
        lines.append(f"| {method} | {' | '.join(map(cell, runs))} |")
        for ax, values, label in zip(axes[0, :2], np.moveaxis(runs, -1, 0), LABELS, strict=False):
            ax.errorbar(DEPTHS, values.mean(1), values.std(1, ddof=1), label=method, capsize=3)
            ax.set(xlabel="hidden layers", title=label, xticks=DEPTHS, yscale="log")
    sizes, levels, (X, X_test, y, y_test) = [], np.linspace(0.02, 0.98, 49), tables[0]
    grid = np.column_stack([np.linspace(-2.0, 2.0, 200), np.zeros(200)])
    for depth, model, column in zip(DEPTHS, (each[0] for each in models), axes.T, strict=True):
        mean, std = model.predict(X_test, return_std=True)
        inside = np.abs(y_test - mean) / std < norm.ppf(0.5 + levels[:, None] / 2)
        axes[0, 2].plot(levels, inside.mean(axis=1), label=f"L = {depth}")
        small, chosen = model.prune(0.01), model.selection(0.01)
        column[1].plot(X[:, 0], y, ".", color="0.7", ms=3)
        draw(column[1], grid[:, 0], model, small, grid)
        column[1].set(title=f"L = {depth}", xlabel="first column")
        small.plot(ax=column[2])
        units = "-".join(map(str, chosen.units))
        sizes.append(f"{units} units and {chosen.weights} of {chosen.n_weights:,}")
    axes[0, 2].plot([0, 1], [0, 1], color="0.6", ls="--")
    axes[0, 2].set(title="coverage", xlabel="level")
    for ax in axes[:2].flat:
        ax.legend(frameon=False)
    about = (
        f"RMSE / NLL / coverage, {RUNS} tables, 270 rows to train and 1,000 to test; the noise\n"
        "alone has 0.71 / 1.07 / 0.95. At rate 0.01 the paper keeps 11 units and 33 of 60 weights\n"
        f"of one hidden layer; ours of the first table, depths 1, 2, 4:\n{'; '.join(sizes)}."
    )
    return section("Simulated", about, "method | L = 1 | 2 | 4", lines, folder / "paper_toy.png")


def diabetes(folder: Path) -> str:
    """Ten splits, the weights of the first layer, and four slices."""
    data = load_diabetes()
    X, y, names = StandardScaler().fit_transform(data.data), data.target, data.feature_names
    printed = ((54.5, 5.40, 0.96), (55.65, 5.5, 0.96), (54.2, 5.4, 0.96))
    lines, methods = [], ("VBNN", "GVBNN", "LassoCV")
    for method, make, theirs in zip(methods, (paper, gaussian, LassoCV), printed, strict=True):
        parts = [train_test_split(X, y, test_size=0.1, random_state=split) for split in range(10)]
        runs = [run(make(random_state=0), *part) for part in parts]
        lines.append(f"| {method} | {cell(runs)} | {cell(theirs)} |")
    model, lasso = paper(random_state=0).fit(X, y), LassoCV(random_state=0).fit(X, y)
    fitted, small = model._fitted, model.prune(0.01)
    mask = select(fitted.model, network(fitted.posterior, 0), 0.01).connections[0]
    weights = np.abs(fitted.posterior.layers[0].weights.mean[0][:, 1:])
    _, axes = plt.subplots(2, 4, figsize=(13, 6), layout="constrained")
    axes[0, 3].axis("off")
    axes[0, 0].bar(names, np.abs(lasso.coef_))
    axes[0, 0].set(title="|coefficients| of LassoCV")
    for ax, each in zip(axes[0, 1:3], (weights, weights * mask), strict=True):
        ax.imshow(each, aspect="auto", cmap="Greys")
        ax.set(xticks=range(10), xticklabels=names, ylabel="unit", title="|weights|, then pruned")
    for ax, name in zip(axes[1], ("bmi", "bp", "s5", "age"), strict=True):
        rows = np.zeros((100, 10))
        rows[:, names.index(name)] = x = np.linspace(-2.0, 2.5, 100)
        draw(ax, x, model, small, rows)
        ax.plot(x, lasso.predict(rows), "k:", label="LassoCV")
        ax.set(title=name)
    axes[1, 0].legend(frameon=False)
    about = (
        "RMSE / NLL / coverage, one hidden layer of 20 units, splits 0 to 9.\nAt rate 0.01, all "
        f"rows: {mask.sum()} of 200 weights and {mask.any(axis=0).sum()} of 10 columns stay."
    )
    return section("Diabetes", about, OURS, lines, folder / "paper_diabetes.png")


def slump(folder: Path) -> str:
    """One network and four, ten splits."""
    _, axes = plt.subplots(1, 3, figsize=(14, 3.6), layout="constrained")
    known, lines = published(), []
    for place, name in enumerate(("VBNN", "4VBNN", "GVBNN", "4GVBNN", "SVBNN", "4SVBNN")):
        make: Any = partial(METHODS[name.strip("4")], n_members=4 if name[0] == "4" else 1)
        runs = [run(make(random_state=split), *split_of("slump", split)) for split in range(10)]
        theirs = [known.get((name, "slump", score), (np.nan,))[0] for score in SCORES]
        lines.append(f"| {name} | {cell(runs)} | {cell(theirs).replace('nan', '-')} |")
        for ax, ours, mark, label in zip(axes, np.transpose(runs), theirs, LABELS, strict=False):
            ax.errorbar(name, ours.mean(), ours.std(ddof=1), fmt=f"C{place // 2}o", capsize=3)
            ax.plot(name, mark, "k_", ms=16)
            ax.set_title(label)
    about = "RMSE / NLL / coverage, splits 0 to 9; black marks are what the paper prints."
    return section("Slump: one network, four", about, OURS, lines, folder / "paper_slump.png")


def stochastic(folder: Path) -> str:
    """Batch sizes and forgetting rates, about 200 steps."""
    tables = [simulated(seed) for seed in range(RUNS)]

    def mean(**settings: Any) -> np.ndarray:
        fits = (run(paper(random_state=s, **settings), *tables[s]) for s in range(RUNS))
        return np.mean(list(fits), axis=0)

    _, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    rows = {"CAVI, 200 sweeps": mean()}
    for size in BATCHES:
        svi = partial(mean, solver="svi", batch_size=size, max_iter=round(200 * size / 270))
        by_rate = np.array([svi(forgetting_rate=k) for k in RATES])
        rows[f"SVI, batches of {size}"] = by_rate.mean(axis=0)
        if size == 10:
            rows["five SVI networks, batches of 10"] = svi(n_members=5, forgetting_rate=0.75)
        for ax, values in zip(axes, by_rate.T, strict=True):
            ax.plot(RATES, values, "o-", label=f"batches of {size}")
    for ax, value, label in zip(axes, rows["CAVI, 200 sweeps"], LABELS, strict=True):
        ax.axhline(value, color="k", ls="--", label="CAVI")
        ax.set(title=label, xlabel="forgetting rate")
    axes[0].legend(frameon=False)
    lines = [f"| {name} | {cell(row)} | {row[-1]:.1f} |" for name, row in rows.items()]
    about = (
        "RMSE / NLL / coverage, simulated example, one layer, about 200 steps, means over tables\n"
        "and forgetting rates. The paper has five networks with batches of 10 as good as CAVI in\n"
        "a fifth of the time; here a sweep of 270 rows is cheaper than a step."
    )
    return section("SVI", about, "method | scores | seconds", lines, folder / "paper_svi.png")


HEAD = """# The paper's other experiments

Written by `python -m benchmarks paper_figures`: `BowTieNetwork.as_in_paper` beside what the paper
prints, its figures drawn again. Where they print no number there is none to compare with.
"""
SECTIONS = (diabetes, slump, stochastic, simulated_example)


def main() -> None:
    """Run the experiments, draw, and write the page."""
    docs = Path(__file__).parents[1] / "docs"
    plt.switch_backend("Agg")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        text = "\n".join((HEAD, *(experiment(docs / "figures") for experiment in SECTIONS)))
    (docs / "measurements" / "paper_figures.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
