"""The page: complete, escaped, self-contained, accessible and small."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bowtienet import make_table_pipeline
from bowtienet.report import collect, render, write_report
from bowtienet.report.page import SECTIONS
from bowtienet.report.wording import clean, percent
from tests.report.fits import IMAGE, SCRIPT, TARGET, fit_hostile, quick
from tests.report.pages import Page

LIMIT = 4_000_000
pytestmark = pytest.mark.filterwarnings(
    "ignore:Most members were still:sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture(scope="module")
def text(pipeline, flats):
    return render(collect(pipeline, flats, "price"))


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture(scope="module")
def hostile():
    model, table = fit_hostile()
    return render(collect(model, table, TARGET, title=IMAGE, model_file=f"a b'{SCRIPT}.btn"))


def test_every_section_is_there_and_linked(page):
    for place, _ in SECTIONS:
        assert page.by_id(place).tag == "h2"
    links = {element.attributes["href"] for element in page.all("a")}
    assert links == {"#main", *(f"#{place}" for place, _ in SECTIONS)}


def test_headings_are_in_order(page, two_targets, flats):
    two = Page(render(collect(two_targets, flats, ["price", "rent"], max_inputs=1)))
    for one in (page, two):
        levels = [int(e.tag[1]) for e in one.elements if re.fullmatch(r"h\d", e.tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_numbers_reach_the_page(page, pipeline, flats):
    scores = collect(pipeline, flats, "price", max_inputs=1).targets[0].scores
    cells = [element.text for element in page.all("td")]
    assert f"{scores.model.rmse:.2f}" in cells
    assert f"{scores.baseline.rmse:.2f}" in cells
    exact = ["".join(cell.texts) for cell in page.all("td")]
    assert percent(scores.model.coverage) in exact


def test_pictures_have_words_and_tables_have_headers(page):
    pictures = [e for e in page.all("svg") if e.attributes.get("aria-hidden") != "true"]
    assert len(pictures) > 8
    assert all(e.attributes["role"] == "img" and e.attributes["aria-label"] for e in pictures)
    assert all(e.attributes["alt"] for e in page.all("img"))
    assert all(e.attributes.get("scope") in ("row", "col") and e.text for e in page.all("th"))
    boxes = [e for e in page.elements if e.attributes.get("class") == "box"]
    assert len(boxes) > 5
    assert all(e.attributes["tabindex"] == "0" and e.attributes["aria-label"] for e in boxes)
    crosses = [e.text for e in page.all("td") if "✗" in e.text]
    assert crosses
    assert all(text.endswith("outside") for text in crosses)
    assert "share it as you would share them" in page.all("footer")[0].text
    names = [e.attributes.get("id") for e in page.elements if e.attributes.get("id")]
    assert len(names) == len(set(names))
    for label in page.all("label"):
        assert page.by_id(label.attributes["for"]).tag in ("select", "input")
    assert page.all("html")[0].attributes["lang"] == "en"


def test_nothing_is_loaded(text, hostile):
    for one in (text, hostile):
        found = Page(one)
        for element in found.elements:
            assert element.tag not in ("iframe", "object", "embed", "base", "form")
            for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                value = element.attributes.get(name)
                assert value is None or value.startswith(("#", "data:")), (element.tag, value)
        assert not re.search(r"url\(|@import", "".join(s.text for s in found.all("style")))
        assert not re.search(
            r"fetch\(|XMLHttp|import\(", "".join(s.text for s in found.all("script"))
        )


def test_only_the_script_of_the_page_may_run(text):
    found = Page(text)
    [script] = found.all("script")
    digest = base64.b64encode(hashlib.sha256("".join(script.texts).encode()).digest()).decode()
    [policy] = [e for e in found.all("meta") if "http-equiv" in e.attributes]
    content = policy.attributes["content"]
    assert f"script-src 'sha256-{digest}'" in content
    assert "default-src 'none'" in content
    assert not [n for e in found.elements for n in e.attributes if n.startswith("on")]


def test_hostile_names_stay_text(hostile):
    found = Page(hostile)
    assert len(found.all("script")) == 1
    assert not found.all("b")
    assert all(e.attributes["src"].startswith("data:image/") for e in found.all("img"))
    assert not [n for e in found.elements for n in e.attributes if n.startswith("on")]
    assert found.all("h1")[0].text == IMAGE
    assert found.all("title")[0].text == IMAGE
    options = [element.text for element in found.all("option")]
    assert SCRIPT in options
    headers = [element.text for element in found.all("th")]
    assert TARGET in headers
    assert any(IMAGE in element.text for element in found.all("td"))
    assert SCRIPT in found.all("code")[-1].text
    assert "\x00" not in hostile
    assert "\u202e" not in hostile


def test_drawings_of_hostile_names_are_sound_svg(hostile):
    sources = [e.attributes["src"] for e in Page(hostile).all("img")]
    assert len(sources) == 2
    for source in sources:
        head, data = source.split(",")
        assert head == "data:image/svg+xml;base64"
        root = ET.fromstring(base64.b64decode(data))
        tags = {element.tag.rsplit("}")[-1] for element in root.iter()}
        assert not tags & {"script", "img", "foreignObject", "image"}
        texts = "".join(root.itertext())
        assert clean(SCRIPT, 24) in texts
        assert "<!-- $x^{$" in texts


@pytest.mark.parametrize("seen", [True, False, None])
def test_the_reader_is_told_how_far_to_trust_the_scores(pipeline, flats, seen):
    found = Page(render(collect(pipeline, flats, "price", seen=seen, max_inputs=1)))
    words = found.by_id("provenance").text
    assert ("flatter" in words) == (seen is not False)
    assert ("were held out" in words) == (seen is not None)
    assert ("No rows" in words) == (seen is True)
    assert found.by_id("scores").text.startswith("Held-out" if seen is False else "Scores")


def test_one_row(pipeline, flats):
    found = Page(render(collect(pipeline, flats[1:2], "price")))
    assert "too few rows" in "".join(e.text for e in found.all("p"))


def test_a_constant_target_and_an_input_that_does_not_matter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = pd.Series(np.full(30, 5.0), name="same")
    model = make_table_pipeline(quick()).fit(X, y)
    found = Page(render(collect(model, X, y)))
    text = found.by_id("main").text
    assert "No input moves the prediction: no weight is sure enough" in text
    assert "The network is sure of no weight that leads from an input." in text
    assert "nothing is left, it predicts a constant" in text


def test_extreme_units(flats):
    for factor in (1e-30, 1e30):
        table = flats[["area", "price"]].dropna() * factor
        model = make_table_pipeline(quick()).fit(table, "price")
        text = render(collect(model, table, "price"))
        drawn = [
            e.attributes[n]
            for e in Page(text).elements
            for n in ("d", "cx", "y", "width")
            if n in e.attributes
        ]
        assert len(drawn) > 100
        assert not [word for word in drawn if "nan" in word or "inf" in word]


def test_a_big_table_makes_a_small_page(tmp_path, monkeypatch):
    # Fewer rows save time: of more than 1,200 no more points are drawn, and lines are as long.
    monkeypatch.setattr("bowtienet.report.content.MOST_ROWS", 1500)
    monkeypatch.setattr("bowtienet.report.inputs._AVERAGED", 10)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.normal(size=(5000, 99)), columns=[f"column {i} " + "x" * 40 for i in range(99)]
    )
    table["word"] = rng.choice([f"category {i}" for i in range(60)], size=5000)
    table["y"] = table.iloc[:, 0] + rng.normal(size=5000)
    settings = {"hidden_layer_sizes": (50,), "n_estimators": 1, "max_iter": 2, "tol": 10.0}
    model = make_table_pipeline(quick(**settings)).fit(table[:500], "y")
    path = tmp_path / "big.html"
    write_report(model, table, "y", path)
    assert 100_000 < path.stat().st_size < LIMIT
    page = Page(path.read_text())
    assert len(page.all("select")) == 1
    assert page.all("img")[0].attributes["src"].startswith("data:image/png")
    assert "1,200 rows, chosen at random, are shown" in page.by_id("main").text
    assert "All figures are of 1,500 rows, chosen at random from 5,000." in page.by_id("main").text


def test_many_targets_and_columns_make_a_small_page(tmp_path, monkeypatch):
    monkeypatch.setattr("bowtienet.report.inputs._AVERAGED", 10)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 290))
    y = X[:, :15] + rng.normal(size=(300, 15))
    model = quick(n_estimators=1, max_iter=2, tol=10.0, init="laplace").fit(X, y)
    path = tmp_path / "wide.html"
    write_report(model, X, y, path)
    assert path.stat().st_size < LIMIT
    text = Page(path.read_text()).by_id("main").text
    assert "The first 12 of 15 targets are shown." in text
    assert "The first 300 of 305 are shown." in text
    assert "100 rows, chosen at random, are shown" in text


def test_the_file_is_complete_or_absent(pipeline, flats, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def fail(*_, **__):
        raise RuntimeError("no")

    monkeypatch.setattr("bowtienet.report.page.render", fail)
    with pytest.raises(RuntimeError, match="no"):
        pipeline.report(flats, "price", path, max_inputs=1)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_the_place_is_checked_before_the_work(pipeline, flats, tmp_path, monkeypatch):
    monkeypatch.setattr("bowtienet.report.page.collect", None)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        pipeline.report(flats, "price", tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        pipeline.report(flats, "price", tmp_path / "none" / "report.html")


def test_methods_write_what_the_function_writes(pipeline, flats, tmp_path):
    settings = {"max_inputs": 1, "title": "Flats", "model_file": "flats.btn"}
    pipeline.report(flats, "price", tmp_path / "a.html", **settings)
    write_report(pipeline, flats, "price", tmp_path / "b.html", **settings)
    a, b = (
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", (tmp_path / name).read_text())
        for name in ("a.html", "b.html")
    )
    assert a == b
    assert "bt.load(&#39;flats.btn&#39;)" in a
    X, y = flats[["area"]].fillna(0.0), flats["price"]
    quick().fit(X, y).report(X, y, tmp_path / "c.html", max_inputs=1)
    assert Page((tmp_path / "c.html").read_text()).all("h1")[0].text == "A model of price"


def test_a_setting_that_does_not_exist_is_named(pipeline, flats, tmp_path):
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        write_report(pipeline, flats, "price", tmp_path / "report.html", colour="red")
    assert not [*tmp_path.iterdir()]


def test_what_is_missing_is_named(pipeline, flats, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r"reports need jinja2: pip install 'bowtienet\[report\]'"
    ):
        pipeline.report(flats, "price", tmp_path / "report.html")


def test_progress_is_told(pipeline, flats, tmp_path):
    told = []
    place = tmp_path / "report.html"
    pipeline.report(flats, "price", place, max_inputs=1, progress=lambda *a: told.append(a))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] < 1.0
