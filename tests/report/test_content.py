"""The numbers of a report are those of direct computation."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet import make_table_pipeline
from bowtienet.estimators.preparing import output_names
from bowtienet.evaluation import binomial_band, calibration_curve, evaluate, pit
from bowtienet.plotting import PredictiveBandDisplay
from bowtienet.prediction.mixture import build_mixture
from bowtienet.report import collect, content, structure
from bowtienet.report.rows import ReportRows, read_rows
from bowtienet.report.scoring import linear_baseline
from tests.report.fits import make_flats, quick


def collected(model, X, y, **settings):
    return collect(model, X, y, **{"max_inputs": 2} | settings)


@pytest.fixture(scope="module")
def found(pipeline, flats):
    return collect(pipeline, flats, "price", coverage=0.8)


def test_scores_are_those_of_evaluate(found, pipeline, flats):
    [target] = found.targets
    y, forecast = flats["price"].to_numpy(), pipeline.predict_dist(flats)
    assert target.name == "price"
    assert target.scores.model == evaluate(y, forecast, coverage=0.8)
    smaller = pipeline.prune().predict_dist(flats)
    assert target.scores.pruned == evaluate(y, smaller, coverage=0.8)
    assert target.scores.pruned != target.scores.model


def test_weights_count_rows(pipeline, flats):
    weights = np.arange(len(flats)) % 3
    found = collected(pipeline, flats, "price", sample_weight=weights).targets[0].scores
    forecast = pipeline.predict_dist(flats)
    expected = asdict(evaluate(flats["price"], forecast, sample_weight=weights))
    assert asdict(found.model) == pytest.approx(expected | {"n_rows": 53}, rel=1e-12)
    _, observed = calibration_curve(flats["price"], forecast, sample_weight=weights)
    np.testing.assert_allclose(found.calibration.observed, observed, rtol=1e-12)
    # (27 + 2 * 26)² / (27 + 4 * 26) = 47.6 rows of equal weight.
    low, high = binomial_band(found.calibration.levels, 47)
    np.testing.assert_array_equal([found.calibration.low, found.calibration.high], [low, high])
    bins = (pit(flats["price"], forecast) * 10).astype(int)
    expected = [10.0 * weights[bins == place].sum() / weights.sum() for place in range(10)]
    np.testing.assert_allclose(found.pit.heights, expected)
    assert found.pit.high == 10.0 * binomial_band([0.1], 47)[1][0]


def test_rows_that_count_for_nothing_are_not_there(pipeline, flats):
    weights = np.where(np.arange(len(flats)) < 30, 0.0, 2.5)
    found = collected(pipeline, flats, "price", sample_weight=weights)
    without = collected(pipeline, flats[30:], "price")
    assert (found.n_rows, found.n_given, found.n_effective) == (50, 50, 50)
    assert found.columns == without.columns
    ours, theirs = found.targets[0].scores, without.targets[0].scores
    assert ours.surprises == theirs.surprises
    assert asdict(ours.model) == pytest.approx(asdict(theirs.model), rel=1e-12)
    assert asdict(ours.baseline) == pytest.approx(asdict(theirs.baseline), rel=1e-6)
    np.testing.assert_array_equal(ours.calibration.low, theirs.calibration.low)


def test_the_baseline_counts_rows_by_their_weights(pipeline, flats):
    train, times = make_flats(50, seed=9), 1.0 + np.arange(50) % 3
    found = collected(pipeline, flats, "price", train=(train, "price", 7.0 * times))
    line = make_pipeline(StandardScaler(), BayesianRidge())
    again = train.loc[np.repeat(np.arange(50), times.astype(int))]
    line.fit(pipeline.preparer_.transform(again).to_numpy(), again["price"])
    mean, std = line.predict(pipeline.preparer_.transform(flats).to_numpy(), return_std=True)
    expected = evaluate(flats["price"], build_mixture([1.0], mean[None], std[None]))
    # As many rows again make a line a little surer, no more.
    assert found.targets[0].scores.baseline.rmse == pytest.approx(expected.rmse, rel=0.005)
    assert found.targets[0].scores.baseline.nll == pytest.approx(expected.nll, rel=0.02)
    plain = collected(pipeline, flats, "price", train=(train, "price")).targets[0].scores
    assert abs(plain.baseline.rmse / expected.rmse - 1.0) > 0.005


def test_rows_that_the_model_has_seen_are_seen_by_the_line_too(pipeline, flats):
    found = collected(pipeline, flats, "price", seen=True).targets[0].scores
    X, y = pipeline.preparer_.transform(flats).to_numpy(), flats["price"]
    line = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    mean, std = line.predict(X, return_std=True)
    expected = evaluate(y, build_mixture([1.0], mean[None], std[None]))
    assert asdict(found.baseline) == pytest.approx(asdict(expected))
    assert found.baseline_words == "fitted to the rows that it is scored on, as the network is"


def test_gaps_are_counted_before_columns_are_cut(pipeline, flats, monkeypatch):
    monkeypatch.setattr(content, "MOST_COLUMNS", 1)
    found = collected(pipeline, flats, "price")
    assert [column.n_missing for column in found.columns] == [0]
    assert found.n_gaps == 1


def test_the_baseline_of_known_training_rows(pipeline, flats):
    train = make_flats(50, seed=9)
    found = collected(pipeline, flats, "price", train=(train, "price"))
    line = make_pipeline(StandardScaler(), BayesianRidge())
    line.fit(pipeline.preparer_.transform(train).to_numpy(), train["price"])
    mean, std = line.predict(pipeline.preparer_.transform(flats).to_numpy(), return_std=True)
    expected = evaluate(flats["price"], build_mixture([1.0], mean[None], std[None]))
    assert asdict(found.targets[0].scores.baseline) == pytest.approx(asdict(expected))
    assert found.targets[0].scores.baseline_words == "fitted to the rows of training"
    assert found.is_seen is None
    assert found.n_train == 50
    assert found.columns[0].n_rows == len(flats) + 50


def test_without_them_no_row_is_predicted_by_a_line_that_saw_it(found, pipeline, flats):
    X, y = pipeline.preparer_.transform(flats).to_numpy(), flats["price"].to_numpy()
    mean, std = np.empty(len(y)), np.empty(len(y))
    for fitted, held in KFold(5, shuffle=True, random_state=0).split(X):
        line = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[fitted], y[fitted])
        mean[held], std[held] = line.predict(X[held], return_std=True)
    expected = evaluate(y, build_mixture([1.0], mean[None], std[None]), coverage=0.8)
    assert asdict(found.targets[0].scores.baseline) == pytest.approx(asdict(expected))
    assert "cross-fitted in 5 folds" in found.targets[0].scores.baseline_words
    assert found.is_seen is None


@pytest.mark.parametrize(("n_rows", "folds"), [(1, None), (3, None), (4, "2 folds"), (7, "3 fold")])
def test_a_baseline_of_few_rows(n_rows, folds):
    rng = np.random.default_rng(0)
    rows = ReportRows(
        table=None,
        prepared=rng.normal(size=(n_rows, 2)),
        targets=rng.normal(size=(n_rows, 1)),
        weights=None,
        names=tuple(map(str, range(n_rows))),
        n_given=n_rows,
    )
    found = linear_baseline(rows, None, 0)
    assert found is None if folds is None else folds in found.words


def test_calibration_and_pit(found, pipeline, flats):
    y, forecast = flats["price"].to_numpy(), pipeline.predict_dist(flats)
    levels, observed = calibration_curve(y, forecast)
    low, high = binomial_band(levels, len(y))
    shown = found.targets[0].scores.calibration
    np.testing.assert_array_equal(shown.levels, levels)
    np.testing.assert_array_equal(shown.observed, observed)
    np.testing.assert_array_equal([shown.low, shown.high], [low, high])
    heights = found.targets[0].scores.pit.heights
    counts = [np.sum((pit(y, forecast) * 10).astype(int) == k) for k in range(10)]
    np.testing.assert_allclose(heights, 10.0 * np.array(counts) / len(y))


def test_surprises_are_the_rows_of_least_density(found, pipeline, flats):
    forecast = pipeline.predict_dist(flats)
    density = forecast.pdf(flats["price"].to_numpy())
    shown = found.targets[0].scores.surprises
    assert [int(one.row) for one in shown] == np.argsort(density)[:20].tolist()
    worst = int(shown[0].row)
    assert shown[0].actual == flats["price"][worst]
    assert shown[0].surprise == pytest.approx(-np.log(density[worst]))
    assert [shown[0].low, shown[0].high] == pipeline.predict_interval(flats, 0.8)[worst].tolist()
    names = found.targets[0].scores.surprise_inputs
    assert set(names) == {"city", "area", "new", "built"}
    assert shown[0].inputs[names.index("city")] == flats["city"][worst]
    assert shown[0].inputs[names.index("built")] == str(flats["built"][worst].date())


def test_row_names(pipeline, flats):
    shuffled = flats.iloc[::-1]
    by_index = collected(pipeline, shuffled, "price").targets[0].scores.surprises
    by_number = collected(pipeline, pa.Table.from_pandas(flats), "price").targets[0].scores
    given = collected(pipeline, flats, "price", row_numbers=range(100, 100 + len(flats)))
    assert [one.row for one in by_index] == [one.row for one in by_number.surprises]
    shown = given.targets[0].scores.surprises
    assert [int(one.row) - 100 for one in shown] == [int(one.row) for one in by_index]
    assert given.rows_named_by == "file"


def test_columns_are_ranked_by_the_strongest_input_they_became(found, pipeline):
    relevance = pipeline.feature_relevance_
    strength = dict(zip(relevance.name, relevance.strength, strict=True))
    expected = {
        column.name: max(strength[name] for name in output_names([column]))
        for column in pipeline.preparer_.columns_
    }
    shown = {one.column: one.strength for one in found.targets[0].relevance}
    assert shown == expected
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_dependence_is_that_of_the_display(found, pipeline, flats):
    for shown in found.targets[0].dependence:
        assert shown.n_averaged == len(flats)
        display = PredictiveBandDisplay.from_estimator(
            pipeline,
            flats[["city", "area", "new", "built"]],
            shown.name,
            others="average",
            coverages=(0.5, 0.8),
            grid=100 if shown.labels else shown.x,
        )
        np.testing.assert_allclose(shown.mean, display.mean)
        np.testing.assert_allclose(shown.outer, display.intervals[:, :, 1])
    kinds = {shown.name: shown.kind for shown in found.targets[0].dependence}
    assert kinds == {"area": "number", "city": "category", "new": "category", "built": "date"}


def test_at_most_so_many_inputs_are_followed(pipeline, flats):
    shown = collect(pipeline, flats, "price", max_inputs=1).targets[0]
    assert [one.name for one in shown.dependence] == [shown.relevance[0].column]


def test_the_summary_of_columns(found, flats):
    columns = {column.name: column for column in found.columns}
    assert list(columns) == ["price", "city", "area", "new", "built"]
    area, city = columns["area"], columns["city"]
    assert columns["price"].role == "target"
    assert (city.n_categories, area.n_categories) == (3, 0)
    assert area.n_missing == flats["area"].isna().sum()
    assert (area.low, area.median, area.high) == (
        flats["area"].min(),
        flats["area"].median(),
        flats["area"].max(),
    )
    assert area.counts == tuple(np.histogram(flats["area"].dropna(), 12)[0])
    assert dict(zip(city.categories, city.counts, strict=True)) == dict(
        flats["city"].value_counts()
    )
    days = (flats["built"] - pd.Timestamp("1970-01-01")).dt.days
    assert (columns["built"].kind, columns["built"].low) == ("date", days.min())


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_every_library_gives_the_same_report(found, pipeline, flats, library):
    table = pl.from_pandas(flats) if library == "polars" else pa.Table.from_pandas(flats)
    other = collect(pipeline, table, "price", coverage=0.8)
    assert other.targets[0].scores.model == found.targets[0].scores.model
    assert other.columns == found.columns
    for ours, theirs in zip(found.targets[0].dependence, other.targets[0].dependence, strict=True):
        assert (ours.name, ours.kind, ours.labels) == (theirs.name, theirs.kind, theirs.labels)
        np.testing.assert_allclose(ours.mean, theirs.mean)


def test_every_target_has_its_own_part(two_targets, flats):
    found = collected(two_targets, flats, ["price", "rent"])
    forecast = two_targets.predict_dist(flats)
    assert [target.name for target in found.targets] == ["price", "rent"]
    for place, target in enumerate(found.targets):
        expected = evaluate(flats[target.name], forecast.of_target(place))
        assert target.scores.model == expected
        strength = two_targets.regressor_.feature_relevance_.strength[:, place]
        assert target.relevance[0].strength == strength.max()


def test_a_plain_regressor_and_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 1] + rng.normal(0.0, 0.1, size=40)
    found = collect(quick().fit(X, y), X, y)
    assert found.targets[0].name == "y"
    assert [column.name for column in found.columns] == ["y", "x0", "x1", "x2"]
    assert found.targets[0].relevance[0].column == "x1"
    assert found.rows_named_by == "place"


def test_a_model_without_names_knows_columns_by_their_place():
    flats = make_flats(40)[["area", "city", "price"]].dropna()
    mixed = flats[["area", "city"]].to_numpy(dtype=object)
    model = make_table_pipeline(quick()).fit(mixed, flats["price"].to_numpy())
    # The first column has the name that the model gives to the second.
    table = flats.rename(columns={"area": "x1", "city": "x0"})
    found = collect(model, table[["x1", "x0"]], table["price"])
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {"price": "number", "x1": "number", "x0": "category"}
    assert {one.name: one.kind for one in found.targets[0].dependence} == {
        "x1": "number",
        "x0": "category",
    }
    by_place = collect(model, mixed, flats["price"].to_numpy())
    strength = {one.column: one.strength for one in by_place.targets[0].relevance}
    shown = {one.column: one.strength for one in found.targets[0].relevance}
    assert (shown["x1"], shown["x0"]) == (strength["x0"], strength["x1"])


def test_a_pipeline_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = X["b"] + rng.normal(0.0, 0.1, size=40)
    model = make_pipeline(StandardScaler(), quick()).fit(X, y)
    found = collect(model, X, y)
    last = model[-1].predict_dist(model[:-1].transform(X))
    assert found.targets[0].scores.model == evaluate(y, last)
    assert found.targets[0].dependence[0].name == "b"
    assert found.targets[0].dependence[0].x[0] == pytest.approx(np.quantile(X["b"], 0.01))


def test_a_pruned_model_has_no_network_before(pipeline, flats):
    pruned = pipeline.prune(0.4)
    found = collected(pruned, flats, "price")
    assert found.network.was_pruned
    assert found.network.before is None
    assert found.fit.bound == ()
    before = found.network.sizes[2][1]
    assert before == collected(pipeline, flats, "price").network.sizes[2][1]


@pytest.mark.parametrize(
    ("status", "converged", "words"),
    [
        ("converged", True, "Converged."),
        ("stopped early (validation)", True, "Ended where it should."),
        ("iteration limit", False, "Not converged."),
    ],
)
def test_whether_it_converged(status, converged, words):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    model = quick(tol=1.0).fit(X, X[:, 0])
    model.status_, model.converged_ = status, converged
    found = structure.fit_facts(model)
    assert found.verdict == words
    assert ("max_iter" in found.reason) == (status == "iteration limit")


def test_many_rows_are_sampled(pipeline, flats, monkeypatch):
    monkeypatch.setattr(content, "MOST_ROWS", 30)
    found = collected(pipeline, flats, "price")
    assert (found.n_rows, found.n_given) == (30, len(flats))
    rows = [int(one.row) for one in found.targets[0].scores.surprises]
    assert len(set(rows)) == 20
    kept = flats.loc[[int(row) for row in found.targets[0].scores.pairs.rows]]
    np.testing.assert_array_equal(found.targets[0].scores.pairs.actual, kept["price"])


def test_bad_input(pipeline, flats, two_targets):
    with pytest.raises(ValueError, match="coverage must lie strictly between"):
        collect(pipeline, flats, "price", coverage=1.5)
    with pytest.raises(ValueError, match="max_inputs must be a whole number"):
        collect(pipeline, flats, "price", max_inputs=0)
    with pytest.raises(ValueError, match=r"train must be a pair \(X, y\) of"):
        collect(pipeline, flats, "price", train=flats)
    with pytest.raises(ValueError, match="sample_weight are all zero"):
        collect(pipeline, flats, "price", sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        collect(pipeline, flats, "price", sample_weight=np.full(80, -1.0))
    with pytest.raises(ValueError, match="row_numbers has 1 entries, but X has 80 rows"):
        collect(pipeline, flats, "price", row_numbers=[1])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\), but X has 80 rows"):
        collect(pipeline, flats, "price", sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="y has 1 targets, but the model was fitted to 2"):
        collect(two_targets, flats, "price")
    with pytest.raises(ValueError, match="a report needs rows in memory, got a str"):
        collect(pipeline, "flats.csv", "price")
    with pytest.raises(TypeError, match="model must be a fitted BowTieRegressor"):
        collect(BayesianRidge(), flats, "price")
    with pytest.raises(ValueError, match="X lacks the column that training had: 'city'"):
        collect(pipeline, flats.drop(columns="city"), "price")


def test_rows_are_chosen_before_they_are_prepared():
    table = make_flats(12)
    model = make_table_pipeline(quick()).fit(table, "price")
    rows = read_rows(model, table, "price", most=5)
    assert rows.n_rows == 5
    assert rows.inputs().shape == (5, model.regressor_.n_features_in_)
