"""The display of importance shows what the estimator says, the largest on top."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import ImportanceDisplay

Rows = tuple[pd.DataFrame, pd.Series]


@pytest.mark.parametrize("loss", ["log_density", "rmse"])
def test_bars_are_the_losses_with_two_errors(model: BowTieRegressor, rows: Rows, loss: str) -> None:
    found = model.importance(*rows)
    display = ImportanceDisplay.from_estimator(model, *rows, loss=loss)
    losses = found.rmse_rise if loss == "rmse" else found.log_density_drop
    errors = found.rmse_error if loss == "rmse" else found.log_density_error
    order = np.argsort(-losses)
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], losses[order])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["abc"[place] for place in order]
    ends = [segment[:, 0] for segment in display.ax_.collections[0].get_segments()]
    np.testing.assert_allclose(np.ptp(ends, axis=1), 4.0 * errors[order])


def test_groups_weights_and_the_largest_bars(model: BowTieRegressor, rows: Rows) -> None:
    X, y = rows
    settings = {"groups": {"rest": ["b", "c"]}, "n_repeats": 2}
    display = ImportanceDisplay.from_estimator(
        model, X, y, sample_weight=np.arange(61.0), most=1, title="one", **settings
    )
    found = model.importance(X, y, np.arange(61.0), **settings)
    np.testing.assert_array_equal(display.losses, found.log_density_drop)
    assert len(display.ax_.patches) == 1
    assert display.ax_.get_title() == "one"


def test_an_unknown_loss_is_refused(model: BowTieRegressor, rows: Rows) -> None:
    with pytest.raises(ValueError, match="loss"):
        ImportanceDisplay.from_estimator(model, *rows, loss="mse")
