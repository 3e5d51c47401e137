"""Networks that sweep together end where each would alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.inference import execution, together
from bowtienet._old.inference.convergence import BreakdownError, Status
from bowtienet._old.inference.coordinate_ascent import State, sweep
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.row_providers import HeldRows
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from tests._old import builders
from tests._old.oracle_bridge import assert_same

MEMBERS = 3
RTOL = 1e-8
"""Products of other shapes round differently; sweeps carry that on."""


def problem(
    hidden: tuple[int, ...], family: str = "student_t", n_outputs: int = 1
) -> tuple[BowTieModel, Rows, np.ndarray, list[GlobalFactors]]:
    """A model, its rows, weights with zeros, and a start for each network."""
    rng = np.random.default_rng(7)
    model = builders.fixed_model(hidden, family, n_outputs=n_outputs, gate_temperature=0.3)
    rows = builders.random_rows(rng, model, 45)
    weights = rng.uniform(0.3, 2.0, size=(MEMBERS, 45)) * (rng.uniform(size=(MEMBERS, 45)) > 0.25)
    starts = [
        initialize(model, replace(rows, weights=weights[i]), i, init="laplace")
        for i in range(MEMBERS)
    ]
    return model, rows, weights, starts


def alone(
    model: BowTieModel, rows: Rows, weights: np.ndarray, start: GlobalFactors, length: int
) -> FitResult:
    """A network after `length` plain sweeps by itself."""
    own = HeldRows(replace(rows, weights=weights), model.architecture, 11)
    factors = update_shared_covariance(start)
    state = State(model=model, factors=factors, memory=own.begin(model, factors))
    for _ in range(length):
        state, terms = sweep(state, own, repeats=3, empirical_bayes=True)
    return FitResult(
        model=state.model,
        factors=state.factors,
        elbo_terms=terms,
        elbo_history=(),
        n_sweeps=length,
        status=Status.EARLY_STOPPED,
        statistics=state.statistics,
    )


def assert_same_fit(actual: FitResult, expected: FitResult, rtol: float = RTOL) -> None:
    assert actual.n_sweeps == expected.n_sweeps
    assert actual.status is expected.status
    assert_same(actual.factors, expected.factors, rtol)
    assert_same(actual.statistics, expected.statistics, rtol)
    assert_same(actual.elbo_terms, expected.elbo_terms, rtol)
    prior, known = actual.model.prior.global_shrinkage, expected.model.prior.global_shrinkage
    assert_same(prior, known, rtol)
    assert type(prior) is type(known)
    assert actual.model.architecture == expected.model.architecture


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of two networks and blocks of a few rows."""
    monkeypatch.setattr(together, "group_size", lambda *_: 2)
    monkeypatch.setattr(together, "group_rows", lambda *_: 17)


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize(
    ("hidden", "family", "n_outputs"),
    [
        *(((4,), family, 1) for family in builders.ALL_FAMILIES),
        ((5,), "student_t", 2),
        ((4, 3), "student_t", 2),
        ((4, 3), "laplace", 1),
        ((4, 3), "regularized_horseshoe", 2),
        ((3, 5, 2), "gaussian", 1),
        ((), "student_t", 2),
        ((), "gaussian", 1),
    ],
)
def test_as_each_would_alone(
    hidden: tuple[int, ...],
    family: str,
    n_outputs: int,
    grouped: bool,
    request: pytest.FixtureRequest,
) -> None:
    if grouped:
        request.getfixturevalue("small_groups")
    model, rows, weights, starts = problem(hidden, family, n_outputs)
    found = sweep_together(model, rows, weights, starts, lengths=(2, 5), n_threads=1)
    for length, results in zip((2, 5), found, strict=True):
        for result, own, start in zip(results, weights, starts, strict=True):
            # The search for the rate of this family ends 1e-10 from a flat minimum's place.
            rtol = 1e-6 if family == "gig" else RTOL
            assert_same_fit(result, alone(model, rows, own, start, length), rtol)
    for first, last in zip(*found, strict=True):
        assert first.elbo_history == (float(first.elbo_terms.total),)
        assert last.elbo_history == (*first.elbo_history, float(last.elbo_terms.total))


@pytest.mark.parametrize("hidden", [(4,), (4, 3)])
def test_threads_change_nothing(hidden: tuple[int, ...], small_groups: None) -> None:
    given = problem(hidden)
    one, two = (sweep_together(*given, lengths=(3,), n_threads=n) for n in (1, 2))
    for a, b in zip(one[0], two[0], strict=True):
        assert_same_fit(a, b, rtol=0.0)


def test_neighbours_change_nothing() -> None:
    model, rows, weights, starts = problem((4,))
    everyone = sweep_together(model, rows, weights, starts, lengths=(4,))[0]
    single = sweep_together(model, rows, weights[1:2], starts[1:2], lengths=(4,))[0]
    assert_same_fit(everyone[1], single[0], rtol=1e-9)


@pytest.mark.parametrize("empirical_bayes", [True, False])
def test_hyperparameters_are_a_networks_own_or_stay(empirical_bayes: bool) -> None:
    model, rows, weights, starts = problem((4,))
    results = sweep_together(
        model, rows, weights, starts, lengths=(2,), empirical_bayes=empirical_bayes
    )[0]
    scales = {result.model.prior.global_shrinkage.scale for result in results}
    assert len(scales) == (MEMBERS if empirical_bayes else 1)
    assert (model.prior.global_shrinkage.scale in scales) is not empirical_bayes
    assert all(type(scale) is float for scale in scales)


@pytest.mark.parametrize("keep", [True, False])
def test_second_moments_of_the_inputs_may_be_kept(
    keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows, weights, starts = problem((4,))
    expected = sweep_together(model, rows, weights, starts, lengths=(2,))[0]
    monkeypatch.setattr(execution, "KEPT_BYTES", 8 * 45 * 10 - (not keep))
    blocks = execution.build_blocks(rows, model.architecture, 20)
    assert [block.input_second is not None for block in blocks] == [keep] * 3
    for a, b in zip(
        sweep_together(model, rows, weights, starts, lengths=(2,))[0], expected, strict=True
    ):
        assert_same_fit(a, b, rtol=1e-12)


def test_a_callback_stops_it_at_a_state_with_its_bound() -> None:
    model, rows, weights, starts = problem((4,))
    seen: list[int] = []

    def stop(number: int) -> bool:
        seen.append(number)
        return number == 3

    found = sweep_together(model, rows, weights, starts, lengths=(2, 5, 9), callback=stop)
    assert seen == [1, 2, 3]
    expected = sweep_together(model, rows, weights, starts, lengths=(2, 3))
    for a, b in zip(found[0], expected[0], strict=True):
        assert_same_fit(a, b, rtol=0.0)
    for results in found[1:]:
        for a, b in zip(results, expected[1], strict=True):
            assert a.status is Status.INTERRUPTED
            assert_same_fit(replace(a, status=b.status), b, rtol=0.0)
            assert a.elbo_history == b.elbo_history


def test_a_stop_at_a_length_counts_its_bound_once() -> None:
    found = sweep_together(*problem((4,)), lengths=(2, 5), callback=lambda number: number == 2)
    for first, last in zip(*found, strict=True):
        assert first.status is Status.EARLY_STOPPED
        assert last.status is Status.INTERRUPTED
        assert last.elbo_history == first.elbo_history
        assert last.n_sweeps == 2


@pytest.mark.parametrize("interrupted", [1, 3])
def test_ctrl_c_leaves_the_last_complete_sweep(
    interrupted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem((4,))
    complete, done = together._update, []

    def update(*arguments: Any, **settings: Any) -> Any:
        done.append(1)
        if len(done) == interrupted:
            raise KeyboardInterrupt
        return complete(*arguments, **settings)

    monkeypatch.setattr(together, "_update", update)
    if interrupted == 1:
        with pytest.raises(KeyboardInterrupt):
            sweep_together(*given, lengths=(5,), n_threads=1)
        return
    found = sweep_together(*given, lengths=(5,), n_threads=1)[0]
    monkeypatch.undo()
    for a, b in zip(found, sweep_together(*given, lengths=(2,))[0], strict=True):
        assert a.status is Status.INTERRUPTED
        assert_same_fit(replace(a, status=b.status), b, rtol=0.0)


@pytest.mark.parametrize("failing", [1, 3])
def test_a_network_that_breaks_down_stays_as_it_was(
    failing: int, monkeypatch: pytest.MonkeyPatch, small_groups: None
) -> None:
    """Its error of arithmetic is not that of the networks beside it."""
    given = problem((4,))
    expected = sweep_together(*given, lengths=(2, 5))
    original, sweeps = together._update, []

    def update(group: Any, **settings: Any) -> Any:
        if 1 in group.members and len(sweeps) >= failing - 1:
            raise BreakdownError("no inverse")
        return original(group, **settings)

    monkeypatch.setattr(together, "_update", update)
    found = sweep_together(
        *given, lengths=(2, 5), n_threads=1, callback=lambda number: sweeps.append(number)
    )
    for results, known in zip(found, expected, strict=True):
        for member in (0, 2):
            assert_same_fit(results[member], known[member], rtol=1e-9)
    last = found[1][1]
    assert last.status is Status.NON_FINITE
    assert last.n_sweeps == failing - 1
    kept = given[3][1] if failing == 1 else expected[0][1].factors
    np.testing.assert_allclose(
        last.factors.layers[0].weights.mean, kept.layers[0].weights.mean, rtol=1e-9
    )


@pytest.mark.parametrize("failing", [1, 3])
def test_a_network_that_overflows_stays_as_it_was(
    failing: int, monkeypatch: pytest.MonkeyPatch, small_groups: None
) -> None:
    given = problem((4,))
    expected = sweep_together(*given, lengths=(2, 5))
    complete, count = together.global_step, []

    def global_step(model: Any, factors: Any, statistics: Any, repeats: int) -> Any:
        updated = complete(model, factors, statistics, repeats)
        count.append(1)
        if len(count) == 2 * failing - 1:  # two groups; the first one's second network
            updated.layers[0].weights.mean[1] = np.nan
        return updated

    monkeypatch.setattr(together, "global_step", global_step)
    found = sweep_together(*given, lengths=(2, 5), n_threads=1)
    for results, known in zip(found, expected, strict=True):
        for member in (0, 2):
            assert_same_fit(results[member], known[member], rtol=1e-9)
    last = found[1][1]
    assert last.status is Status.NON_FINITE
    assert last.n_sweeps == failing - 1
    if failing == 1:
        assert last.elbo_terms is None
        assert last.statistics is None
        assert last.elbo_history == ()
    else:
        assert_same_fit(replace(last, status=Status.EARLY_STOPPED), expected[0][1], rtol=1e-9)


def test_the_bound_is_that_of_the_factors_and_statistics() -> None:
    for result in sweep_together(*problem((4,)), lengths=(3,))[0]:
        terms = elbo(result.model, result.factors, result.statistics)
        assert float(terms.total) == pytest.approx(result.elbo_history[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("torch", (4,)),
        ("torch", (4, 3)),
        ("torch", ()),
        ("array_api_strict", (4,)),
        ("jax.numpy", (4,)),
        pytest.param("jax.numpy", (4, 3), marks=pytest.mark.slow),
    ],
)
def test_rows_of_other_array_libraries(name: str, hidden: tuple[int, ...]) -> None:
    library = pytest.importorskip(name)
    model, rows, weights, starts = problem(hidden)
    arrays = (library.asarray(x) for x in (rows.inputs, rows.targets, rows.weights))
    other = build_rows(*arrays)
    found = sweep_together(model, other, library.asarray(weights), starts, lengths=(2, 3))
    expected = sweep_together(model, rows, weights, starts, lengths=(2, 3))
    for a, b in zip(found[1], expected[1], strict=True):
        assert_same_fit(a, b)
        assert isinstance(a.factors.layers[0].weights.mean, np.ndarray)


def test_groups_and_blocks_stay_small() -> None:
    for widths in ((8, 50, 1), (128, 50, 1), (20, 400, 2), (3, 1)):
        architecture = builders.fixed_model(
            widths[1:-1], n_inputs=widths[0], n_outputs=widths[-1]
        ).architecture
        size, rows = together.group_size(architecture), together.group_rows(architecture, 30)
        least = 8 * together.FEWEST_ROWS * max(widths[1:])
        assert 8 * min(size, 30) * rows * max(widths[1:]) <= max(execution.LOCAL_BYTES, least)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": ()}, "lengths"),
        ({"lengths": (3, 3)}, "increasing"),
        ({"lengths": (0,)}, r"lengths\[0\]"),
        ({"repeats": 0}, "repeats"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep_together(*problem((4,)), **{"lengths": (2,), **change})


def test_weights_are_checked() -> None:
    model, rows, weights, starts = problem((4,))
    with pytest.raises(ValueError, match=r"row_weights must have shape \(3, 45\)"):
        sweep_together(model, rows, weights[:2], starts, lengths=(2,))
    weights[1] = 0.0
    with pytest.raises(ValueError, match=r"row_weights\[1\] are all zero"):
        sweep_together(model, rows, weights, starts, lengths=(2,))
