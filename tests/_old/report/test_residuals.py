"""Residuals in bins: means and errors are those of the rows, and words count what is off."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.report.residual_figures import (
    bin_means,
    residuals_over_feature,
    residuals_over_predictions,
)
from bowtienet._old.report.svg import page_style
from bowtienet._old.representation.kinds import Numbers, Texts


def test_means_of_bins():
    values = np.arange(100.0)
    residuals = np.where(values < 50.0, 1.0, -1.0) + 0.1 * (-1.0) ** values
    middle, mean, error = bin_means(values, residuals)
    np.testing.assert_allclose(mean, [1.0] * 5 + [-1.0] * 5)
    np.testing.assert_allclose(error, residuals[:10].std(ddof=1) / np.sqrt(10.0))
    assert middle[0] == 4.0
    few = bin_means(np.array([0.0] * 8 + [1.0] * 2), np.zeros(10))
    assert few[0].tolist() == [0.0]


@pytest.mark.parametrize(("shift", "words"), [(0.0, "no mean of 10"), (5.0, "5 of 10 means are")])
def test_words_tell_what_is_off(shift, words):
    rng, values = np.random.default_rng(500), np.arange(100.0)
    residuals = rng.normal(size=100)
    for part in np.split(np.arange(100), 10):
        residuals[part] -= residuals[part].mean()
    residuals[:50] += shift
    with page_style():
        assert words in residuals_over_predictions("a", residuals, values, "price").words
        number = Numbers(kind="number", values=np.append(values, np.nan))
        plot = residuals_over_feature("b", np.append(residuals, 1e3), number, "area", "price")
    assert words in plot.words
    assert "1 row further out" in plot.words


def test_categories_have_a_mean_each():
    texts = Texts(distinct=("Oslo", "Rome"), codes=np.repeat([0, 1, -1], 20))
    residuals = np.tile([-0.1, 0.1], 30) + np.repeat([3.0, 0.0, 0.0], 20)
    with page_style():
        plot = residuals_over_feature("a", residuals, texts, "city", "price")
    assert "1 of 2 means is" in plot.words
    assert ">Oslo<" in plot.svg
