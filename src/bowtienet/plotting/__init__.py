"""Pictures with matplotlib (``pip install 'bowtienet[plot]'``).

`plot_...` take a fitted estimator, `draw_...` plain arrays; all return what they drew on.
"""

from bowtienet.plotting.bars import draw_bars
from bowtienet.plotting.fitted import plot_network, plot_relevance, plot_weights
from bowtienet.plotting.matrices import draw_weights
from bowtienet.plotting.network import draw_network

__all__ = [
    "draw_bars",
    "draw_network",
    "draw_weights",
    "plot_network",
    "plot_relevance",
    "plot_weights",
]
