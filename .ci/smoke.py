"""Whether an installed bowtienet works: a fit, predictions, a file, the command line."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import bowtienet
from bowtienet import BowTieClassifier, BowTieRegressor

assert bowtienet.__version__ == version("bowtienet")
assert Path(bowtienet.__file__).is_relative_to(sys.prefix), bowtienet.__file__

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(200, 2))
y = np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=200)
model = BowTieRegressor((10,), effort="fast", random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
model.save("model.btn")
np.testing.assert_array_equal(bowtienet.load("model.btn").predict(X), model.predict(X))
classifier = BowTieClassifier((10,), effort="fast", random_state=0).fit(X, y > 0.0)
assert classifier.score(X, y > 0.0) > 0.9

lines = ["a,b,y", *(f"{a},{b},{target}" for (a, b), target in zip(X, y, strict=True))]
Path("rows.csv").write_text("\n".join(lines) + "\n")
command = Path(sys.executable).with_name("bowtienet")
subprocess.run(
    [command, "predict", "model.btn", "rows.csv", "--out", "predictions.csv"], check=True
)
assert len(Path("predictions.csv").read_text().splitlines()) == 201
print("bowtienet", bowtienet.__version__, "works")
