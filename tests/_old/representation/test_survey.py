"""One reading of a stream: the scaling of all rows and a sample of them, chunk by chunk."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bowtienet._old.data.random_rows import row_keys
from bowtienet._old.data.rows import Rows
from bowtienet._old.representation.columns import encode
from bowtienet._old.representation.scaling import fit_scaling
from bowtienet._old.representation.survey import Survey, combine_surveys, key_limit, survey_chunk
from tests._old.representation.tables import as_table, learn

N_ROWS = 120
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "n": np.where(RNG.random(N_ROWS) < 0.2, np.nan, RNG.normal(3.0, 2.0, N_ROWS)),
        "t": RNG.choice(["a", "b", "c"], N_ROWS),
        "same": "x",
    }
)
TARGETS = RNG.normal(size=(N_ROWS, 2)) * [1.0, 100.0]
WEIGHTS = RNG.integers(0, 3, N_ROWS).astype(float)
COLUMNS = learn(FRAME)
ENCODED, _ = encode(COLUMNS, as_table(FRAME))


def chunk(part: slice) -> Rows:
    return Rows(inputs=ENCODED[part], targets=TARGETS[part], weights=WEIGHTS[part])


def surveyed(cuts: list[int], seed: int = 0, size: int = N_ROWS, limit: float = 1.0) -> Survey:
    return combine_surveys(
        survey_chunk(chunk(slice(*ends)), ends[0], seed, size, limit) for ends in pairwise(cuts)
    )


ONE, SEVERAL = [0, N_ROWS], [0, 7, 50, 51, N_ROWS]


@pytest.mark.parametrize("cuts", [ONE, SEVERAL], ids=["one", "several"])
def test_a_survey_knows_what_the_whole_table_says(cuts: list[int]) -> None:
    survey = surveyed(cuts)
    assert (survey.n_rows, survey.n_counted) == (N_ROWS, int((WEIGHTS > 0).sum()))
    assert survey.total_weight == WEIGHTS.sum()
    features, targets = fit_scaling(ENCODED, WEIGHTS), fit_scaling(TARGETS, WEIGHTS)
    for found, expected in ((survey.feature_scaling, features), (survey.target_scaling, targets)):
        np.testing.assert_allclose(found.center, expected.center, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-12)
    # All rows that count are in the sample, once, with what belongs to them.
    positions, rows = survey.sample.positions, survey.sample.rows
    assert sorted(positions) == np.flatnonzero(WEIGHTS > 0).tolist()
    np.testing.assert_array_equal(rows.inputs, ENCODED[positions])
    np.testing.assert_array_equal(rows.targets, TARGETS[positions])
    np.testing.assert_array_equal(rows.weights, WEIGHTS[positions])


def test_the_sample_is_bounded_and_follows_the_seed() -> None:
    first, again, other = (surveyed(SEVERAL, seed, 20).sample.positions for seed in (0, 0, 1))
    assert len(first) == 20
    assert first.tolist() == again.tolist() != other.tolist()
    # It does not depend on how rows are cut.
    assert first.tolist() == surveyed(ONE, 0, 20).sample.positions.tolist()


def test_rows_without_prospect_need_not_be_offered() -> None:
    n_counted = np.count_nonzero(WEIGHTS)
    assert key_limit(N_ROWS, n_counted) == 1.0
    assert 0.0 < key_limit(1, 10_000) < 0.01
    keys = np.sort(row_keys(0, 0, N_ROWS)[WEIGHTS > 0.0])
    few = surveyed(SEVERAL, 0, 20, limit=float(keys[30]))
    assert few.sample.positions.tolist() == surveyed(ONE, 0, 20).sample.positions.tolist()
    assert len(surveyed(SEVERAL, 0, 20, limit=float(keys[10])).sample.positions) == 10


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows"):
        combine_surveys([])
