"""What the networks see: columns as they are or in bins, targets as they are or warped, or "auto".

Fits each choice to eight tables (those that are not published sets of `benchmarks._old.paper.sets` come
from the folder that the environment variable BOWTIENET_DATA names) with the split seeds 540, 541,
... and scores it on the rows put aside (`benchmarks._old.accuracy.study`). `make study-representation`
runs it and prints Markdown; docs/measurements/representation.md holds a run.
"""

from __future__ import annotations

from benchmarks._old.accuracy.study import Variant, options, ours, report, run, seeds_in_words

SETS = ("slump", "yacht", "boston", "energy", "concrete", "autompg", "airfoil", "kin40k")
FIRST_SEED = 540

VARIANTS: dict[str, Variant] = {
    "auto": ours(),
    "standard, none": ours(features="standard", target_transform="none"),
    "standard, yeo-johnson": ours(features="standard", target_transform="yeo-johnson"),
    "piecewise, none": ours(features="piecewise", target_transform="none"),
    "piecewise, yeo-johnson": ours(features="piecewise", target_transform="yeo-johnson"),
}


def main(given: list[str] | None = None) -> None:
    parser = options(__doc__, list(VARIANTS), SETS, first_seed=FIRST_SEED, splits=4)
    chosen = parser.parse_args(given)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.splits)
    variants = {name: VARIANTS[name] for name in chosen.variants}
    table = run(variants, chosen.sets, seeds, chosen.n_jobs)
    print(report(chosen.sets, chosen.variants, table))
    print(f"\n{seeds_in_words(seeds)}")


if __name__ == "__main__":
    main()
