"""What a fitted model says of itself: scores of held-out rows, text, tables and a card."""

from __future__ import annotations

import pickle
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

from bowtienet._old import BowTieClassifier, BowTieRegressor, load
from bowtienet._old.estimators.text_tables import readable, text_table
from tests._old.estimators.shown_fits import EVIL, FEATURES, N_ROWS, fitted, table

TARGETS = ["price", "grade", "visits", ("price", "height")]


class Tags(HTMLParser):
    """Tags of a page, and whether those that are opened are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def fresh(target: str) -> Any:
    """A copy of a fitted model of which nothing but the fit is known."""
    model = pickle.loads(pickle.dumps(fitted(target)))
    model.__dict__.pop("importance_", None)
    return model


def card(model: Any) -> str:
    """The part of a notebook's page that is ours."""
    page = model._repr_mimebundle_()["text/html"]
    return str(page[: page.index("<style>")])


@pytest.mark.parametrize("target", TARGETS)
def test_scores_are_of_held_out_rows_in_the_users_unit(target: Any) -> None:
    """Near what the model reaches on its own rows, and on the worse side of it in the mean."""
    model = fitted(target)
    scores = model.summary().scores
    names = list(target) if isinstance(target, tuple) else target
    X, y = table()[FEATURES], table()[names]
    assert model.ensemble_.cross_fitted.n_rows == N_ROWS
    if target == "grade":
        assert scores["accuracy"].iloc[0] == pytest.approx(model.score(X, y), abs=0.15)
        assert scores["log_loss"].iloc[0] == pytest.approx(-model.log_score(X, y), abs=0.2)
        return
    errors = np.sqrt(np.mean((model.predict(X) - y.to_numpy()) ** 2, axis=0))
    assert scores["rmse"].to_numpy() == pytest.approx(errors, rel=0.4)
    assert np.all(scores["mae"] < scores["rmse"])
    density = scores["log_probability" if target == "visits" else "log_density"].mean()
    assert density == pytest.approx(model.log_score(X, y), abs=0.5)
    assert np.all((scores["coverage"] > 0.8) & (scores["coverage"] <= 1.0))
    if target != "visits":
        spread = y.to_numpy().std(axis=0)
        expected = 1.0 - (scores["rmse"].to_numpy() / spread) ** 2
        assert scores["r2"].to_numpy() == pytest.approx(expected)


@pytest.mark.parametrize("target", TARGETS)
def test_the_text_has_scores_ensemble_and_columns(target: Any) -> None:
    model = fitted(target)
    found = model.summary()
    text = repr(found)
    for word in (
        "held out",
        "networks see",
        "column",
        "strength",
        "area",
        f"{N_ROWS} distinct rows",
    ):
        assert word in text
    assert max(map(len, text.split("importance:")[0].splitlines())) <= 90  # one name is long
    assert len(found.ensemble) == len(model.ensemble_.members)
    assert found.ensemble["weight"].sum() == pytest.approx(1.0)
    assert found.columns.index.tolist() == FEATURES
    assert found.columns.loc["city", "use"].startswith("2 categories")


def test_importance_is_there_once_it_was_computed() -> None:
    model = fresh("price")
    assert model.summary().importance is None
    found = model.importance(table()[FEATURES], table()["price"], n_repeats=2)
    assert model.importance_ is found
    assert model.summary().importance.equals(found.to_frame())
    assert "importance: price" in repr(model.summary())
    model.set_params(n_estimators=1).fit(table()[FEATURES][:8], table()["price"][:8])
    assert not hasattr(model, "importance_")


def test_p_values_are_there_once_structure_was_tested() -> None:
    model = fresh("price")
    assert "p_value" not in model.summary().columns
    model.structure(table()[FEATURES], table()["price"])
    columns = model.summary().columns
    np.testing.assert_array_equal(columns["p_value"], model.structure_.p_values)


def test_files_keep_the_scores(tmp_path: Path) -> None:
    for target in ("price", "grade"):
        model = fresh(target)
        model.save(tmp_path / "model.btn")
        assert repr(load(tmp_path / "model.btn").summary()) == repr(model.summary())


def test_a_fit_that_held_no_rows_out_says_so() -> None:
    model = BowTieRegressor((4,), n_estimators=1, random_state=0)
    model.fit(table()[["area", "city"]][:8], table()["price"][:8])
    found = model.summary()
    assert "held no row out" in repr(found)
    assert len(found.scores) == 0
    assert "<svg" not in card(model)


@pytest.mark.parametrize("target", TARGETS)
def test_the_card_is_sound_and_escapes_every_name(target: Any) -> None:
    found = card(fitted(target))
    tags = Tags(found)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "b" not in tags.seen or tags.seen.count("b") == 1
    assert any(EVIL[:20] in text for text in tags.texts)
    svg = re.search(r"<svg.*</svg>", found)
    assert svg is not None
    polyline = ET.fromstring(svg[0]).find("polyline")
    assert polyline is not None
    curve = fitted(target).ensemble_.cross_fitted.observed[0]
    assert len(polyline.get("points", "").split()) == len(curve)


def test_notebooks_show_what_scikit_learn_shows_of_unfitted_models() -> None:
    for model in (BowTieRegressor(), BowTieClassifier()):
        page = model._repr_mimebundle_()["text/html"]
        assert page.lstrip().startswith("<style>")
        with pytest.raises(NotFittedError):
            model.summary()
    with sklearn.config_context(display="text"):
        assert set(fitted("price")._repr_mimebundle_()) == {"text/plain"}
    assert fitted("price")._repr_html_().startswith("<div")


def test_numbers_and_texts_of_tables() -> None:
    assert [readable(value) for value in (43487.5, 0.90344, -12.0431, 1e12)] == [
        "43,488",
        "0.9034",
        "-12.04",
        "1e+12",
    ]
    lines = text_table(("a", "b", "c"), [("x", "y", "1"), ("xx", "yyy", "10")], n_texts=2)
    assert lines.splitlines() == ["a   b     c", "x   y     1", "xx  yyy  10"]
