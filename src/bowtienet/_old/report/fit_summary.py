"""What was fitted and how the fit ended, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old.ensemble.descriptions import describe_levels, describe_views
from bowtienet._old.inference.convergence import Status
from bowtienet._old.report.wording import clean, count, number

_ENDINGS = {
    Status.CONVERGED: "The evidence bound stopped rising.",
    Status.ITERATION_LIMIT: "The evidence bound was still rising: raise max_iter.",
    Status.EARLY_STOPPED: "Of the lengths tried, held-out rows are predicted best at this one.",
    Status.NON_FINITE: "Numbers overflowed: look for extreme values, or scale the data.",
    Status.DECREASED: "The evidence bound fell: raise gate_temperature.",
    Status.ARRIVING: "Rows were taken in as they came, by partial_fit.",
    Status.INTERRUPTED: "The fit was interrupted: fit again, or resume from a checkpoint.",
}
"""Of the member with the largest weight."""
_MOST_WEIGHTS = 20
_CAVEAT = (
    "The fit did not run to convergence, so weights of its start are left: features without any "
    "effect may have strength."
)


@dataclass(frozen=True, kw_only=True)
class FitFacts:
    """Settings and end of a fit."""

    settings: tuple[tuple[str, str], ...]
    is_fine: bool
    """Whether the fit converged, or stopped early on purpose."""
    verdict: str
    reason: str
    caveat: str
    """Why features without any effect may seem to have one; empty for a fit that converged."""


def fit_facts(model: Any) -> FitFacts:
    """What a fitted estimator says of its fit."""
    status = Status(model.status_)
    is_early = not model.converged_ and status == Status.EARLY_STOPPED
    verdict = "Converged." if model.converged_ else "Not converged."
    return FitFacts(
        settings=_settings(model),
        is_fine=model.converged_ or is_early,
        verdict="Stopped early (validation)." if is_early else verdict,
        reason=_ENDINGS[status],
        caveat="" if model.converged_ else _CAVEAT,
    )


def _settings(model: Any) -> tuple[tuple[str, str], ...]:
    sizes = np.atleast_1d(np.asarray(model.hidden_layer_sizes, dtype=int)).tolist()
    is_stochastic, is_classes = model.solver_ == "svi", hasattr(model, "classes_")
    found = {
        "hidden layers": ", ".join(count(size, "unit") for size in sizes) or "none: linear",
        "prior": model.prior,
        "networks see": describe_views(model.ensemble_),
        "noise": "" if is_classes else describe_levels(model.ensemble_),
        "members": len(model.ensemble_.members),
        "effective members": number(float(model.n_effective_members_), 3),
        "ensemble weights": _weights(model.member_weights_),
        "solver": "stochastic (svi)" if is_stochastic else "coordinate ascent (cavi)",
        "longest fit": count(int(model.n_iter_), "step" if is_stochastic else "sweep"),
        "max_iter": f"{model.max_iter:,} {'passes over the rows' if is_stochastic else 'sweeps'}",
        "random_state": model.random_state,
    }
    return tuple((name, clean(value, 120)) for name, value in found.items() if value != "")


def _weights(weights: np.ndarray) -> str:
    shown = ", ".join(number(float(weight), 2) for weight in weights[:_MOST_WEIGHTS])
    return shown + ", …" * (len(weights) > _MOST_WEIGHTS)
