"""The page: what it says of good and useless models, that it is alone, and how it looks."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.report import write_report
from bowtienet.report.assessment import assess
from bowtienet.report.columns import groups, importances, outside

SETTINGS: dict[str, Any] = {"effort": "fast", "random_state": 0}
ODD = "<script>alert(1)</script> $x"


def table(rng: np.random.Generator, n_rows: int = 240) -> pd.DataFrame:
    city = rng.choice(["Lima", "Oslo & <b>"], n_rows)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n_rows), unit="D")
    columns = {ODD: rng.uniform(-2.0, 2.0, n_rows), "noise": rng.normal(size=n_rows)}
    return pd.DataFrame({**columns, "city": city, "when": when})


@pytest.fixture(scope="module")
def numbers() -> tuple[Any, pd.DataFrame, pd.Series]:
    """A model of the first half of the rows."""
    rng = np.random.default_rng(0)
    X = table(rng)
    y = pd.Series(np.abs(X[ODD]) + 0.2 * rng.normal(size=len(X)), name="bent <i>")
    return BowTieRegressor(**SETTINGS).fit(X[:120], y[:120]), X, y


def page_of(model: Any, X: Any, y: Any, path: Path, **more: Any) -> str:
    scores = write_report(model, X, y, path, **more)
    assert scores.n_rows == len(y)
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    assert not re.search(r'(?:src|href)="(?!data:)|@import|url\(', text)
    assert "<script" not in text
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_numbers_better_than_a_line(numbers: Any, tmp_path: Path) -> None:
    model, X, y = numbers
    training = (X[:120], y[:120], None)
    text = page_of(model, X[120:], y[120:], tmp_path / "page.html", training=training)
    assert "Better than a linear model" in text
    assert "bent &lt;i&gt;" in text
    assert text.count("<img") == 4
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]
    result = assess(model, X[120:], y[120:], training=training)
    ours, linear = result.means["bow tie"]["crps"], result.means["linear"]["crps"]
    gain = result.gains["linear"]
    assert gain["value"] == pytest.approx(1.0 - ours / linear)
    assert gain["low"] < gain["value"] < gain["high"]
    assert result.sureness["value"] == pytest.approx(result.hits.mean())


def test_a_useless_model_is_said_to_be(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = rng.normal(size=(400, 2)), rng.normal(size=400)
    model = BowTieRegressor(**SETTINGS).fit(X[:100], y[:100])
    rows = {"training": (X[:100], y[:100], None)}  # with a false alarm in one of twenty draws
    text = page_of(model, X[100:], y[100:], tmp_path / "page.html", **rows)
    assert "do not clearly predict" in text


def test_classes(rng: np.random.Generator, tmp_path: Path) -> None:
    X = table(rng)
    y = np.where(np.abs(X[ODD]) > 1.0, "far", "near")
    model = BowTieClassifier(**SETTINGS).fit(X[:120], y[:120])
    X.loc[130, "city"] = "Quito"
    with pytest.warns(UserWarning, match="levels that training did not have") as caught:
        text = page_of(model, X[120:], y[120:], tmp_path / "page.html")
    assert len(caught) == 1
    assert "Better than a linear model" in text
    assert "log loss" in text


def test_counts_by_exposure(rng: np.random.Generator, tmp_path: Path) -> None:
    X, years = rng.normal(size=(200, 2)), rng.uniform(0.5, 4.0, 200)
    y = rng.poisson(years * np.exp(X[:, 0]))
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = BowTieCountRegressor(**SETTINGS).fit(frame[:100], y[:100], exposure=years[:100])
    training = (frame[:100], y[:100], years[:100])
    path = tmp_path / "page.html"
    text = page_of(model, frame[100:], y[100:], path, exposure=years[100:], training=training)
    assert "too wide" not in text  # whole numbers hold more than stated
    result = assess(model, frame[100:], y[100:], exposure=years[100:], training=training)
    with pytest.warns(UserWarning, match="the fit had exposures"):
        blind = assess(model, frame[100:], y[100:])
    assert result.means["bow tie"]["crps"] < blind.means["bow tie"]["crps"]


def test_the_column_that_matters_is_first(numbers: Any, rng: np.random.Generator) -> None:
    """Of many columns only those related to predictions are tried."""
    model, X, y = numbers
    ranked = importances(model, X[120:], y[120:])
    assert ranked[0]["column"] == ODD
    assert ranked[0]["is_clear"]
    assert len(ranked) == 4
    X = rng.normal(size=(150, 60))
    y = 3.0 * X[:, 41] + rng.normal(size=150)
    ranked = importances(BowTieRegressor(**SETTINGS).fit(X, y), X, y)
    assert (ranked[0]["column"], len(ranked)) == (41, 30)


def test_a_group_with_too_few_hits_is_doubtful(rng: np.random.Generator) -> None:
    X = table(rng, 300)
    stated = np.full(300, 0.9)
    hits = rng.random(300) < np.where(X["city"] == "Lima", 0.4, 0.95)
    found = groups(X, hits, stated)
    assert found[0]["name"] == "city = Lima"
    assert found[0]["is_doubtful"]
    assert not any(group["is_doubtful"] for group in groups(X, rng.random(300) < 0.9, stated))


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_too_few_rows_and_rows_outside_training(numbers: Any) -> None:
    model, X, y = numbers
    with pytest.raises(ValueError, match="at least two rows"):
        write_report(model, X[:1], y[:1], "page.html")
    with pytest.raises(FileNotFoundError, match="no folder absent: create it"):
        write_report(model, X, y, "absent/page.html")
    rows = X[:10].copy()
    assert outside(model, rows) == (0, [])
    rows.loc[3, "noise"] = 50.0
    assert outside(model, rows) == (1, [("noise", 1)])


@pytest.mark.browser
def test_in_a_browser(numbers: Any, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium is installed")
    from selenium import webdriver

    model, X, y = numbers
    page_of(model, X[120:], y[120:], tmp_path / "page.html")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    flags = "headless no-sandbox disable-gpu disable-quic no-first-run disable-sync"
    for flag in (*flags.split(), "disable-background-networking", "disable-component-update"):
        options.add_argument("--" + flag)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options.add_argument(f"--user-data-dir={profile}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        with webdriver.Chrome(options=options, service=service) as driver:
            for width in (1280, 390):
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                driver.get((tmp_path / "page.html").as_uri())
                wide = driver.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width
                shown = "return [...document.images].every(i => i.complete && i.naturalWidth > 99)"
                assert driver.execute_script(shown)
                end = "return document.querySelector('.answers').getBoundingClientRect().bottom"
                assert width < 1280 or driver.execute_script(end) <= 800
            assert driver.get_log("browser") == []
