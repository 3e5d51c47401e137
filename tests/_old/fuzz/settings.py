"""Settings of estimators, drawn from a generator: valid ones, and some that are nonsense."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions
from bowtienet._old.inference.start import INITS
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.prediction.predictive import PROPAGATIONS

WIDTHS: tuple[Any, ...] = ((), (1,), (3,), (6,), 4, (3, 2), (2, 2, 2))
NONSENSE: tuple[Any, ...] = (
    *(None, 0, -1, 1.5, np.nan, np.inf, "", "no such", (), [], {}, b"x", object, True, 10**9),
    *((0,), (-1,), ("3",), (10**9,), (2.5,), np.array([[3]]), {"a": 1}, lambda: None),
)


EXTREMES: dict[str, tuple[float, ...]] = {
    "elbo_tempering": (1e300, 5e-324),
    "gate_temperature": (1e-9, 1e6),
    "init_penalty": (5e-324, 1e300),
    "tol": (5e-324, 1e300),
    "step_delay": (1e300,),
    "degrees_of_freedom": (5e-324, 1e-3, 1e9, 1e300),
}


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    """One of the choices, as it is."""
    return choices[rng.integers(len(choices))]


def _seldom(rng: np.random.Generator, usual: Any, *others: Any, share: float = 0.3) -> Any:
    return pick(rng, *others) if rng.random() < share else usual


def draw_options(rng: np.random.Generator, *, extreme: bool = False) -> FitOptions:
    """Valid options; each is its default most of the time.

    With `extreme` some may be so large or small that a fit cannot but end in a refusal.
    """
    options = FitOptions(
        weighting=pick(rng, "stacking", "stacking", "elbo", "equal"),
        elbo_tempering=_seldom(rng, 0.01, 0.0, 1.0),
        gate_temperature=_seldom(rng, "auto", 10.0 ** rng.uniform(-6.0, 1.0)),
        init=_seldom(rng, "relu_network", *sorted(INITS)),
        init_penalty=_seldom(rng, "auto", 0.0, 1e-8, 1.0, 1e6),
        propagation=_seldom(rng, "push_forward", *sorted(PROPAGATIONS)),
        tol=_seldom(rng, 1e-5, 0.0, 1e-2, 1e9),
        batch_size=_seldom(rng, "auto", 1, 7, 10**6),
        forgetting_rate=_seldom(rng, 0.7, 0.500001, 1.0),
        step_delay=_seldom(rng, 1.0, 0.0, 10.0),
        max_categories=_seldom(rng, 100, 6, 10**6),
        degrees_of_freedom=_seldom(rng, "auto", 0.5, 2.1, 100.0),
    )
    if extreme:
        name = pick(rng, *sorted(EXTREMES))
        options.set_params(**{name: pick(rng, *EXTREMES[name])})
    return options


def draw_estimator(
    rng: np.random.Generator, task: str, *, extreme: bool = False, **changes: Any
) -> Any:
    """A small estimator with valid settings for "numbers", "classes" or "counts"."""
    settings: dict[str, Any] = {
        "hidden_layer_sizes": pick(rng, *WIDTHS),
        "prior": pick(rng, *sorted(FAMILIES)),
        "n_estimators": pick(rng, None, 1, 2, 3),
        "effort": str(rng.choice(["fast", "balanced", "best"], p=[0.85, 0.12, 0.03])),
        "features": _seldom(rng, "auto", "standard", "piecewise", "principal", 1, 3),
        "solver": pick(rng, "auto", "cavi", "svi"),
        "max_iter": pick(rng, 1, 2, 5, 10),
        "random_state": int(rng.integers(2**31)),
        "options": _seldom(
            rng, None, draw_options(rng, extreme=extreme), share=1.0 if extreme else 0.6
        ),
    }
    if task == "classes":
        settings["class_weight"] = _seldom(rng, None, "balanced", share=0.2)
        return BowTieClassifier(**settings | changes)
    settings["target_transform"] = _seldom(rng, "auto", "none", "yeo-johnson")
    settings["noise"] = _seldom(rng, "auto", "constant")
    settings["outcome"] = (
        "counts" if task == "counts" else str(rng.choice(["gaussian", "student_t"], p=[0.7, 0.3]))
    )
    return BowTieRegressor(**settings | changes)


def bend(rng: np.random.Generator, estimator: Any) -> tuple[str, Any]:
    """Give one parameter, or one option, a value that may be nonsense; its name and the value."""
    options = estimator.options or FitOptions()
    value = pick(rng, *NONSENSE)
    if rng.random() < 0.4:
        name = pick(rng, *sorted(options.get_params()))
        estimator.set_params(options=options.set_params(**{name: value}))
    else:
        kept = ("verbose", "n_jobs", "checkpoint")
        name = pick(rng, *(n for n in sorted(estimator.get_params(deep=False)) if n not in kept))
        estimator.set_params(**{name: value})
    return name, value
