"""The bound by sweep and by block."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import ElboDisplay
from bowtienet._old.plotting.elbo import joined_terms, readable_limits
from tests._old.plotting.fits import quick
from tests._old.sign_pruning import prune_by_signs

Rows = tuple[pd.DataFrame, pd.Series]


def test_the_line_is_the_history_and_the_bars_sum_to_the_bound(model: BowTieRegressor) -> None:
    display = ElboDisplay.from_estimator(model)
    left, right = display.axes_
    history = model.elbo_history_
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(1, len(history) + 1))
    np.testing.assert_array_equal(display.line_.get_ydata(), history)
    np.testing.assert_allclose(sum(bar.get_width() for bar in display.bars_), model.elbo_)
    assert left.get_xlabel() == "sweep"
    assert [text.get_text() for text in right.get_yticklabels()] == [
        "likelihood",
        "activations",
        "gates + Pólya-Gamma",
        "weights",
        "noise variance",
        "global shrinkage",
        "local shrinkage",
    ]
    assert display.terms["gates"] == pytest.approx(float(model.elbo_terms_.gates))
    assert right.get_xlabel() == f"total {model.elbo_:,.1f}".replace("-", "−")


def test_stochastic_fits_have_steps(rows: Rows) -> None:
    svi = quick(n_estimators=1, solver="svi", batch_size=20, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        svi.fit(*rows)
    display = ElboDisplay.from_estimator(svi)
    assert display.axes_[0].get_xlabel() == "step"
    np.testing.assert_array_equal(display.line_.get_ydata(), svi.elbo_history_)


def test_models_that_do_not_know_their_bound(model: BowTieRegressor, rows: Rows) -> None:
    with pytest.raises(ValueError, match="no history of its bound"):
        ElboDisplay.from_estimator(prune_by_signs(model, 0.3))
    assert pyplot.get_fignums() == []
    assert ElboDisplay.from_estimator(model.prune(*rows)).history.size > 0


def test_gates_and_their_variables_are_one_bar() -> None:
    joined = joined_terms(
        {"likelihood": 1.0, "gates": 1e6, "polya_gamma": 3.0 - 1e6, "new_one": 4.0}
    )
    assert joined == {"likelihood": 1.0, "gates + Pólya-Gamma": 3.0, "new one": 4.0}


def test_the_second_half_is_readable_and_all_of_it_is_seen(rng: np.random.Generator) -> None:
    rising = -1e6 * np.exp(-0.3 * np.arange(40.0))
    for history in (rising, rng.normal(size=30), np.r_[-1e9, np.zeros(9), rng.normal(size=30)]):
        low, high = readable_limits(history)
        late = history[(history.size - 1) // 2 :]
        assert low < np.min(late)
        assert np.max(history) < high
        assert np.ptp(late) >= 0.25 * (high - low) or low < np.min(history)


def test_a_second_half_that_stands_still_is_not_blown_up() -> None:
    low, high = readable_limits(np.array([-1000.0, -10.0, 0.0, 0.0, -1e-12, 0.0]))
    assert -4e-6 < low < -2e-6
    assert 0.0 < high < 1e-6


def test_one_sweep_is_no_history() -> None:
    display = ElboDisplay(history=[-5.0], terms={"weights": -5.0}).plot()
    [ax] = display.axes_
    assert ax.get_title() == "Evidence bound by block after 1 sweep"
    assert display.line_ is None
