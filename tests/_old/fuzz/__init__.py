"""Random tables, settings, files, kills and commands, from one seed, for as long as wanted.

    python -m tests._old.fuzz.soak --seconds 3600 --seed 500              an hour, as `make soak`
    python -m tests._old.fuzz.soak --seed 500 --cases 40 --kind kill      the first 40 cases of a kind
    python -m tests._old.fuzz.soak --seed 500 --case 123                  one case, with all it did

A case follows from the seed and its number alone: case k draws its kind, its table, its settings
and all else from the generator of (seed, k). It runs in a forked process with limits of time and
memory, so that a crash, a hang or a leak is found as a wrong answer is. Failures that are likely of
one fault are counted together; each is printed with the command that runs it alone.

The modules:

    tables, settings, containers    what is drawn
    attempts                        what a call may do: answer, or refuse with a sentence
    properties                      what holds for every fitted estimator
    fits, files, threads, commands  the cases
    soak                            the runner, and the kinds of cases with their shares
    test_share                      the share of them that `make test-all` runs
    test_any_input                  what Hypothesis can shrink: rows, files and texts

A new kind of case is a function ``(rng, folder, note) -> str`` that `soak.KINDS` names. It draws
from `rng`, writes only to `folder`, tells `note` what it does, for the report, raises `Failure` for
what must not be, and returns a word for what became of it.
"""

import os

# Before the first import of NumPy: cases run side by side, and a fork must not find threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
