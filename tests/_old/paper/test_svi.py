"""The study of stochastic steps: its fits are the library's, made once, and kept."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks._old.paper.experiments import svi
from benchmarks._old.paper.experiments.svi import CAVI, PAPER, Cell, Study, fit_one, mixture
from bowtienet._old.data.rows import build_rows
from bowtienet._old.data.toy import simulate_toy
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.start import initialize
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import default_model
from bowtienet._old.prediction.predictive import predict
from tests._old.paper.made_up import table

TINY = Study(
    seeds=(3, 4),
    rows=40,
    new_rows=30,
    width=3,
    passes=2,
    batches=(10, 20),
    rates=(0.7, 1.0),
    members=2,
)


def test_a_fit_of_coordinate_ascent_is_that_of_the_library():
    rng = np.random.default_rng(3)
    X, y = simulate_toy(40, rng)
    new, _ = simulate_toy(30, rng)
    rows = build_rows((X - X.mean(0)) / X.std(0), ((y - y.mean()) / y.std())[:, None])
    model = default_model(build_architecture(2, (3,), 1), rows.inputs, rows.targets)
    fitted = fit(model, rows, initialize(model, rows, 3000, init="laplace"), max_iter=2)
    expected = predict(fitted.model, fitted.factors, (new - X.mean(0)) / X.std(0))
    found = fit_one(TINY, "laplace", Cell(CAVI), 3, 0, True)
    np.testing.assert_allclose(found["new"][0], y.mean() + y.std() * expected.mean[:, 0])
    passes, bounds, errors = found["curves"]
    assert found["passes"] == 2
    assert passes == [1.0, 2.0]
    assert bounds[1] > bounds[0]
    targets = svi.Problem(TINY, 3).new_targets
    assert errors[-1] == pytest.approx(np.sqrt(np.mean((targets - found["new"][0]) ** 2)))


def test_fits_together_are_an_equal_mixture_from_different_starts():
    fits = [fit_one(TINY, "laplace", Cell(CAVI), 3, member, False) for member in (0, 1)]
    first, second = (each["new"][0] for each in fits)
    np.testing.assert_allclose(mixture(fits, "new").mean(), 0.5 * (first + second))
    assert np.abs(first - second).max() > 1e-3


def test_tables_hold_the_fits_which_are_made_once(tmp_path):
    said: list[str] = []
    svi.write_fits(tmp_path, said.append, study=TINY)
    assert said
    assert plt.imread(tmp_path / "figures" / "svi.png").std() > 0.01
    said.clear()
    svi.write_fits(tmp_path, said.append, study=TINY)
    assert not said
    frame = svi.Results(TINY, tmp_path, said.append).frame()
    single = frame[(frame["start"] == "laplace") & (frame["fits"] == 1)]
    values = single[single["cell"].map(Cell(PAPER, 10, 0.7).__eq__)]["rmse"]
    text = (tmp_path / "tables" / "svi.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(f"| {PAPER} | 10 | 0.7 |")]
    assert rows[0].split(" | ")[3] == f"{values.mean():.2f} ± {values.std():.2f}"
    assert sum(line.startswith("| `relu_network` | ") for line in text.splitlines()) == 6
    assert table(text)[CAVI][-1] == "1"
