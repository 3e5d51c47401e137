"""What a fitted ensemble can be asked: predictions, scores, structure, files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bowtienet._arrays import Array
from bowtienet._validation import number, whole
from bowtienet.data.rows import concatenate
from bowtienet.data.source import Source
from bowtienet.ensemble.draws import draw_functions, draw_rows
from bowtienet.ensemble.ensemble import (
    Ensemble,
    components,
    mean_and_deviation,
    mixture,
)
from bowtienet.ensemble.row_covariance import covariance
from bowtienet.ensemble.sparsity import FeatureRelevance, Sparsity, column_strength, sparsity
from bowtienet.ensemble.structure import Structure
from bowtienet.estimators.explanation import Explanation, explain_rows
from bowtienet.estimators.importance import Importance, importance_shares, permutation_importance
from bowtienet.estimators.known_columns import encoded_chunks, open_known, open_known_features
from bowtienet.estimators.scoring import determination, held_out_scores, mean_log_density
from bowtienet.estimators.structure_fit import structure_of
from bowtienet.prediction.combined_mixtures import join_mixtures
from bowtienet.prediction.conformal import conformal_interval
from bowtienet.prediction.intervals import check_coverage, highest_density
from bowtienet.prediction.mixture import Mixture
from bowtienet.representation.columns import Column


class Components(NamedTuple):
    """Mean and the two parts of the variance, each (n,) or (n, outputs)."""

    mean: Array
    epistemic_variance: Array
    """Uncertainty about the function: shrinks with more rows."""
    noise_variance: Array
    """Aleatoric uncertainty: what no function of these features can explain."""


class EnsemblePredictor(RegressorMixin, BaseEstimator):
    """Answers from `ensemble_`, which a subclass fits or a file holds."""

    ensemble_: Ensemble
    columns_: tuple[Column, ...]
    n_outputs_: int
    _single_target: bool

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predictive mean (n,) or (n, outputs), and if wanted its deviation or covariance.

        Parameters
        ----------
        X : table (n, columns) or source
            The columns of training in their order; other columns of a table with names are ignored.
            All methods but those that look at rows jointly take any source that `fit` takes.
        return_std : bool
            Also the standard deviation of new targets, noise included.
        return_cov : bool
            Also the covariance (n, n) or (n, n, outputs) of new targets between all pairs of rows,
            noise on the diagonal; by the push-forward, in memory of order n².
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: ask for one.")
        source = self._features(X)
        if return_cov:
            features = self._in_memory(source)
            mean, _ = mean_and_deviation(self.ensemble_, features)
            return self._squeeze(mean), self._squeeze(covariance(self.ensemble_, features))
        parts = [
            mean_and_deviation(self.ensemble_, chunk) for chunk in encoded_chunks(self, source)
        ]
        mean, deviation = (self._squeeze(concatenate(part)) for part in zip(*parts, strict=True))
        return (mean, deviation) if return_std else mean

    def predict_interval(
        self,
        X: Any,
        coverage: Any = 0.9,
        *,
        method: str = "central",
        calibration: tuple[Any, ...] | None = None,
        n_samples: int = 2000,
        random_state: Any = 0,
    ) -> np.ndarray:
        """Intervals (n, 2) that hold a new target with given probability.

        Parameters
        ----------
        X : table or source
        coverage : float or sequence of float
            Probability of each interval; for k of them the result is (n, 2, k). With several
            targets (n, outputs, 2) and (n, outputs, 2, k).
        method : {"central", "highest_density", "conformal"}
            Equal tails, computed exactly; the shortest interval, from `n_samples` draws; or levels
            that held the stated share of held-out rows. Without `calibration` these are the rows
            that the fit held out in turn: near the coverage in practice, and not guaranteed.
        calibration : tuple (X, y) or (X, y, sample_weight), optional
            For "conformal": rows that the fit has not seen. If they and the new ones are
            exchangeable, an interval holds a new target with at least the stated probability,
            whatever the model; of too few rows, ends are infinite.
        """
        check_coverage(coverage)
        if method not in ("central", "highest_density", "conformal"):
            raise ValueError(
                f"unknown method {method!r}: choose 'central', 'highest_density' or 'conformal'."
            )
        if calibration is not None and method != "conformal":
            raise ValueError("calibration rows are for method='conformal'.")
        if method == "central":
            return self._answers(X, lambda found: found.interval(coverage))
        if method == "conformal":
            check_is_fitted(self)
            held_out = held_out_scores(self, calibration)
            return self._answers(X, lambda found: conformal_interval(found, held_out, coverage))
        n_samples, rng = whole(n_samples, "n_samples"), _generator(random_state)
        return self._answers(
            X,
            lambda found: highest_density(found.rvs(n_samples, random_state=rng), coverage),
            draws=n_samples,
        )

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles (n, q) of new targets; (n, outputs, q) with several. They never cross."""
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        return self._answers(X, lambda found: found.ppf(levels))

    def predict_components(self, X: Any) -> Components:
        """Mean, epistemic variance and noise variance, which add up to the predictive variance."""
        source = self._features(X)
        parts = [components(self.ensemble_, chunk) for chunk in encoded_chunks(self, source)]
        return Components(*(self._squeeze(concatenate(part)) for part in zip(*parts, strict=True)))

    def predict_dist(self, X: Any) -> Mixture:
        """Predictive distribution of every row, in the manner of SciPy's distributions.

        It has ``mean``, ``var``, ``std``, ``pdf``, ``logpdf``, ``cdf``, ``sf``, ``ppf``,
        ``interval`` and ``rvs``.
        """
        source = self._features(X)
        return join_mixtures([self._mixture(chunk) for chunk in encoded_chunks(self, source)])

    def predict_to_parquet(
        self, X: Any, path: str | os.PathLike[str], *, coverage: float | None = 0.9
    ) -> None:
        """Write predictions larger than memory to a Parquet file, block by block.

        The columns are `mean`, `std`, and `lower` and `upper` of the central interval unless
        `coverage` is None (with several targets `mean_0`, ...), one row for each row of X in its
        order. A file that exists is replaced only when the new one is complete.
        """
        from bowtienet.ensemble.parquet import refuse_own_input, write_parquet

        if coverage is not None:
            check_coverage(number(coverage, "coverage"))
        if isinstance(X, (str, os.PathLike)):
            refuse_own_input(X, path)
        source = self._features(X)
        write_parquet(path, map(self._mixture, encoded_chunks(self, source)), coverage)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        *,
        joint: bool = False,
        noise: bool = True,
    ) -> np.ndarray:
        """Draws (n, n_samples) of new targets; (n, outputs, n_samples) with several.

        With `joint` whole networks are drawn, so that a draw is one function over all rows;
        otherwise rows are drawn each by itself. Without `noise`, values of the function: the mean
        of a target given the network.
        """
        features = self._in_memory(self._features(X))
        n_samples, rng = whole(n_samples, "n_samples"), _generator(random_state)
        if joint:
            draws = draw_functions(self.ensemble_, features, n_samples, rng, noise=noise)
        else:
            draws = draw_rows(self.ensemble_, features, n_samples, rng, noise=noise)
        return np.moveaxis(np.asarray(self._squeeze(draws)), 0, -1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the mean, averaged over targets."""
        check_is_fitted(self)
        return determination(self, open_known(self, X, y, sample_weight))

    def log_score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log predictive density in the user's units, over rows and targets."""
        check_is_fitted(self)
        return mean_log_density(self, open_known(self, X, y, sample_weight))

    def structure(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        false_discovery_rate: float = 0.05,
        random_state: Any = 0,
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
        return structure_of(self, open_known(self, X, y, sample_weight), rate, seed)

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
        """
        check_is_fitted(self)
        source = open_known(self, X, y, sample_weight)
        return permutation_importance(self, source, groups, n_repeats, _generator(random_state))

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
        rng = _generator(random_state)
        return explain_rows(self, features, rows, groups, n_permutations, rng)

    def report(self, X: Any, y: Any, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write one HTML page about the model and its predictions of rows it has not seen.

        The settings are those of `bowtienet.report.write_report`, such as `title` and `train`
        (``pip install 'bowtienet[report]'``).
        """
        from bowtienet.report import write_report

        check_is_fitted(self)
        write_report(self, X, y, path, **settings)

    def to_arviz(self, draws: int = 1000, random_state: Any = 0) -> Any:
        """Draws of the members' posteriors for ArviZ (``pip install 'bowtienet[arviz]'``).

        The group `posterior` holds for every layer `weights_1`, ... (draw, unit, input;
        standardised units, the constant first), `noise_variance_1`, ..., and `member`, the member
        that each draw is of. Inputs are columns, or ranges of a column in the user's unit. What
        was pruned is zero, and so is what a member does not see.
        """
        from bowtienet.ensemble.arviz_export import to_arviz

        check_is_fitted(self)
        return to_arviz(self.ensemble_, whole(draws, "draws"), _generator(random_state))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file that loads without running code."""
        from bowtienet.estimators.saving import save_estimator

        check_is_fitted(self)
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted estimator that `save` wrote."""
        from bowtienet.estimators.saving import load_estimator

        return load_estimator(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ensemble_")

    def _features(self, X: Any) -> Source:
        check_is_fitted(self)
        return open_known_features(self, X)

    def _in_memory(self, source: Source) -> Array:
        """All encoded features at once."""
        if not source.in_memory:
            raise ValueError("this needs the rows in memory: read X into a table first.")
        return concatenate(list(encoded_chunks(self, source)))

    def _answers(
        self, X: Any, answer: Callable[[Mixture], np.ndarray], draws: int = 1
    ) -> np.ndarray:
        chunks = encoded_chunks(self, self._features(X), draws)
        return np.concatenate([answer(self._mixture(chunk)) for chunk in chunks])

    def _mixture(self, features: Array) -> Mixture:
        found = mixture(self.ensemble_, features)
        return found.of_target(0) if self._single_target else found

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self._single_target else values


def _generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
