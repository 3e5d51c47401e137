"""What the defaults of `BowTieRegressor` are worth: each setting changed alone, on several sets.

Fits each variant to the five sets of the paper with the split seeds 110, 111, ... and scores it on
the rows put aside (`benchmarks._old.accuracy.study`). `make study-defaults` runs it and prints Markdown
with a row for each variant; docs/measurements/accuracy.md says what was learnt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks._old.accuracy.study import Variant, options, ours, run, standard_error
from bowtienet._old import FitOptions

SETS = ("slump", "yacht", "boston", "energy", "concrete")
FIRST_SEED = 110

VARIANTS: dict[str, Variant] = {
    "default": ours(),
    "n_estimators=1": ours(n_estimators=1),
    "n_estimators=4": ours(n_estimators=4),
    "weighting=equal": ours(options=FitOptions(weighting="equal")),
    "weighting=elbo": ours(options=FitOptions(weighting="elbo")),
    "gate_temperature=0.1": ours(options=FitOptions(gate_temperature=0.1)),
    "prior=laplace": ours(prior="laplace"),
    "prior=gaussian": ours(prior="gaussian"),
    "init=laplace": ours(options=FitOptions(init="laplace")),
}


def main(given: list[str] | None = None) -> None:
    parser = options(__doc__, list(VARIANTS), SETS, first_seed=FIRST_SEED, splits=2)
    chosen = parser.parse_args(given)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.splits)
    variants = {name: VARIANTS[name] for name in chosen.variants}
    table = run(variants, chosen.sets, seeds, chosen.n_jobs)
    print(by_variant(chosen.variants, chosen.sets, table))
    print(f"\nSplit seeds {seeds.start} to {seeds.stop - 1}; cells are RMSE / NLL / 95 % coverage.")


def by_variant(variants: Sequence[str], sets: Sequence[str], table: np.ndarray) -> str:
    """A row for each variant: means over the splits, and NLL over the sets beside the first row."""
    lines = [
        f"| setting | {' | '.join(sets)} | mean NLL | NLL above the first | seconds |",
        "|---" * (len(sets) + 4) + "|",
    ]
    first = table[:, 0, :, 1]
    for place, variant in enumerate(variants):
        own = table[:, place]
        cells = [
            f"{error:.3g} / {nll:.2f} / {inside:.2f}"
            for error, nll, _, inside, _ in own.mean(axis=1)
        ]
        above = np.mean(own[..., 1] - first, axis=0)
        lines.append(
            f"| {variant} | {' | '.join(cells)} | {own[..., 1].mean():.3f} "
            f"| {above.mean():+.3f} ± {standard_error(above):.3f} | {own[..., 4].mean():.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
