"""
The priors and the stochastic activation
========================================

What the model assumes before it has seen a row: how units act, how weights are spread, and what
functions come of it.
"""

# %%
# A unit is a gate that opens at random with probability σ(z/T), and Gaussian noise. As the
# temperature T and the noise go to zero it becomes a rectified linear unit, dashed here. Rows of
# panels differ in the noise, columns in the temperature.

from bowtienet._old.plotting import ActivationDisplay

ActivationDisplay.from_parameters()

# %%
# A weight is N(0, τψ) with a scale τ for its layer and a scale ψ of its own, and the distributions
# of the scales make the prior. Within a layer, τ given, the five shrinkage priors leave many more
# weights far out than the Gaussian with the same median. (Sizes are in units of that median.)

import matplotlib.pyplot as plt
import numpy as np

from bowtienet import BowTieRegressor, FitOptions, engine

rng = np.random.default_rng(0)
families = ("student_t", "laplace", "normal_gamma", "normal_inverse_gaussian")
families += ("horseshoe", "gaussian")
wide = engine.build_architecture(n_inputs=100, hidden_layer_sizes=(200,), n_outputs=1)
grid = np.linspace(0.0, 6.0, 200)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
print("share of weights larger than five medians")
for family, style in zip(families, ("-", "--", "-.", ":", "--", "-"), strict=True):
    drawn = engine.sample_prior(engine.build_model(wide, prior=family), rng)
    sizes = np.abs(drawn.weights[0][:, 1:]).ravel()
    sizes /= np.median(sizes)
    print(f"  {family:<25}{np.mean(sizes > 5.0):.4f}")
    # Given its scale a weight is normal: its density is the mean over the scales.
    deviations = np.sqrt(drawn.local_shrinkage[0]).ravel()
    unit = np.median(np.abs(rng.normal(0.0, deviations)))
    density = np.mean(
        2.0 * np.exp(-0.5 * (grid[:, None] * unit / deviations) ** 2) * unit / deviations, axis=1
    ) / np.sqrt(2.0 * np.pi)
    color = "black" if family == "gaussian" else None
    for ax in (left, right):
        ax.plot(grid, density, style, color=color, label=family)
left.set(xlabel="|weight| / its median", ylabel="density", xlim=(0.0, 2.5), ylim=(0.0, 1.5))
right.set(xlabel="|weight| / its median", ylabel="density, logarithmic", yscale="log")
right.set_ylim(1e-4, 1.5)
left.legend(frameon=False, fontsize=8)

# %%
# Functions of the prior: whole networks of 50 units drawn from it, at a low temperature and with
# next to no noise, each divided by its own standard deviation. Look for how many bends a function
# has.

narrow = engine.build_architecture(n_inputs=1, hidden_layer_sizes=(50,), n_outputs=1)
x = np.linspace(-3.0, 3.0, 300)
fig, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained", sharey=True)
for ax, family in zip(axes, ("student_t", "gaussian"), strict=True):
    model = engine.build_model(
        narrow,
        prior=family,
        gate_temperature=0.003,
        hidden_noise=(10.0, 1e-6),
        output_noise=(10.0, 1e-6),
    )
    for _ in range(5):
        drawn = engine.sample_model(
            engine.sample_prior(model, rng), 0.003, x[:, None], rng
        ).targets[:, 0]
        ax.plot(x, (drawn - drawn.mean()) / drawn.std(), linewidth=1.2)
    ax.set(xlabel="x", title=family)
axes[0].set_ylabel("standardised function")

# %%
# What data do to the scales: a fit to a target that uses two of six features. Left is the scale of
# each layer, right the scales of its weights, prior and posterior.

X = rng.uniform(-2.0, 2.0, size=(200, 6))
y = np.maximum(X[:, 0], 0.0) + X[:, 1] + rng.normal(0.0, 0.2, size=200)
options = FitOptions(weighting="equal", init_penalty=1.0, tol=1e-4)
fitted = BowTieRegressor((15,), n_estimators=1, max_iter=1200, random_state=0, options=options)
fitted.fit(X, y)

from bowtienet._old.plotting import ShrinkageDisplay

ShrinkageDisplay.from_estimator(fitted)
