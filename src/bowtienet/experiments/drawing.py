"""What the experiments share: figures and texts in a folder, and fits that are kept there.

    folder/figures/*.png    folder/tables/*.md    folder/models/*.btn

Every file is written beside its name and then renamed, so that none is ever half there. A fit is
kept under a name with a digest of its settings and rows: a second run loads it, and a run with
other settings or rows does not take it for its own.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.inference.convergence import Status
from bowtienet.persistence import replacing

Report = Callable[[str], None]
"""Is told how far an experiment is, a sentence at a time."""

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, YELLOW, INK, GREY = "#56B4E9", "#E69F00", "#333333", "#B5B5B5"
"""Of Okabe and Ito: told apart with every kind of colour vision."""
STYLES: dict[str, dict[str, str]] = {
    "single": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "ensemble": {"color": SKY, "linestyle": "-", "marker": "D"},
    "gaussian": {"color": ORANGE, "linestyle": "--", "marker": "s"},
    "mean_field": {"color": GREEN, "linestyle": "-.", "marker": "^"},
    "nuts": {"color": INK, "linestyle": ":", "marker": "P"},
    "nuts_deep": {"color": INK, "linestyle": "-", "marker": "P"},
    "backprop": {"color": PINK, "linestyle": "--", "marker": "v"},
    "horseshoe": {"color": YELLOW, "linestyle": "-.", "marker": "X"},
    "lasso": {"color": INK, "linestyle": ":", "marker": "x"},
    "pruned": {"color": ORANGE, "linestyle": "--", "marker": "s"},
}
"""Of methods by their key, the same in every figure."""
_OTHER = {"color": GREY, "linestyle": "-", "marker": "."}
_NOT_SETTINGS = ("checkpoint", "checkpoint_every", "n_jobs", "verbose")
"""What a fit does not depend on."""
FIT: dict[str, Any] = {
    "n_estimators": 4,
    "combine": "elbo",
    "elbo_tempering": 1.0,
    "max_iter": 1000,
    "tol": 1e-4,
    "random_state": 0,
}
"""Of networks that are drawn: the start with the highest bound counts, all but alone."""


def style(method: str, **changes: Any) -> dict[str, Any]:
    """Colour, line and marker of a method, for matplotlib's `plot`."""
    return {**STYLES.get(method, _OTHER), "linewidth": 1.4, "markersize": 5.0, **changes}


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure that no window shows, with a layout that makes room for every text."""
    try:
        module = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'bowtienet[plot]'.") from error
    return module.Figure(figsize=(width, height), layout="constrained")


def tidy(ax: Any, title: str | None = None) -> None:
    """Axes without the frame's upper and right side."""
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=10.0)


def shared_legend(figure: Any, axes: Sequence[Any], columns: int = 8) -> None:
    """One legend below the figure with every label of its axes once."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=min(columns, max(len(found), 1)),
        frameon=False,
        fontsize=9.0,
    )


def band(
    ax: Any, x: np.ndarray, mean: np.ndarray, intervals: np.ndarray, look: dict[str, Any], name: str
) -> None:
    """A mean (g,) along x with the intervals (g, 2) around it."""
    look = {**look, "marker": ""}
    ax.plot(x, mean, **look, label=name)
    ax.fill_between(x, intervals[:, 0], intervals[:, 1], color=look["color"], alpha=0.12, lw=0.0)
    # Where bands lie on each other, their colours mix, and only the edges tell them apart.
    ax.plot(x, intervals, **{**look, "linewidth": 0.7})


def save_figure(figure: Any, folder: Path, name: str, dpi: int = 120) -> Path:
    """Write folder/figures/name.png and give its path."""
    path = _inside(folder, "figures") / f"{name}.png"
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=dpi)
    return path


def save_table(text: str, folder: Path, name: str) -> Path:
    """Write folder/tables/name.md and give its path."""
    path = _inside(folder, "tables") / f"{name}.md"
    with replacing(path) as temporary:
        temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown(["method", "RMSE"], [["single", "0.8"]]))
    | method | RMSE |
    |---|---|
    | single | 0.8 |
    """
    lines = [header, ["---"] * len(header), *rows]
    bars = [" | ".join(line) for line in lines]
    bars[1] = "|".join(lines[1])
    return "\n".join([f"| {bars[0]} |", f"|{bars[1]}|", *(f"| {bar} |" for bar in bars[2:])])


def mean_and_spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation over the splits; the mean alone of one.

    Examples
    --------
    >>> mean_and_spread([1.0, 2.0, 3.0], 2), mean_and_spread([1.0], 1)
    ('2.00 ± 1.00', '1.0')
    """
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def load_or_fit(
    model: BowTieRegressor, X: Any, y: Any, folder: Path, name: str, report: Report
) -> BowTieRegressor:
    """`model` fitted to X and y: from folder/models, or now and then kept there.

    Parameters
    ----------
    model : BowTieRegressor
        Its settings, with a number as `random_state`; it is cloned.
    X, y : array (n, columns) or data frame, and array (n,)
        The rows.
    folder : Path
        Of the run.
    name : str
        What the fit is for.
    report : callable
        Is told of a fit before it begins.
    """
    path = _inside(folder, "models") / f"{name}-{_digest(model, X, y)}.btn"
    if path.exists():
        try:
            kept = BowTieRegressor.load(path)
        except ValueError as error:
            report(f"{path.name} cannot be read, so it is fitted again: {error}")
        else:
            if not _was_interrupted(kept):
                return kept
            report(f"{path.name} is of a fit that was interrupted, so it is fitted again")
    report(f"fitting {name}")
    fitted = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(X, y)
    if _was_interrupted(fitted):
        raise KeyboardInterrupt
    if not fitted.converged_:
        report(f"{name} stopped after {fitted.n_iter_} sweeps, before it had converged")
    fitted.save(path)
    return fitted


def _was_interrupted(model: BowTieRegressor) -> bool:
    """Whether a fit ended early on Ctrl-C, which it takes as a wish to end with what it has."""
    members = model.ensemble_.members
    return len(members) < model.n_estimators or any(
        member.status is Status.INTERRUPTED for member in members
    )


def _digest(model: BowTieRegressor, X: Any, y: Any) -> str:
    settings = {k: v for k, v in model.get_params().items() if k not in _NOT_SETTINGS}
    found = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    found.update(json.dumps([str(name) for name in getattr(X, "columns", [])]).encode())
    for values in (X, y):
        array = np.ascontiguousarray(values, dtype=float)
        found.update(repr(array.shape).encode())
        found.update(array.tobytes())
    return found.hexdigest()[:10]


def _inside(folder: Path, name: str) -> Path:
    path = Path(folder) / name
    path.mkdir(parents=True, exist_ok=True)
    return path
