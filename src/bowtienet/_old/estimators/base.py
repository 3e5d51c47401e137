"""What all estimators share: how an ensemble is fitted, and what does not depend on the targets.

Structure, importance, explanations and files are here; predictions are elsewhere.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import fields
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bowtienet._old._arrays import Array
from bowtienet._old._validation import number, whole
from bowtienet._old.data.door import open_source
from bowtienet._old.data.rows import Rows, concatenate
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.arriving import Arrivals, remember, take_in
from bowtienet._old.ensemble.checkpoint import Checkpoint
from bowtienet._old.ensemble.ensemble import Ensemble, original
from bowtienet._old.ensemble.fit_ensemble import fit_ensemble
from bowtienet._old.ensemble.settings import AUTO_BATCH, EFFORTS, Settings
from bowtienet._old.ensemble.sparsity import FeatureRelevance, Sparsity, column_strength, sparsity
from bowtienet._old.ensemble.streams import arriving
from bowtienet._old.ensemble.structure import Structure
from bowtienet._old.estimators.attributes import ensemble_attributes, source_attributes, warning_of
from bowtienet._old.estimators.explanation import Explanation, explain_rows
from bowtienet._old.estimators.fit_options import FitOptions
from bowtienet._old.estimators.importance import Importance, importance_shares, permutation_importance
from bowtienet._old.estimators.known_columns import (
    encoded_chunks,
    open_known,
    open_known_features,
    warning_level,
)
from bowtienet._old.estimators.presentation import PresentedEstimator
from bowtienet._old.estimators.progress import CallbackSupportMixin, Reporter
from bowtienet._old.estimators.structure_fit import structure_of
from bowtienet._old.model.outcomes import Outcome
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.representation.columns import CONSTANT, Column, describe


class EnsembleEstimator(CallbackSupportMixin, PresentedEstimator):
    """Fits an ensemble, `ensemble_`, or has it from a file."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn reads it)
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "prior": [StrOptions(set(FAMILIES))],
        "n_estimators": [Interval(Integral, 1, None, closed="left"), None],
        "effort": [StrOptions(set(EFFORTS))],
        "features": [
            StrOptions({"auto", "standard", "piecewise", "principal"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "solver": [StrOptions({"auto", "cavi", "svi"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "options": [FitOptions, None],
    }

    ensemble_: Ensemble
    columns_: tuple[Column, ...]
    n_outputs_: int
    importance_: Importance
    _single_target: bool

    def structure(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        false_discovery_rate: float = 0.05,
        random_state: Any = 0,
        exposure: Any = None,
    ) -> Structure:
        """Which columns matter, with a limit to the share of false ones among them.

        A column matters if the target depends on it given all other columns. Each is tested by
        conditional randomisation: is more to be learnt from it than from columns that are drawn
        from its distribution given the others? The rate needs no trust in the target's model or in
        the networks, but it does in that distribution, which is learnt from X: normal scores with
        linear regressions, and probabilities of levels.

        Parameters
        ----------
        X, y, sample_weight
            Rows as for `fit`, mostly those of the fit; of more than 5,000 a random sample is used.
            With several targets a column matters if it does for one of them.
        false_discovery_rate : float in (0, 1)
            Upper limit of the expected share of false columns among those selected.
        random_state : int, RandomState or None
            Seed of the draws; an int gives the same answer again.
        exposure : (n,) or name, optional
            Of counts, as for `fit`.

        Returns
        -------
        Structure
            Also kept as `structure_` and saved with the estimator; the same rows are not tested
            again, whatever the rate.
        """
        check_is_fitted(self)
        rate = number(false_discovery_rate, "false_discovery_rate")
        if not 0.0 < rate < 1.0:
            raise ValueError(
                f"false_discovery_rate must lie strictly between 0 and 1, got {rate!r}: 0.05 lets "
                "one in twenty of the selected columns be false."
            )
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        source = open_known(self, X, y, sample_weight, **self._exposed(exposure))
        return structure_of(self, source, rate, seed)

    @property
    def sparsity_(self) -> Sparsity:
        """Inputs, nodes and weights of every member before and after pruning."""
        check_is_fitted(self)
        return sparsity(self.ensemble_)

    @property
    def feature_relevance_(self) -> FeatureRelevance:
        """Strength of each column in the networks, and its p-value if `structure` was called."""
        check_is_fitted(self)
        found: Structure | None = getattr(self, "structure_", None)
        strength = column_strength(self.ensemble_)
        return FeatureRelevance(
            name=np.asarray([column.name for column in self.columns_], dtype=object),
            strength=self._squeeze(strength),
            p_value=np.full(len(self.columns_), np.nan) if found is None else found.p_values,
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares (columns,) of the columns in what moves the predictive mean; their sum is 1.

        By how much the mean changes, in squares, when a column of rows kept from the fit is
        permuted: what the model uses, whether or not it helps with new rows. `importance` says
        that, with error bars. Zeros if nothing moves the mean; several targets count alike. A model
        that was loaded from a file and then changed (`prune`, `partial_fit`) has none.
        """
        check_is_fitted(self)
        return importance_shares(self)

    def importance(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        n_repeats: int = 5,
        random_state: Any = 0,
        exposure: Any = None,
    ) -> Importance:
        """What rows lose when a column is permuted: log density and RMSE, with error bars.

        Give rows that the fit has not seen: of those it has, columns that it fitted by chance seem
        to matter. All that becomes of a column (categories, bins, the indicator of missing values)
        is permuted together.

        Parameters
        ----------
        X, y, sample_weight :
            Rows in memory, as for `score`. A row of weight 2 counts, and gives its values, as if it
            were there twice.
        groups : dict, optional
            Columns to permute together, by the name of their group, such as
            ``{"place": ["lat", "lon"]}``; names or places of columns. Of columns that say the same
            each alone may seem to be of no use. Columns in no group are permuted by themselves.
        n_repeats : int
            Permutations of each column, at least 2.
        random_state : int, RandomState or Generator
            Where permutations come from.
        exposure : (n,) or name, optional
            Of counts, as for `fit`.

        Returns
        -------
        Importance
            Also kept as `importance_`, for `summary`, until the next fit; files do not hold it.
        """
        check_is_fitted(self)
        source = open_known(self, X, y, sample_weight, **self._exposed(exposure))
        rng = generator(random_state)
        self.importance_ = permutation_importance(self, source, groups, n_repeats, rng)
        return self.importance_

    def explain(
        self,
        X: Any,
        *,
        background: Any = None,
        groups: Any = None,
        n_permutations: int = 10,
        random_state: Any = 0,
    ) -> Explanation:
        """What each column adds to the mean and to the standard deviation of predictions.

        Shapley values: contributions, relative to the mean prediction of a background, whose sum is
        the prediction. Up to 8 columns or groups they are exact for that background; of more,
        random orders of the columns are averaged, and there are standard errors.

        Parameters
        ----------
        X : table (n, columns)
            Rows to explain, in memory.
        background : table (m, columns), optional
            Rows that the other columns take their values from; by default 100 of those that the
            model has kept from its fit. Files hold no rows: a loaded model must be given some. The
            time is in proportion to n and m.
        groups : dict, optional
            Columns that are one, as for `importance`.
        n_permutations : int
            Orders that are drawn of more than 8 columns, each with its reverse; at least 2.
        random_state : int, RandomState or Generator
            Where orders come from.
        """
        features = self._in_memory(self._features(X))
        rows = None if background is None else self._in_memory(self._features(background))
        rng = generator(random_state)
        return explain_rows(self, features, rows, groups, n_permutations, rng)

    def to_arviz(self, draws: int = 1000, random_state: Any = 0) -> Any:
        """Draws of the members' posteriors for ArviZ (``pip install 'bowtienet[arviz]'``).

        The group `posterior` holds for every layer `weights_1`, ... (draw, unit, input;
        standardised units, the constant first), `noise_variance_1`, ..., and `member`, the member
        that each draw is of. Inputs are columns, or ranges of a column in the user's unit. What
        was pruned is zero, and so is what a member does not see.
        """
        from bowtienet._old.ensemble.arviz_export import to_arviz

        check_is_fitted(self)
        return to_arviz(self.ensemble_, whole(draws, "draws"), generator(random_state))

    def save(self, path: str | os.PathLike[str], *, updatable: bool | None = None) -> None:
        """Write the fitted estimator to one file that loads without running code.

        Parameters
        ----------
        path : str or path
            The file; one that exists is replaced when the new one is complete.
        updatable : bool, optional
            Whether `partial_fit` can go on from the file. It needs sums over the rows, which make
            the file about three times as large. By default only files of models that
            `partial_fit` has updated have them.
        """
        from bowtienet._old.estimators.saving import save_estimator

        check_is_fitted(self)
        save_estimator(self, path, updatable)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted estimator that `save` wrote."""
        from bowtienet._old.estimators.saving import load_estimator

        return load_estimator(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ensemble_")

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        resume: bool = False,
        **rows: Any,
    ) -> Self:
        """A new fit, one that was cut short, or one in which the members of the last go on."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        checkpoint = Checkpoint(self.checkpoint, seed, resume=resume)
        before: Ensemble | None = None
        if self.warm_start and (checkpoint.goes_on or not resume):
            before = getattr(self, "ensemble_", None)
        if before is None:
            source = self._open_new(X, y, sample_weight, **rows)
        else:
            source = self._open_again(X, y, sample_weight, **rows)
        settings = self._settings(source)
        known = self._attributes(source)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        reporter = Reporter(self, {"X": X, "y": y, "metadata": metadata}, known)
        try:
            found = fit_ensemble(source, settings, checkpoint, reporter, before=before)
        finally:
            reporter.close()
        self._set({**known, **ensemble_attributes(found.ensemble, found.solver)})
        self._warn(found.interrupted, settings, can_resume=checkpoint.can_resume)
        return self

    def _settings(self, source: Source | None = None) -> Settings:
        """All settings under the names that the ensemble and the engine know them by.

        The outcome may depend on the rows of a source.
        """
        options = self.options or FitOptions()
        options._validate_params()
        given = self.get_params(deep=False) | options.get_params(deep=False)
        given["hidden_layer_sizes"] = self._widths()
        given["outcome"] = self._outcome(source, options)
        known = [field.name for field in fields(Settings) if field.name in given]
        return Settings(**{name: given[name] for name in known})

    def _open_again(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        """Rows for a fit that goes on: the columns, targets and layers of the one before."""
        remedy = (
            "This goes on from the last fit; a new estimator, or warm_start=False, starts anew."
        )
        try:
            source = self._open_more(X, y, sample_weight, **rows)
        except ValueError as error:
            raise ValueError(f"{error} {remedy}") from error
        # Linear members stand beside networks of any widths.
        hidden = [original(member).hidden for member in self.ensemble_.members]
        layers, wanted = max(hidden, key=len), self._widths()
        if layers not in (wanted, ()):
            raise ValueError(
                f"hidden_layer_sizes is {wanted}, but it was {layers} in the last fit. {remedy}"
            )
        return source

    def _arriving(self, source: Source) -> Iterator[Rows]:
        size = (self.options or FitOptions()).batch_size
        rows = AUTO_BATCH if isinstance(size, str) else size
        return arriving(source, self.ensemble_.representation, rows)

    def _set(self, attributes: dict[str, Any]) -> None:
        """Set all fitted attributes at once: until here a failed fit has changed nothing."""
        for name in ("_importances", "importance_"):
            self.__dict__.pop(name, None)
        if "n_features_in_" in attributes:
            old = (
                "feature_names_in_",
                "_arrivals",
                "_updatable",
                "structure_",
                "_structure_rows",
                "pruning_",
            )
            for name in (*old, "dialect_"):
                self.__dict__.pop(name, None)
        for name, value in attributes.items():
            setattr(self, name, value)

    def _warn(self, interrupted: bool, settings: Settings, *, can_resume: bool = False) -> None:
        for column in self.columns_:
            if column.note not in (None, CONSTANT):
                text = f"column {column.name!r}: {describe(column)}."
                warnings.warn(text, UserWarning, stacklevel=warning_level())
        message = warning_of(self.ensemble_, settings.max_iter, settings.tol)
        if interrupted:
            count = len(self.ensemble_.members)
            message = (
                "The fit was interrupted. The estimator is fitted and usable, with "
                f"{count} member{'s' if count > 1 else ''}; "
                + ("call resume" if can_resume else "fit again")
                + " for a complete one."
            )
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=warning_level())

    def _features(self, X: Any, exposure: Any = None) -> Source:
        check_is_fitted(self)
        return open_known_features(self, X, exposure)

    def _in_memory(self, source: Source) -> Array:
        """All encoded features at once."""
        if not source.in_memory:
            raise ValueError("this needs the rows in memory: read X into a table first.")
        return concatenate(list(encoded_chunks(self, source)))

    def _candidates(self, candidates: Any, n: Any) -> tuple[Array, int]:
        """Encoded rows that `next_points` chooses from, and how many of them are wanted."""
        features = self._in_memory(self._features(candidates))
        count = whole(n, "n")
        if count > features.shape[0]:
            raise ValueError(
                f"n is {count}, but there are {features.shape[0]} candidates: ask for fewer rows."
            )
        return features, count

    def _exposed(self, exposure: Any) -> dict[str, Any]:
        """What `open_source` is told of exposures, which only counts have."""
        return {} if exposure is None else {"exposure": exposure}

    def _widths(self) -> tuple[int, ...]:
        sizes: Any = self.hidden_layer_sizes
        widths = (sizes,) if isinstance(sizes, Integral) else sizes
        return tuple(whole(width, f"hidden_layer_sizes[{i}]") for i, width in enumerate(widths))

    def _outcome(self, source: Source | None, options: FitOptions) -> Outcome:
        """The likelihood of the targets of a source, or of those that the estimator knows."""
        raise NotImplementedError

    def _target_settings(self) -> dict[str, Any]:
        """What `open_source` is told of the targets of a fitted estimator."""
        raise NotImplementedError

    def _open_new(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        """Rows of a fit that begins anew."""
        return open_source(X, y, sample_weight, min_rows=2, **rows)

    def _open_more(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Source:
        """Rows of a fit that goes on, with the columns and targets that are known."""
        return open_known(self, X, y, sample_weight, **rows)

    def _attributes(self, source: Source) -> dict[str, Any]:
        """What is known of the columns before the fit."""
        return source_attributes(source)

    def _effect_names(self) -> tuple[str, ...]:
        """Names of what columns contribute to: targets, or probabilities of classes."""
        return tuple(self.target_names_)

    def _take_in(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Self:
        """More rows for `partial_fit`: the first ones are fitted."""
        if not hasattr(self, "ensemble_"):
            self._fit(X, y, sample_weight, **rows)
            source = self._open_more(X, y, sample_weight, **rows)
            self._arrivals = remember(self._arriving(source))
            self._updatable = True
            return self
        if any(member.statistics is None for member in self.ensemble_.members):
            raise ValueError(
                "the sums over the rows so far are not known: partial_fit cannot go on from this "
                "model; save it with updatable=True, or fit it to all rows."
            )
        batches = self._arriving(self._open_more(X, y, sample_weight, **rows))
        before: Arrivals | None = getattr(self, "_arrivals", None)
        reweigh = (self.options or FitOptions()).weighting == "stacking"
        ensemble, arrivals = take_in(self.ensemble_, batches, before, reweigh=reweigh)
        self._set(ensemble_attributes(ensemble, "svi"))
        self._arrivals, self._updatable = arrivals, True
        return self


def generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
