"""The card at the top follows the numbers, and so does its advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowtienet._old.report import collect
from bowtienet._old.report.estimates import Estimate
from bowtienet._old.report.page import render
from bowtienet._old.report.verdict import Verdict, verdicts
from tests._old.report.pages import Page


@pytest.fixture(scope="module")
def found(model, flats):
    return collect(model, flats, "price", coverage=0.8, max_features=1)


def card(found, rmse=None, coverage=None, **settings) -> Verdict:
    """The card of other numbers."""
    [target] = found.targets
    if rmse is not None:
        value, low, high = rmse
        change = Estimate(value=value, low=low, high=high)
        scores = target.scores | {"rmse": replace(target.scores["rmse"], difference=change)}
        target = replace(target, scores=scores)
    if coverage is not None:
        target = replace(target, model=replace(target.model, coverage=coverage))
    [own] = verdicts(replace(found, targets=(target,), **settings))
    return own


BETTER, EQUAL, WORSE = (
    f"{words} a linear model" for words in ("Better than", "As good as", "Worse than")
)


@pytest.mark.parametrize(
    ("rmse", "headline", "tone", "words"),
    [
        ((-0.23, -0.3, -0.15), BETTER, "good", "23.0 % lower (95 % interval 15.0 to 30.0 %)"),
        ((0.02, -0.05, 0.1), EQUAL, "fair", "2.0 % higher (95 % interval −5.0 to +10.0 %)"),
        ((0.4, 0.2, 0.5), WORSE, "poor", "40.0 % higher"),
        ((24.0, 20.0, 30.0), WORSE, "poor", "25 times as large"),
    ],
)
def test_better_than_a_line_or_not(found, rmse, headline, tone, words):
    own = card(found, rmse, coverage=0.8)
    assert own.headline.removesuffix(", within chance") == headline
    assert own.tone == tone
    assert words in dict(own.facts)["Error"].replace("\N{NO-BREAK SPACE}", " ")
    assert any("simpler" in one for one in own.advice) == (tone == "fair")


@pytest.mark.parametrize(
    ("coverage", "words", "advised"),
    [
        (0.8, "As promised, within chance", False),
        (0.5, "Too narrow", True),
        (1.0, "Too wide", True),
    ],
)
def test_intervals_right_or_not(found, coverage, words, advised):
    own = card(found, (-0.2, -0.3, -0.1), coverage)
    assert dict(own.facts)["Intervals"].startswith(words)
    assert any("conformal" in one for one in own.advice) == advised
    assert own.tone == ("fair" if advised else "good")


def test_little_is_said_of_few_rows_and_of_rows_that_were_fitted(found):
    few = card(found, (-0.2, -0.3, -0.1), 0.5, n_effective=19)
    assert few.headline == "Too few rows to judge"
    assert "95" not in " ".join(words for _, words in few.facts)
    assert any("Score more rows" in one for one in few.advice)
    seen = card(found, coverage=1.0, is_seen=True)
    assert "says little" in dict(seen.facts)["Intervals"]
    assert any("Hold rows out" in one for one in seen.advice)


def test_advice(found):
    [target] = found.targets
    calm = replace(
        target, surprises=tuple(replace(one, probability=0.5) for one in target.surprises)
    )
    quiet = replace(
        found, targets=(calm,), is_seen=False, n_far=0, fit=replace(found.fit, is_fine=True)
    )
    good = {"rmse": (-0.2, -0.3, -0.1), "coverage": 0.8}
    assert card(quiet, **good).advice == ("Use it: nothing on this page speaks against it.",)
    assert any("1 row (1.25" in one for one in card(quiet, **good, n_far=1).advice)
    unfit = replace(found.fit, is_fine=False, reason="Raise max_iter.")
    assert "Raise max_iter." in card(quiet, **good, fit=unfit).advice
    rare = replace(calm.surprises[0], probability=1e-7)
    odd = replace(quiet, targets=(replace(calm, surprises=(rare, *calm.surprises[1:])),))
    [advice] = card(odd, **good).advice
    assert advice.startswith(f"Check row {rare.row}")


def test_the_card_comes_first_in_the_page(found):
    page = Page(render(found))
    [own] = [one for one in page.elements if one.tag == "article"]
    [told] = verdicts(found)
    assert told.headline in own.text
    assert page.elements.index(own) < page.elements.index(page.by_id("whatif"))
