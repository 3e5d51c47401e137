"""The methods of the ladder, cheap ones first: numbers, classes and counts.

Settings are the methods' defaults but for what is said here. Where a method needs held-out rows, a
fifth of the training rows is taken for them.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor, early_stopping
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, PoissonRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks import _methods as methods
from benchmarks import classes
from benchmarks._methods import Floats, Predict, gaussian
from bowtienet import BowTieClassifier, BowTieCountRegressor, BowTieNetwork, BowTieRegressor
from bowtienet.prediction.discrete import CountMixture
from bowtienet.prediction.mixture import Mixture


class Method(NamedTuple):
    """How a method is fitted: fit(X, y, seed) returns predictions of new rows."""

    fit: Callable[[Any, Floats, int], Callable[[Any], Any]]
    table: str = "numbers"
    """What it takes: the table as it is ("raw"), pandas' categories ("categories"), or numbers."""
    most_rows: float = np.inf
    needs: str = "sklearn"
    """The package without which it is left out."""
    splits: int = 10
    """How many are affordable."""

    @property
    def is_here(self) -> bool:
        """Whether its package is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def __call__(self, X: Any, y: Floats, seed: int) -> Callable[[Any], Any]:
        """Fit, on the table as the method takes it."""
        if self.table == "raw":
            return self.fit(X, y, seed)
        encode = _categories(X) if self.table == "categories" else _numbers(X)
        predict = self.fit(encode(X), y, seed)
        return lambda new: predict(encode(new))


def _categories(X: Any) -> Callable[[Any], Any]:
    """Texts as pandas' categories; unknown and missing ones are a level of their own."""
    if isinstance(X, np.ndarray):
        return lambda new: new
    texts = X.select_dtypes(exclude="number").columns
    levels = {name: [*X[name].dropna().astype(str).unique(), "<none>"] for name in texts}

    def encode(new: Any) -> Any:
        new = new.copy()
        for name, known in levels.items():
            text = new[name].astype(str)
            new[name] = pd.Categorical(text.where(text.isin(known), "<none>"), categories=known)
        return new

    return encode


def _numbers(X: Any) -> Callable[[Any], Floats]:
    """Texts as at most 30 columns each; gaps are filled with the median, and marked."""
    gaps = SimpleImputer(strategy="median", add_indicator=True)
    if isinstance(X, np.ndarray):
        return gaps.fit(X).transform if np.isnan(X).any() else np.asarray
    texts = list(X.select_dtypes(exclude="number"))
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=30, sparse_output=False
    )
    columns = make_column_transformer((one_hot, texts), remainder="passthrough")
    return make_pipeline(columns, gaps).fit(X).transform


def own(make: Any, **settings: Any) -> Method:
    """An estimator of this library, which takes tables as they are."""
    return Method(
        lambda X, y, seed: make(random_state=seed, **settings).fit(X, y).predict_dist, "raw"
    )


def standardized(fit: Callable[[Floats, Floats, int], Predict]) -> Any:
    """A method that sees standardised features and targets; its mixtures are scaled back."""

    def fit_scaled(X: Floats, y: Floats, seed: int) -> Predict:
        scaler, center, scale = StandardScaler().fit(X), y.mean(), y.std()
        predict = fit(scaler.transform(X), (y - center) / scale, seed)

        def rescaled(new: Floats) -> Mixture:
            means, noise = predict(scaler.transform(new))
            return gaussian(center + scale * means, scale * noise)

        return rescaled

    return fit_scaled


def last_layer_laplace(X: Floats, y: Floats, seed: int) -> Predict:
    """Laplace of the last layer, exact for Gaussian noise, with scales by maximum evidence."""
    network = MLPRegressor(hidden_layer_sizes=(50,), alpha=1e-3, max_iter=1_000, random_state=seed)
    network.fit(X, y)

    def hidden(X: Floats) -> Floats:
        return np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0.0)

    last = BayesianRidge().fit(hidden(X), y)
    return lambda new: last.predict(hidden(new), return_std=True)


def deep_ensemble(X: Floats, y: Floats, seed: int) -> Predict:
    """Five networks with mean and variance, each stopped by a fifth of the rows of its own."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)

    def loss(network: Any, X: Any, y: Any) -> Any:
        mean, log_variance = network(X).T
        log_variance = log_variance.clamp(-10.0, 5.0)
        return 0.5 * torch.mean(log_variance + (y - mean) ** 2 * torch.exp(-log_variance))

    def train(member: int) -> Any:
        parts = train_test_split(X, y, test_size=0.2, random_state=10 * seed + member)
        X_few, X_held, y_few, y_held = (torch.as_tensor(part).float() for part in parts)
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        network = torch.nn.Sequential(linear(X.shape[1], 50), relu(), linear(50, 50), relu())
        network.append(linear(50, 2))
        step = torch.optim.Adam(network.parameters(), lr=3e-3)
        best, state, since = np.inf, {}, 0
        for _ in range(500):
            for rows in torch.randperm(len(y_few)).split(max(32, len(y_few) // 50)):
                step.zero_grad()
                loss(network, X_few[rows], y_few[rows]).backward()
                step.step()
            with torch.no_grad():
                held = float(loss(network, X_held, y_held))
            since += 1
            if held < best:
                best, since = held, 0
                state = {name: value.clone() for name, value in network.state_dict().items()}
            if since == 30:
                break
        network.load_state_dict(state)
        return network

    networks = [train(member) for member in range(5)]

    def predict(new: Floats) -> tuple[Floats, Floats]:
        with torch.no_grad():
            outputs = torch.stack([net(torch.as_tensor(new).float()) for net in networks]).numpy()
        return outputs[..., 0], np.exp(0.5 * np.clip(outputs[..., 1], -10.0, 5.0))

    return predict


def nuts(X: Floats, y: Floats, seed: int) -> Predict:
    """50 ReLU units, Gaussian weights with scales by layer; one chain of 300 + 300, depth 10."""
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    def sample(name: str, scale: Any, *shape: int) -> Any:
        return scale * numpyro.sample(name, dist.Normal().expand(shape).to_event(len(shape)))

    def model(X: Any, y: Any = None) -> None:
        first, last = (numpyro.sample(f"scale {i}", dist.HalfNormal()) for i in (1, 2))
        W = sample("W", first, X.shape[1], 50)
        z = jax.nn.relu(X @ W + sample("b", 1.0, 50))
        mean = z @ sample("w", last / 50**0.5, 50) + sample("a", 1.0, 1)
        precision = numpyro.sample("precision", dist.Gamma(2.0, 0.1))
        numpyro.sample("y", dist.Normal(mean, precision**-0.5), obs=y)

    kernel = numpyro.infer.NUTS(model, max_tree_depth=10)
    chain = numpyro.infer.MCMC(kernel, num_warmup=300, num_samples=300, progress_bar=False)
    chain.run(jax.random.key(seed), X=jnp.asarray(X), y=jnp.asarray(y))
    draws = {name: np.asarray(values, float) for name, values in chain.get_samples().items()}

    def predict(new: Floats) -> tuple[Floats, Floats]:
        hidden = np.maximum(
            new @ (draws["scale 1"][:, None, None] * draws["W"]) + draws["b"][:, None], 0.0
        )
        last = draws["scale 2"][:, None] / 50**0.5 * draws["w"]
        return (hidden @ last[..., None])[..., 0] + draws["a"], draws["precision"][:, None] ** -0.5

    return predict


def bayesian_deep_ensemble(X: Floats, y: Floats, seed: int) -> Predict:
    """The settings of its authors' example of airfoil; every twentieth draw."""
    from bde import BdeRegressor

    sizes = {"hidden_layers": [16, 16], "n_members": 8, "epochs": 200, "patience": 10}
    chain = {"warmup_steps": 5_000, "n_samples": 2_000, "n_thinning": 2}
    model = BdeRegressor(**sizes, **chain, seed=seed)
    model.fit(x=X.astype(np.float32), y=y.astype(np.float32))

    def predict(new: Floats) -> tuple[Floats, Floats]:
        draws = np.asarray(model.predict(new.astype(np.float32), raw=True)[:, ::20], float)
        mean, scale = draws.reshape(-1, len(new), 2).transpose(2, 0, 1)
        return mean, np.logaddexp(0.0, scale) + 1e-6

    return predict


def ngboost(X: Floats, y: Floats, seed: int) -> Predict:
    """At most 2,000 trees; held-out rows say when to stop."""
    from ngboost import NGBRegressor

    X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    model = NGBRegressor(n_estimators=2_000, random_state=seed, verbose=False)
    model.fit(X, y, X_val=X_held, Y_val=y_held, early_stopping_rounds=50)

    def predict(new: Floats) -> Mixture:
        found = model.pred_dist(new, max_iter=model.best_val_loss_itr)
        return gaussian(found.loc, found.scale)

    return predict


def quantile_forest(X: Floats, y: Floats, seed: int) -> Predict:
    """99 quantiles of each row, smoothed by Gaussians of Silverman's width for a density."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(500, min_samples_leaf=5, random_state=seed, n_jobs=1)
    model.fit(X, y)
    levels = list((np.arange(99) + 0.5) / 99.0)

    def predict(new: Floats) -> Mixture:
        quantiles = model.predict(new, quantiles=levels).T
        width = 0.9 * quantiles.std(axis=0) * 99**-0.2
        return gaussian(quantiles, np.maximum(width, 1e-3 * y.std()))

    return predict


def tabular_network(name: str, X: Floats, y: Floats, seed: int) -> Predict:
    """Of pytabkit: held-out rows say when to stop, and the variance."""
    import pytabkit

    X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    logging.disable(logging.WARNING)
    make = getattr(pytabkit, f"{name}_Regressor")
    model = make(device="cpu", random_state=seed, n_threads=1).fit(X, y, X_held, y_held)
    std = np.sqrt(np.mean((model.predict(X_held) - y_held) ** 2))
    return lambda new: gaussian(model.predict(new), std)


NUMBERS: dict[str, Method] = {
    "LightGBM": Method(methods.lightgbm, "categories"),
    "CatBoost, constant": Method(methods.catboost_constant, "categories"),
    "CatBoost, uncertainty": Method(methods.catboost_density, "categories"),
    "last-layer Laplace": Method(standardized(last_layer_laplace)),
    "quantile forest": Method(quantile_forest, needs="quantile_forest"),
    "BowTieRegressor": own(BowTieRegressor),
    "BowTieRegressor, fast": own(BowTieRegressor, effort="fast"),
    "BowTieRegressor, best": own(BowTieRegressor, effort="best"),
    "BowTieNetwork": own(BowTieNetwork),
    "BowTieNetwork, one member": own(BowTieNetwork, n_members=1),
    "as in the paper": own(BowTieNetwork.as_in_paper),
    "as in the paper, four": own(BowTieNetwork.as_in_paper, n_members=4)._replace(splits=3),
    "NGBoost": Method(ngboost, needs="ngboost"),
    "deep ensemble": Method(standardized(deep_ensemble), needs="torch"),
    "BART": Method(methods.bart, most_rows=5_000),
    "Gaussian process": Method(methods.process, most_rows=3_000),
    "TabM": Method(
        partial(tabular_network, "TabM_D"), most_rows=10_000, needs="pytabkit", splits=3
    ),
    "RealMLP": Method(partial(tabular_network, "RealMLP_TD"), needs="pytabkit", splits=3),
    "Bayesian deep ensemble": Method(
        standardized(bayesian_deep_ensemble), most_rows=3_000, needs="bde", splits=3
    ),
    "NUTS": Method(standardized(nuts), most_rows=1_000, needs="numpyro", splits=3),
}


def proba(fit: Callable[[Any, Floats, int], Any]) -> Any:
    """Probabilities of a fitted classifier."""
    return lambda X, y, seed: fit(X, y, seed).predict_proba


def own_classifier(effort: str) -> Method:
    """This library's."""
    return Method(
        proba(lambda X, y, seed: BowTieClassifier(effort=effort, random_state=seed).fit(X, y)),
        "raw",
    )


def forest(X: Floats, y: Floats, seed: int) -> Any:
    """500 trees."""
    return RandomForestClassifier(500, min_samples_leaf=2, random_state=seed).fit(X, y)


def class_process(X: Floats, y: Floats, seed: int) -> Any:
    """One length for all columns."""
    kernel = ConstantKernel() * RBF(X.shape[1] ** 0.5)
    model = GaussianProcessClassifier(kernel, random_state=seed)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def tabular_classifier(name: str, X: Floats, y: Floats, seed: int) -> Any:
    """Of pytabkit, with its own held-out fifth."""
    import pytabkit

    logging.disable(logging.WARNING)
    for_log_loss: dict[str, Any] = {"val_metric_name": "cross_entropy"}
    if name == "RealMLP_TD":
        for_log_loss["use_ls"] = False  # as its authors advise for probabilities
    make = getattr(pytabkit, f"{name}_Classifier")
    return make(device="cpu", random_state=seed, n_threads=1, **for_log_loss).fit(X, y)


CLASSES: dict[str, Method] = {
    "logistic regression": Method(proba(classes.logistic)),
    "LightGBM": Method(proba(classes.lightgbm), "categories"),
    "random forest": Method(proba(forest)),
    "CatBoost": Method(proba(classes.catboost), "categories"),
    "BowTieClassifier": own_classifier("balanced"),
    "BowTieClassifier, best": own_classifier("best"),
    "Gaussian process": Method(proba(class_process), most_rows=1_000),
    "TabM": Method(
        proba(partial(tabular_classifier, "TabM_D")), most_rows=10_000, needs="pytabkit", splits=3
    ),
    "RealMLP": Method(proba(partial(tabular_classifier, "RealMLP_TD")), needs="pytabkit", splits=3),
}


def poisson(mean: Floats) -> CountMixture:
    """Poisson distributions."""
    return CountMixture(weights=np.ones(1), means=mean[None], dispersion=np.zeros(1))


def poisson_catboost(X: Any, y: Floats, seed: int) -> Any:
    """A fifth of the rows says how many trees are fitted to all."""
    loss = {"loss_function": "Poisson"}
    _, model, _, _ = methods.stopped(X, y, seed, **loss)
    return lambda new: poisson(model.predict(new, prediction_type="Exponent"))


def poisson_lightgbm(X: Any, y: Floats, seed: int) -> Any:
    """Learning rate 0.05; a fifth of the rows says when to stop."""
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    length = {"n_estimators": 5_000, "learning_rate": 0.05, "objective": "poisson"}
    model = LGBMRegressor(**length, random_state=seed, n_jobs=1, verbose=-1)
    model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[early_stopping(50, verbose=False)])
    return lambda new: poisson(model.predict(new))


def poisson_linear(X: Floats, y: Floats, seed: int) -> Any:
    """Log-linear."""
    model = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3, max_iter=1_000)).fit(X, y)
    return lambda new: poisson(model.predict(new))


COUNTS: dict[str, Method] = {
    "Poisson regression": Method(poisson_linear),
    "LightGBM, Poisson": Method(poisson_lightgbm, "categories"),
    "CatBoost, Poisson": Method(poisson_catboost, "categories"),
    "BowTieCountRegressor": own(BowTieCountRegressor),
}
METHODS = {"numbers": NUMBERS, "classes": CLASSES, "counts": COUNTS}

QUOTED: dict[str, dict[str, tuple[float, float | None]]] = {
    "airfoil": {
        "random forest": (0.2560, None),
        "XGBoost": (0.2025, None),
        "CatBoost": (0.2393, 0.1479),
        "deep ensemble": (0.3650, 0.1760),
        "TabPFN (V2)": (0.1359, -0.9338),
        "Bayesian deep ensemble": (0.1215, -0.9126),
    },
    "bike sharing": {
        "random forest": (0.2440, None),
        "XGBoost": (0.2143, None),
        "CatBoost": (0.2652, -0.3737),
        "deep ensemble": (0.2880, -0.4550),
        "TabPFN (V2)": (0.2103, -0.6856),
        "Bayesian deep ensemble": (0.2261, -0.7315),
    },
}
"""RMSE and NLL of a Gaussian that the authors of `sklearn-contrib-bde` printed: means of five seeds
on one split, with ten cores."""
