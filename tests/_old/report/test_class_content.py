"""Reports about classes: the numbers are those of direct computation, and texts stay texts."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions
from bowtienet._old.evaluation import evaluate_classes
from bowtienet._old.plotting.fitted import encoded_features, open_rows
from bowtienet._old.report import class_sentences, collect, write_report
from bowtienet._old.report.page import render, sections
from bowtienet._old.report.verdict import verdicts
from bowtienet._old.report.wording import number, percent
from tests._old.report.fits import IMAGE, SCRIPT, TARGET
from tests._old.report.pages import Page


def classifier() -> BowTieClassifier:
    options = FitOptions(weighting="equal", tol=1e-2)
    return BowTieClassifier((4,), n_estimators=2, max_iter=20, random_state=0, options=options)


def make_pets(n_rows: int = 90, seed: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size, coat = rng.normal(size=n_rows), rng.choice(["short", "long"], size=n_rows)
    score = 2.0 * size + (coat == "long") + 0.5 * rng.normal(size=n_rows)
    pet = np.select([score < -0.6, score > 1.2], ["cat", "dog"], "fox")
    return pd.DataFrame({"size": size, "coat": coat, "pet": pet, "tame": score > 0.3})


@pytest.fixture(scope="module")
def pets():
    return make_pets()


@pytest.fixture(scope="module")
def three(pets):
    return classifier().fit(pets.drop(columns="tame"), "pet")


@pytest.fixture(scope="module")
def found(three, pets):
    return collect(three, pets.drop(columns="tame"), "pet")


@pytest.fixture(scope="module")
def page(found):
    return Page(render(found))


def test_scores_are_those_of_evaluate_classes(found, three, pets):
    X, y = pets[["size", "coat"]], pets["pet"].to_numpy()
    ours = evaluate_classes(y, three.predict_proba(X), three.classes_)
    assert asdict(found.classes.model) == pytest.approx(asdict(ours), nan_ok=True)
    shares = [np.mean(y == label) for label in three.classes_]
    constant = evaluate_classes(y, np.tile(shares, (len(y), 1)), three.classes_)
    assert asdict(found.classes.shares) == pytest.approx(asdict(constant), nan_ok=True)
    assert found.targets == ()


def test_the_logistic_regression_is_cross_fitted_or_fitted_to_the_training_rows(three, pets):
    table = pets.drop(columns="tame")
    source = open_rows(three, table, "pet")
    X, y = encoded_features(three, source), pets["pet"].to_numpy()
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probabilities = np.empty((len(y), 3))
    for train, held in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        probabilities[held] = line.fit(X[train], y[train]).predict_proba(X[held])
    expected = asdict(evaluate_classes(y, probabilities, three.classes_))
    told = collect(three, table, "pet").classes
    assert asdict(told.baseline) == pytest.approx(expected, nan_ok=True)
    assert "cross-fitted in 5 folds" in told.baseline_words

    new = make_pets(40, 501).drop(columns="tame")
    told = collect(three, new, "pet", train=(table, "pet"), seen=False).classes
    rows = encoded_features(three, open_rows(three, new, "pet"))
    found = line.fit(X, y).predict_proba(rows)
    expected = asdict(evaluate_classes(new["pet"].to_numpy(), found, three.classes_))
    assert asdict(told.baseline) == pytest.approx(expected, nan_ok=True)
    assert told.baseline_words == "fitted to 90 training rows"
    assert told.shares_words == "the training rows"


def test_every_section_is_there_and_numbers_reach_it(page, found):
    for place, _ in sections(found):
        assert page.by_id(place).tag == "h2"
    cells = ["".join(cell.texts).split(" ")[0] for cell in page.all("td")]  # without intervals
    own = found.classes
    for scores in (own.model, own.shares, own.baseline):
        assert number(scores.log_loss) in cells
        assert percent(scores.accuracy) in cells
    text = page.by_id("main").text
    assert "BowTieClassifier" in render(found)
    assert "predict_proba" in text
    for absent in ("RMSE", "predict_interval", "Residuals", "area under the ROC", "nan"):
        assert absent not in text
    images = [one.attributes["aria-label"] for one in page.all("svg")]
    assert len(images) == len(set(images)) == 9


def test_two_classes_have_an_area_and_surprises_come_first(pets):
    table = pets.drop(columns="pet")
    model = classifier().fit(table, "tame")
    told = collect(model, table, "tame", row_numbers=range(1, 91)).classes
    assert told.classes == ("False", "True")
    fields = [field for field, _, _ in class_sentences.scores(told.model)]
    assert "roc_auc" in fields
    p = model.predict_proba(table[["size", "coat"]])[np.arange(90), pets["tame"].astype(int)]
    assert [one.row for one in told.surprises[:3]] == [str(1 + row) for row in np.argsort(p)[:3]]
    assert told.surprises[0].probability == pytest.approx(p.min())


def test_rows_of_one_class_have_no_curves(three, pets):
    some = pets[pets["pet"] == "cat"].drop(columns="tame")
    told = collect(three, some.iloc[:3], "pet")
    assert told.classes.roc is None
    assert told.classes.baseline is None
    text = Page(render(told)).by_id("main").text
    assert "of one class" in text
    assert "too few rows for a logistic regression" in text


def test_the_card_says_how_good_it_is(found):
    [card] = verdicts(found)
    facts = dict(card.facts)
    for scores in (found.classes.model, found.classes.baseline, found.classes.shares):
        assert number(scores.log_loss) in facts["Loss"]
    assert percent(found.classes.model.accuracy) in facts["Hits"]
    assert percent(found.classes.model.calibration_error) in facts["Probabilities"]


def test_cards_follow_the_numbers(found):
    own = found.classes
    compared = own.scores["log_loss"]

    def headline(low, high, **settings):
        change = replace(compared.difference, low=low, high=high)
        scores = own.scores | {"log_loss": replace(compared, difference=change)}
        other = replace(found, classes=replace(own, scores=scores, **settings))
        [card] = verdicts(other)
        return card

    assert headline(-0.3, -0.1).headline == "Better than logistic regression"
    assert headline(0.1, 0.3).tone == "poor"
    assert "within chance" in headline(-0.1, 0.1).headline
    assert "Off" in dict(headline(-0.3, -0.1, chance_error=0.0).facts)["Probabilities"]
    [few] = verdicts(replace(found, n_effective=19))
    assert few.headline == "Too few rows to judge"


def test_labels_that_would_run_are_texts(pets):
    label = pets["pet"].map({"cat": SCRIPT, "dog": IMAGE, "fox": "$x^{$"})
    table = pd.DataFrame({"size": pets["size"], TARGET: label})
    text = render(collect(classifier().fit(table, TARGET), table, TARGET))
    assert SCRIPT not in text
    assert IMAGE not in text
    assert text.count("<script>") == 1


def test_long_labels_that_begin_alike_stay_apart(pets):
    label = pets["pet"].map({"cat": "a" * 40 + "1", "dog": "a" * 40 + "2", "fox": "b"})
    table = pd.DataFrame({"size": pets["size"], "y": label})
    told = collect(classifier().fit(table, "y"), table, "y").classes
    assert len(set(told.classes)) == 3


def test_counts_have_no_report(tmp_path):
    X = np.random.default_rng(500).normal(size=(40, 1))
    options = FitOptions(weighting="equal", tol=1e-2)
    model = BowTieRegressor((2,), n_estimators=1, max_iter=50, outcome="counts", options=options)
    model.fit(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="counts"):
        write_report(model, X, np.arange(40) % 3, tmp_path / "page.html")
