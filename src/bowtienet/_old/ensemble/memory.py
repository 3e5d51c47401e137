"""What a fit needs of memory, before any of it is taken.

A layer of D units with K inputs has D covariances of K+1 weights and two moments of their inputs,
which are half as large each; n rows have gates and activations of all units, and their features:

    8 c Σ D (K+1)²  +  8 n (3 Σ D + 2 K)

bytes. Of M networks that are fitted one after the other, c = 2 M + 3: two parts of each are kept,
and an update needs three more. Side by side, as in cross-fitting, all need all five at once.
"""

from __future__ import annotations

from itertools import pairwise

from bowtienet._old.data.limits import check_memory
from bowtienet._old.ensemble.fold_networks import held_out_folds
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.representation.representation import Representation, network_inputs

_FLOAT = 8
_KEPT, _UPDATED = 2, 3
"""Covariances and moments; precisions, their factors and inverses."""
_ROWS = 3
"""Copies of encoded rows: as they were read, standardised, and as a network sees them."""


def check_fit(
    n_rows: int, representation: Representation, settings: Settings, *, side_by_side: bool
) -> None:
    """Refuse networks that the memory is not large enough for."""
    n_outputs = settings.outcome.n_outputs(len(representation.target_scaling.center))
    n_inputs = max(len(network_inputs(representation, view)) for view in representation.views)
    hidden, n_members = settings.hidden_layer_sizes, settings.n_estimators or 1
    if side_by_side:
        n_members = max(n_members, len(held_out_folds(n_rows)))
    networks = f"{n_members:,} network{'s' if n_members > 1 else ''}"
    check_memory(
        fit_bytes(n_rows, (n_inputs, *hidden, n_outputs), n_members, side_by_side=side_by_side),
        f"a fit of {networks} with {n_inputs:,} inputs and hidden_layer_sizes={hidden} to "
        f"{n_rows:,} rows",
        "give smaller hidden_layer_sizes, fewer columns, features='auto' or fewer n_estimators",
    )


def check_rows(n_rows: int, n_encoded: int) -> None:
    """Refuse rows that are not in memory yet and would not fit there."""
    check_memory(
        _FLOAT * _ROWS * n_rows * n_encoded,
        f"a table of {n_rows:,} rows and {n_encoded:,} columns of numbers (texts have one for each "
        "category)",
        "give fewer columns or rows, a smaller max_categories, or solver='svi'",
    )


def fit_bytes(n_rows: int, widths: tuple[int, ...], n_members: int, *, side_by_side: bool) -> int:
    """Bytes of the covariances and moments of networks, and of the rows of one.

    Examples
    --------
    >>> fit_bytes(1000, (10, 50, 1), 5, side_by_side=True)
    3090200
    """
    networks = sum(above * (below + 1) ** 2 for below, above in pairwise(widths))
    copies = (_KEPT + _UPDATED) * n_members if side_by_side else _KEPT * n_members + _UPDATED
    rows = n_rows * (3 * sum(widths[1:-1]) + 2 * widths[0])
    return _FLOAT * (copies * networks + rows)
