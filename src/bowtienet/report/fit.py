"""What was fitted and how the fit ended, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.inference.convergence import Status
from bowtienet.report.wording import clean, count, number

_ENDINGS = {
    Status.CONVERGED: "the evidence bound stopped rising",
    Status.ITERATION_LIMIT: "max_iter was reached while the evidence bound was still rising",
    Status.EARLY_STOPPED: "longer fits predict held-out rows worse",
    Status.NON_FINITE: "numbers overflowed",
    Status.DECREASED: "the evidence bound fell by more than rounding explains",
    Status.ARRIVING: "partial_fit takes rows in as they come",
    Status.INTERRUPTED: "the fit was interrupted",
}
_REMEDIES = {
    Status.ITERATION_LIMIT: "Raise max_iter if the bound still rises steeply.",
    Status.NON_FINITE: "Look for extreme values, or scale the data.",
    Status.DECREASED: "Raise gate_temperature.",
    Status.INTERRUPTED: "Fit again, or resume from a checkpoint.",
}
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
    member_weights: tuple[float, ...]


def fit_facts(model: BowTieRegressor) -> FitFacts:
    """What a fitted estimator says of its fit."""
    status = Status(model.status_)
    is_early = not model.converged_ and status == Status.EARLY_STOPPED
    verdict = "Converged." if model.converged_ else "Not converged."
    which = "In the member with the largest weight, " if len(model.member_weights_) > 1 else ""
    reason = f"{which}{_ENDINGS[status]}"
    return FitFacts(
        settings=_settings(model),
        is_fine=model.converged_ or is_early,
        verdict="Stopped early (validation)." if is_early else verdict,
        reason=f"{reason[0].upper()}{reason[1:]}. {_REMEDIES.get(status, '')}".strip(),
        caveat="" if model.converged_ else _CAVEAT,
        member_weights=tuple(float(weight) for weight in model.member_weights_),
    )


def _settings(model: BowTieRegressor) -> tuple[tuple[str, str], ...]:
    sizes = np.atleast_1d(np.asarray(model.hidden_layer_sizes, dtype=int)).tolist()
    is_stochastic = model.solver_ == "svi"
    found = {
        "hidden layers": ", ".join(count(size, "unit") for size in sizes) or "none: linear",
        "prior": model.prior,
        "members": len(model.ensemble_.members),
        "effective members": number(float(model.n_effective_members_), 3),
        "solver": "stochastic (svi)" if is_stochastic else "coordinate ascent (cavi)",
        "longest fit": count(int(model.n_iter_), "step" if is_stochastic else "sweep"),
        "max_iter": f"{model.max_iter:,} {'passes over the rows' if is_stochastic else 'sweeps'}",
        "false_sign_rate": model.false_sign_rate,
        "random_state": model.random_state,
    }
    return tuple((name, clean(value)) for name, value in found.items())


def is_pruned(model: BowTieRegressor) -> bool:
    """Whether `prune` has chosen among the weights of any member."""
    return any(member.model.connections is not None for member in model.ensemble_.members)


def pruned_model(model: BowTieRegressor) -> BowTieRegressor:
    """The pruned model, or the model itself if it has been pruned."""
    return model if is_pruned(model) else model.prune()
