"""The page: complete, escaped, self-contained, accessible and small."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bowtienet._old.report import collect, render, write_report
from bowtienet._old.report.page import SECTIONS
from bowtienet._old.report.wording import percent
from tests._old.plotting.fits import quick
from tests._old.report.fits import IMAGE, SCRIPT, TARGET, fit_hostile
from tests._old.report.pages import Page

LIMIT = 4_000_000


@pytest.fixture(scope="module")
def content(model, flats):
    return collect(model, flats, "price")


@pytest.fixture(scope="module")
def text(content):
    return render(content)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture(scope="module")
def hostile():
    model, table = fit_hostile()
    return render(collect(model, table, TARGET, title=IMAGE, model_file=f"a b'{SCRIPT}.btn"))


def words(page: Page) -> str:
    return page.by_id("main").text


def test_every_section_is_there_and_linked(page):
    for place, _ in SECTIONS:
        assert page.by_id(place).tag == "h2"
    links = {element.attributes["href"] for element in page.all("a")}
    assert links == {"#main", *(f"#{place}" for place, _ in SECTIONS)}


def test_headings_are_in_order(page, two_targets, flats):
    two = Page(render(collect(two_targets, flats, ["price", "rent"], max_features=1)))
    for one in (page, two):
        levels = [int(e.tag[1]) for e in one.elements if re.fullmatch(r"h\d", e.tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_numbers_reach_the_page(page, content):
    [target] = content.targets
    cells = ["".join(cell.texts).split(" ")[0] for cell in page.all("td")]  # without intervals
    assert f"{target.model.rmse:.2f}" in cells
    assert f"{target.baseline.rmse:.2f}" in cells
    assert percent(target.model.coverage) in cells


def test_plots_have_words_and_tables_have_headers(page, content):
    plots, [target] = page.all("svg"), content.targets
    # The bound, six of the target, its residuals and bands, the network; and the panel's own.
    drawn = [e for e in plots if e.attributes["class"] == "plot"]
    assert len(drawn) == 1 + 6 + len(target.feature_residuals) + len(target.strong) + 1
    assert len(plots) == len(drawn) + 1
    plots = drawn
    assert len(target.strong) >= 2
    assert all(e.attributes["role"] == "img" and e.attributes["aria-label"] for e in plots)
    assert all(e.attributes.get("scope") in ("row", "col") and e.text for e in page.all("th"))
    boxes = [e for e in page.elements if e.attributes.get("class") == "box"]
    assert len(boxes) > 4
    assert all(e.attributes["tabindex"] == "0" and e.attributes["aria-label"] for e in boxes)
    crosses = [e.text for e in page.all("td") if "✗" in e.text]
    assert crosses
    assert all(text.endswith("outside") for text in crosses)
    names = [e.attributes.get("id") for e in page.elements if e.attributes.get("id")]
    assert len(names) == len(set(names))
    for label in page.all("label"):
        assert page.by_id(label.attributes["for"]).tag in ("select", "input")
    assert page.all("html")[0].attributes["lang"] == "en"


def test_nothing_is_loaded(text, hostile):
    for one in (text, hostile):
        found = Page(one)
        for element in found.elements:
            assert element.tag not in ("iframe", "object", "embed", "base", "form", "img")
            for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                value = element.attributes.get(name)
                assert value is None or value.startswith(("#", "data:")), (element.tag, value)
        assert not re.search(r"url\(|@import", "".join(s.text for s in found.all("style")))
        assert not re.search(
            r"fetch\(|XMLHttp|import\(", "".join(s.text for s in found.all("script"))
        )


def test_only_the_script_and_the_style_of_the_page_count(text, hostile):
    for one in (text, hostile):
        found = Page(one)
        [policy] = [e for e in found.all("meta") if "http-equiv" in e.attributes]
        content = policy.attributes["content"]
        for tag in ("script", "style"):
            [element] = found.all(tag)
            digest = hashlib.sha256("".join(element.texts).encode()).digest()
            assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in content
        assert "default-src 'none'" in content
        assert "unsafe" not in content
        attributes = [name for e in found.elements for name in e.attributes]
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_hostile_names_stay_text(hostile):
    found = Page(hostile)
    assert not found.all("b")
    assert found.all("h1")[0].text == IMAGE
    assert found.all("title")[0].text == IMAGE
    assert SCRIPT in [element.text for element in found.all("option")]
    assert TARGET in [element.text for element in found.all("th")]
    assert any(IMAGE in element.text for element in found.all("td"))
    assert SCRIPT in found.all("code")[-1].text
    assert any("<script…cript>" in element.text for element in found.all("text"))
    assert "\x00" not in hostile
    assert "\u202e" not in hostile


@pytest.mark.parametrize("seen", [True, False, None])
def test_the_reader_is_told_how_far_to_trust_the_scores(content, seen):
    found = Page(render(replace(content, is_seen=seen)))
    provenance = found.by_id("provenance").text
    assert ("too good" in provenance) == (seen is not False)
    assert ("held out" in provenance) == (seen is False)
    assert found.by_id("scores").text.startswith("Held-out" if seen is False else "Scores")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_given": 5000}, "A random 80 of 5,000 rows"),
        ({"n_targets": 15}, "The first 1 of 15 targets"),
        ({"n_columns": 305}, "The first 5 of 305 columns"),
        ({"n_effective": 30}, "weighted; effectively 30"),
        ({"rows_named_by": "file"}, "numbered as in the file"),
        ({"bound": None}, "no history of its bound"),
    ],
)
def test_what_is_left_out_is_told(content, change, told):
    assert told in words(Page(render(replace(content, **change))))
    assert told not in words(Page(render(content)))


@pytest.mark.parametrize("name", ["a\u202egpj.btn", "a\nb.btn", "a\udc80.btn", "a\u2066b.btn"])
def test_names_that_deceive_are_not_copied_to_a_shell(content, name):
    page = render(replace(content, model_file=name))
    assert name not in page
    assert "bowtienet predict" not in page
    assert "bowtienet predict plain.btn" in render(replace(content, model_file="plain.btn"))


def test_one_row(model, flats):
    assert "too few rows" in words(Page(render(collect(model, flats[1:2], "price"))))


def test_rows_that_do_not_vary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    model = quick(tol=0.1).fit(X, X[:, 0] + rng.normal(0.0, 0.1, size=40))
    assert "do not vary in x0" in words(Page(render(collect(model, np.ones((30, 1)), X[:30, 0]))))


def test_a_constant_target():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = pd.Series(np.full(30, 5.0), name="same")
    text = words(Page(render(collect(quick(tol=0.1).fit(X, y), X, y))))
    assert "No feature moves the prediction" in text


@pytest.mark.filterwarnings("ignore:max_iter:sklearn.exceptions.ConvergenceWarning")
def test_big_tables_make_small_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("bowtienet._old.report.content.MOST_ROWS", 1500)
    monkeypatch.setattr("bowtienet._old.plotting._along._MOST_AVERAGED", 10)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.normal(size=(3000, 99)), columns=[f"column {i} " + "x" * 40 for i in range(99)]
    )
    table["word"] = rng.choice([f"category {i}" for i in range(60)], size=3000)
    targets = table.iloc[:, :2].to_numpy() + rng.normal(size=(3000, 2))
    model = quick(hidden_layer_sizes=(50,), n_estimators=1, max_iter=2, tol=10.0, init="laplace")
    model.fit(table[:300], targets[:300])
    path = tmp_path / "big.html"
    write_report(model, table, targets, path)
    assert 100_000 < path.stat().st_size < LIMIT
    page = Page(path.read_text())
    assert page.all("image")[0].attributes["href"].startswith("data:image/png")
    assert "500 rows, chosen at random, are shown" in words(page)


def test_the_file_is_complete_or_absent(model, flats, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def fail(*_, **__):
        raise RuntimeError("no")

    monkeypatch.setattr("bowtienet._old.report.page.render", fail)
    with pytest.raises(RuntimeError, match="no"):
        model.report(flats, "price", path, max_features=1)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_mistakes_are_told_before_the_work(model, flats, tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="colour"):
        write_report(model, flats, "price", tmp_path / "report.html", colour="red")
    monkeypatch.setattr("bowtienet._old.report.page.collect", None)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        model.report(flats, "price", tmp_path)
    with pytest.raises(FileNotFoundError, match="none"):
        model.report(flats, "price", tmp_path / "none" / "report.html")
    for module in ("jinja2", "matplotlib"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(ImportError, match=module):
                model.report(flats, "price", tmp_path / "report.html")
    assert not [*tmp_path.iterdir()]


def test_the_method_writes_what_the_function_writes_and_tells_of_it(model, flats, tmp_path):
    told = []
    settings = {"max_features": 1, "title": "Flats", "model_file": "flats.btn"}
    model.report(
        flats, "price", tmp_path / "a.html", **settings, progress=lambda *a: told.append(a)
    )
    write_report(model, flats, "price", tmp_path / "b.html", **settings)
    a, b = (
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", (tmp_path / name).read_text())
        for name in ("a.html", "b.html")
    )
    assert a == b
    assert "bt.load(&#39;flats.btn&#39;)" in a
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] < 1.0
