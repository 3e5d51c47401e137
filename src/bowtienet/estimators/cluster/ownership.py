"""Which worker owns which partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def share_out(
    sizes: Mapping[int, int],
    holders: Mapping[int, Sequence[str]],
    before: Mapping[int, str],
    live: Mapping[str, int],
) -> dict[int, str]:
    """Owners of the partitions: as before, or who has the data, or the one with least to do.

    What a worker has to do is counted in rows for each of its threads.
    """
    owners = {number: owner for number, owner in before.items() if owner in live}
    load = _load(sizes, owners, live)
    for number in sorted(set(sizes) - set(owners), key=lambda number: (-sizes[number], number)):
        size = sizes[number]
        able = holders[number] or sorted(live)
        owners[number] = min(able, key=lambda worker: (load[worker] + size) / live[worker])
        load[owners[number]] += size
    return owners


def level_out(
    sizes: Mapping[int, int],
    owners: Mapping[int, str],
    live: Mapping[str, int],
    *,
    all_may_take: bool,
) -> dict[int, str]:
    """Owners after those who have nothing, or all, took partitions from those who have most to do.

    To move a partition costs a transfer, so the gain must be a tenth.
    """
    owners = dict(owners)
    load = _load(sizes, owners, live)
    takers = [worker for worker, rows in load.items() if all_may_take or rows == 0]
    while takers:
        busiest = max(load, key=lambda worker: load[worker] / live[worker])
        taker = min(takers, key=lambda worker: load[worker] / live[worker])
        limit = 0.9 * load[busiest] / live[busiest]
        fitting = [
            number
            for number, owner in sorted(owners.items())
            if owner == busiest and (load[taker] + sizes[number]) / live[taker] <= limit
        ]
        if not fitting:
            break
        taken = max(fitting, key=sizes.__getitem__)
        owners[taken] = taker
        load[busiest] -= sizes[taken]
        load[taker] += sizes[taken]
    return owners


def _load(
    sizes: Mapping[int, int], owners: Mapping[int, str], live: Mapping[str, int]
) -> dict[str, int]:
    load = dict.fromkeys(sorted(live), 0)
    for number, owner in owners.items():
        load[owner] += sizes[number]
    return load
