"""The figures of the manual: ``python examples/figures.py`` writes them to docs/figures."""

from __future__ import annotations

import contextlib
import re
import runpy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bowtienet import BowTieRegressor

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"


def gap() -> None:
    """Two bands that widen in a gap: the first example of the gallery."""
    runpy.run_path(str(HERE / "plot_1_gap.py"))
    plt.savefig(FIGURES / "gap.png", dpi=120)


def activation() -> None:
    """Density of an activation given its preactivation z, for three temperatures."""
    z, a = np.linspace(-2.0, 2.0, 300), np.linspace(-0.8, 2.3, 300)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    for ax, temperature in zip(axes, (1.0, 0.1, 0.01), strict=True):
        opened = expit(z / temperature)
        density = opened * norm.pdf(a[:, None], z, 0.1)
        density += (1.0 - opened) * norm.pdf(a[:, None], 0.0, 0.1)
        ax.pcolormesh(z, a, density, cmap="Blues", rasterized=True)
        ax.plot(z, np.maximum(z, 0.0), ":", color="black", linewidth=1.0)
        ax.set(title=f"T = {temperature:g}", xlabel="z")
    axes[0].set_ylabel("a")
    figure.savefig(FIGURES / "activation.png", dpi=120)


def overview() -> None:
    """What `model.plot` draws of held-out rows of the diabetes data."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    model = BowTieRegressor(random_state=0).fit(X_train, y_train)
    model.plot(X_test, y_test).figure_.savefig(FIGURES / "overview.png", dpi=100)


def paper() -> None:
    """The plots that the tutorial on the paper ends with: its own code."""
    text = (HERE.parent / "docs" / "guide" / "paper.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, "paper.md", "exec"), {})
        (FIGURES / "paper_steps.png").write_bytes(Path("paper_steps.png").read_bytes())


if __name__ == "__main__":
    for draw in (gap, activation, overview, paper):
        draw()
        plt.close("all")
