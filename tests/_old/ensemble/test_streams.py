"""Rows that are not in memory: read again and again, encoded, with held-out rows of weight 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet._old.data.door import open_source
from bowtienet._old.data.rows import Rows, join_rows
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble import fit_ensemble as module
from bowtienet._old.ensemble.fit_ensemble import LARGE, Prepared, count_held_out, prepare
from bowtienet._old.ensemble.fold_networks import FEWEST_ROWS
from bowtienet._old.ensemble.streams import SourceReader, SourceStream, arriving
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.representation.representation import PLAIN, encoded_rows, standardized_rows
from tests._old.ensemble.fits import Watching, assert_same_ensemble, fit, small

N_ROWS = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, 3)) * (1.0, 20.0, 0.1) + (0.0, 300.0, 5.0)
Y = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1] + 0.1 * RNG.normal(size=N_ROWS)
TWO = np.stack([Y, X[:, 2]], axis=1)
WEIGHTS = np.where(np.arange(N_ROWS) % 4 == 0, 0.0, 1.0 + np.arange(N_ROWS) % 3)
FRAME = pd.DataFrame(
    {
        "size": np.where(np.arange(N_ROWS) % 7 == 0, np.nan, X[:, 0]),
        "color": np.where(np.arange(N_ROWS) % 5 == 0, None, np.where(Y > 30.0, "red", "blue")),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N_ROWS), unit="D"),
        "same": "x",
    }
)


def cut(size: int, *arrays: Any) -> list[tuple[Any, ...]]:
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, N_ROWS, size)]


class Pieces(Source):
    """Several pieces of several blocks, of a table in memory."""

    def __init__(self, *given: Any, sizes: tuple[int, ...] = (50, 1, 30, 39)) -> None:
        self.whole = open_source(*given)
        self.n_pieces = len(sizes)
        self.starts = np.cumsum([0, *sizes])
        for name in ("feature_names", "n_features", "target_names", "n_targets", "single_target"):
            setattr(self, name, getattr(self.whole, name))

    def read(self, piece: int) -> Iterator[Any]:
        start, stop = self.starts[piece : piece + 2]
        for first in range(start, stop, 20):
            yield self.whole.take(np.arange(first, min(first + 20, stop))).block

    def check_unchanged(self) -> None:
        pass


SOURCES = {
    "memory": lambda *given: open_source(*given),
    "batches": lambda *given: open_source(cut(50, *given)),
    "pieces": lambda *given: Pieces(*given),
}


def prepared(source: Source, **changes: Any) -> Prepared:
    return prepare(source, small(**({"solver": "svi"} | changes)), None, 7, Watching())


def stream_of(source: Source, **changes: Any) -> SourceStream:
    stream = prepared(source, **changes).task.stream
    assert isinstance(stream, SourceStream)
    return stream


def numbers(rows: Rows, of: SourceStream) -> np.ndarray:
    """Which row of X each is, found by its first column."""
    scaling = of.representation.feature_scaling
    place = of.representation.column_order.tolist().index(0)
    values = rows.inputs[:, place] * scaling.scale[0] + scaling.center[0]
    found = np.abs(values[:, None] - X[:, 0]).argmin(axis=1)
    np.testing.assert_allclose(values, X[found, 0], atol=1e-9)
    return found


# The rows of a stream


@pytest.mark.parametrize("kind", SOURCES)
def test_every_row_is_held_out_or_trained_on(kind: str) -> None:
    found = prepared(SOURCES[kind](X, Y))
    stream = found.task.stream
    assert isinstance(stream, SourceStream)
    assert found.task.held_out is not None
    held_out = numbers(found.task.held_out, stream)
    assert len(held_out) == N_ROWS // 5
    assert sorted([*held_out, *numbers(found.task.rows, stream)]) == list(range(N_ROWS))
    for epoch in (0, 1):
        batches = join_rows(list(stream.batches(50, 7)(epoch)))
        assert sorted(numbers(batches, stream)) == list(range(N_ROWS))
        assert set(numbers(batches, stream)[batches.weights == 0.0]) == set(held_out)
    assert stream.total_weight == N_ROWS - len(held_out)


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_in_order_are_those_of_the_source(kind: str) -> None:
    stream = stream_of(SOURCES[kind](X, TWO, WEIGHTS), weighting="equal")
    rows = join_rows([rows for piece in range(stream.n_pieces) for rows in stream.read(piece)])
    np.testing.assert_array_equal(numbers(rows, stream), np.arange(N_ROWS))
    np.testing.assert_array_equal(rows.weights, WEIGHTS)
    scaling = stream.representation.target_scaling
    np.testing.assert_allclose(rows.targets * scaling.scale + scaling.center, TWO, rtol=1e-12)
    assert stream.total_weight == WEIGHTS.sum()
    assert stream.held_out.size == 0


def test_a_fifth_of_the_rows_that_count_is_held_out() -> None:
    found = prepared(open_source(X, Y, WEIGHTS))
    assert found.task.held_out is not None
    n_counted = np.count_nonzero(WEIGHTS)
    assert found.task.held_out.inputs.shape[0] == n_counted // 5
    lost = float(np.sum(found.task.held_out.weights))
    assert found.task.stream.total_weight == pytest.approx(WEIGHTS.sum() - lost)


@pytest.mark.parametrize(("n", "expected"), [(FEWEST_ROWS - 1, 0), (FEWEST_ROWS, 2)])
def test_nothing_is_held_out_of_very_few_rows(n: int, expected: int) -> None:
    reader = SourceReader(open_source(X[:n], Y[:n]))
    columns, n_rows = reader.columns(100)
    assert n_rows == reader.count_rows() == n
    assert count_held_out(reader.survey(columns, 0, 100)) == expected


def test_batches_are_the_same_for_the_same_seed() -> None:
    stream = stream_of(open_source(cut(30, X, Y)))

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [numbers(rows, stream).tolist() for rows in stream.batches(25, seed)(epoch)]

    assert [len(batch) for batch in order(3, 0)] == [25, 25, 25, 25, 20]
    assert order(3, 0) == order(3, 0)
    assert order(3, 0) != order(3, 1)
    assert order(3, 0) != order(4, 0)


def test_a_member_that_lost_inputs_sees_those_it_has() -> None:
    stream = stream_of(open_source(X, Y))
    [rows], [taken] = (list(s.read(0)) for s in (stream, stream.seen_by(PLAIN, np.array([2, 0]))))
    np.testing.assert_array_equal(taken.inputs, rows.inputs[:, [2, 0]])
    np.testing.assert_array_equal(taken.weights, rows.weights)


class Changing:
    """Batches that differ from the second pass on."""

    def __init__(self, then: list[Any]) -> None:
        self.then, self.n_passes = then, 0

    def __iter__(self) -> Iterator[Any]:
        self.n_passes += 1
        return iter(cut(60, X, Y) if self.n_passes <= 6 else self.then)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is small."""
    monkeypatch.setattr(module, "LARGE", 0)


@pytest.mark.parametrize("solver", ["cavi", "svi"])
@pytest.mark.parametrize(
    "then", [cut(60, X, Y)[::-1], cut(60, X + 1e-9, Y), cut(60, X, Y)[:1]],
    ids=["order", "values", "fewer"],
)  # fmt: skip
def test_other_rows_in_a_later_pass_are_noticed(
    solver: str, then: list[Any], streamed: None
) -> None:
    """Local factors and held-out rows belong to places."""
    with pytest.raises(ValueError, match="pass"):
        fit((Changing(then),), small(solver=solver, weighting="equal"))


# Fits


def test_fewer_rows_in_the_second_pass_of_a_small_table_are_noticed() -> None:
    rows = Changing(cut(60, X, Y)[:1])
    rows.n_passes = 3
    with pytest.raises(ValueError, match="pass"):
        fit((rows,), small(solver="cavi"))


def test_coordinate_ascent_on_a_stream_is_that_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same rows and with all of them in the sample: the order of sums is all that differs.

    tests/ensemble/test_same_fit.py compares sources among each other.
    """
    settings = small(solver="cavi", max_iter=10, weighting="equal")
    expected = fit((FRAME, Y), settings).ensemble
    monkeypatch.setattr(module, "LARGE", 0)
    found = fit(Pieces(FRAME, Y), settings).ensemble
    assert found.representation.columns == expected.representation.columns
    for one, other in zip(found.members, expected.members, strict=True):
        np.testing.assert_allclose(one.elbo_history[-1], other.elbo_history[-1], rtol=0.05)


def test_the_solver_follows_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LARGE == 50_000
    for large, expected in ((N_ROWS, "cavi"), (N_ROWS - 1, "svi")):
        monkeypatch.setattr(module, "LARGE", large)
        for kind in SOURCES:
            watch = Watching()
            fit(SOURCES[kind](X, Y), small(n_estimators=1, max_iter=1), watch)
            assert watch.begun[0][1] == expected
            assert any(f"{N_ROWS} rows" in text for text in watch.said) == (expected == "svi")


@pytest.mark.parametrize("n_members", [1, 2])
def test_held_out_rows_set_variances_and_levels(n_members: int) -> None:
    """On average the group's variance is the one that held-out errors ask for."""
    settings = small(solver="svi", n_estimators=n_members, effort="fast")
    source = open_source([(X, TWO)])
    held_out = prepare(source, settings, None, 7, Watching()).task.held_out
    ensemble = fit(source, settings).ensemble
    assert len(ensemble.members) == n_members
    assert ensemble.groups == (0,) * n_members
    assert ensemble.held_out.values.shape == (held_out.inputs.shape[0], 2)
    assert ensemble.levels.scale.shape == (1, 2)
    found = [predict(m.model, m.factors, held_out.inputs) for m in ensemble.members]
    means = np.stack([f.mean for f in found])
    own = np.mean([f.signal_variance + f.noise_variance for f in found], axis=0)
    ratio = ensemble.members[0].variance_ratio
    assert all(np.array_equal(member.variance_ratio, ratio) for member in ensemble.members)
    errors, spread = held_out.targets - means.mean(axis=0), means.var(axis=0)
    asked = (np.sum(errors**2 / (own + spread), axis=0) + 5.0) / (len(errors) + 5.0)
    wanted = asked + (asked - 1.0) * spread.mean(axis=0) / own.mean(axis=0)
    np.testing.assert_allclose(ratio, np.maximum(wanted, 0.25 * asked), rtol=1e-9)


def test_without_stacking_nothing_is_held_out() -> None:
    for weighting in ("equal", "elbo"):
        members = fit(([(X, Y)],), small(solver="svi", weighting=weighting)).ensemble.members
        for member in members:
            assert float(member.statistics.count) == pytest.approx(N_ROWS)
            assert member.variance_ratio is None


def test_rows_of_weight_zero_have_no_influence() -> None:
    absent = WEIGHTS == 0.0
    wild = np.where(absent[:, None], 1e6, X), np.where(absent, -1e9, Y)
    settings = small(solver="svi")
    expected = fit((X, Y, WEIGHTS), settings).ensemble
    assert_same_ensemble(fit((*wild, WEIGHTS), settings).ensemble, expected)
    center = expected.representation.feature_scaling.center
    np.testing.assert_allclose(center, np.average(X, axis=0, weights=WEIGHTS), rtol=1e-12)


def test_a_fit_goes_on_with_a_stream() -> None:
    """With the representation, weights and ratios that there are."""
    settings = small(solver="svi")
    before = fit(Pieces(X, Y), settings).ensemble
    after = fit((cut(60, X + 0.1, Y),), settings, before=before).ensemble
    assert after.representation is before.representation
    np.testing.assert_array_equal(after.weights, before.weights)
    for one, other in zip(after.members, before.members, strict=True):
        np.testing.assert_array_equal(one.variance_ratio, other.variance_ratio)
        assert one.elbo_history != other.elbo_history


@pytest.mark.parametrize("solver", ["svi", "cavi", "auto"])
def test_sources_that_cannot_be_fitted(solver: str) -> None:
    settings = small(solver=solver)
    with pytest.raises(ValueError, match="row"):
        fit(([(X[:1], Y[:1])],), settings)
    with pytest.raises(ValueError, match="weight"):
        fit((cut(60, X, Y, np.zeros(N_ROWS)),), settings)
    two = fit(([(X[:2], Y[:2])],), replace(settings, n_estimators=1))
    assert len(two.ensemble.members) == 1


def test_rows_that_arrive_are_seen_as_those_of_the_fit() -> None:
    representation = prepared(open_source(FRAME, Y)).representation
    source = Pieces(FRAME, Y, WEIGHTS)
    batches = list(arriving(source, representation, 7))
    present = WEIGHTS > 0.0
    rows = join_rows(batches)
    np.testing.assert_array_equal(rows.weights, WEIGHTS[present])
    whole, _ = encoded_rows(representation.columns, source.whole.block)
    expected = standardized_rows(representation, whole).inputs[present]
    np.testing.assert_array_equal(rows.inputs, expected)
    assert max(len(batch.weights) for batch in batches) == 7
