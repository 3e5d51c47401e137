"""The numbers of a report are those of direct computation, and the words say no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old.evaluation import evaluate
from bowtienet._old.plotting.fitted import encoded_features, open_rows
from bowtienet._old.prediction.mixture import build_mixture
from bowtienet._old.report import collect, content, figures, network, residual_figures, sentences
from bowtienet._old.report.baseline import linear_baseline
from bowtienet._old.report.sampled_rows import read_rows
from bowtienet._old.report.svg import Plot
from bowtienet._old.report.wording import clean, kind_of, number
from bowtienet._old.representation.kinds import Numbers
from tests._old.plotting.fits import quick
from tests._old.report.fits import make_flats


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Iterator[None]:
    """Plots are made but not written: the page is tested with them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (figures, network, residual_figures):
            patch.setattr(module, "inline_svg", lambda _, name, words: Plot(svg=name, words=words))
        yield


def collected(model: Any, X: Any, y: Any, **settings: Any) -> content.ReportContent:
    return collect(model, X, y, **{"max_features": 1} | settings)


@pytest.fixture(scope="module")
def found(model, flats):
    return collect(model, flats, "price", coverage=0.8)


def line(X, y, new, weights=None):
    """Scores of a linear model need its predictive distribution."""
    made = make_pipeline(StandardScaler(), BayesianRidge())
    made.fit(X, y, standardscaler__sample_weight=weights, bayesianridge__sample_weight=weights)
    mean, std = made.predict(new, return_std=True)
    return build_mixture([1.0], mean[None], std[None])


def test_scores_are_those_of_evaluate(found, model, flats):
    [target] = found.targets
    y = flats["price"].to_numpy()
    assert target.name == "price"
    assert target.model == evaluate(y, model.predict_dist(flats), coverage=0.8)


def test_rows_count_by_their_weights(model, flats):
    weights = np.arange(len(flats)) % 3
    shown = collected(model, flats, "price", sample_weight=weights)
    expected = evaluate(flats["price"], model.predict_dist(flats), sample_weight=weights)
    assert asdict(shown.targets[0].model) == pytest.approx(asdict(expected) | {"n_rows": 53})
    # (27 + 2 * 26)² / (27 + 4 * 26) = 47.6 rows of equal weight.
    assert (shown.n_rows, shown.n_given, shown.n_effective) == (53, 53, 47)


def test_the_baseline_of_known_training_rows(model, flats):
    train, times = make_flats(50, seed=9), 1.0 + np.arange(50) % 3
    X, new = (encoded_features(model, open_rows(model, table)) for table in (train, flats))
    for given, weights in (((train, "price"), None), ((train, "price", 7.0 * times), times)):
        shown = collected(model, flats, "price", train=given)
        shares = None if weights is None else weights / weights.mean()
        expected = evaluate(flats["price"], line(X, train["price"], new, shares))
        assert asdict(shown.targets[0].baseline) == pytest.approx(asdict(expected))
        assert shown.n_train == 50
    with pytest.raises(ValueError, match="train"):
        collected(model, flats, "price", train=train)


def test_rows_that_the_model_has_seen_are_seen_by_the_line_too(model, flats):
    shown = collected(model, flats, "price", seen=True)
    X = encoded_features(model, open_rows(model, flats))
    expected = evaluate(flats["price"], line(X, flats["price"], X))
    assert asdict(shown.targets[0].baseline) == pytest.approx(asdict(expected))


def test_without_them_no_row_is_predicted_by_a_line_that_saw_it(found, model, flats):
    X, y = encoded_features(model, open_rows(model, flats)), flats["price"].to_numpy()
    means, stds = np.empty(len(y)), np.empty(len(y))
    for fitted, held in KFold(5, shuffle=True, random_state=0).split(X):
        one = line(X[fitted], y[fitted], X[held])
        means[held], stds[held] = one.mean(), one.std()
    expected = evaluate(y, build_mixture([1.0], means[None], stds[None]), coverage=0.8)
    assert asdict(found.targets[0].baseline) == pytest.approx(asdict(expected))


@pytest.mark.parametrize(("n_rows", "folds"), [(1, None), (3, None), (4, "2 folds"), (7, "3 fold")])
def test_a_baseline_of_few_rows(n_rows, folds):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = quick(n_estimators=1).fit(X, y)
    found = linear_baseline(model, read_rows(model, X[:n_rows], y[:n_rows], most=20), None, 0)
    assert found is None if folds is None else folds in found[1]


def test_surprises_are_the_rows_with_the_smallest_tails(found, model, flats):
    below = model.predict_dist(flats).cdf(flats["price"].to_numpy())
    tails = 2.0 * np.minimum(below, 1.0 - below)
    [target] = found.targets
    assert [int(one.row) for one in target.surprises] == np.argsort(tails)[:20].tolist()
    first = target.surprises[0]
    worst = int(first.row)
    assert first.actual == flats["price"][worst]
    assert first.probability == pytest.approx(tails[worst])
    assert [first.low, first.high] == model.predict_interval(flats, 0.8).iloc[worst].tolist()
    shown = dict(zip(target.surprise_features, first.features, strict=True))
    assert shown.keys() == {"city", "area", "new", "built"}
    assert shown["city"] == flats["city"][worst]
    assert shown["built"] == str(flats["built"][worst].date())


def test_row_names(model, flats):
    by_index = collected(model, flats.iloc[::-1], "price").targets[0].surprises
    by_place = collected(model, pa.Table.from_pandas(flats), "price").targets[0].surprises
    given = collected(model, flats, "price", row_numbers=range(100, 100 + len(flats)))
    assert [one.row for one in by_index] == [one.row for one in by_place]
    shown = given.targets[0].surprises
    assert [int(one.row) - 100 for one in shown] == [int(one.row) for one in by_index]
    with pytest.raises(ValueError, match="row_numbers"):
        collected(model, flats, "price", row_numbers=[1])


def test_features_are_ranked_and_bands_follow_the_strongest(found, model, flats):
    relevance = model.feature_relevance_
    order = np.argsort(-relevance.strength)
    [target] = found.targets
    strong = [relevance.name[i] for i in order if relevance.strength[i] > 0.0]
    assert {"area", "city"} <= set(strong)
    assert list(target.strong) == strong
    assert [name for name, _ in target.bands] == list(target.strong)
    [fewer] = collect(model, flats, "price", max_features=1).targets
    assert [name for name, _ in fewer.bands] == list(target.strong[:1])


def test_importance_is_that_of_the_rows(found, model, flats):
    [target] = found.targets
    losses = model.importance(flats, "price").log_density_drop
    largest = model.feature_relevance_.name[np.argmax(losses)]
    assert target.importance is not None
    assert f"with errors: {largest} " in target.importance.words
    [alone] = collect(model, flats[:1], "price").targets
    assert alone.importance is None


def test_the_summary_of_columns(found, flats):
    columns = {column.name: column for column in found.columns}
    assert list(columns) == ["price", "city", "area", "new", "built"]
    area, city = columns["area"], columns["city"]
    assert columns["price"].learnt == "target"
    assert (city.n_categories, area.n_categories) == (3, 0)
    assert area.n_missing == flats["area"].isna().sum()
    assert area.range == tuple(flats["area"].quantile([0.0, 0.5, 1.0]))
    assert dict(city.categories) == dict(flats["city"].value_counts())
    assert "missing" in area.learnt
    assert "one-hot" in city.learnt
    days = (flats["built"] - pd.Timestamp("1970-01-01")).dt.days
    assert (columns["built"].kind, columns["built"].range[0]) == ("date", days.min())


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_every_library_gives_the_same_report(found, model, flats, library):
    table = pl.from_pandas(flats) if library == "polars" else pa.Table.from_pandas(flats)
    other = collect(model, table, "price", coverage=0.8)
    assert other.targets[0].model == found.targets[0].model
    assert other.columns == found.columns
    assert other.targets[0].bands == found.targets[0].bands


def test_every_target_has_its_own_part(two_targets, flats):
    shown = collected(two_targets, flats, ["price", "rent"])
    forecast = two_targets.predict_dist(flats)
    assert [target.name for target in shown.targets] == ["price", "rent"]
    for place, target in enumerate(shown.targets):
        assert target.model == evaluate(flats[target.name], forecast.of_target(place))
        strength = two_targets.feature_relevance_.strength[:, place]
        assert target.strong[0] == two_targets.feature_relevance_.name[np.argmax(strength)]


def test_arrays_and_models_without_names():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 1] + rng.normal(0.0, 0.1, size=40)
    model = quick(tol=0.1).fit(X, y)
    shown = collect(model, X, y)
    assert [column.name for column in shown.columns] == ["y", "x0", "x1", "x2"]
    assert shown.targets[0].strong[0] == "x1"
    # A model that knows no names knows columns by their place.
    named = collected(model, pd.DataFrame(X, columns=["x1", "b", "c"]), y)
    assert named.targets[0].strong[0] == "b"


def test_of_many_rows_a_sample_is_scored(model, flats, monkeypatch):
    monkeypatch.setattr(content, "MOST_ROWS", 30)
    monkeypatch.setattr(content, "MOST_COLUMNS", 1)
    shown = collected(model, flats, "price")
    assert (shown.n_rows, shown.n_given, shown.n_columns, len(shown.columns)) == (30, 80, 5, 1)


def test_the_network_and_what_pruning_made_of_it(found, model, flats):
    sizes = model.sparsity_
    assert dict(found.network.sizes)["weights"] == sizes.weights_after.sum()
    assert found.network.pruning is None
    smaller = model.prune(flats, "price")
    shown = collected(smaller, flats, "price").network
    assert shown.pruning == smaller.pruning_
    assert dict(shown.sizes)["weights"] == smaller.pruning_.weights_after
    assert shown.columns_left == ", ".join(smaller.pruning_.columns_after)


def test_models_and_rows_that_do_not_fit(model, flats, tmp_path):
    with pytest.raises(TypeError, match="Pipeline"):
        collected(make_pipeline(StandardScaler(), model), flats, "price")
    with pytest.raises(ValueError, match="targets"):
        collected(model, flats, ["price", "rent"])
    with pytest.raises(ValueError, match="coverage"):
        collected(model, flats, "price", coverage=90)
    flats.to_parquet(tmp_path / "flats.parquet")
    with pytest.raises(ValueError, match="in memory"):
        collected(model, tmp_path / "flats.parquet", "price")


@pytest.mark.parametrize(
    ("status", "converged", "verdict"),
    [
        ("converged", True, "Converged."),
        ("stopped early (validation)", False, "Stopped early (validation)."),
        ("iteration limit", False, "Not converged."),
    ],
)
def test_only_a_bound_that_converged_is_called_so(status, converged, verdict):
    X = np.random.default_rng(0).normal(size=(30, 1))
    fitted = quick(tol=1.0, n_estimators=1).fit(X, X[:, 0])
    fitted.status_, fitted.converged_ = status, converged
    shown = collected(fitted, X, X[:, 0])
    assert shown.fit.verdict == verdict
    assert bool(shown.fit.caveat) == (not converged)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((19, 0, 0), "At all 19 levels"),
        ((19, 2, 0), "narrow) at 2 of 19"),
        ((19, 1, 2), "at 1 and"),
    ],
)
def test_words_under_the_calibration_curve(found, levels, words):
    target = replace(found.targets[0], levels=levels)
    assert words in sentences.calibration(found, target)
    assert "Too few rows" in sentences.calibration(replace(found, n_effective=19), target)


@pytest.mark.parametrize(
    ("field", "change", "words"),
    [
        ("rmse", -0.5, "−50.0\N{NO-BREAK SPACE}%"),
        ("rmse", 24.0, "25 times"),
        ("nll", -0.5, "−0.500"),
        ("nll", -0.0001, "+0.000"),
        ("coverage", -0.05, "−5.0 points"),
    ],
)
def test_differences(field, change, words):
    assert sentences.difference(field, change) == words


def test_numbers_and_names_in_words():
    assert number(1234567.8) == "1,234,568"
    first, second = ("the same long beginning " * 5 + end for end in ("one", "two"))
    assert clean(first) != clean(second)
    assert len(clean(first)) <= 60
    years = Numbers(kind="number", values=np.array([1891.0, np.nan, 2020.0]))
    assert kind_of(years) == "year"
    assert kind_of(replace(years, values=years.values + 0.5)) == "number"
    assert kind_of(replace(years, values=np.array([1.0, 2000.0]))) == "number"
    assert clean("\a" * 1000, 10) == "\\x07\\…\\x07"
