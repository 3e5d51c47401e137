"""Predictions into Parquet files, and posterior draws for ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from bowtienet._old.ensemble.arviz_export import to_arviz
from bowtienet._old.ensemble.ensemble import Ensemble, mixture
from bowtienet._old.ensemble.parquet import prediction_columns, refuse_own_input, write_parquet
from bowtienet._old.prediction.mixture import Mixture
from bowtienet._old.representation.columns import encoded_names
from tests._old.ensemble.fits import bent_table, fit, only, small
from tests._old.sign_pruning import prune_members

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

X, Y = bent_table()
TWO = np.stack([Y, X[:, 1]], axis=1)
TEXT = pd.DataFrame({"x": X[:, 0], "side": np.where(X[:, 1] > 0.0, "left", "right")})


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    return fit((X, TWO), small(weighting="equal", hidden_layer_sizes=(6,))).ensemble


def parts(ensemble: Ensemble, *, fail: bool = False) -> Iterator[Mixture]:
    yield mixture(ensemble, X[:40])
    if fail:
        raise OSError(28, "No space left on device")
    yield mixture(ensemble, X[40:])


def test_predictions_into_a_file(ensemble: Ensemble, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    write_parquet(target, parts(ensemble), 0.8)
    found = pq.read_table(target).to_pandas()
    whole = mixture(ensemble, X)
    limits = whole.interval(0.8)
    expected = {"mean": whole.mean(), "std": whole.std(), "lower": limits[..., 0]}
    expected |= {"upper": limits[..., 1]}
    assert list(found) == [f"{name}_{target}" for name in expected for target in (0, 1)]
    for name, values in expected.items():
        for index in (0, 1):
            np.testing.assert_allclose(found[f"{name}_{index}"], values[:, index], rtol=1e-12)
    write_parquet(target, parts(ensemble), None)
    assert pq.read_table(target).column_names == ["mean_0", "mean_1", "std_0", "std_1"]


def test_columns_are_named_by_the_targets(ensemble: Ensemble) -> None:
    found = prediction_columns(mixture(ensemble, X), None, ["price", "age"])
    assert list(found) == ["mean_price", "mean_age", "std_price", "std_age"]
    alone = mixture(fit((X, Y), small()).ensemble, X)
    found = prediction_columns(alone, alone.interval(0.5), ["price"])
    assert list(found) == ["mean", "std", "lower", "upper"]
    assert {values.shape for values in found.values()} == {(60,)}


def test_a_file_that_was_not_finished_replaces_none(ensemble: Ensemble, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    target.write_bytes(b"precious")
    with pytest.raises(OSError, match=r"out\.parquet"):
        write_parquet(target, parts(ensemble, fail=True), 0.9)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"precious"


def test_predictions_do_not_replace_their_own_rows(tmp_path: Path) -> None:
    for source, target in (("a", "a"), ("folder", "folder/new"), ("x/../a", "a")):
        with pytest.raises(ValueError, match=target):
            refuse_own_input(tmp_path / source, tmp_path / target)
    refuse_own_input(tmp_path / "a", tmp_path / "ab")


# Posterior draws


def posterior(ensemble: Ensemble, draws: int = 400) -> Any:
    return to_arviz(ensemble, draws, np.random.default_rng(0))["posterior"]


def test_draws_are_those_of_the_members() -> None:
    """Members by their weights; weights in the order of the encoded columns, bias first."""
    ensemble = fit((TEXT, Y), small(weighting="equal", hidden_layer_sizes=(3,))).ensemble
    order = np.array([2, 0, 1])  # not its own inverse
    representation = replace(ensemble.representation, column_order=order)
    ensemble = replace(ensemble, weights=np.array([0.0, 1.0]), representation=representation)
    found = posterior(ensemble)
    assert set(found["member"].values.ravel()) == {1}
    names = list(encoded_names(ensemble.representation.columns))
    assert found["input"].values.tolist() == ["bias", *names]
    [_, member] = ensemble.members
    for number, layer in enumerate(member.factors.layers, start=1):
        drawn = found[f"weights_{number}"].values[0]
        mean = layer.weights.mean
        if number == 1:
            mean = mean[:, [0, *(1 + order.tolist().index(column) for column in range(3))]]
        spread = drawn.std(axis=0) / np.sqrt(400)
        # 5 standard errors: a false alarm in 2e6 for each of 16 weights, with a fixed seed.
        assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5.0 * spread)
        assert np.all(found[f"noise_variance_{number}"].values > 0.0)


def test_what_was_pruned_is_zero(ensemble: Ensemble) -> None:
    pruned = prune_members(ensemble, 1e-20)
    alone = only(pruned, 0)
    [member] = alone.members
    found = posterior(alone, 5)
    assert found["weights_1"].shape == (1, 5, 6, 3)
    gone = np.setdiff1d(np.arange(6), member.pruning.units[0])
    assert gone.size
    assert not found["weights_1"].values[0][:, gone].any()
    assert not found["noise_variance_1"].values[0][:, gone].any()
    assert found["noise_variance_1"].values[0][:, member.pruning.units[0]].all()
