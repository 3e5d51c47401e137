"""What networks see: encoded columns, standardised and ordered, with parts that belong together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.data.tables import Block
from bowtienet._old.distributions.yeo_johnson import Warp, fit_warp, to_warped
from bowtienet._old.representation.columns import encode, encoded_names
from bowtienet._old.representation.pieces import components, fit_pieces
from bowtienet._old.representation.representation import (
    PLAIN,
    Representation,
    View,
    check_representation,
    encoded_rows,
    input_names,
    input_owners,
    network_features,
    network_inputs,
    network_rows,
    standardized_features,
    standardized_rows,
)
from bowtienet._old.representation.scaling import Scaling, fit_scaling
from tests._old.representation.tables import as_table, learn

TABLE = pd.DataFrame({"n": [1.0, None, 4.0, 9.0], "t": ["a", "b", "a", "b"], "c": [5, 5, 5, 5]})
COLUMNS = learn(TABLE)
ENCODED, _ = encode(COLUMNS, as_table(TABLE))
TARGETS = np.array([[1.0, 20.0], [2.0, 50.0], [3.0, 30.0], [7.0, 10.0]])
REPRESENTATION = Representation(
    columns=COLUMNS,
    feature_scaling=fit_scaling(ENCODED),
    target_scaling=fit_scaling(TARGETS),
    column_order=np.array([2, 0, 3, 1]),
)


def test_features_and_targets_are_standardised_and_ordered() -> None:
    block = Block(table=as_table(TABLE), targets=TARGETS, weights=np.arange(4.0))
    rows, surprises = encoded_rows(COLUMNS, block)
    assert surprises == []
    np.testing.assert_array_equal(rows.inputs, ENCODED)
    seen = standardized_rows(REPRESENTATION, rows)
    expected = ((ENCODED - ENCODED.mean(axis=0)) / ENCODED.std(axis=0))[:, [2, 0, 3, 1]]
    np.testing.assert_allclose(seen.inputs, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(standardized_features(REPRESENTATION, ENCODED), seen.inputs)
    scaled = (TARGETS - TARGETS.mean(axis=0)) / TARGETS.std(axis=0)
    np.testing.assert_allclose(seen.targets, scaled, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(seen.weights, np.arange(4.0))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": COLUMNS[:2]},
        {"column_order": np.array([0, 0, 1, 2])},
        {"feature_scaling": fit_scaling(TARGETS)},
        {"target_scaling": fit_scaling(ENCODED)},
    ],
)
def test_parts_that_do_not_belong_together(change: dict[str, Any]) -> None:
    check_representation(REPRESENTATION, 3, 2)
    with pytest.raises(ValueError, match=r"column|scaling"):
        check_representation(replace(REPRESENTATION, **change), 3, 2)


# Views

N_ROWS = 60
RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(
    {
        "age": np.where(np.arange(N_ROWS) % 6 == 0, np.nan, RNG.gamma(2.0, 20.0, size=N_ROWS)),
        "city": np.array(["Oslo", "Rome", "Lima"])[np.arange(N_ROWS) % 3],
        "day": pd.Timestamp("1969-12-01") + pd.to_timedelta(np.arange(N_ROWS), unit="D"),
        "same": 1.0,
        "flag": np.arange(N_ROWS) % 2 == 0,
        "score": 1e6 + np.arange(N_ROWS) / 100.0,
    }
)
WIDE_TARGETS = np.column_stack([RNG.lognormal(0.0, 1.0, N_ROWS), -RNG.lognormal(0.0, 1.0, N_ROWS)])
ORDER = np.array([6, 0, 5, 2, 4, 7, 3, 1])


def build(
    table: Any = WIDE, targets: np.ndarray = WIDE_TARGETS, order: Any = ORDER
) -> tuple[Representation, Rows]:
    """All views of a table, and its standardised rows."""
    columns = learn(table)
    encoded, _ = encode(columns, as_table(table))
    plain = Representation(
        columns=columns,
        feature_scaling=fit_scaling(encoded),
        target_scaling=fit_scaling(targets),
        column_order=np.arange(encoded.shape[1]) if order is None else order,
    )
    rows = standardized_rows(plain, build_rows(encoded, targets))
    pieces = fit_pieces(rows.inputs, rows.weights, 4)
    warp = fit_warp(rows.targets, rows.weights)
    views = tuple(View(pieces=p, warp=w) for p in (None, pieces) for w in (None, warp))
    return replace(plain, views=views), rows


VIEWED, SEEN = build()
BINNED, BENT = VIEWED.views[2], VIEWED.views[1]


def test_a_view_without_parts_leaves_rows_as_they_are() -> None:
    assert REPRESENTATION.views == (PLAIN,)
    assert network_features(PLAIN, SEEN.inputs) is SEEN.inputs
    same = network_rows(PLAIN, SEEN)
    assert same.inputs is SEEN.inputs
    assert same.targets is SEEN.targets


@pytest.mark.parametrize("place", range(4))
def test_views_of_rows(place: int) -> None:
    """Components of the columns and warped targets, each where the view has them."""
    view = VIEWED.views[place]
    rows = network_rows(view, SEEN)
    inputs = SEEN.inputs if view.pieces is None else components(view.pieces, SEEN.inputs)
    targets = SEEN.targets if view.warp is None else to_warped(view.warp, SEEN.targets)
    np.testing.assert_array_equal(rows.inputs, inputs)
    np.testing.assert_array_equal(rows.targets, targets)
    np.testing.assert_array_equal(rows.weights, SEEN.weights)
    np.testing.assert_array_equal(network_features(view, SEEN.inputs), inputs)
    check_representation(VIEWED, 6, 2)


@pytest.mark.parametrize("power", [-300, -150, 150, 300])
def test_any_unit_of_the_columns_and_targets(power: int) -> None:
    """What networks see does not depend on it: 1e300 and 1e-300 are in range."""
    unit = 10.0**power
    numbers = WIDE[["age", "score"]].to_numpy()[1:6]
    table, targets = np.tile(numbers, (10, 1)) + RNG.normal(size=(50, 2)), WIDE_TARGETS[:50]
    expected, rows = build(table, targets, None)
    found, other = build(table * unit, targets * unit, None)
    for one, same in zip(expected.views, found.views, strict=True):
        seen, likewise = network_rows(one, rows), network_rows(same, other)
        assert seen.inputs.shape == likewise.inputs.shape
        np.testing.assert_allclose(likewise.inputs, seen.inputs, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(likewise.targets, seen.targets, rtol=1e-6, atol=1e-6)
        names = input_names(found, same)
        assert len(set(names)) == len(names)
        assert not any("inf" in name or "nan" in name for name in names)


# Names and owners


def test_the_way_back_from_inputs_to_columns() -> None:
    """Encoded: age, age missing, three cities, day, flag and score, in another order."""
    encoded = encoded_names(VIEWED.columns)
    assert len(encoded) == len(ORDER)
    np.testing.assert_array_equal(network_inputs(VIEWED, PLAIN), ORDER)
    assert input_owners(VIEWED, PLAIN).tolist() == [4, 0, 2, 1, 1, 5, 1, 0]
    places = network_inputs(VIEWED, BINNED)
    assert places.tolist() == [6, 0, 0, 0, 0, 5, 5, 5, 5, 2, 4, 7, 7, 7, 7, 3, 1]
    owner = input_owners(VIEWED, BINNED)
    assert owner.tolist() == [4, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 5, 5, 5, 5, 1, 0]
    for view in VIEWED.views:
        names = input_names(VIEWED, view)
        assert len(names) == network_features(view, SEEN.inputs).shape[1]
        for name, place in zip(names, network_inputs(VIEWED, view), strict=True):
            assert name.startswith(encoded[place])


def test_names_of_inputs_without_bins() -> None:
    expected = ["flag", "age", "day", "city=Lima", "city=Rome", "score", "city=Oslo"]
    for view in (PLAIN, BENT):
        assert input_names(VIEWED, view) == [*expected, "age missing"]


def test_names_of_components_are_ranges_in_the_users_unit() -> None:
    """Numbers to four digits, and more where they would be the same; dates as dates."""
    names = input_names(VIEWED, BINNED)
    filled = WIDE["age"].fillna(WIDE["age"].median())
    age = np.quantile(filled, [0.25, 0.5, 0.75], method="averaged_inverted_cdf")
    [low, middle, high] = (f"{value:.4g}" for value in age)
    ranges = [f"..{low}", f"{low}..{middle}", f"{middle}..{high}", f"{high}.."]
    assert names[1:5] == [f"age {text}" for text in ranges]
    days = ["..1969-12-15", "1969-12-15..1969-12-30", "1969-12-30..1970-01-14", "1970-01-14.."]
    assert names[5:9] == [f"day {text}" for text in days]
    scores = ["..1000000.1", "1000000.1..1000000.3", "1000000.3..1000000.4", "1000000.4.."]
    assert names[11:15] == [f"score {text}" for text in scores]
    rest = [names[0], *names[9:11], *names[15:]]
    assert rest == ["flag", "city=Lima", "city=Rome", "city=Oslo", "age missing"]
    assert len(set(names)) == len(names)


def test_times_within_a_day_are_told_apart() -> None:
    start = pd.Timestamp("2024-02-28 23:00")
    minutes, seconds = (
        pd.DataFrame({"at": start + pd.to_timedelta(np.arange(41) * step, unit="s")})
        for step in (600, 1)
    )
    for table, expected in (
        (minutes, ["at ..2024-02-29T00:40", "at 2024-02-29T00:40..2024-02-29T02:20"]),
        (seconds, ["at ..2024-02-28T23:00:10", "at 2024-02-28T23:00:10..2024-02-28T23:00:20"]),
    ):
        representation, _ = build(table, np.arange(41.0)[:, None], None)
        assert input_names(representation, representation.views[2])[:2] == expected


def test_times_that_seconds_do_not_tell_apart_have_names_of_their_own() -> None:
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(41), unit="ms")
    representation, _ = build(pd.DataFrame({"at": moments}), np.arange(41.0)[:, None], None)
    assert len(set(input_names(representation, representation.views[2]))) == 4


# Views of a file


def forged(**changes: Any) -> Representation:
    """With a warp of which something was changed."""
    assert BENT.warp is not None
    return replace(VIEWED, views=(PLAIN, View(warp=replace(BENT.warp, **changes))))


TWO = np.ones(2)
OF_OTHERS = fit_pieces(SEEN.inputs[:, :3], SEEN.weights, 4)


@pytest.mark.parametrize(
    ("representation", "words"),
    [
        (replace(VIEWED, views=()), "no view"),
        (replace(VIEWED, views=(View(pieces=OF_OTHERS),)), "other columns"),
        (forged(exponent=np.ones(3)), "other targets"),
        (forged(exponent=np.ones((1, 2))), "other targets"),
        (forged(exponent=np.array([2.1, 1.0])), "inverse"),
        (forged(exponent=np.array([1.0, -0.1])), "inverse"),
        (forged(low=TWO, high=0.0 * TWO), "inverse"),
        (forged(scale=5e-324 * TWO), "inverse"),
        (forged(low=-1e300 * TWO, high=1e300 * TWO, exponent=2.0 * TWO), "inverse"),
    ],
)  # fmt: skip
def test_views_of_a_file_that_are_none(representation: Any, words: str) -> None:
    check_representation(VIEWED, 6, 2)
    with pytest.raises(ValueError, match=words):
        check_representation(representation, 6, 2)


def test_a_warp_is_for_its_number_of_targets() -> None:
    one = replace(VIEWED, target_scaling=Scaling(center=np.zeros(1), scale=np.ones(1)))
    with pytest.raises(ValueError, match="other targets"):
        check_representation(one, 6, 1)
    alone = Warp(**{name: value[:1] for name, value in vars(BENT.warp).items()})
    check_representation(replace(one, views=(View(warp=alone),)), 6, 1)
