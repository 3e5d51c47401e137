"""The pruning half of the estimator: smaller networks, and which inputs matter."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import to_numpy
from bowtienet.data.rows import Rows
from bowtienet.distributions import inverse_gamma
from bowtienet.estimators.members import continued
from bowtienet.estimators.progress import with_callbacks
from bowtienet.estimators.running import fitted_attributes
from bowtienet.estimators.tables import input_names, known_columns
from bowtienet.estimators.tasks import Task
from bowtienet.inference.convergence import Status
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.pruning import combine, prune
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.relevance import path_probability, path_strength
from bowtienet.posterior.selection import Mask, check_rate, existing, select
from bowtienet.prediction.ensemble import original

REFIT = "refit=True goes on from the last fit: give it the same columns and number of targets."
Counts = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """Size of an ensemble before and after pruning, with one entry for each member."""

    inputs_before: Counts
    inputs_after: Counts
    nodes_before: Counts
    """Hidden units of all layers."""
    nodes_after: Counts
    weights_before: Counts
    """Weights without biases."""
    weights_after: Counts
    keep_threshold: Floats
    """Least sign probability among the weights that `prune` chose; NaN without it."""
    false_sign_rate: Floats
    """Estimated rate of the weights that `prune` left, when it did; NaN without it. It may lie a
    little above the rate that was asked for, since sure weights on no path go too."""

    def __str__(self) -> str:
        members = len(self.nodes_before)
        lines = [f"{members} member{'s' if members > 1 else ''}, before -> after"]
        for name in ("inputs", "nodes", "weights"):
            before, after = getattr(self, f"{name}_before"), getattr(self, f"{name}_after")
            lines.append(f"{name:<8}{before.sum():>8} -> {after.sum()}")
        if not np.isnan(self.false_sign_rate).all():
            # Of all weights together: each member's rate counts by what it has left.
            known = ~np.isnan(self.false_sign_rate)
            wrong = np.sum((self.false_sign_rate * self.weights_after)[known])
            total = max(int(self.weights_after[known].sum()), 1)
            lines.append(f"estimated false discovery rate {wrong / total:.4f}")
        return "\n".join(lines)


class FeatureRelevance(NamedTuple):
    """Which inputs matter; for one target `pandas.DataFrame(found._asdict())` is a table."""

    name: NDArray[Any]
    """Names of the inputs, x0, x1, ... if they have none."""
    probability: Floats
    """Posterior probability of a path to the target, (inputs,) or (inputs, outputs)."""
    strength: Floats
    """Sum over paths of the products of the sizes of mean weights: in a ReLU network the most by
    which one standard deviation of the input can move the target, in its standard deviations. Same
    shape."""

    def strongest(self) -> FeatureRelevance:
        """Probability and strength (inputs,), each the largest over the targets."""
        probability, strength = (
            values.reshape(len(self.name), -1).max(axis=1)
            for values in (self.probability, self.strength)
        )
        return self._replace(probability=probability, strength=strength)


class PruningMixin:
    """Pruning of `ensemble_`."""

    ensemble_: Any
    solver_: str
    n_features_in_: int
    n_outputs_: int
    false_sign_rate: float
    random_state: Any
    _single_target: bool
    _fit: Any
    _keep: Any
    _validate_params: Any

    def prune(
        self,
        false_sign_rate: float | None = None,
        *,
        refit: bool = False,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """A new, fitted, physically smaller estimator.

        Each member keeps the weights whose sign is sure, at an estimated false discovery rate, and
        loses nodes that no input reaches or that reach no output. What is constant moves into the
        next bias, and the others take in what is gone as far as the posterior says they can. If
        nothing is sure enough the result predicts a constant, with a warning.

        Parameters
        ----------
        false_sign_rate : float in (0, 1), optional
            Estimated share of kept weights that have the wrong sign; lower prunes more. By default
            that of the estimator, 0.01. From 0.5 on no weight is dropped.
        refit : bool
            Go on fitting what is left; needs the rows. A member whose length was chosen by rows
            held out runs as long again, others until `max_iter` or `tol`.
        X, y, sample_weight :
            The rows for `refit`, as for `fit`.

        Returns
        -------
        BowTieRegressor
            With ``sparsity_``; this one is unchanged. Without `refit` the bound of what is left is
            not known: ``elbo_`` is minus infinity and ``elbo_history_`` empty.
        """
        check_is_fitted(self)
        self._validate_params()
        rate = self.false_sign_rate if false_sign_rate is None else false_sign_rate
        rate = check_rate(rate)
        if refit and (X is None or y is None):
            raise ValueError("refit=True needs the rows: prune(refit=True, X=X, y=y).")
        if not refit and not (X is None and y is None and sample_weight is None):
            raise ValueError("X, y and sample_weight are used only with refit=True: set it.")
        ensemble = self.ensemble_
        members = [_pruned(member, rate) for member in ensemble.members]
        if all(member.model.architecture.n_inputs == 0 for member in members):
            warnings.warn(
                f"No weight is sure enough at false_sign_rate={rate:g}: the pruned model "
                "predicts a constant. Raise the rate, or fit longer or to more rows.",
                UserWarning,
                stacklevel=2,
            )
        pruned = copy.copy(self)
        pruned.random_state = copy.deepcopy(self.random_state)
        pruned.false_sign_rate = rate
        table = known_columns(self)
        pruned._keep(fitted_attributes(ensemble, members, ensemble.weights, table, self.solver_))
        if not refit:
            return pruned
        # The noise is fitted again, and no longer stands for weights that are gone.
        whole = [
            replace(small, variance_ratio=member.variance_ratio)
            for small, member in zip(members, ensemble.members, strict=True)
        ]
        pruned.ensemble_ = replace(pruned.ensemble_, members=tuple(whole))
        return pruned._refit(X, y, sample_weight)

    @with_callbacks
    def _refit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        def as_long(member: FitResult, rows: Rows) -> Task:
            chosen = member.status is Status.EARLY_STOPPED
            return continued(member, rows, member.n_sweeps if chosen else None)

        return self._fit(X, y, sample_weight, as_long, REFIT)

    @property
    def sparsity_(self) -> Sparsity:
        """Inputs, nodes and weights of every member before and after pruning."""
        check_is_fitted(self)
        members = self.ensemble_.members
        before, after = [original(m) for m in members], [m.model.architecture for m in members]
        # Units that went while a fit ran say nothing of the weights between those that stayed.
        chosen = [m.pruning if m.model.connections is not None else None for m in members]
        nothing = float("nan")
        return Sparsity(
            inputs_before=np.array([a.n_inputs for a in before]),
            inputs_after=np.array([a.n_inputs for a in after]),
            nodes_before=np.array([sum(a.hidden) for a in before]),
            nodes_after=np.array([sum(a.hidden) for a in after]),
            weights_before=np.array([a.n_weights for a in before]),
            weights_after=np.array([member.model.n_weights() for member in members]),
            keep_threshold=np.array([p.keep_threshold if p else nothing for p in chosen]),
            false_sign_rate=np.array([p.false_sign_rate if p else nothing for p in chosen]),
        )

    @property
    def feature_relevance_(self) -> FeatureRelevance:
        """Which inputs matter, from the members' surviving weights, combined by their weights."""
        check_is_fitted(self)
        shape = (self.n_features_in_, self.n_outputs_)
        probability, strength = np.zeros(shape), np.zeros(shape)
        for member, weight in zip(self.ensemble_.members, self.ensemble_.weights, strict=True):
            connections = _surviving(member, self.false_sign_rate)
            places = self.ensemble_.column_order
            places = places if member.pruning is None else places[member.pruning.inputs]
            probability[places] += weight * path_probability(member.factors, connections)
            strength[places] += weight * path_strength(member.factors, connections)
        if self._single_target:
            probability, strength = probability[:, 0], strength[:, 0]
        return FeatureRelevance(
            name=np.asarray(input_names(self), dtype=object),
            probability=probability,
            strength=strength,
        )


def _surviving(member: FitResult, rate: float) -> tuple[Mask, ...]:
    """Weights that a pruned member has, or that pruning at a rate would leave of another."""
    if member.model.connections is None:
        return select(member.model, member.factors, rate).connections
    return existing(member.model, member.factors)


def _diluted_ratio(member: FitResult, factors: GlobalFactors) -> Floats | None:
    """(r σ² + grown) / (σ² + grown): noise that stands for weights that are gone is not stretched.

    How sure a network may be of what it predicts says nothing of what it no longer predicts.
    """
    if member.variance_ratio is None:
        return None
    before, after = (
        np.asarray(to_numpy(inverse_gamma.mean(found.layers[-1].noise_variance)), dtype=float)
        for found in (member.factors, factors)
    )
    grown = np.maximum(after - before, 0.0)
    return np.asarray((member.variance_ratio * before + grown) / (before + grown))


def _pruned(member: FitResult, rate: float) -> FitResult:
    """A smaller member. Its bound is not known without the rows."""
    model, factors, pruning = prune(member.model, member.factors, false_sign_rate=rate)
    return replace(
        member,
        variance_ratio=_diluted_ratio(member, factors),
        model=model,
        factors=factors,
        elbo_terms=None,
        elbo_history=(),
        pruning=combine(member.pruning, pruning),
        statistics=None,
    )
