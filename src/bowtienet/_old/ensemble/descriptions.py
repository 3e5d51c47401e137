"""An ensemble in words: what its members see, and how its noise differs between rows."""

from __future__ import annotations

import numpy as np

from bowtienet._old.ensemble.ensemble import Ensemble


def describe_views(ensemble: Ensemble) -> str:
    """What the members see, in words, with the share of their weights.

    Such as ``piecewise features and a Yeo-Johnson target (exponent 0.42) 0.75, standard features
    0.25``.
    """
    found = []
    for place, view in enumerate(ensemble.representation.views):
        words = "standard features" if view.pieces is None else "piecewise features"
        if view.principal is not None:
            words = "principal components"
        if view.warp is not None:
            exponents = ", ".join(f"{value:.2f}" for value in np.asarray(view.warp.exponent))
            words += f" and a Yeo-Johnson target (exponent {exponents})"
        share = float(np.sum(ensemble.weights[np.asarray(ensemble.views) == place]))
        found.append((share, words))
    if len(found) == 1:
        return found[0][1]
    return ", ".join(f"{words} {share:.2f}" for share, words in sorted(found, reverse=True))


def describe_levels(ensemble: Ensemble) -> str:
    """How the noise differs between rows, in words.

    Such as ``3 levels, variances times 0.2, 0.8, 4.2, chosen by the features``; semicolons stand
    between the levels of several targets.
    """
    levels = ensemble.levels
    if levels is None or len(levels.scale) == 1:
        return "1 level, the same for all rows"
    of_targets = [", ".join(f"{level:.2g}" for level in np.sort(own)) for own in levels.scale.T]
    chosen = "chosen by the features" if levels.columns.size else "as likely for all rows"
    return f"{len(levels.scale)} levels, variances times {'; '.join(of_targets)}, {chosen}"
