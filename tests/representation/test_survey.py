"""One reading of a stream: the scaling of all rows and a sample of them, piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet.data.tables import Block
from bowtienet.representation import survey as module
from bowtienet.representation.columns import encode
from bowtienet.representation.scaling import fit_scaling
from bowtienet.representation.survey import Survey, combine_surveys, survey_piece
from tests.representation.tables import as_table, learn

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


def block(part: slice) -> Block:
    return Block(table=as_table(FRAME[part]), targets=TARGETS[part], weights=WEIGHTS[part])


def surveyed(pieces: list[list[slice]], seed: int = 0) -> Survey:
    return combine_surveys(
        survey_piece([block(part) for part in piece], (seed, index), COLUMNS)
        for index, piece in enumerate(pieces)
    )


ONE = [[slice(0, 50), slice(50, N_ROWS)]]
SEVERAL: list[list[slice]] = [[slice(0, 7), slice(7, 50)], [], [slice(50, 51)], [slice(51, N_ROWS)]]


@pytest.mark.parametrize("pieces", [ONE, SEVERAL], ids=["one", "several"])
def test_a_survey_knows_what_the_whole_table_says(pieces: list[list[slice]]) -> None:
    survey = surveyed(pieces)
    assert (survey.n_rows, survey.n_counted) == (N_ROWS, int((WEIGHTS > 0).sum()))
    assert survey.total_weight == WEIGHTS.sum()
    assert survey.first_rows.tolist() == ([0] if pieces is ONE else [0, 50, 50, 51])
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


def test_the_sample_is_bounded_and_follows_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_ROWS", 15)
    monkeypatch.setattr(module, "HELD_OUT_ROWS", 5)
    first, again, other = (surveyed(SEVERAL, seed).sample.positions for seed in (0, 0, 1))
    assert len(first) == 20
    assert first.tolist() == again.tolist() != other.tolist()
    # It does not depend on how a piece is cut into blocks.
    cut = surveyed([[slice(0, 50)], *SEVERAL[1:]]).sample.positions
    assert first.tolist() == cut.tolist()


def test_the_checksum_tells_another_order() -> None:
    right = surveyed([[slice(0, 60), slice(60, N_ROWS)]])
    wrong = surveyed([[slice(60, N_ROWS), slice(0, 60)]])
    assert right.checksum == surveyed(ONE).checksum != wrong.checksum
    assert surveyed(SEVERAL).checksum is None


@pytest.mark.parametrize("pieces", [[], [[]], [[], []]])
def test_no_rows(pieces: list[Any]) -> None:
    with pytest.raises(ValueError, match="no rows"):
        surveyed(pieces)
