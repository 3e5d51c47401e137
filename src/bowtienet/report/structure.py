"""What was fitted, how it ended, and the network before and after pruning."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.inference.convergence import Status
from bowtienet.plotting.fitted import chosen_member, member_weights, names_of, network_of
from bowtienet.plotting.network import draw_network
from bowtienet.report.wording import clean, count, number

MOST_INPUTS = 30
"""Inputs in a drawing: the strongest of them."""
_MOST_LINES = 1200
"""Weights beyond which a drawing is a raster: lines would take megabytes."""
_DPI = 144
_MOST_NAMED = 5
"""Inputs that are named in place of a drawing."""
_ENDINGS = {
    Status.CONVERGED: "its bound had stopped rising",
    Status.ITERATION_LIMIT: "the limit of sweeps was reached while its bound was still rising",
    Status.EARLY_STOPPED: "it was as long as rows held out inside the fit are predicted best",
    Status.NON_FINITE: "its numbers overflowed",
    Status.DECREASED: "its bound fell by more than rounding explains",
    Status.ARRIVING: "rows are taken in as they come, without an end",
    Status.INTERRUPTED: "it was interrupted",
}
_NOISY_ENDINGS = _ENDINGS | {
    Status.CONVERGED: "its bound had stopped rising, as far as its noise lets one see",
    Status.ITERATION_LIMIT: "the limit of passes over the rows was reached while its bound "
    "was still rising",
}
"""Of a fit that goes in steps, each on some of the rows."""
_REMEDIES = {
    Status.ITERATION_LIMIT: "Raise max_iter if the bound below still rises steeply.",
    Status.NON_FINITE: "Look for values far out of line, or scale the data.",
    Status.DECREASED: "Noise or temperature may be very small: raise the temperature.",
    Status.INTERRUPTED: "Fit again, or go on from a checkpoint with resume.",
}


@dataclass(frozen=True, kw_only=True)
class FitFacts:
    """Settings and end of a fit."""

    settings: tuple[tuple[str, str], ...]
    is_converged: bool
    verdict: str
    """Whether the fit converged, in a word or two."""
    reason: str
    """How it ended, in a sentence or two."""
    caveat: str
    """Why inputs without any effect may seem to have one; empty for a fit that converged."""
    bound_words: str
    """What to look for in the bound."""
    unit: str
    """"sweep" or "step"."""
    bound: tuple[float, ...]
    """Evidence bound after every one of them; empty if it is not known."""
    member_weights: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class NetworkPictures:
    """Sizes of all networks, and drawings of the heaviest."""

    sizes: tuple[tuple[str, int, int], ...]
    """What, before and after pruning."""
    rate: float
    """False discovery rate of the pruning."""
    was_pruned: bool
    """Whether the model itself is a pruned one, whose earlier weights are gone."""
    before: str | None
    after: str
    """Drawings as data URIs."""
    drawn: tuple[tuple[int, int], ...]
    """The sizes of the drawn network alone, before and after pruning."""
    strongest: tuple[str, ...]
    """A few of its inputs that have any strength, the strongest first."""
    n_inputs: int
    n_shown: int
    """Inputs, and how many of them are drawn."""


def fit_facts(model: Any) -> FitFacts:
    """What a fitted estimator says of its fit."""
    network = network_of(model)
    unit = "step" if network.solver_ == "svi" else "sweep"
    return FitFacts(
        settings=_settings(network, unit),
        is_converged=bool(network.converged_),
        verdict=_verdict(network),
        reason=_reason(network, unit),
        caveat=_caveat(network),
        bound_words=_bound_words(network, unit),
        unit=unit,
        bound=tuple(float(value) for value in network.elbo_history_ if np.isfinite(value)),
        member_weights=tuple(float(weight) for weight in network.member_weights_),
    )


def _settings(network: BowTieRegressor, unit: str) -> tuple[tuple[str, str], ...]:
    sizes = np.atleast_1d(np.asarray(network.hidden_layer_sizes, dtype=int)).tolist()
    n_members = len(network.ensemble_.members)
    solver = "stochastic (svi)" if network.solver_ == "svi" else "coordinate ascent (cavi)"
    found = {
        "hidden layers": ", ".join(count(size, "unit") for size in sizes) or "none: linear",
        "prior of the weights": network.prior,
        "gate_temperature": network.gate_temperature,
        "networks in the ensemble": f"{n_members}, combined by {network.combine}",
        "networks that count": number(float(network.n_effective_members_), 3),
        "solver": solver,
        "length of the longest fit": _length(network, unit),
        "tolerance": network.tol,
        "false discovery rate of pruning": network.false_sign_rate,
        "seed": network.random_state,
    }
    return tuple((name, clean(value)) for name, value in found.items())


def _length(network: BowTieRegressor, unit: str) -> str:
    done = count(int(network.n_iter_), unit)
    if network.status_ == Status.ARRIVING:
        return f"{done}, without a limit"
    if unit == "step":
        return f"{done}, at most {count(network.max_iter, 'pass', 'passes')} over the rows"
    return f"{done}, at most {network.max_iter:,}"


def _bound_words(network: BowTieRegressor, unit: str) -> str:
    if network.status_ == Status.EARLY_STOPPED:
        return "It may still rise: a fit that is too long predicts new rows worse."
    if unit == "step":
        return "It is noisy: a fit is done when its mean over many steps no longer rises."
    return "A fit is done when it no longer rises."


def _verdict(network: BowTieRegressor) -> str:
    if not network.converged_:
        return "Not converged."
    return "Ended where it should." if network.status_ == Status.EARLY_STOPPED else "Converged."


def _reason(network: BowTieRegressor, unit: str) -> str:
    status = Status(network.status_)
    done = "stopped by itself" if network.converged_ else "had not converged when it stopped"
    lead = f"The network {done}: "
    if len(network.ensemble_.members) > 1:
        done = (
            "stopped by themselves" if network.converged_ else "had not converged when they stopped"
        )
        lead = f"Networks with most of the weight {done}: of the heaviest, "
    ending = (_NOISY_ENDINGS if unit == "step" else _ENDINGS)[status]
    remedy = "" if network.converged_ else " " + _REMEDIES.get(status, "")
    return f"{lead}{ending}.{remedy}".rstrip()


def _caveat(network: BowTieRegressor) -> str:
    if network.converged_ and network.status_ != Status.EARLY_STOPPED:
        return ""
    why = (
        "The fit ended where rows held out are predicted best, often before it converges"
        if network.converged_
        else "The fit did not converge"
    )
    return f"{why}: weights of its start are left, and inputs without any effect may have strength."


def is_pruned(network: BowTieRegressor) -> bool:
    """Whether `prune` has chosen among the weights of any member."""
    return any(member.model.connections is not None for member in network.ensemble_.members)


def prune_quietly(network: BowTieRegressor) -> BowTieRegressor:
    """The pruned network, or the network itself if it has been pruned; without warnings."""
    if is_pruned(network):
        return network
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a constant model is seen in the page
        return network.prune()


def picture_network(model: Any, pruned: BowTieRegressor, targets: Sequence[str]) -> NetworkPictures:
    """Sizes and drawings of a network before and after pruning."""
    network, sizes = network_of(model), pruned.sparsity_
    names, member = names_of(model), chosen_member(network, None)
    strength = network.feature_relevance_.strength.reshape(len(names), -1).max(axis=1)
    # Inputs stay in the order of the table, so that both pictures can be compared.
    shown = np.sort(np.argsort(-strength, kind="stable")[:MOST_INPUTS])
    ranked = [int(place) for place in np.argsort(-strength, kind="stable") if strength[place] > 0.0]
    was_pruned = is_pruned(network)
    counts = [
        (word, getattr(sizes, f"{name}_before"), getattr(sizes, f"{name}_after"))
        for name, word in (("inputs", "inputs"), ("nodes", "units"), ("weights", "weights"))
    ]

    def draw(which: BowTieRegressor) -> str:
        weights = member_weights(which, member)
        first = weights[0][:, [0, *(1 + shown)]]
        return _drawing([first, *weights[1:]], [names[place] for place in shown], targets)

    return NetworkPictures(
        sizes=tuple((word, int(a.sum()), int(b.sum())) for word, a, b in counts),
        rate=float(network.false_sign_rate),
        was_pruned=was_pruned,
        before=None if was_pruned else draw(network),
        after=draw(pruned),
        drawn=tuple((int(a[member]), int(b[member])) for _, a, b in counts),
        strongest=tuple(clean(names[place], 30) for place in ranked[:_MOST_NAMED]),
        n_inputs=len(names),
        n_shown=shown.size,
    )


def _drawing(weights: list[np.ndarray], inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """A network as a data URI, of lines if they are few, else of points."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = sum(int(np.count_nonzero(matrix[:, 1:])) for matrix in weights)
    kind = "svg" if lines <= _MOST_LINES else "png"
    tallest = max(len(inputs), int(6.0 * max((len(m) for m in weights), default=1) ** 0.5))
    figure = Figure(figsize=(4.4, float(np.clip(1.2 + 0.2 * tallest, 3.0, 9.0))))
    figure.set_layout_engine("constrained")
    FigureCanvasAgg(figure)
    # Letters stay letters: the browser has glyphs that matplotlib lacks, so it may say nothing.
    look: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "bowtienet"}
    look |= {"font.family": "sans-serif", "text.parse_math": False, "text.usetex": False}
    buffer = io.BytesIO()
    with rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        draw_network(
            weights,
            input_names=[clean(name, 24) for name in inputs],
            output_names=[clean(name, 24) for name in outputs],
            ax=figure.add_subplot(),
        )
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=_DPI, metadata=metadata)
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    return f"data:{mime};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
