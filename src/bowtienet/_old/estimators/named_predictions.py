"""Names of what is predicted: frames in, frames out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.named_frames import frame_like, is_data_frame


def named_intervals(X: Any, ends: np.ndarray, coverage: Any, targets: Sequence[str]) -> Any:
    """Ends (n, 2), (n, D, 2), or with k coverages as the last axis, as a frame if X is one.

    Columns are lower and upper, with several targets or coverages lower_price, lower_0.9 or
    lower_price_0.9, and so on.
    """
    if not is_data_frame(X):
        return ends
    shares = np.asarray(coverage, dtype=float)
    levels = [""] if shares.ndim == 0 else [f"{share:.12g}" for share in shares]
    whole = ends.reshape(len(ends), len(targets), 2, len(levels))
    return _framed(X, whole, ["lower", "upper"], targets, levels)


def named_quantiles(X: Any, found: np.ndarray, levels: np.ndarray, targets: Sequence[str]) -> Any:
    """Quantiles (n, q) or (n, D, q) as a frame if X is one: q0.05, with several targets q0.05_y."""
    if not is_data_frame(X):
        return found
    names = [f"q{level:.12g}" for level in levels]
    return _framed(X, found.reshape(len(found), len(targets), -1, 1), names, targets, [""])


def named_parts(X: Any, parts: Any, targets: Sequence[str]) -> Any:
    """A named tuple of arrays (n,) or (n, D) as a frame if X is one: mean, or mean_y of several."""
    if not is_data_frame(X):
        return parts
    values = [to_numpy(part).reshape(len(part), len(targets)) for part in parts]
    return _framed(X, np.stack(values, axis=2)[..., None], parts._fields, targets, [""])


def named_class_parts(X: Any, parts: Any, labels: Sequence[Any]) -> Any:
    """Probabilities p_label, and the parts of the entropy, as a frame if X is one."""
    if not is_data_frame(X):
        return parts
    columns = {f"p_{label}": parts.probabilities[:, place] for place, label in enumerate(labels)}
    return frame_like(X, columns | {"epistemic": parts.epistemic, "aleatoric": parts.aleatoric})


def _framed(
    X: Any,
    values: np.ndarray,
    quantities: Sequence[str],
    targets: Sequence[str],
    levels: Sequence[str],
) -> Any:
    """Values (n, targets, quantities, levels) as columns of a frame."""
    endings = [""] if len(targets) == 1 else targets
    columns = {
        "_".join(part for part in (quantity, ending, level) if part): values[:, d, q, k]
        for d, ending in enumerate(endings)
        for k, level in enumerate(levels)
        for q, quantity in enumerate(quantities)
    }
    if len(columns) < values[0].size:
        raise ValueError(
            "columns of a frame need different names: ask for each coverage or quantile once."
        )
    return frame_like(X, columns)
