"""A Gaussian process with a length scale for each input and fitted noise."""

from __future__ import annotations

from dataclasses import replace

from bowtienet.evaluation.methods import Method, gaussian_process


def gpr(max_rows: int = 2000) -> Method:
    """`bowtienet.evaluation.gaussian_process` under the name of the experiments.

    Parameters
    ----------
    max_rows : int
        The time of a fit grows with the cube of the rows: of more than these, so many are drawn.
    """
    return replace(gaussian_process(max_rows), name="gpr")
