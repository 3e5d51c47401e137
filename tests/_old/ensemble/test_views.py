"""Members that see the rows through different views: plain, in bins, warped, and both.

Error bars: moments of draws are held to 5 standard errors, a false-alarm rate of 6e-7 for each
comparison, plus a thousandth of the deviation for quadrature, and below 1e-4 for the 150 or fewer
of any one test. Seeds are fixed.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old.data.door import open_source
from bowtienet._old.data.rows import build_rows, join_rows
from bowtienet._old.distributions.yeo_johnson import from_warped, identity, log_slope, to_warped
from bowtienet._old.ensemble import arriving as arriving_module
from bowtienet._old.ensemble.arriving import remember, take_in
from bowtienet._old.ensemble.arviz_export import to_arviz
from bowtienet._old.ensemble.draws import draw_functions, draw_rows
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    check_ensemble,
    components,
    mean_and_deviation,
    member_moments,
    member_views,
)
from bowtienet._old.ensemble.fit_ensemble import prepare
from bowtienet._old.ensemble.member import Task, run_task
from bowtienet._old.ensemble.row_covariance import covariance
from bowtienet._old.ensemble.sparsity import column_strength
from bowtienet._old.ensemble.stacking import Forecasts, stack_with_levels
from bowtienet._old.ensemble.streams import SourceReader, SourceStream, arriving
from bowtienet._old.ensemble.training import fit_further
from bowtienet._old.inference.convergence import Status
from bowtienet._old.posterior.relevance import path_strength
from bowtienet._old.posterior.selection import existing
from bowtienet._old.prediction.covariance import output_covariance
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.prediction.sampling import sample_functions
from bowtienet._old.representation.representation import (
    View,
    encoded_rows,
    input_names,
    input_owners,
    log_slopes,
    network_features,
    network_rows,
    standardized_features,
    standardized_rows,
)
from tests._old.ensemble.fits import (
    Watching,
    assert_same_fit,
    fit,
    only,
    small,
    viewed_ensemble,
)
from tests._old.sign_pruning import prune_members

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

LIMIT, QUADRATURE = 5.0, 1e-3
N_ROWS, N_DRAWS = 90, 40_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, 3)) * (1.0, 20.0, 0.1) + (0.0, 300.0, 5.0)
_BENT = np.abs(X[:, 0]) + 0.02 * (X[:, 1] - 300.0) + 0.4 * RNG.normal(size=N_ROWS)
TWO = np.column_stack([50.0 + 9.0 * np.exp(_BENT), -np.exp(-2.0 * X[:, 0] + 0.5 * _BENT)])
"""A long upper tail and a long lower one."""
RATIOS = np.array([[1.0, 2.0], [0.5, 1.5], [2.0, 0.7], [1.3, 1.0]])
NEW = X[:6] + 0.3 * RNG.normal(size=(6, 3)) * (1.0, 20.0, 0.1)
FAR = np.array([[30.0, 1500.0, 9.0]])


def stretched(ensemble: Ensemble, ratios: np.ndarray) -> Ensemble:
    members = tuple(
        replace(member, variance_ratio=ratio)
        for member, ratio in zip(ensemble.members, ratios, strict=True)
    )
    return replace(ensemble, members=members)


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    found = stretched(viewed_ensemble((X, TWO), max_iter=8), RATIOS)
    check_ensemble(found, 3, 2)
    return found


def one_by_one(ensemble: Ensemble, inputs: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Moments of each member's own targets, from what its view makes of the table."""
    x = to_numpy(standardized_features(ensemble.representation, inputs))
    found = []
    for member, place in zip(ensemble.members, ensemble.views, strict=True):
        seen = network_features(ensemble.representation.views[place], x)
        new = predict(member.model, member.factors, seen)
        ratio = member.variance_ratio
        found.append(
            {
                "mean": np.asarray(new.mean),
                "epistemic": ratio * (new.signal_variance - new.chance_variance),
                "noise": ratio * (new.noise_variance + new.chance_variance),
            }
        )
    return found


def in_users_unit(ensemble: Ensemble, place: int, values: np.ndarray) -> np.ndarray:
    """Targets (..., n, D) from those that a member was fitted to."""
    warp = member_views(ensemble)[place].warp
    standardized = from_warped(identity(2) if warp is None else warp, values)
    scaling = ensemble.representation.target_scaling
    return scaling.center + scaling.scale * standardized


def targets_drawn(ensemble: Ensemble, inputs: np.ndarray, seed: int) -> list[np.ndarray]:
    """Targets (draws, n, D) of each member: its Gaussian, taken back from its warp."""
    rng = np.random.default_rng(seed)
    drawn = []
    for place, own in enumerate(one_by_one(ensemble, inputs)):
        deviation = np.sqrt(own["epistemic"] + own["noise"])
        values = own["mean"] + deviation * rng.normal(size=(N_DRAWS, *own["mean"].shape))
        drawn.append(in_users_unit(ensemble, place, values))
    return drawn


# Moments


def test_members_see_the_rows_through_their_views(ensemble: Ensemble) -> None:
    found = member_moments(ensemble, NEW)
    for place, own in enumerate(one_by_one(ensemble, NEW)):
        np.testing.assert_allclose(found.means[place], own["mean"], rtol=1e-12)
        np.testing.assert_allclose(found.epistemic_variances[place], own["epistemic"], rtol=1e-12)
        np.testing.assert_allclose(found.noise_variances[place], own["noise"], rtol=1e-12)
    sizes = [member.model.architecture.n_inputs for member in ensemble.members]
    assert sizes == [3, 12, 3, 12]


def test_mean_and_deviation_against_draws(ensemble: Ensemble) -> None:
    """Σ w mean and Σ w (variance + (mean_k - mean)²) of the draws of each member."""
    inputs = np.vstack([NEW, FAR])
    mean, deviation = mean_and_deviation(ensemble, inputs)
    drawn = targets_drawn(ensemble, inputs, 1)
    weights = ensemble.weights
    about = np.tensordot(weights, [draws.mean(axis=0) for draws in drawn], 1)
    bar = np.sqrt(np.tensordot(weights**2, [draws.var(axis=0) for draws in drawn], 1) / N_DRAWS)
    assert np.all(np.abs(mean - about) < LIMIT * bar + QUADRATURE * deviation)
    squares = [(draws - mean) ** 2 for draws in drawn]
    spread = np.tensordot(weights, [square.mean(axis=0) for square in squares], 1)
    errors = np.tensordot(weights**2, [square.var(axis=0) for square in squares], 1)
    bar = np.sqrt(errors / N_DRAWS)
    assert np.all(np.abs(deviation**2 - spread) < LIMIT * bar + 5.0 * QUADRATURE * deviation**2)


def test_a_warped_member_is_not_its_gaussian_in_the_users_unit(ensemble: Ensemble) -> None:
    """The check above would see it: the mean lies on the side of the long tail."""
    alone = only(ensemble, 2)
    mean, _ = mean_and_deviation(alone, NEW)
    middle = in_users_unit(alone, 0, member_moments(alone, NEW).means[0])
    assert np.all(mean[:, 0] > middle[:, 0])
    assert np.all(mean[:, 1] < middle[:, 1])


def given_the_network(
    ensemble: Ensemble, place: int, values: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """E[y | f] by a fine sum over the noise: f + √noise ξ, ξ from -8 to 8."""
    points = np.linspace(-8.0, 8.0, 161)
    share = norm.pdf(points) / norm.pdf(points).sum()
    total = np.zeros(np.shape(values))
    for point, part in zip(points, share, strict=True):
        total += part * in_users_unit(ensemble, place, values + point * np.sqrt(noise))
    return total


def test_components_against_draws_of_networks(ensemble: Ensemble) -> None:
    """Var_f[E[y | f]] is epistemic and the rest noise; they add up to the deviation's square."""
    inputs = np.vstack([NEW, FAR])
    mean, epistemic, noise = components(ensemble, inputs)
    same_mean, deviation = mean_and_deviation(ensemble, inputs)
    np.testing.assert_array_equal(mean, same_mean)
    np.testing.assert_allclose(epistemic + noise, deviation**2, rtol=1e-9)
    assert np.all(epistemic >= 0.0)
    assert np.all(noise >= 0.0)
    rng = np.random.default_rng(2)
    found, errors = np.zeros_like(mean), np.zeros_like(mean)
    for place, own in enumerate(one_by_one(ensemble, inputs)):
        functions = own["mean"] + np.sqrt(own["epistemic"]) * rng.normal(size=(4000, *mean.shape))
        squares = (given_the_network(ensemble, place, functions, own["noise"]) - mean) ** 2
        found += ensemble.weights[place] * squares.mean(axis=0)
        errors += ensemble.weights[place] ** 2 * squares.var(axis=0) / 4000
    allowed = LIMIT * np.sqrt(errors) + 5.0 * QUADRATURE * epistemic
    assert np.all(np.abs(epistemic - found) < allowed)


def test_covariance_against_draws(ensemble: Ensemble) -> None:
    """Joint Gaussians of each member taken back from its warp; members that disagree add to it."""
    rng = np.random.default_rng(3)
    mean, deviation = mean_and_deviation(ensemble, NEW)
    total = covariance(ensemble, NEW)
    x = to_numpy(standardized_features(ensemble.representation, NEW))
    found, errors = np.zeros_like(total), np.zeros_like(total)
    for place, own in enumerate(one_by_one(ensemble, NEW)):
        member = ensemble.members[place]
        seen = network_features(member_views(ensemble)[place], x)
        joint = member.variance_ratio * output_covariance(member.model, member.factors, seen)
        rows = np.arange(len(NEW))
        joint[rows, rows] = own["epistemic"] + own["noise"]
        roots = np.linalg.cholesky(np.moveaxis(joint, -1, 0))
        values = np.einsum("dij,mjd->mid", roots, rng.normal(size=(N_DRAWS, len(NEW), 2)))
        away = in_users_unit(ensemble, place, own["mean"] + values) - mean
        first = np.einsum("mid,mjd->ijd", away, away) / N_DRAWS
        second = np.einsum("mid,mjd->ijd", away**2, away**2) / N_DRAWS
        found += ensemble.weights[place] * first
        errors += ensemble.weights[place] ** 2 * (second - first**2) / N_DRAWS
    scale = deviation[:, None] * deviation[None, :]
    assert np.all(np.abs(total - found) < LIMIT * np.sqrt(errors) + 5.0 * QUADRATURE * scale)
    rows = np.arange(len(NEW))
    np.testing.assert_allclose(total[rows, rows], deviation**2, rtol=1e-9)
    for output in range(2):
        assert np.linalg.eigvalsh(total[..., output])[0] > 0.0


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_other_libraries_agree(name: str, ensemble: Ensemble) -> None:
    library = pytest.importorskip(name)
    other = library.asarray(NEW)
    found = mean_and_deviation(ensemble, other)
    assert type(found[0]) is type(other)
    for same, expected in zip(found, mean_and_deviation(ensemble, NEW), strict=True):
        np.testing.assert_allclose(np.asarray(same), expected, rtol=1e-9)
    for same, expected in zip(components(ensemble, other), components(ensemble, NEW), strict=True):
        np.testing.assert_allclose(np.asarray(same), expected, rtol=1e-7)


def test_single_precision(ensemble: Ensemble) -> None:
    found = mean_and_deviation(ensemble, NEW.astype(np.float32))
    expected = mean_and_deviation(ensemble, NEW.astype(np.float32).astype(float))
    for single, double in zip(found, expected, strict=True):
        assert single.dtype == np.float64
        np.testing.assert_allclose(single, double, rtol=1e-3)


def test_members_of_one_view_predict_as_they_would_alone(ensemble: Ensemble) -> None:
    """Other views in the representation, and members beside them, change nothing."""
    for place, view in enumerate(ensemble.representation.views):
        alone = only(ensemble, place)
        pure = replace(
            alone, representation=replace(alone.representation, views=(view,)), views=(0,)
        )
        weights = np.eye(4)[place]
        for inputs in (NEW, FAR):
            expected = mean_and_deviation(pure, inputs)
            for same in (alone, replace(ensemble, weights=weights)):
                found = mean_and_deviation(same, inputs)
                np.testing.assert_allclose(found, expected, rtol=1e-12)


# Draws


def test_draws_of_rows_without_noise_are_means_given_a_network(ensemble: Ensemble) -> None:
    """Their mean is that of the targets, their variance the epistemic one."""
    draws = draw_rows(ensemble, NEW, N_DRAWS, np.random.default_rng(4), noise=False)
    mean, epistemic, _ = components(ensemble, NEW)
    bar = LIMIT * draws.std(axis=0) / np.sqrt(N_DRAWS)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar + QUADRATURE * np.sqrt(epistemic))
    squares = (draws - mean) ** 2
    bar = LIMIT * squares.std(axis=0) / np.sqrt(N_DRAWS)
    assert np.all(np.abs(squares.mean(axis=0) - epistemic) < bar + 5.0 * QUADRATURE * epistemic)


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("place", range(4))
def test_draws_of_functions_are_taken_back_from_the_warp(
    place: int, noise: bool, ensemble: Ensemble
) -> None:
    """With the same random numbers: √ratio as far from the mean; without noise E[y | f]."""
    alone = only(ensemble, place)
    found = draw_functions(alone, NEW, 3, np.random.default_rng(5), noise=noise)
    rng = np.random.default_rng(5)
    rng.choice(1, size=3, p=np.ones(1))
    [member], [view], [own] = alone.members, member_views(alone), one_by_one(alone, NEW)
    x = to_numpy(standardized_features(alone.representation, NEW))
    draws = sample_functions(member, network_features(view, x), 3, rng, noise=noise)
    draws = own["mean"] + np.sqrt(member.variance_ratio) * (draws - own["mean"])
    if noise:
        expected = in_users_unit(alone, 0, draws)
    else:
        expected = given_the_network(alone, 0, draws, own["noise"])
    np.testing.assert_allclose(found, expected, rtol=1e-4 if view.warp and not noise else 1e-9)


def test_draws_of_functions_are_near_the_mixture(ensemble: Ensemble) -> None:
    """A network's own targets are not quite Gaussian: a tenth of the deviation is left for that."""
    draws = draw_functions(ensemble, NEW, 2000, np.random.default_rng(6), noise=True)
    mean, deviation = mean_and_deviation(ensemble, NEW)
    bar = LIMIT * draws.std(axis=0) / np.sqrt(2000)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < bar + 0.1 * deviation)


# Rows that arrive


def test_densities_noted_are_those_of_standardised_targets(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Σ_d log N(z_d) + log dz_d/du_d: in the unit in which all members can be compared."""
    monkeypatch.setattr(arriving_module, "RECENT", len(NEW))
    targets = TWO[:6] * 1.1
    batches = list(arriving(open_source(NEW, targets), ensemble.representation, 4096))
    _, arrivals = take_in(ensemble, batches, None, reweigh=True)
    scaling = ensemble.representation.target_scaling
    u = (targets - scaling.center) / scaling.scale
    for place, own in enumerate(one_by_one(ensemble, NEW)):
        warp = member_views(ensemble)[place].warp or identity(2)
        deviation = np.sqrt(own["epistemic"] + own["noise"])
        expected = norm.logpdf(to_warped(warp, u), own["mean"], deviation) + log_slope(warp, u)
        found = arrivals.recent[:, place]
        np.testing.assert_allclose(found, expected.sum(axis=1), rtol=1e-9)
        # The same by differences of the distribution function in the user's unit.
        step = 1e-5 * scaling.scale
        high, low = (
            norm.cdf(to_warped(warp, (y - scaling.center) / scaling.scale), own["mean"], deviation)
            for y in (targets + step, targets - step)
        )
        density = (np.log((high - low) / (2.0 * step)) + np.log(scaling.scale)).sum(axis=1)
        np.testing.assert_allclose(found, density, rtol=1e-3, atol=1e-3)


def test_rows_are_taken_in_through_each_view(ensemble: Ensemble) -> None:
    """Members of an ensemble take rows in as each would alone, remembered rows included."""
    old, new = (
        list(arriving(open_source(*rows), ensemble.representation, 4096))
        for rows in ((X, TWO), (NEW, TWO[:6]))
    )
    found, arrivals = take_in(ensemble, new, remember(old), reweigh=True)
    assert found.views == ensemble.views
    assert found.representation is ensemble.representation
    np.testing.assert_allclose(found.weights.sum(), 1.0)
    remembered = np.concatenate([old[0].inputs, new[0].inputs])
    sample = arrivals.sample.rows.inputs
    np.testing.assert_array_equal(*(np.unique(x, axis=0) for x in (sample, remembered)))
    for place, member in enumerate(found.members):
        assert member.status is Status.ARRIVING
        assert float(member.statistics.count) == pytest.approx(N_ROWS + 6.0)
        alone, _ = take_in(only(ensemble, place), new, remember(old), reweigh=False)
        map_arrays(np.testing.assert_array_equal, member.factors, alone.members[0].factors)
    assert np.isfinite(mean_and_deviation(found, NEW)).all()


# Fits


def test_members_that_go_on_keep_their_views(ensemble: Ensemble) -> None:
    settings = small(max_iter=3, features=4, target_transform="yeo-johnson")
    after = fit((X, TWO), settings, before=ensemble).ensemble
    assert after.representation is ensemble.representation
    assert after.views == ensemble.views
    check_ensemble(after, 3, 2)
    rows = prepare(open_source(X, TWO), settings, ensemble, 7, Watching()).task.rows
    order = np.random.default_rng(7).permutation(N_ROWS)
    rows = replace(rows, **{name: value[order] for name, value in vars(rows).items()})
    for place, member in enumerate(after.members):
        task = Task(rows=rows, view=member_views(ensemble)[place], n_threads=1)
        alone = run_task(replace(task, start=ensemble.members[place]), settings).result
        np.testing.assert_allclose(member.elbo_history, alone.elbo_history, rtol=1e-9)
        assert member.elbo_history != ensemble.members[place].elbo_history


def test_pruned_members_go_on_with_the_inputs_that_they_have_left(ensemble: Ensemble) -> None:
    pruned = prune_members(ensemble, 1e-10)
    assert any(0 < len(m.pruning.inputs) < m.pruning.architecture.n_inputs for m in pruned.members)
    check_ensemble(pruned, 3, 2)
    settings = small(max_iter=2)
    rows = prepare(open_source(X, TWO), settings, pruned, 7, Watching()).task.rows
    found = fit_further(
        Task(rows=rows, n_threads=1),
        pruned,
        lambda tasks: [run_task(task, settings) for task in tasks],
    )
    assert found.views == [0, 1, 2, 3]
    for before, after in zip(pruned.members, found.members, strict=True):
        np.testing.assert_array_equal(after.pruning.inputs, before.pruning.inputs)
    after = replace(pruned, members=tuple(found.members))
    assert np.isfinite(mean_and_deviation(after, NEW)).all()


FRAME = pd.DataFrame(
    {
        "size": np.where(np.arange(N_ROWS) % 7 == 0, np.nan, X[:, 0]),
        "color": np.where(np.arange(N_ROWS) % 5 == 0, None, np.where(X[:, 1] > 300, "a", "b")),
        "far": X[:, 1],
    }
)


@pytest.mark.parametrize("inputs", [None, np.array([4, 0, 2])], ids=["all", "some"])
def test_streams_show_the_rows_of_memory(inputs: np.ndarray | None) -> None:
    """To the bit, for every view, all inputs or those that are left."""
    batches = [(FRAME[i : i + 40], TWO[i : i + 40]) for i in range(0, N_ROWS, 40)]
    ensemble = viewed_ensemble((FRAME, TWO), max_iter=1)
    representation = ensemble.representation
    whole, _ = encoded_rows(representation.columns, open_source(FRAME, TWO).block)
    stream = SourceStream(
        source=open_source(batches),
        first_rows=np.zeros(1, dtype=np.intp),
        n_rows=N_ROWS,
        total_weight=float(N_ROWS),
        held_out=np.empty(0, dtype=np.intp),
        representation=representation,
    )
    for view in representation.views:
        rows = join_rows(list(stream.seen_by(view, inputs).read(0)))
        expected = network_rows(view, standardized_rows(representation, whole))
        kept = slice(None) if inputs is None else inputs
        np.testing.assert_array_equal(rows.inputs, expected.inputs[:, kept])
        np.testing.assert_array_equal(rows.targets, expected.targets)
    arrived = join_rows(list(arriving(open_source(batches), representation, 32)))
    expected = standardized_rows(representation, whole)
    np.testing.assert_array_equal(arrived.inputs, expected.inputs)
    np.testing.assert_array_equal(arrived.targets, expected.targets)


@pytest.mark.parametrize("solver", ["cavi", "svi"])
def test_fits_of_a_stream_have_the_views_that_were_asked_for(solver: str) -> None:
    batches = [(X[i : i + 40], TWO[i : i + 40]) for i in range(0, N_ROWS, 40)]
    settings = small(solver=solver, features=4, target_transform="yeo-johnson", max_iter=3)
    found = fit((batches,), settings).ensemble
    check_ensemble(found, 3, 2)
    [view] = found.representation.views
    assert view.pieces is not None
    assert view.warp is not None
    for member in found.members:
        assert member.model.architecture.n_inputs == len(view.pieces.column)
    assert np.isfinite(mean_and_deviation(found, X)).all()


def test_a_reader_surveys_what_a_fit_in_memory_sees() -> None:
    """Bins and warp of all rows, whether a sample or the table gives them."""
    settings = small(solver="cavi", features=4, target_transform="yeo-johnson")
    whole = prepare(open_source(X, TWO), settings, None, 7, Watching()).representation.views
    batches = open_source([(X[:50], TWO[:50]), (X[50:], TWO[50:])])
    assert SourceReader(batches).source.n_pieces == 1
    streamed = prepare(batches, settings, None, 7, Watching()).representation.views
    map_arrays(np.testing.assert_array_equal, streamed, whole)


def test_one_table_in_any_order_has_the_same_members() -> None:
    """Shuffled rows and columns, and a weight of two for a row that comes twice."""
    settings = small(max_iter=3, features=4, target_transform="yeo-johnson", weighting="equal")
    order, columns = RNG.permutation(N_ROWS), np.array([2, 0, 1])
    twice = np.append(order, order[:5])
    once = np.ones(N_ROWS)
    once[order[:5]] = 2.0
    expected = fit((X, TWO, once), settings).ensemble
    found = fit((X[twice][:, columns], TWO[twice]), settings).ensemble
    for one, other in zip(found.members, expected.members, strict=True):
        assert_same_fit(one, other)


# Comparing members by density


def one_level(
    errors: np.ndarray, variances: np.ndarray, row_weights: np.ndarray, log_slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and one factor for all variances."""
    forecasts = Forecasts(
        errors=errors, variances=variances, log_slopes=log_slopes, row_weights=row_weights
    )
    ones = np.ones((errors.shape[1], 1))
    weights, scale, _ = stack_with_levels(forecasts, ones, 1, tolerance=1e-12)
    return weights, scale[0]


def test_a_warp_with_its_slope_is_the_same_forecast() -> None:
    """A stretch of the targets is no other forecast; without its slope it would win or lose."""
    rng = np.random.default_rng(7)
    variances = rng.gamma(4.0, 0.25, size=(1, 50, 2))
    errors = np.sqrt(variances) * rng.normal(size=variances.shape)
    rows = build_rows(np.zeros((50, 1)), rng.normal(size=(50, 2)))
    stretch = replace(identity(2), scale=np.array([0.1, 0.2]))
    slopes = log_slopes(View(warp=stretch), rows)
    np.testing.assert_allclose(slopes, -np.log(0.02), rtol=1e-12)
    unit = np.array([0.1, 0.2])
    both = np.concatenate([errors, errors / unit]), np.concatenate([variances, variances / unit**2])
    weights, factor = one_level(*both, np.ones(50), np.stack([0.0 * slopes, slopes]))
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=1e-9)
    _, alone = one_level(errors, variances, np.ones(50), np.zeros((1, 50)))
    np.testing.assert_allclose(factor, alone, rtol=1e-6)
    blind, _ = one_level(*both, np.ones(50), np.zeros((2, 50)))
    assert blind[0] > 0.99


def test_slopes_are_taken_for_rows_that_count() -> None:
    """Rows of weight zero have none; a slope that changes from row to row moves the weights."""
    rng = np.random.default_rng(8)
    errors, variances = rng.normal(size=(2, 40, 1)), np.ones((2, 40, 1))
    slopes = np.stack([np.zeros(40), rng.normal(size=40)])
    row_weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    found = one_level(errors, variances, row_weights, slopes)
    kept = (errors[:, :30], variances[:, :30], np.ones(30))
    expected = one_level(*kept, slopes[:, :30])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    assert abs(one_level(*kept, np.zeros((2, 30)))[0][0] - found[0][0]) > 0.01


def test_a_warped_view_wins_where_the_targets_are_skewed() -> None:
    """Real fits: exp of a line is a line after the warp; held-out density says so."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=(120, 1))
    y = np.exp(1.2 * x[:, 0] + 0.3 * rng.normal(size=120))
    settings = small(n_estimators=3, hidden_layer_sizes=(3,), target_transform="auto")
    found = fit((x, y), settings).ensemble
    assert len(found.members) == 3
    assert all(view.warp is not None for view in member_views(found))


# Structure and exports


def strength_by_loops(ensemble: Ensemble) -> np.ndarray:
    """In each member the sum of strengths; then the members' mean."""
    strength = np.zeros((3, 2))
    for member, weight, view in zip(
        ensemble.members, ensemble.weights, member_views(ensemble), strict=True
    ):
        owner = input_owners(ensemble.representation, view)
        surviving = existing(member.model, member.factors)
        if member.pruning is not None:
            owner = owner[member.pruning.inputs]
        sizes = path_strength(member.factors, surviving)
        if view.pieces is not None:
            # A standard deviation of a component is not 1: all are on one scale.
            inputs = slice(None) if member.pruning is None else member.pruning.inputs
            sizes = np.diag(view.pieces.deviation[inputs]) @ sizes
        for column, output in np.ndindex(3, 2):
            mine = [place for place in range(len(owner)) if owner[place] == column]
            strength[column, output] += weight * sum(sizes[p, output] for p in mine)
    return strength


@pytest.mark.parametrize("when", ["before", "after"])
def test_relevance_groups_the_components_of_a_column(when: str, ensemble: Ensemble) -> None:
    given = ensemble if when == "before" else prune_members(ensemble, 1e-4)
    found = column_strength(given)
    np.testing.assert_allclose(found, strength_by_loops(given), rtol=1e-12)


def test_draws_for_arviz_stand_at_the_inputs_of_their_member(ensemble: Ensemble) -> None:
    """All names of all views; a member has zeros at those that are not its own."""
    found = to_arviz(ensemble, 300, np.random.default_rng(11))["posterior"]
    names = found["input"].values.tolist()
    assert names[0] == "bias"
    assert len(set(names)) == len(names) == 1 + 3 + 12
    order = [name.split(" ")[0] for name in names[1:]]
    assert order == sorted(order)
    chosen, drawn = found["member"].values[0], found["weights_1"].values[0]
    assert set(chosen) == {0, 1, 2, 3}
    for place, (member, view) in enumerate(
        zip(ensemble.members, member_views(ensemble), strict=True)
    ):
        own = [0, *(names.index(name) for name in input_names(ensemble.representation, view))]
        mine = drawn[chosen == place]
        others = np.setdiff1d(np.arange(len(names)), own)
        assert not mine[:, :, others].any()
        values, mean = mine[:, :, own], member.factors.layers[0].weights.mean
        # 6 estimated standard errors of 20 draws or more: a false alarm in 1e5 for each of 136
        # weights at worst, with a fixed seed.
        assert len(values) >= 20
        bar = 6.0 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(np.abs(values.mean(axis=0) - mean) < bar)
