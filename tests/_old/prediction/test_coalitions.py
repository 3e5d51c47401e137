"""Mixed rows are predicted as they would be one by one."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.prediction import coalitions
from bowtienet._old.prediction.coalitions import mix_rows, predict_mixed
from bowtienet._old.prediction.predictive import predict
from tests._old.builders import fixed_model, random_factors

GROUPS = np.array([2, 0, 0, 3])
"""Of four inputs; no input is in group 1."""
SOME = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool)


def test_columns_of_a_coalition_come_from_the_other_row() -> None:
    found = mix_rows(np.zeros((1, 4)), np.ones((1, 1, 4)), GROUPS, SOME)
    assert found.shape == (4, 1, 1, 4)
    expected = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0]]
    np.testing.assert_array_equal(found[:, 0, 0], expected)


@pytest.mark.parametrize("block", [1, 2**16])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 3)])
@pytest.mark.parametrize("chosen", [SOME, np.eye(4, dtype=bool)], ids=["some", "one by one"])
def test_moments_are_those_of_each_row(
    hidden: tuple[int, ...],
    chosen: np.ndarray,
    block: int,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coalitions, "_BLOCK", block)
    monkeypatch.setattr(coalitions, "_ROW_BLOCK", block)
    model = fixed_model(hidden, n_inputs=4)
    factors = random_factors(rng, model)
    base, other = rng.normal(size=(5, 4)), rng.normal(size=(3, 5, 4))
    rows = mix_rows(base, other, GROUPS, chosen).reshape(-1, 4)
    expected = predict(model, factors, rows, n_threads=1)
    found = predict_mixed(model, factors, base, other, GROUPS, chosen)
    for name, values in vars(found).items():
        np.testing.assert_allclose(values, getattr(expected, name), rtol=1e-9, atol=1e-12)


def test_many_groups_of_few_inputs_are_predicted_row_by_row(rng: np.random.Generator) -> None:
    """Six groups have 15 pairs, and two components three products."""
    model = fixed_model((6,), n_inputs=2)
    factors = random_factors(rng, model)
    loadings, chosen = rng.normal(size=(6, 2)), rng.uniform(size=(9, 6)) < 0.7
    base, other = rng.normal(size=(4, 6)), rng.normal(size=(2, 4, 6))
    rows = mix_rows(base, other, np.arange(6), chosen).reshape(-1, 6) @ loadings
    expected = predict(model, factors, rows, n_threads=1)
    found = predict_mixed(model, factors, base, other, np.arange(6), chosen, loadings)
    for name, values in vars(found).items():
        np.testing.assert_array_equal(values, getattr(expected, name))


@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 0, 1], [0, 0, 0, 0, 0, 2]], ids=["few", "many"])
def test_components_of_columns(groups: list[int], rng: np.random.Generator) -> None:
    """Of groups with fewer columns than there are components, and with more."""
    model = fixed_model((6,), n_inputs=3)
    factors = random_factors(rng, model)
    loadings, own = rng.normal(size=(6, 3)), np.array(groups)
    base, other = rng.normal(size=(5, 6)), rng.normal(size=(2, 5, 6))
    rows = mix_rows(base, other, own, SOME).reshape(-1, 6) @ loadings
    expected = predict(model, factors, rows, n_threads=1)
    found = predict_mixed(model, factors, base, other, own, SOME, loadings)
    for name, values in vars(found).items():
        np.testing.assert_allclose(values, getattr(expected, name), rtol=1e-9, atol=1e-12)
