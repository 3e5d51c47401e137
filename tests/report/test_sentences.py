"""What a report says, on contents made by hand: no more than the numbers do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet.evaluation import Scores, binomial_band
from bowtienet.report import ReportContent, collect, render, sentences, structure
from bowtienet.report.content import TargetContent
from bowtienet.report.inputs import Dependence, Relevance
from bowtienet.report.page import pictures, shell_code
from bowtienet.report.rows import ReportRows
from bowtienet.report.scoring import Calibration, Pairs, PitHistogram, TargetScores
from bowtienet.report.structure import FitFacts, NetworkPictures
from bowtienet.report.wording import clean, percent
from tests.report.fits import quick
from tests.report.pages import Page

LEVELS = np.linspace(0.05, 0.95, 19)
CAVEAT = "inputs without any effect may have strength."
pytestmark = pytest.mark.filterwarnings(
    "ignore:Most members were still:sklearn.exceptions.ConvergenceWarning"
)


def make_scores(rmse: float = 1.0, coverage: float = 0.9) -> Scores:
    return Scores(
        n_rows=100,
        rmse=rmse,
        nll=1.0,
        crps=0.5,
        nominal_coverage=0.9,
        coverage=coverage,
        interval_score=3.0,
        calibration_error=0.01,
    )


def make_calibration(observed: Any = LEVELS, n_rows: int = 100) -> Calibration:
    low, high = binomial_band(LEVELS, n_rows)
    return Calibration(
        levels=LEVELS, observed=np.asarray(observed), low=low, high=high, baseline=None
    )


def make_line(name: str) -> Dependence:
    ends = np.array([[0.0, 1.0], [1.0, 2.0]])
    return Dependence(
        name=name,
        kind="number",
        x=(0.0, 1.0),
        labels=(),
        mean=np.array([0.5, 1.5]),
        inner=ends,
        outer=ends,
        deciles=(),
        n_averaged=10,
    )


def make_target(
    strengths: Any = (2.0, 1.0), n_followed: int | None = None, **settings: Any
) -> TargetContent:
    """Inputs a, b, ...; keywords are of the scores, or the name."""
    name, one = settings.pop("name", "price"), np.ones(1)
    scores = {
        "model": make_scores(),
        "baseline": make_scores(2.0),
        "baseline_words": "fitted to the rows of training",
        "pruned": make_scores(),
        "calibration": make_calibration(),
        "pit": PitHistogram(heights=np.ones(10), low=0.5, high=1.5),
        "pairs": Pairs(rows=("1",), actual=one, predicted=one, low=0.0 * one, high=one),
        "surprises": (),
        "surprise_inputs": (),
    }
    names = [chr(97 + place) for place in range(len(strengths))]
    strong = sum(strength > 0.0 for strength in strengths)
    followed = names[: strong if n_followed is None else n_followed]
    return TargetContent(
        name=name,
        scores=TargetScores(**scores | settings),
        relevance=tuple(
            Relevance(column=column, probability=1.0, strength=strength)
            for column, strength in zip(names, strengths, strict=True)
        ),
        dependence=tuple(map(make_line, followed)),
    )


FIT = FitFacts(
    settings=(),
    is_converged=True,
    verdict="Converged.",
    reason="",
    caveat="",
    bound_words="",
    unit="sweep",
    bound=(),
    member_weights=(0.5, 0.5),
)
NETWORK = NetworkPictures(
    sizes=(("inputs", 4, 2), ("units", 10, 5), ("weights", 40, 9)),
    rate=0.01,
    was_pruned=False,
    before="data:,before",
    after="data:,after",
    drawn=((2, 1), (5, 3), (20, 4)),
    strongest=("a", "b"),
    n_inputs=2,
    n_shown=2,
)


def make_content(*targets: TargetContent, **settings: Any) -> ReportContent:
    targets = targets or (make_target(),)
    n_rows = settings.get("n_rows", 100)
    return ReportContent(
        **{
            "title": "A model",
            "model_kind": "TablePipeline",
            "model_file": None,
            "has_save": True,
            "coverage": 0.9,
            "targets": targets,
            "n_targets": len(targets),
            "columns": (),
            "n_columns": 3,
            "n_gaps": 0,
            "n_rows": n_rows,
            "n_effective": n_rows,
            "n_given": n_rows,
            "n_train": None,
            "is_seen": None,
            "rows_named_by": "place",
            "has_weights": False,
            "fit": FIT,
            "network": NETWORK,
            "versions": (),
            "written": "today",
        }
        | settings
    )


def error(ours: float, line: float, **settings: Any) -> str:
    target = make_target(model=make_scores(ours), baseline=make_scores(line))
    return sentences.glance(make_content(target, **settings))[0]


def coverage(share: float, **settings: Any) -> str:
    return sentences.glance(make_content(make_target(model=make_scores(1.0, share)), **settings))[1]


@pytest.mark.parametrize(
    ("strengths", "words"),
    [
        ((0.0, 0.0), "The network is sure of no weight that leads from an input."),
        ((2.0, 0.0), "The only input that the network uses is a."),
        ((2.0, 1.0), "The inputs that the network uses are a and b."),
        ((2.0, 1.0, 0.5), "The inputs that the network uses are a, b and c."),
        ((2.0, 1.0, 0.5, 0.1), "The inputs that the network uses most are a, b and c."),
    ],
)
def test_inputs_are_used_which_does_not_mean_that_they_matter(strengths, words):
    found = sentences.glance(make_content(make_target(strengths)))
    assert found[2:] == [words]
    fit = replace(FIT, caveat=f"Stopped: {CAVEAT}")
    found = sentences.glance(make_content(make_target(strengths), fit=fit))
    assert found[3:] == ([] if max(strengths) == 0.0 else [fit.caveat])


@pytest.mark.parametrize(
    ("status", "converged", "lead"),
    [
        ("converged", True, ""),
        ("stopped early (validation)", True, "The fit ended where rows held out are predicted best"),
        ("iteration limit", False, "The fit did not converge"),
    ],
)
def test_a_fit_that_did_not_settle_has_a_caveat(status, converged, lead):
    X = np.random.default_rng(0).normal(size=(30, 1))
    model = quick(tol=1.0, n_estimators=1).fit(X, X[:, 0])
    model.status_, model.converged_ = status, converged
    found = collect(model, X, X[:, 0], max_inputs=1)
    assert found.fit.caveat.startswith(lead)
    assert found.fit.caveat.endswith(CAVEAT) == bool(lead)
    text = Page(render(found)).by_id("main").text
    assert text.count(CAVEAT) == (2 if lead else 0)
    assert "for sure" not in text
    assert " matter" not in text


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, 4),
        ([3.0] * 4, 4),
        ([0.1] * 4, 4),
        ([1e300] * 4, 4),
        ([1.0, 1e-9, 1e-9, 1e-9], 1),
        ([1.0, 1.0, 2.0, 2.0], 3),
    ],
)
def test_rows_of_equal_weight(weights, expected):
    rows = ReportRows(
        table=None,
        prepared=None,
        targets=np.zeros((4, 1)),
        weights=None if weights is None else np.array(weights),
        names=(),
        n_given=4,
    )
    assert rows.n_effective == expected


def test_the_band_of_weighted_rows_is_wider():
    few, many = (coverage(0.8, n_effective=n, has_weights=True) for n in (30, 100))
    assert "too narrow" in many
    assert "which chance allows" in few
    low, high = binomial_band([0.9], 30)
    assert f"{percent(low[0])} to {percent(high[0])}" in few
    words = sentences.scored(make_content(n_effective=30, has_weights=True))
    assert words == "Scores of 100 rows, weighted: they say as much as 30 of equal weight"
    assert sentences.scored(make_content()) == "Scores of 100 rows"


@pytest.mark.parametrize(
    ("ours", "line", "words"),
    [
        (1.0, 2.0, f"is 1, {percent(0.5)} smaller than that of a linear model, 2."),
        (3.0, 2.0, f"is 3, {percent(0.5)} larger than that of a linear model, 2."),
        (2.0, 2.0, "is 2, as large as that of a linear model, 2."),
        (1.0, 0.0, "is 1, larger than that of a linear model, 0."),
        (0.0, 0.0, "is 0, as large as that of a linear model, 0."),
        (50.0, 2.0, "is 50, 25 times that of a linear model, 2."),
        (1e-5, 2.0, "is 1e−05, less than a thousandth of that of a linear model, 2."),
    ],
)
def test_errors_beside_a_line(ours, line, words):
    assert error(ours, line) == f"The error of price (RMSE) {words}"


def test_differences_beyond_a_thousand_percent_are_times():
    rows = {row.name: row for row in sentences.score_rows(make_scores(50.0), make_scores(2.0))}
    assert rows["RMSE"].difference == "25 times"
    rows = {row.name: row for row in sentences.score_rows(make_scores(1.0), make_scores(0.0))}
    assert rows["RMSE"].difference == "+1.000"


def test_errors_of_few_or_fitted_rows_are_no_verdict():
    assert error(1.0, 2.0, n_rows=19) == (
        "The error of price (RMSE) is 1, and that of a linear model 2; so few rows cannot tell "
        "which is better."
    )
    assert error(1.0, 2.0, is_seen=True).endswith("model, 2; both were fitted to these rows.")
    assert "smaller" in error(1.0, 2.0, n_rows=20)


def test_coverage_is_praised_by_nobody():
    assert "which chance allows" in coverage(0.9)
    assert "too wide" in coverage(1.0)
    assert "too narrow" in coverage(0.5)
    for share in (0.5, 0.9, 1.0):
        assert "too few rows to tell" in coverage(share, n_rows=19)
        assert "too few rows" not in coverage(share, n_rows=20)
    for share in (0.9, 1.0):
        assert "says little about new ones" in coverage(share, is_seen=True)
    assert "too narrow" in coverage(0.5, is_seen=True)


def test_several_targets_are_named():
    both = [make_target(name=name) for name in ("price", "rent")]
    found = sentences.glance(make_content(*both))
    assert len(found) == 6
    assert all("price" in words for words in found[:3])
    assert all("rent" in words for words in found[3:])


def calibration(observed: Any, **settings: Any) -> str:
    target = make_target(calibration=make_calibration(observed))
    return sentences.calibration(make_content(target, **settings), target)


def test_the_side_of_a_calibration_curve_is_that_of_its_levels_outside():
    assert calibration(LEVELS) == (
        "At all 19 levels the curve lies in the band, which chance allows."
    )
    # Far below at one level, a little above at all others: the mean would say too wide.
    observed = LEVELS + 0.03
    observed[9] = LEVELS[9] - 0.3
    found = calibration(observed)
    assert found.startswith("At 1 of 19 levels the curve leaves the band, below it: too narrow.")
    assert found.endswith("about one of 19 leaves it by chance.")
    assert "above it: too wide" in calibration(np.ones(19))
    observed[3] = 1.0
    assert "below it at 1, above it at 1." in calibration(observed)
    assert "too few rows" in calibration(np.ones(19), n_rows=19)
    assert "says little about new ones" in calibration(LEVELS, is_seen=True)


def test_provenance_counts_the_rows_that_are_scored():
    for seen in (None, True, False):
        words = sentences.provenance(make_content(n_rows=20_000, n_given=30_000, is_seen=seen))
        assert "20,000 rows" in words
        assert "30,000" not in words
    assert "If any of them were used" in sentences.provenance(make_content(n_train=50))
    assert "fitted to 50 others" in sentences.provenance(make_content(n_train=50, is_seen=False))


def test_surprises_say_of_which_rows_they_are():
    nothing = sentences.surprise(make_content())
    assert f"of all rows {percent(0.1)} are expected to lie outside" in nothing
    assert "sampled" not in nothing
    assert "of the 100 sampled rows" in sentences.surprise(make_content(n_given=300))


def test_gaps_of_columns_that_are_not_shown_count():
    assert "no gaps" in sentences.data(make_content())
    assert "2 columns with gaps" in sentences.data(make_content(n_gaps=2))


def test_which_inputs_can_be_followed():
    assert sentences.followed(make_target((1.0, 0.5))) == ""
    assert sentences.followed(make_target((0.0, 0.0))).startswith("No input moves the prediction")
    unvaried = sentences.followed(make_target((1.0, 0.5, 0.2, 0.1), n_followed=0))
    assert "these rows do not vary in a, b, c, …" in unvaried
    cut = sentences.followed(make_target((1.0,) * 21, n_followed=12))
    assert cut.startswith("12 of the 21 inputs with any strength can be chosen")


@pytest.mark.parametrize(
    ("strengths", "words"),
    [
        ([1.0] * 20, ""),
        ([1.0] * 20 + [0.5], " 1 weaker input not shown."),
        ([1.0] * 22, " 2 more inputs not shown."),
        ([1.0] * 5 + [0.0] * 17, " 2 more inputs of strength 0 not shown."),
    ],
)
def test_inputs_without_a_bar(strengths, words):
    assert sentences.relevance(make_target(strengths)).endswith(f"as this fit has it.{words}")


def test_the_strength_of_categories_is_explained():
    target = make_target()
    assert "has the strength of the strongest" not in sentences.relevance(target)
    wide = replace(target, relevance=(replace(target.relevance[0], n_inputs=3),))
    assert "has the strength of the strongest" in sentences.relevance(wide)


def test_rows_without_variation_in_a_page():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    model = quick().fit(X, X[:, 0] + rng.normal(0.0, 0.1, size=40))
    text = Page(render(collect(model, np.ones((30, 1)), X[:30, 0]))).by_id("main").text
    assert "these rows do not vary in x0" in text
    assert "No input moves" not in text


@pytest.mark.parametrize("members", [1, 2])
def test_how_a_fit_ended(members):
    X = np.random.default_rng(0).normal(size=(30, 1))
    model = quick(n_estimators=members, max_iter=3, tol=1e-9).fit(X, X[:, 0])
    found = structure.fit_facts(model)
    lead = "The network had not converged when it stopped: the limit of sweeps was reached"
    if members == 2:
        lead = (
            "Networks with most of the weight had not converged when they stopped: of the heaviest,"
            " the limit of sweeps was reached"
        )
    assert found.reason.startswith(lead)
    assert dict(found.settings)["length of the longest fit"] == "3 sweeps, at most 3"


def test_a_stochastic_fit_counts_steps_and_passes():
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = quick(n_estimators=1, solver="svi", batch_size=10, max_iter=2, tol=1e-9)
    model.fit(X, X[:, 0])
    found = structure.fit_facts(model)
    assert model.n_iter_ > 2
    words = f"{model.n_iter_} steps, at most 2 passes over the rows"
    assert dict(found.settings)["length of the longest fit"] == words
    assert "the limit of passes over the rows" in found.reason
    assert "sweep" not in found.reason + found.bound_words
    text = Page(render(collect(model, X, X[:, 0], max_inputs=1))).by_id("main").text
    assert words in text
    assert "after every step" in text


def test_a_constant_is_the_drawn_network_and_no_other():
    def captions(**changes):
        return [
            words for words, _, _ in pictures(make_content(network=replace(NETWORK, **changes)))
        ]

    assert captions() == [
        "The heaviest network before pruning",
        "The heaviest network after pruning",
    ]
    # Nothing is left of the heaviest, though others have inputs; and the other way round.
    assert "predicts a constant" in captions(drawn=((2, 0), (5, 0), (20, 0)))[1]
    assert captions(sizes=(("inputs", 4, 0), *NETWORK.sizes[1:])) == captions()


def test_drawings_are_described():
    (_, before, _), (_, after, _) = pictures(make_content())
    assert before == (
        "The heaviest network before pruning: 2 inputs, 5 units and 20 weights; strongest inputs: "
        "a, b"
    )
    assert after.startswith("The heaviest network after pruning: 1 input, 3 units and 4 weights")


def test_a_plain_pipeline_is_not_promised_a_file():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(StandardScaler(), quick()).fit(X, X[:, 0])
    page = Page(render(collect(model, X, X[:, 0], max_inputs=1)))
    assert not page.all("code")
    assert "pickle or skops" in page.by_id("main").text
    own = Page(render(collect(model[-1], X, X[:, 0], max_inputs=1)))
    assert "bt.load" in own.by_id("main").text
    assert "pickle" not in own.by_id("main").text


@pytest.mark.parametrize("name", ["a\u202egpj.btn", "a\nb.btn", "a\udc80.btn", "a\u2066b.btn"])
def test_names_that_deceive_are_not_copied_to_a_shell(name):
    assert shell_code(make_content(model_file=name)) is None
    page = render(make_content(model_file=name))
    assert name not in page
    assert "bowtienet predict" not in page
    assert "cannot be shown" in page
    assert "bowtienet predict plain.btn" in render(make_content(model_file="plain.btn"))


def test_long_names_differ_and_files_keep_their_end():
    first, second = ("the same long beginning " * 5 + end for end in ("one", "two"))
    assert clean(first) != clean(second)
    assert len(clean(first)) <= 60
    assert clean("folder/" * 500 + "model.btn", 30).endswith("/model.btn")
    assert clean("\a" * 1000, 10) == "\\x07\\…\\x07"
