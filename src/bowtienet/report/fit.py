"""What was fitted and how the fit ended, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.inference.convergence import Status
from bowtienet.plotting.fitted import network_of
from bowtienet.report.wording import clean, count, number

_ENDINGS = {
    Status.CONVERGED: "the evidence bound stopped rising",
    Status.SWEEP_LIMIT: "max_iter was reached while the evidence bound was still rising",
    Status.HELD_OUT: "longer fits predict held-out rows worse",
    Status.NON_FINITE: "numbers overflowed",
    Status.DECREASED: "the evidence bound fell by more than rounding explains",
    Status.ARRIVING: "partial_fit takes rows in as they come",
    Status.INTERRUPTED: "the fit was interrupted",
}
_REMEDIES = {
    Status.SWEEP_LIMIT: "Raise max_iter if the bound still rises steeply.",
    Status.NON_FINITE: "Look for extreme values, or scale the data.",
    Status.DECREASED: "Raise gate_temperature.",
    Status.INTERRUPTED: "Fit again, or resume from a checkpoint.",
}


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
    unit: str
    """"sweep" or "step"."""
    member_weights: tuple[float, ...]


def fit_facts(model: Any) -> FitFacts:
    """What a fitted estimator says of its fit."""
    network = network_of(model)
    status = Status(network.status_)
    is_early = status == Status.HELD_OUT
    is_converged = bool(network.converged_) and not is_early
    verdict = "Converged" if is_converged else "Not converged"
    verdict = "Stopped early (validation)" if is_early else verdict
    several = "In the member with the largest weight, " * (len(network.member_weights_) > 1)
    ending = _ENDINGS.get(status, str(status))
    reason = f"{several}{ending}"
    caveat = ""
    if not is_converged:
        caveat = (
            "The fit did not run to convergence, so weights of its start are left: features "
            "without any effect may have strength."
        )
    return FitFacts(
        settings=_settings(network),
        is_fine=is_converged or is_early,
        verdict=f"{verdict}.",
        reason=f"{reason[0].upper()}{reason[1:]}. {_REMEDIES.get(status, '')}".strip(),
        caveat=caveat,
        unit=_unit(network),
        member_weights=tuple(float(weight) for weight in network.member_weights_),
    )


def _unit(network: Any) -> str:
    return "step" if network.solver_ == "svi" else "sweep"


def _settings(network: Any) -> tuple[tuple[str, str], ...]:
    sizes = np.atleast_1d(np.asarray(network.hidden_layer_sizes, dtype=int)).tolist()
    n_members = len(network.ensemble_.members)
    limit = "passes over the rows" if network.solver_ == "svi" else "sweeps"
    found = {
        "hidden layers": ", ".join(count(size, "unit") for size in sizes) or "none: linear",
        "prior": network.prior,
        "members": n_members,
        "effective members": number(float(network.n_effective_members_), 3),
        "solver": "stochastic (svi)" if network.solver_ == "svi" else "coordinate ascent (cavi)",
        "longest fit": f"{count(int(network.n_iter_), _unit(network))}",
        "max_iter": f"{network.max_iter:,} {limit}",
        "false_sign_rate": network.false_sign_rate,
        "random_state": network.random_state,
    }
    return tuple((name, clean(value)) for name, value in found.items())


def is_pruned(model: Any) -> bool:
    """Whether `prune` has chosen among the weights of any member."""
    return any(m.model.connections is not None for m in network_of(model).ensemble_.members)


def pruned_model(model: Any) -> Any:
    """The pruned model, or the model itself if it has been pruned."""
    return model if is_pruned(model) else model.prune()
