"""A regressor from options."""

from __future__ import annotations

from bowtienet.estimators.regressor import BowTieRegressor


def make_regressor(
    hidden: str, prior: str, members: int, combine: str, max_iter: int, jobs: int, seed: int | None
) -> BowTieRegressor:
    """The regressor of some settings, which are checked before anything is read or printed."""
    regressor = BowTieRegressor(
        hidden_sizes(hidden),
        prior=prior,
        n_estimators=members,
        combine=combine,
        max_iter=max_iter,
        random_state=seed,
        n_jobs=jobs,
    )
    regressor._validate_params()
    if jobs == 0:
        raise ValueError("--jobs must not be 0: give a number of fits, or -1 for all cores.")
    return regressor


def hidden_sizes(text: str) -> tuple[int, ...]:
    """Widths from a text such as "50,20"; no hidden layer for "0"."""
    if text.strip() == "0":
        return ()
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = (0,)
    if any(size < 1 for size in sizes):
        raise ValueError(
            f"--hidden must be widths parted by commas, such as 50,20, or 0 for none; got {text!r}."
        )
    return sizes
