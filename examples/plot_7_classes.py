"""
Classes, and what is not known of them
======================================

Three interleaved arms, and a classifier that gives each place of the plane a probability of every
class. What is uncertain there has two parts: arms that overlap, and borders without rows.
"""

# %%
# Labels may be texts; ``classes_`` has them sorted, and the columns of ``predict_proba`` follow.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bowtienet import BowTieClassifier

NAMES = np.array(["blue", "green", "red"])


def arms(size, rng):
    """Rows on three spiral arms with noise, and the names of the arms."""
    arm, along = rng.integers(3, size=size), rng.uniform(0.4, 2.2, size=size)
    angle = 2.0 * np.pi * arm / 3.0 + 1.2 * along
    centre = along[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre + rng.normal(0.0, 0.45, size=(size, 2)), NAMES[arm]


rng = np.random.default_rng(0)
X, y = arms(400, rng)
model = BowTieClassifier((20,), effort="fast", random_state=0).fit(X, y)
pd.DataFrame(model.predict_proba(X[:5]), columns=model.classes_).round(3).assign(label=y[:5])

# %%
# Probabilities of the three classes over the plane: where one colour is pure, the class is sure.

side = np.linspace(-4.0, 4.0, 80)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
parts = model.predict_components(grid)
colours = np.array([[0.12, 0.39, 0.71], [0.17, 0.55, 0.27], [0.80, 0.20, 0.18]])
extent = (-4.0, 4.0, -4.0, 4.0)


def draw(ax, image, title, **settings):
    """An image of the plane."""
    found = ax.imshow(image, origin="lower", extent=extent, **settings)
    ax.set(title=title, xlabel="first feature", ylabel="second feature")
    return found


fig, ax = plt.subplots(figsize=(5.0, 4.6), layout="constrained")
draw(ax, (parts.probabilities @ colours).reshape(80, 80, 3), "Probabilities as colours")
for name, colour in zip(NAMES, colours, strict=True):
    ax.scatter(*X[y == name].T, s=20, color=colour, edgecolor="white", linewidth=0.6, label=name)
ax.legend(loc="upper right")

# %%
# The entropy of the class, in nats, has two parts. What is left if the function were known is
# aleatoric: arms that overlap. The rest is epistemic, what class and function tell of each other:
# more rows would take it away. It is high outside the rows, above all where borders leave them, for
# nobody knows how they go on there.

fig, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained", sharey=True)
for ax, name in zip(axes, ("aleatoric", "epistemic"), strict=True):
    image = getattr(parts, name).reshape(80, 80)
    found = draw(ax, image, f"{name.capitalize()} entropy", cmap="magma", vmin=0.0)
    ax.scatter(*X.T, s=3, color="white", alpha=0.4)
    fig.colorbar(found, ax=ax, shrink=0.85, label="nats")

# %%
# Are the probabilities right? Of new rows whose most probable class has probability 0.8, four of
# five should be of that class. Bars say how far a point may be from the diagonal by chance.

from dataclasses import asdict

from bowtienet._old.evaluation import evaluate_classes
from bowtienet._old.plotting import ConfusionDisplay, ReliabilityDisplay

new_X, new_y = arms(1500, rng)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
ReliabilityDisplay.from_estimator(model, new_X, new_y, ax=left)
ConfusionDisplay.from_estimator(model, new_X, new_y, ax=right)

# %%
# Scores of the same rows. A model that knows nothing has a log loss of log 3 = 1.1.

scores = evaluate_classes(new_y, model.predict_proba(new_X), classes=model.classes_)
pd.DataFrame([asdict(scores)]).dropna(axis=1).round(3)
