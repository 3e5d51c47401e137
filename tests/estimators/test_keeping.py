"""Saved estimators come back bit for bit or not at all; posterior draws in the form of ArviZ."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from bowtienet import BowTieRegressor, persistence
from bowtienet.model.shrinkage import FAMILIES

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ says once a day that it will change
    import arviz

assert arviz  # imported here so that `to_arviz` finds it without that warning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.sin(X[:, 0]) + 2.0 * X[:, 1] + 0.1 * RNG.normal(size=50)
FRAME = pd.DataFrame(X, columns=["age", "height", "weight"])
BOTH = np.column_stack([Y, 10.0 - X[:, 2]])


def small(**changes: Any) -> BowTieRegressor:
    """A regressor that is fitted in a tenth of a second and calls itself converged."""
    settings: dict[str, Any] = {"n_estimators": 2, "combine": "equal", "random_state": 0}
    settings |= {"hidden_layer_sizes": (5,), "max_iter": 10, "tol": 1.0}
    return BowTieRegressor(**(settings | changes))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bowtie"


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return small().fit(FRAME, Y)


def assert_comes_back(model: BowTieRegressor, table: Any, path: Path) -> BowTieRegressor:
    """Saved and loaded: the same answers, settings and attributes."""
    model.save(path)
    loaded = BowTieRegressor.load(path)
    for keywords in ({"return_std": True}, {"return_cov": True}):
        for found, expected in zip(
            loaded.predict(table, **keywords), model.predict(table, **keywords), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        loaded.predict_interval(table, [0.5, 0.9]), model.predict_interval(table, [0.5, 0.9])
    )
    np.testing.assert_array_equal(
        loaded.sample_y(table, 3, joint=True), model.sample_y(table, 3, joint=True)
    )
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    # The bytes of a file are all that it holds: equal bytes are equal attributes.
    again = path.with_suffix(".again")
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()
    return loaded


# Round trips


@pytest.mark.parametrize("prior", FAMILIES)
@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)], ids=str)
def test_every_prior_and_depth(prior: str, hidden: tuple[int, ...], path: Path) -> None:
    model = small(prior=prior, hidden_layer_sizes=hidden, init="laplace").fit(FRAME, Y)
    loaded = assert_comes_back(model, FRAME[:10], path)
    assert loaded.predict(FRAME).shape == (50,)
    assert loaded.feature_names_in_.tolist() == ["age", "height", "weight"]
    assert loaded.feature_names_in_.dtype == object


@pytest.mark.parametrize("target", [BOTH, Y[:, None]], ids=["two", "one in a column"])
def test_several_targets(target: np.ndarray, path: Path) -> None:
    loaded = assert_comes_back(small().fit(X, target), X[:10], path)
    assert loaded.predict(X).shape == target.shape
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize(
    "settings",
    [
        {"combine": "stacking", "gate_temperature": 0.01, "init_penalty": 1.0},
        {"combine": "elbo", "predictive": "variational", "elbo_tempering": 0.5},
        {"init": "spike_slab", "warm_start": True, "verbose": 0, "n_jobs": 1},
        {"hidden_layer_sizes": [5], "random_state": None},
    ],
    ids=["stacking", "elbo", "spike and slab", "a list"],
)
def test_other_settings(settings: dict[str, Any], path: Path) -> None:
    assert_comes_back(small(**settings).fit(X, Y), X[:10], path)


def test_attributes_are_those_of_the_fit(model: BowTieRegressor, path: Path) -> None:
    """Some of what equal bytes say, spelt out."""
    model.save(path)
    loaded = BowTieRegressor.load(path)
    for name in ("elbo_", "status_", "converged_", "n_iter_", "n_outputs_", "n_features_in_"):
        found, expected = getattr(loaded, name), getattr(model, name)
        assert (type(found), found) == (type(expected), expected), name
    np.testing.assert_array_equal(loaded.member_weights_, model.member_weights_)
    np.testing.assert_array_equal(loaded.elbo_history_, model.elbo_history_)
    assert loaded.n_effective_members_ == model.n_effective_members_
    assert loaded.elbo_terms_ == model.elbo_terms_


def test_ratios_are_kept_and_used(model: BowTieRegressor, path: Path) -> None:
    """Those of stacking come back to the bit, and intervals with them."""
    members = tuple(
        replace(member, variance_ratio=np.array([ratio]))
        for member, ratio in zip(model.ensemble_.members, (2.3, 0.4), strict=True)
    )
    wide = copy.copy(model)
    wide.ensemble_ = replace(model.ensemble_, members=members)
    loaded = assert_comes_back(wide, FRAME, path)
    found = [member.variance_ratio for member in loaded.ensemble_.members]
    np.testing.assert_array_equal(found, [[2.3], [0.4]])
    assert not np.array_equal(loaded.predict_interval(FRAME), model.predict_interval(FRAME))
    unpickled = pickle.loads(pickle.dumps(wide))
    np.testing.assert_array_equal(unpickled.predict_interval(FRAME), loaded.predict_interval(FRAME))


def test_names_are_checked_after_loading(model: BowTieRegressor, path: Path) -> None:
    model.save(path)
    with pytest.raises(ValueError, match="now missing:\n- weight"):
        BowTieRegressor.load(path).predict(FRAME[["age", "height"]])


def test_a_random_state_is_not_kept_but_everything_else_is(path: Path) -> None:
    model = small(random_state=np.random.RandomState(3)).fit(X, Y)
    model.save(path)
    loaded = BowTieRegressor.load(path)
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    rest = {name: value for name, value in model.get_params().items() if name != "random_state"}
    assert loaded.get_params() == rest | {"random_state": None}


def test_a_loaded_estimator_can_be_fitted_and_go_on(path: Path) -> None:
    model = small(warm_start=True).fit(X, Y)
    model.save(path)
    loaded = BowTieRegressor.load(path)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), model.fit(X, Y).predict(X))
    loaded.set_params(warm_start=False)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), small().fit(X, Y).predict(X))


def test_what_torch_fitted_is_loaded_as_numpy(path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = small(init="laplace").fit(torch.tensor(X), torch.tensor(Y))
    model.save(path)
    loaded = BowTieRegressor.load(path)
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-10)
    assert isinstance(loaded.predict(torch.tensor(X)), torch.Tensor)


def test_an_unfitted_estimator_cannot_be_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        small().save(path)
    assert not path.exists()


# Files that are refused


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def one_bit_flipped(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]


def one_letter_changed(data: bytes) -> bytes:
    return data.replace(b"student_t", b"student_u", 1)


def too_long(data: bytes) -> bytes:
    return data + b"\0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (truncated, "truncated"),
        (one_bit_flipped, "altered"),
        (one_letter_changed, "altered"),
        (too_long, "too long"),
        (lambda data: b"", "damaged"),
        (lambda data: b"a,b\n1,2\n" * 100, "not a bowtienet file"),
    ],
    ids=["truncated", "bit", "letter", "too long", "empty", "foreign"],
)
def test_a_damaged_file_is_refused(
    change: Callable[[bytes], bytes], words: str, model: BowTieRegressor, path: Path
) -> None:
    model.save(path)
    data = path.read_bytes()
    assert change(data) != data
    path.write_bytes(change(data))
    with pytest.raises(ValueError, match=words):
        BowTieRegressor.load(path)


def test_a_file_of_another_kind_is_refused(path: Path) -> None:
    persistence.save(path, "pair", (1, 2))
    with pytest.raises(ValueError, match="'pair', not a 'BowTieRegressor'"):
        BowTieRegressor.load(path)


def test_a_subclass_is_another_kind(path: Path) -> None:
    class Other(BowTieRegressor):
        pass

    Other(**small().get_params()).fit(X, Y).save(path)
    with pytest.raises(ValueError, match="'Other', not a 'BowTieRegressor'"):
        BowTieRegressor.load(path)
    assert type(Other.load(path)) is Other


class Burglar:
    """Whoever unpickles it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def test_a_pickle_is_refused_and_never_run(path: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    path.write_bytes(pickle.dumps(Burglar(trace)))
    with pytest.raises(ValueError, match="not a bowtienet file"):
        BowTieRegressor.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists()


def with_ensemble(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(content: dict[str, Any]) -> None:
        fitted = content["fitted"]
        fitted["ensemble_"] = replace(fitted["ensemble_"], **changes)

    return change


def with_a_wider_member(content: dict[str, Any]) -> None:
    first, second = content["fitted"]["ensemble_"].members
    architecture = replace(first.model.architecture, hidden=(7,))
    first = replace(first, model=replace(first.model, architecture=architecture))
    with_ensemble(members=(first, second))(content)


def with_a_ratio(ratio: Any) -> Callable[[dict[str, Any]], Any]:
    def change(content: dict[str, Any]) -> None:
        first, second = content["fitted"]["ensemble_"].members
        with_ensemble(members=(first, replace(second, variance_ratio=ratio)))(content)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("settings"),
        lambda content: content.pop("feature_names"),
        lambda content: content["fitted"].pop("elbo_"),
        lambda content: content["settings"].update(colour="red"),
        lambda content: content["fitted"].update(ensemble_=None),
        lambda content: content["fitted"].update(n_features_in_=7),
        lambda content: content.update(feature_names=["age"]),
        with_a_wider_member,
        with_ensemble(members=()),
        with_ensemble(members=(1, 2)),
        with_ensemble(weights=np.ones(1)),
        with_ensemble(column_order=np.array([0, 1, 9])),
        with_ensemble(input_scaling=None),
        with_a_ratio(np.ones(2)),
        with_a_ratio(np.zeros(1)),
        with_a_ratio(np.array([np.nan])),
        with_a_ratio([1.0]),
        with_a_ratio("wide"),
    ],
    ids=[
        "no settings",
        "no names",
        "no bound",
        "an unknown setting",
        "no ensemble",
        "another number of columns",
        "another number of names",
        "a member of another shape",
        "no members",
        "members that are numbers",
        "another number of weights",
        "a column that is not there",
        "no scaling",
        "another number of ratios",
        "a ratio of zero",
        "a ratio that is none",
        "a list of ratios",
        "a word for a ratio",
    ],
)
def test_a_file_whose_parts_do_not_belong_together_is_refused(
    change: Callable[[dict[str, Any]], Any], model: BowTieRegressor, path: Path
) -> None:
    """The digest of such a file is right: someone wrote it so."""
    model.save(path)
    content = persistence.load(path, "BowTieRegressor")
    change(content)
    persistence.save(path, "BowTieRegressor", content)
    with pytest.raises(ValueError, match="does not hold a complete BowTieRegressor"):
        BowTieRegressor.load(path)


def test_content_that_is_no_dict_is_refused(path: Path) -> None:
    persistence.save(path, "BowTieRegressor", [1, 2])
    with pytest.raises(ValueError, match="does not hold a complete BowTieRegressor"):
        BowTieRegressor.load(path)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.bowtie does not exist"):
        BowTieRegressor.load(path)


# ArviZ


def test_draws_have_the_shapes_and_names_of_the_network() -> None:
    model = small(hidden_layer_sizes=(4, 3)).fit(FRAME, BOTH)
    posterior = model.to_arviz(draws=7)["posterior"]
    shapes = {"weights_1": (4, 4), "weights_2": (3, 5), "weights_3": (2, 4)}
    shapes |= {"noise_variance_1": (4,), "noise_variance_2": (3,), "noise_variance_3": (2,)}
    assert set(posterior.data_vars) == {*shapes, "member"}
    for name, shape in shapes.items():
        assert posterior[name].shape == (1, 7, *shape), name
        assert np.all(np.isfinite(posterior[name].values))
    assert posterior["member"].shape == (1, 7)
    assert posterior["weights_1"].dims == ("chain", "draw", "unit_1", "input")
    assert posterior["input"].values.tolist() == ["bias", "age", "height", "weight"]
    assert np.all(posterior["noise_variance_1"].values > 0.0)


def test_columns_without_names_are_numbered() -> None:
    posterior = small().fit(X, Y).to_arviz(draws=2)["posterior"]
    assert posterior["input"].values.tolist() == ["bias", "x0", "x1", "x2"]


def test_means_of_draws_are_those_of_the_posterior(model: BowTieRegressor) -> None:
    """Within five standard errors: for some 40 numbers a false alarm of 2e-5."""
    draws, ensemble = 4000, model.ensemble_
    posterior = model.to_arviz(draws=draws)["posterior"]
    for layer in range(2):
        factors = [member.factors.layers[layer] for member in ensemble.members]
        mean = np.tensordot(ensemble.weights, [f.weights.mean for f in factors], axes=1)
        found = posterior[f"weights_{layer + 1}"].values[0]
        if layer == 0:
            found = found[:, :, [0, *(1 + ensemble.column_order)]]
        error = found.std(axis=0) / np.sqrt(draws)
        assert np.all(np.abs(found.mean(axis=0) - mean) < 5.0 * error)
        noise = [f.noise_variance.scale / (f.noise_variance.concentration - 1) for f in factors]
        found = posterior[f"noise_variance_{layer + 1}"].values[0]
        error = found.std(axis=0) / np.sqrt(draws)
        expected = np.tensordot(ensemble.weights, noise, axes=1)
        assert np.all(np.abs(found.mean(axis=0) - expected) < 5.0 * error)
    shares = np.bincount(posterior["member"].values[0], minlength=2) / draws
    assert np.all(np.abs(shares - ensemble.weights) < 5.0 * np.sqrt(0.25 / draws))


def test_draws_stand_beside_the_users_columns() -> None:
    """Without hidden layers the mean of the draws is the line itself, in the user's columns."""
    model = small(hidden_layer_sizes=(), n_estimators=1).fit(FRAME, Y)
    assert model.ensemble_.column_order.tolist() != [0, 1, 2]  # or nothing is tested
    draws = model.to_arviz(draws=4000)["posterior"]["weights_1"].values[0, :, 0]
    line = draws.mean(axis=0)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    found = (line[0] + scaled @ line[1:]) * Y.std() + Y.mean()
    # Weights of deviation s give a line of error s |(1, x)| / sqrt(draws); five of these.
    lengths = np.sqrt(1.0 + (scaled**2).sum(axis=1))
    error = draws.std(axis=0).max() * lengths * Y.std() / np.sqrt(4000)
    assert np.all(np.abs(found - model.predict(FRAME)) < 5.0 * error)
    assert np.all(5.0 * error < 0.1 * Y.std())


def test_draws_are_repeatable(model: BowTieRegressor) -> None:
    first, same, other = (
        model.to_arviz(draws=3, random_state=seed)["posterior"]["weights_1"].values
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_to_arviz_asks_for_a_fit_and_for_draws(model: BowTieRegressor) -> None:
    with pytest.raises(NotFittedError):
        small().to_arviz()
    with pytest.raises(ValueError, match="draws must be a whole number of at least 1, got 0"):
        model.to_arviz(draws=0)


def test_without_arviz_the_error_says_what_to_install(
    model: BowTieRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'bowtienet\[arviz\]'"):
        model.to_arviz()
