"""
Classes with calibrated probabilities
=====================================

Do events happen as often as the probabilities say?
"""

# %%
# Tumours, benign or malignant, from 30 measurements of cell nuclei.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from bowtienet import BowTieClassifier
from bowtienet.plotting import CalibrationDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = BowTieClassifier(effort="fast", random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.2f}")

# %%
# Points near the diagonal: among patients with a probability of 80 %, about 80 % are malignant.

display = CalibrationDisplay.from_estimator(model, X_test, y_test)

# %%
# The entropy of the probabilities has two parts: noise, and the disagreement of members, which more
# rows would reduce.

parts = model.predict_components(X_test)
unsure = (parts.epistemic + parts.noise).argmax()
print(f"least certain: {model.predict_proba(X_test)[unsure].round(2)}, was {y_test.iloc[unsure]}")
