"""Display of the importance of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bowtienet._old._validation import chosen, named
from bowtienet._old.plotting._bars import draw_bars
from bowtienet._old.plotting.fitted import network_of, open_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bowtienet._old.estimators.importance import Importance

_LOSSES = {
    "log_density": ("log_density_drop", "log_density_error", "drop in {0} when permuted"),
    "rmse": ("rmse_rise", "rmse_error", "rise in {1} when permuted"),
}
"""Fields of an `Importance`, and words with its `scores`."""


class ImportanceDisplay:
    """What rows lose when a feature is permuted, as a bar with its error, the largest on top.

    Parameters
    ----------
    names : sequence of str
        One for each feature or group of features.
    losses, errors : array (K,)
        Means and standard errors, as in what ``importance`` returns; a line is two errors long to
        each side.
    label : str
        What the losses are.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    def __init__(self, *, names: Sequence[str], losses: Any, errors: Any, label: str) -> None:
        self.losses, self.errors, self.label = np.asarray(losses), np.asarray(errors), label
        if self.errors.shape != self.losses.shape:
            raise ValueError(f"errors must be {self.losses.size}, one for each of the losses.")
        self.names = named(names, self.losses.size, "names", "x")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        loss: str = "log_density",
        target: int = 0,
        ax: Axes | None = None,
        title: str | None = None,
        most: int | None = None,
        **settings: Any,
    ) -> Self:
        """Draw the importance of the features of a fitted estimator for rows.

        Parameters
        ----------
        model : BowTieRegressor, BowTieClassifier, or pipeline that ends with one
            Fitted.
        X, y, sample_weight :
            Rows in memory, best such as the fit has not seen.
        loss : {"log_density", "rmse"}
            What is lost.
        target : int
            Which of several targets.
        ax, title, most :
            Those of `plot`.
        **settings
            Those of ``importance``, such as `groups`.
        """
        network, source = network_of(model), open_rows(model, X, y, sample_weight)
        found = network.importance(source, **settings)
        display = cls.from_importance(found, loss=loss, target=target)
        return display.plot(ax=ax, title=title, most=most)

    @classmethod
    def from_importance(
        cls, found: Importance, *, loss: str = "log_density", target: int = 0
    ) -> Self:
        """A display of what ``importance`` returned; it is not yet drawn."""
        if loss not in _LOSSES:
            raise ValueError(f"unknown loss {loss!r}: choose 'log_density' or 'rmse'.")
        values, errors, words = _LOSSES[loss]
        place = chosen(target, len(found.target_names), "target")
        own, error = (
            getattr(found, name).reshape(len(found.name), -1)[:, place] for name in (values, errors)
        )
        return cls(
            names=found.name.tolist(), losses=own, errors=error, label=words.format(*found.scores)
        )

    def plot(
        self, *, title: str | None = None, most: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw, or draw again elsewhere.

        Parameters
        ----------
        title : str, optional
            Above the plot; "" for none.
        most : int, optional
            How many bars to draw, the longest; all by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        order = np.argsort(-self.losses, kind="stable")[:most]
        self.ax_ = draw_bars(
            [self.names[i] for i in order],
            self.losses[order],
            errors=2.0 * self.errors[order],
            title="Permutation importance" if title is None else title,
            ax=ax,
        )
        self.ax_.set_xlabel(f"{self.label}\n(lines: ± 2 standard errors)")
        self.figure_ = self.ax_.figure
        return self
