"""The what-if panel in headless Chromium computes what Python computes, and says when it cannot."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet._old import BowTieClassifier, BowTieRegressor
from bowtienet._old.ensemble.class_ensemble import class_probabilities
from bowtienet._old.ensemble.ensemble import mixture
from bowtienet._old.plotting.fitted import encoded_features, open_rows
from bowtienet._old.report import whatif, write_report
from bowtienet._old.report.content import read_contents
from bowtienet._old.report.exported_model import export_model, exported_bytes
from bowtienet._old.report.sampled_rows import read_rows
from bowtienet._old.report.targets import ranked_features
from bowtienet._old.report.training_ranges import training_ranges
from bowtienet._old.report.whatif import what_if
from bowtienet._old.representation.columns import owners
from tests._old.report.browser import ask, show
from tests._old.report.fits import make_flats

CLOSE = 1e-9
"""Relative; the promise is 1e-6."""
COVERAGE = 0.9
REGRESSORS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pieces": {"features": "piecewise", "target_transform": "yeo-johnson"},
    "principal": {"features": "principal", "noise": "constant"},
    "student_t": {"outcome": "student_t"},
    "deep": {"hidden_layer_sizes": (5, 4)},
    "linear": {"hidden_layer_sizes": ()},
}


def make_homes() -> pd.DataFrame:
    table = make_flats(150, seed=500)
    table.loc[::11, "city"] = None
    table["size"] = np.select(
        [table["price"] < 100.0, table["price"] > 250.0], ["low", "high"], "mid"
    )
    return table.assign(dear=table["price"] > 180.0)


HOMES = make_homes()
FEATURES = ["city", "area", "new", "built"]


@cache
def fitted(name: str) -> BowTieRegressor:
    return fit_numbers(**REGRESSORS[name])


def fit_numbers(**settings: Any) -> BowTieRegressor:
    given = {"hidden_layer_sizes": (6,), "effort": "fast", "random_state": 500} | settings
    return BowTieRegressor(**given).fit(HOMES[FEATURES], HOMES["price"])


def fit_classes(target: str) -> BowTieClassifier:
    model = BowTieClassifier((5,), effort="fast", random_state=500)
    return model.fit(HOMES[[*FEATURES, target]], target)


@pytest.fixture(scope="module")
def numbers() -> BowTieRegressor:
    """With bins, a warp, levels of noise and ranges of training."""
    return fitted("pieces")


def settings_of(model: Any, chosen: list[int]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Columns of the panel, a dozen encoded rows (12, E), and the base row of each."""
    encoded = encoded_features(model, open_rows(model, HOMES[FEATURES]))
    panel = np.concatenate([np.flatnonzero(owners(model.columns_) == one) for one in chosen])
    rng, bases = np.random.default_rng(500), [k % 3 for k in range(12)]
    asked = encoded[bases]
    asked[:, panel] = encoded[rng.integers(len(encoded), size=12)][:, panel]
    # The last ones lie outside the range of training.
    asked[9:, panel] += 2.0 * encoded[:, panel].std(axis=0)
    return panel, asked, bases


def computed(driver: Any, model: Any, panel: np.ndarray, asked: np.ndarray, bases: list[int]):
    """What the script makes of rows."""
    found = export_model(
        model.ensemble_, panel, encoded_features(model, open_rows(model, HOMES[FEATURES]))[:3]
    )
    driver.get("about:blank")
    place = importlib.resources.files("bowtienet._old.report") / "templates" / "whatif.js"
    driver.execute_script(place.read_text(encoding="utf-8"))
    return np.array(
        driver.execute_script(
            """const [structure, numbers, asked, bases, levels, ofClasses] = arguments;
            const model = bowtienet.read(JSON.parse(structure), numbers);
            return asked.map((row, k) => {
              const x = bowtienet.standardized(model, row);
              if (ofClasses) { return Array.from(bowtienet.predictClasses(model, x, bases[k])); }
              const p = bowtienet.predictNumber(model, x, bases[k], 0, levels);
              return [p.mean, p.deviation, ...p.quantiles];
            });""",
            json.dumps(found.structure),
            found.numbers,
            asked[:, panel].tolist(),
            bases,
            [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE],
            hasattr(model, "classes_"),
        )
    )


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [1, 0]], ids=["all", "some"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_means_deviations_and_intervals_are_those_of_python(driver, name, chosen):
    model = fitted(name)
    panel, asked, bases = settings_of(model, chosen)
    forecast = mixture(model.ensemble_, asked).of_target(0)
    expected = np.column_stack([forecast.mean(), forecast.std(), forecast.interval(COVERAGE)])
    np.testing.assert_allclose(
        computed(driver, model, panel, asked, bases), expected, rtol=CLOSE, atol=0.0
    )


@pytest.mark.parametrize("target", ["size", "dear"])
def test_probabilities_are_those_of_python(driver, target):
    model = fit_classes(target)
    panel, asked, bases = settings_of(model, [1, 0])
    expected = class_probabilities(model.ensemble_, asked)
    found = computed(driver, model, panel, asked, bases)
    np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=1e-15)


def panel_of(model: Any, **settings: Any) -> whatif.WhatIf:
    rows = read_rows(model, HOMES[FEATURES], HOMES["price"], most=1000)
    return what_if(
        model,
        rows,
        read_contents(model, rows),
        ranking=ranked_features(model, None),
        bases=[(0, "first"), (5, "sixth")],
        ranges=training_ranges(model, None),
        coverage=COVERAGE,
        targets=[whatif.PanelTarget(name="price", kind="number", low=0.0, high=400.0)],
        **settings,
    )


def test_features_are_left_out_until_the_numbers_fit(numbers):
    whole = panel_of(numbers)
    assert {one.name for one in whole.features} == set(FEATURES)
    assert whole.others == ()
    some = panel_of(numbers, most_bytes=len(whole.numbers) // 2)
    assert 0 < len(some.features) < len(FEATURES)
    assert {one.name for one in some.features} | set(some.others) == set(FEATURES)
    assert len(some.numbers) < 1.1 * len(whole.numbers) // 2
    panel = np.arange(len(owners(numbers.columns_)))
    assert exported_bytes(numbers.ensemble_, panel, 1) == pytest.approx(len(whole.numbers), rel=0.1)


def test_a_model_that_is_too_large_or_iterated_has_a_sentence(numbers):
    large = panel_of(numbers, most_bytes=1000)
    assert "limit is 0.001 MB" in large.reason
    assert large.numbers == ""
    iterated = fit_numbers(hidden_layer_sizes=(2,))
    iterated.ensemble_ = replace(iterated.ensemble_, propagation="variational")
    assert "iterated" in panel_of(iterated).reason


def test_controls_are_those_of_the_columns(numbers):
    found = {one.name: one for one in panel_of(numbers).features}
    assert found["city"].categories == ("Lima", "Oslo", "Rome")
    assert found["city"].has_missing
    assert found["built"].kind == "date"
    area = found["area"]
    assert (area.low, area.high) == (HOMES["area"].min(), HOMES["area"].max())
    assert area.step == 1.0
    assert found["new"].high == 1.0


@pytest.fixture(scope="module")
def page(numbers, tmp_path_factory):
    path = tmp_path_factory.mktemp("panel") / "page.html"
    write_report(numbers, HOMES[FEATURES], HOMES["price"], path, max_features=1)
    return path


def moved(driver: Any, feature: str, value: str, control: str = "") -> None:
    """Move a control as a hand would."""
    place = ask(
        driver,
        "[...document.querySelectorAll('.feature')]"
        f".findIndex(f => f.innerText.includes('{feature}'))",
    )
    driver.execute_script(
        f"""const f = document.querySelectorAll('.feature')[{place}];
        const c = f.querySelector("{control or "select, [type=range]"}");
        if (c.type === 'checkbox') {{ c.checked = true; }} else {{ c.value = '{value}'; }}
        c.dispatchEvent(new Event('input', {{ bubbles: true }}));"""
    )


def told(driver: Any) -> list[float]:
    own = ask(driver, "({...document.getElementById('panel').dataset})")
    return [float(own[name]) for name in ("mean", "deviation", "low", "high")]


def expected(model: Any, **values: Any) -> list[float]:
    row = pd.DataFrame([values])[FEATURES]
    [mean], [deviation] = model.predict(row, return_std=True)
    return [mean, deviation, *model.predict_interval(row, COVERAGE).to_numpy()[0]]


def test_moving_the_controls_of_a_page(driver, page, numbers):
    show(driver, page)
    moved(driver, "city", "1")
    moved(driver, "area", "95")
    moved(driver, "new", "1")
    moved(driver, "built", "12000")
    built = pd.Timestamp("1970-01-01") + pd.Timedelta(days=12000)
    home = {"city": "Oslo", "area": 95.0, "new": True, "built": built}
    assert told(driver) == pytest.approx(expected(numbers, **home), rel=1e-6)
    words = ask(driver, "document.querySelector('[data-role=words]').innerText")
    assert f"{expected(numbers, **home)[0]:.1f}" in words
    assert ask(driver, "document.querySelector('[data-role=note]').hidden")
    # A number that training did not have, in the box beside the slider.
    moved(driver, "area", "400", "[data-role=box]")
    assert told(driver) == pytest.approx(expected(numbers, **home | {"area": 400.0}), rel=1e-6)
    largest = f"{HOMES['area'].max():.0f}"
    note = ask(driver, "document.querySelector('[data-role=note]').innerText")
    assert note == f"Outside the training range: area = 400, training maximum {largest}."
    moved(driver, "area", "", "[type=checkbox]")
    moved(driver, "city", "missing")
    gaps = home | {"area": np.nan, "city": None}
    assert told(driver) == pytest.approx(expected(numbers, **gaps), rel=1e-6)
    driver.execute_script("document.querySelector('[data-role=reset]').click()")
    assert told(driver) != pytest.approx(expected(numbers, **gaps), rel=1e-3)
    assert driver.get_log("browser") == []


def test_starting_from_a_row(driver, page, numbers):
    show(driver, page)
    names = ask(driver, "[...document.getElementById('panel-row').options].map(o => o.text)")
    place = next(k for k, name in enumerate(names) if "highest" in name)
    row = int(names[place].split()[1].rstrip(":"))
    assert row == HOMES["price"].idxmax()
    driver.execute_script(
        f"""const s = document.getElementById('panel-row'); s.value = '{place}';
        s.dispatchEvent(new Event('change'));"""
    )
    home = HOMES.loc[row, FEATURES].to_dict()
    assert told(driver) == pytest.approx(expected(numbers, **home), rel=1e-6)
    shown = ask(driver, "document.querySelector('.feature [type=number]').value")
    assert float(shown) in {home["area"], float(home["new"])}


def test_classes_on_a_page(driver, tmp_path):
    model, path = fit_classes("size"), tmp_path / "classes.html"
    write_report(model, HOMES[[*FEATURES, "size"]], "size", path)
    show(driver, path, 390)
    moved(driver, "area", "120")
    moved(driver, "new", "0")
    moved(driver, "city", "2")
    moved(driver, "built", "9000")
    built = pd.Timestamp("1970-01-01") + pd.Timedelta(days=9000)
    row = pd.DataFrame([{"city": "Rome", "area": 120.0, "new": False, "built": built}])
    [expected] = model.predict_proba(row)
    found = json.loads(ask(driver, "document.getElementById('panel').dataset.probabilities"))
    assert found == pytest.approx(expected.tolist(), rel=1e-6)
    words = ask(driver, "document.querySelector('[data-role=words]').innerText")
    assert words.startswith(str(model.classes_[np.argmax(expected)]))
    bars = ask(driver, "[...document.querySelectorAll('.shares li')].map(l => l.innerText)")
    assert [bar.split("\n")[0] for bar in bars] == model.classes_.tolist()
    assert ask(driver, "document.documentElement.scrollWidth") <= 390
    assert driver.get_log("browser") == []
